"""The controls of Explore: part of the page on a wide screen, and a drawer below the images on a phone.

The drawer is HTML and CSS alone: it opens without a rerun, and by the keyboard.
"""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

_HANDLE = """
<details class="drawer"><summary><span class="to-open">Controls</span><span class="to-close">Close the controls</span>
</summary></details>
"""


def place_controls(place: DeltaGenerator | None = None) -> DeltaGenerator:
    """Return a container for all that chooses what is shown; a view has one, drawn before its images."""
    with place or st.container():
        st.html(_HANDLE)
        return st.container(key="explore_controls")
