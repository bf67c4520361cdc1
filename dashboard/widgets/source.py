"""Which picture is explained: one of the scenes, or a file of one's own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import streamlit as st
from numpy.typing import NDArray
from PIL import Image

from dashboard import cache
from dashboard.widgets import picker, uploads

SCENES = {"Misleading": "adversarial", "Ordinary": "standard"}
OWN = "Upload"


@dataclass(frozen=True)
class Chosen:
    """A picture and what is known of it."""

    picture: Image.Image
    name: str
    truth: str | None = None
    context: str | None = None
    mask: NDArray[np.bool_] | None = None


def choose(model: str) -> Chosen | None:
    """The chosen picture; None until a file is given. Scenes are for the classifier that knows them."""
    sources = [*SCENES, OWN] if model == "scenes" else [OWN]
    source = st.segmented_control(
        "Pictures",
        sources,
        default=sources[0],
        required=True,
        key=f"source_{model}",
        persist_state="session",
        help="Misleading: things in unusual places. Ordinary: mostly where the AI learned to see them.",
    )
    return _scene(SCENES[source]) if source in SCENES else _own()


def _scene(split: str) -> Chosen:
    gallery = cache.gallery(split)
    i = picker.pick(gallery, split)
    images = gallery.images
    return Chosen(
        images.open(i),
        images.ids[i],
        images.categories[images.labels[i]],
        images.contexts[i] if images.contexts else None,
        images.mask(i) if images.mask else None,
    )


def _own() -> Chosen | None:
    file = st.file_uploader("A PNG, JPEG or WebP file", type=uploads.ENDINGS, key="explore_file")
    return None if file is None else Chosen(uploads.decoded(file.getvalue(), file.name), file.name)
