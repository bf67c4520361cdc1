"""Choose how heatmaps are drawn, and on what scale."""

from __future__ import annotations

from typing import Literal, get_args

import streamlit as st

from dashboard.explore.figures import HeatmapStyle, Style
from dashboard.explore.heatmaps.sheet import DARK, LIGHT, Palette
from dashboard.explore.table import SCALINGS, Scaling

BIND: Literal["query-params"] = "query-params"
CLIP_HELP = "This share of the strongest pixels gets the full colour. A larger share makes weaker values visible."


def choose_style(*, object_known: bool, clip: float, clip_key: str = "clip") -> HeatmapStyle:
    """Choose colours, outline or the heatmap alone, how strong, and whether the object's edge is drawn.

    ``clip`` is the percentage of pixels that get the full colour until the reader chooses another; views with other
    defaults need other keys, or a link would not say which value it means.
    """
    style = st.segmented_control(
        "Heatmap style",
        get_args(Style),
        default="Colours",
        required=True,
        key="style",
        bind=BIND,
        help="Colours: over the grey image. Outline: a line around the strongest evidence for the class. "
        "Heatmap alone: without the image.",
    )
    opacity, percent = 0.8, 10.0
    with st.popover("Drawing"):
        if style == "Outline":
            percent = st.slider("Outlined area, %", 1.0, 50.0, 10.0, 1.0, key="percent", bind=BIND)
        else:
            clip = st.slider("Clip, % of pixels", 0.0, 20.0, clip, 0.5, key=clip_key, bind=BIND, help=CLIP_HELP)
        if style == "Colours":
            opacity = st.slider("Opacity of the heatmap", 0.0, 1.0, 0.8, 0.05, key="opacity", bind=BIND)
        outline = object_known and st.toggle("Object outline", key="outline", bind=BIND)
    return HeatmapStyle(style, opacity, percent, outline, clip)


def choose_scaling(default: Scaling = "Shared", key: str = "scale") -> Scaling:
    """Choose one scale for each method, or one for each heatmap."""
    chosen: Scaling = st.segmented_control(
        "Scale",
        list(SCALINGS),
        default=default,
        required=True,
        key=key,
        bind=BIND,
        help="Methods have different units, so heatmaps of different methods never share a scale. "
        "Shared: heatmaps of one method can be compared. Own: each heatmap uses the full range of colours.",
    )
    return chosen


def choose_faithfulness() -> bool:
    """Choose whether to measure the faithfulness of the heatmaps too."""
    return st.toggle(
        "Faithfulness",
        key="faithfulness",
        bind=BIND,
        help="Deletion and insertion: the AI's confidence as the most important pixels are removed or added. "
        "If the object is known: the share of the evidence on it. Infidelity: how poorly the heatmap predicts the "
        "effect of covering squares. For a single image also: whether the heatmap depends on the trained weights, and "
        "how much it changes when the image barely does.",
    )


def find_palette() -> Palette:
    """Return the colours of sheets on the page as it is shown now, light or dark."""
    return DARK if st.context.theme.type == "dark" else LIGHT
