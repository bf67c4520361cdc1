"""Settings next to what they make, which stays in sight while they are scrolled."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

STYLE = """<style>
@media (min-width: 1000px) {
  .stMainBlockContainer:has([class*=st-key-design_side]) { max-width: 110rem; }
  [data-testid=stColumn]:has([class*=st-key-design_side]) {
    position: sticky; top: 4rem; align-self: flex-start; max-height: calc(100dvh - 5rem); overflow-y: auto;
  }
}
@media (max-width: 999px) {
  [data-testid=stHorizontalBlock]:has(> [data-testid=stColumn] [class*=st-key-design_side]) { flex-direction: column; }
  [data-testid=stHorizontalBlock] > [data-testid=stColumn]:has([class*=st-key-design_side]) { width: 100%; }
}
</style>"""


def side_by_side(key: str, widths: Sequence[float] = (1, 1)) -> tuple[DeltaGenerator, DeltaGenerator]:
    """Return the place of the settings and, next to it or below on a narrow screen, that of what they make."""
    st.html(STYLE)
    left, right = st.columns(list(widths), gap="large")
    return left, right.container(key=f"design_side_{key}")
