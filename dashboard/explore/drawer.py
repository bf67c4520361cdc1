"""The controls of Explore: part of the page on a wide screen, and a drawer below the images on a phone.

The drawer is HTML and CSS alone: it opens without a rerun, and by the keyboard.
"""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

_HANDLE = """
<style>
.drawer { display: none; }
@media (hover: none) { .st-key-hover { display: none; } } /* the choice of a heatmap for the mouse */
@media (max-width: 640px) {
  .stMain:has(.drawer) { scroll-padding-bottom: 4.5rem; }
  .stMainBlockContainer:has(.drawer) { padding-bottom: 6rem; } /* the last of the page above the handle */
  .drawer { display: block; position: fixed; z-index: 1001; inset: auto 0 0 0; }
  .drawer summary { display: block; padding: .85rem 1rem; cursor: pointer; text-align: center; font-weight: 600;
    color: #fff; background: #3747a8; }
  .drawer summary::-webkit-details-marker { display: none; }
  .drawer summary:focus-visible { outline: 3px solid #ffd43b; outline-offset: -5px; }
  .drawer[open] .to-open, .drawer:not([open]) .to-close { display: none; }
  .st-key-explore_controls { display: none; position: fixed; z-index: 1000; inset: auto 0 3.1rem 0;
    width: auto; max-height: 70dvh; flex-wrap: nowrap; overflow-y: auto; padding: 1rem;
    color-scheme: inherit; background: light-dark(#fff, #14161b); border-top: 1px solid #8a90a0; }
  .stApp:has(.drawer[open]) .st-key-explore_controls { display: flex; }
}
</style>
<details class="drawer"><summary><span class="to-open">Controls</span><span class="to-close">Close the controls</span>
</summary></details>
"""


def place_controls(place: DeltaGenerator | None = None) -> DeltaGenerator:
    """Return a container for all that chooses what is shown; a view has one, drawn before its images."""
    with place or st.container():
        st.html(_HANDLE)
        return st.container(key="explore_controls")
