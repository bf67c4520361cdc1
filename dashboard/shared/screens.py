"""One trial as participants see it: the image, the question, and the options with their examples, or attributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard.shared.messages import escape_markdown
from study.participation.attributes import ATTRIBUTES
from study.participation.screens import list_options

PLACES = 4
"""Width of the first row: the image, its heatmap, and as much space again."""
PAIR = 2
"""That of grids of images."""


def draw_screen(
    screen: Mapping[str, Any],
    find: Callable[[str], Path],
    texts: Mapping[str, str],
    badges: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Draw a screen of `study.participation.screens`: images, AI's label, question, each option with its examples.

    Parameters
    ----------
    find
        Returns the file of an image by its SHA-256.
    texts
        Those of the study.
    badges
        Words next to an option's name, such as which was chosen.
    """
    images = [find(name) for name in (screen["target"], screen["map"]) if name]
    count = PAIR if ATTRIBUTES in screen else PLACES
    for place, image, alt in zip(st.columns(count, wrap=False), images, ("Image", "Explanation"), strict=False):
        place.image(str(image), width="stretch", alt=alt)
    if "label" in screen:
        st.markdown(f"**{escape_markdown(screen['label']['text'])}**")
        _draw_samples(screen["label"], find)
    asked = screen.get("asked")
    st.markdown(escape_markdown(texts["question"] if asked is None else texts["catch"].replace("{name}", asked)))
    draw = _draw_attributes if ATTRIBUTES in screen else _draw_options
    draw(screen, find, badges or {})


def _draw_options(screen: Mapping[str, Any], find: Callable[[str], Path], badges: Mapping[str, Sequence[str]]) -> None:
    """Draw the options next to each other, each with its examples."""
    options = list_options(screen).values()
    for place, option in zip(st.columns(len(options), wrap=len(options) > 2), options, strict=True):
        name = option["name"]
        with place.container(border=True):
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown(f"**{escape_markdown(name)}**", width="content")
                for badge in badges.get(name, ()):
                    st.badge(badge, color="blue")
            _draw_samples(option, find)


def _draw_attributes(
    screen: Mapping[str, Any], find: Callable[[str], Path], badges: Mapping[str, Sequence[str]]
) -> None:
    """Draw the attributes to choose from, one below the other."""
    del find
    first, second = map(escape_markdown, screen[ATTRIBUTES]["ends"])
    st.caption(f"On the left, the AI is most certain of {first}; on the right, of {second}.")
    for one in screen[ATTRIBUTES]["offered"]:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"☐ {escape_markdown(one['name'])}", width="content")
            for badge in badges.get(one["name"], ()):
                st.badge(badge, color="blue")


def _draw_samples(place: Mapping[str, Any], find: Callable[[str], Path]) -> None:
    samples = place["samples"]
    for k, (spot, sample) in enumerate(zip(_divide(len(samples)), samples, strict=False), 1):
        spot.image(str(find(sample)), width="stretch", alt=f"Example {k} of {place['name']}")


def _divide(count: int) -> Sequence[DeltaGenerator]:
    """Divide an option's box into places for its examples; two at least, so that one is not drawn larger."""
    return st.columns(max(count, 2), gap="xsmall") if count else ()
