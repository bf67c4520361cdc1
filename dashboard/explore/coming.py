"""What is drawn where an image and its heatmaps are about to be: their places, with what each will show."""

from __future__ import annotations

import streamlit as st

PLACES = ("What the AI saw", "Its heatmap", "Heatmap alone, with its scale")


def show_places() -> None:
    """Draw an empty place for each image (style.css), as large as the image that comes."""
    places = "".join(f"<figure><div></div><figcaption>{place}</figcaption></figure>" for place in PLACES)
    st.html(f'<div class="coming">{places}</div>')
