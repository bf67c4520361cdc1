"""Small heatmaps of the images of a set, for the thumbnail that the mouse is over or the keyboard has reached."""

from __future__ import annotations

from functools import partial
from urllib.parse import urlencode

import streamlit as st

from core.drawing.views import view
from core.errors import ForetellError
from core.names import format_name
from core.types import Progress
from dashboard.explore.figures import HeatmapDrawing, HeatmapStyle
from dashboard.explore.heatmap_jobs import HeatmapRequest
from dashboard.explore.methods import list_methods
from dashboard.shared import cache, links
from dashboard.shared.cache import Gallery
from dashboard.shared.imagegrid import make_thumbnail
from dashboard.shared.jobs import Job, pool
from dashboard.shared.keys import HEATMAP_PATH, digest
from inquiry.debugging.disagreement import QUICK_METHODS

NOTHING = "None"
FIRST = "grad_cam"
HOVER_KEY = "hover"
SIDE = 192
LOOK = HeatmapStyle()


def choose_hover(model: str) -> str:
    """Choose the method whose heatmap a thumbnail shows under the mouse or the focus; `NOTHING` for none.

    Only methods of about one backward pass: a movement of the mouse must not start long work.
    """
    offered = [NOTHING, *(name for name in QUICK_METHODS if name in list_methods(cache.load_classifier(model)))]
    links.check(HOVER_KEY, [format_name(name) for name in offered], "method")
    return st.selectbox(
        "Heatmap on hover", offered, offered.index(FIRST), format_func=format_name, key=HOVER_KEY,
        bind="query-params", help="Shown over an image that the mouse points at or the Tab key reaches.",
    )  # fmt: skip


def make_address(gallery: Gallery, model: str, name: str, method: str) -> str:
    """Return the address of the heatmaps of a set, to which a number is appended; empty without a method."""
    if method == NOTHING:
        return ""
    version = digest(cache.load_classifier(model).fingerprint, gallery.images.digest)[:16]
    return (
        f"{HEATMAP_PATH}?{urlencode({'network': model, 'images': name, 'method': method, 'version': version})}&image="
    )


def start_thumbnail_job(model: str, name: str, method: str, i: int) -> Job:
    """Start the job that draws the heatmap of an image for its predicted class as WebP, or classifies its set first.

    Raises
    ------
    ForetellError
        A network, set, image or method that is not offered.
    """
    if model not in cache.list_models() or method not in QUICK_METHODS:
        raise ForetellError("This network or method is not offered here. Choose another one in the Gallery.")
    if not cache.is_drawn(name) and name not in cache.list_image_sets():
        raise ForetellError(f"There is no image set {name!r}. Choose another one in the Gallery.")
    classified = cache.start_gallery_job(model, name)
    if classified.state != "done":
        return classified
    gallery: Gallery = classified.result
    if not 0 <= i < len(gallery.images):
        raise ForetellError(f"{name} has no image {i}. Its images are 0 to {len(gallery.images) - 1}.")
    key = digest("thumbnail", cache.load_classifier(model).fingerprint, gallery.images.digest, method, str(i))
    return pool().ask(key, partial(_draw, model, gallery, method, i))


def _draw(model: str, gallery: Gallery, method: str, i: int, progress: Progress) -> bytes:
    classifier, photograph = cache.load_classifier(model), gallery.images.open(i)
    inputs = classifier.preprocess(photograph)
    target = int(gallery.predictions.predicted[i])
    explanation = HeatmapRequest(classifier, method, inputs, target, 0, {}).compute(progress)
    return make_thumbnail(HeatmapDrawing(view(classifier, photograph, inputs), explanation).draw(LOOK), SIDE)
