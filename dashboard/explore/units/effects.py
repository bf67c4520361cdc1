"""What a channel does: what the classes lose without it, and the objects and contexts it lights up at."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from core.classifier import Classifier
from core.layers.dissection import Dissection
from core.units.unit import Unit
from dashboard.explore.figures import AGAINST_CLASS, FOR_CLASS
from dashboard.explore.heatmaps.cells import class_names
from dashboard.explore.units.effect_jobs import ChannelEffects, ChannelEffectsRequest
from dashboard.shared.live import draw_when_ready
from data.types import ImageSet

TOP = 8
"""Classes shown: those with the largest effects."""
Z_95 = 1.96


def show(classifier: Classifier, unit: Unit, images: ImageSet) -> None:
    """Both answers about one channel, once they are there."""
    st.markdown("**What it does**")
    draw_when_ready(
        ChannelEffectsRequest(classifier, unit, images), lambda found: _draw_result(classifier, found), "_effects"
    )


def _draw_result(classifier: Classifier, found: ChannelEffects) -> None:
    left, right = st.columns(2, gap="large")
    with left:
        st.plotly_chart(losses(classifier, found), key="unit_losses", config={"displayModeBar": False})
        st.caption(
            f"What the classes' probabilities lose on {found.pictures:,} of their own pictures when the channel is set "
            "to 0, with 95% intervals. Orange: the channel supports the class. Blue: it speaks against it."
        )
    with right:
        if found.dissection is None:
            st.info("Where the channel lights up can be named for sets that know where their objects are: the scenes.")
            return
        st.table(agreements(found.dissection), border="horizontal", hide_index=True)
        st.caption(_describe_detector(found.dissection))


def losses(classifier: Classifier, found: ChannelEffects) -> go.Figure:
    """Bars of the largest effects, their intervals as lines."""
    names, deletion = class_names(classifier), found.deletion
    drop, error = deletion.drop[0], deletion.error[0]
    largest = drop.abs().argsort(descending=True)[:TOP].flip(0)
    shown = [names[int(deletion.classes[k])] for k in largest]
    return bars(shown, drop[largest].tolist(), error[largest].tolist(), "probability lost")


def bars(names: list[str], values: list[float], errors: list[float], title: str) -> go.Figure:
    """Effects from the bottom up, to the right or to the left of 0, with 95 % intervals from their standard errors."""
    drawn = go.Figure(
        go.Bar(
            x=values,
            y=names,
            orientation="h",
            marker={"color": [FOR_CLASS if value >= 0 else AGAINST_CLASS for value in values]},
            error_x={"array": [Z_95 * error for error in errors], "color": "#777"},
        )
    )
    drawn.update_layout(height=280, margin={"l": 0, "r": 0, "t": 10, "b": 0}, xaxis={"title": title, "zeroline": True})
    return drawn


def agreements(found: Dissection) -> pd.DataFrame:
    """The three concepts it agrees with best."""
    best = found.agreement[0].argsort(descending=True)[:3].tolist()
    return pd.DataFrame(
        {
            "Lights up at": [found.concepts[k] for k in best],
            "Agreement (IoU)": [f"{float(found.agreement[0, k]):.3f}" for k in best],
        }
    )


def _describe_detector(found: Dissection) -> str:
    chance = f"{float(found.chance[0]):.3f} is the best it reaches when the masks are dealt to other pictures"
    if bool(found.detects[0]):
        return f"It is a detector of the first: {chance}."
    return f"It is a detector of none of them: {chance}, and .04 is the least that counts."
