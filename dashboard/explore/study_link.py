"""The way from Explore to a study: a link that hands network, image set and heatmap method to a new study."""

from __future__ import annotations

import streamlit as st

from core.attribution import METHODS
from dashboard.explore import source
from dashboard.shared import cache, links
from dashboard.shared.keys import HANDED_IMAGES, HANDED_METHOD, HANDED_MODEL, NEW_STUDY


def show_study_link(model: str, method: str) -> None:
    """Offer to test this heatmap method on participants."""
    handed = {"study": NEW_STUDY, HANDED_MODEL: model}
    if (images := st.session_state.get("source")) in cache.list_image_sets() and images != source.OWN:
        handed[HANDED_IMAGES] = str(images)
    if method in METHODS:
        handed[HANDED_METHOD] = method
    links.show_link("Test this on participants", "design", **handed)
