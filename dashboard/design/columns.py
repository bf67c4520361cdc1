"""Settings next to what they make, which stays in sight while they are scrolled."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator


def side_by_side(key: str, widths: Sequence[float] = (1, 1)) -> tuple[DeltaGenerator, DeltaGenerator]:
    """Return the place of the settings and, next to it or below on a narrow screen, that of what they make."""
    left, right = st.columns(list(widths), gap="large")
    return left, right.container(key=f"design_side_{key}")
