"""The likeliest classes of an image, with their probabilities."""

from __future__ import annotations

import streamlit as st

from core.names import format_probability
from dashboard.explore.images import ClassifiedImage
from dashboard.shared.messages import escape_markdown

TOP = 5
TOP_HEADING = f"Top {TOP} predictions"


def show_top_predictions(seen: ClassifiedImage, target: int | None) -> None:
    """Draw the likeliest classes as bars; the explained one is bold."""
    for k in seen.ranked_classes[:TOP]:
        name = escape_markdown(seen.classifier.names.short[k])
        probability = float(seen.probabilities[k])
        st.progress(probability, f"{f'**{name}**' if k == target else name} {format_probability(probability)}")
