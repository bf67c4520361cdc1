"""One trial as participants see it: the image, the question, and the two options with their examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard.shared.messages import escape_markdown

PLACES = 4
"""Width of the first row: the image, its heatmap, and as much space again."""


def draw_screen(
    images: Sequence[Path],
    question: str,
    options: Mapping[str, Sequence[Path]],
    badges: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Draw the images, the question, and below it each option with its examples, from left to right.

    ``badges`` are words next to an option's name, such as which was chosen.
    """
    for place, image, alt in zip(st.columns(PLACES, wrap=False), images, ("Image", "Explanation"), strict=False):
        place.image(str(image), width="stretch", alt=alt)
    st.markdown(escape_markdown(question))
    for place, (name, samples) in zip(st.columns(2, wrap=False), options.items(), strict=True):
        with place.container(border=True):
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown(f"**{escape_markdown(name)}**", width="content")
                for badge in (badges or {}).get(name, ()):
                    st.badge(badge, color="blue")
            for k, (spot, sample) in enumerate(zip(_divide(len(samples)), samples, strict=False), 1):
                spot.image(str(sample), width="stretch", alt=f"Example {k} of {name}")


def _divide(count: int) -> Sequence[DeltaGenerator]:
    """Divide an option's box into places for its examples; two at least, so that one is not drawn larger."""
    return st.columns(max(count, 2), gap="xsmall") if count else ()
