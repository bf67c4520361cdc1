"""The effects of a channel: what the classes lose without it, and the concepts it responds to."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from core.layers.dissection import Dissection
from core.network.classifier import Classifier
from core.units.unit import Unit
from dashboard.explore.figures import AGAINST_CLASS, FOR_CLASS
from dashboard.explore.units.effect_jobs import ChannelEffects, make_effects_task
from dashboard.shared.live import draw_when_ready
from dashboard.shared.small_tables import draw_table
from data.types import ImageSet

TOP = 8
"""Classes shown: those with the largest effects."""
Z_95 = 1.96


def show(classifier: Classifier, unit: Unit, images: ImageSet) -> None:
    """Show both analyses of a channel, once they are computed."""
    st.markdown("**Effects of the channel**")
    task = make_effects_task(classifier, unit, images)
    draw_when_ready(task, lambda effects: _draw_result(classifier, effects), "_effects")


def _draw_result(classifier: Classifier, effects: ChannelEffects) -> None:
    left, right = st.columns(2, gap="large")
    with left:
        st.plotly_chart(losses(classifier, effects), key="unit_losses", config={"displayModeBar": False})
        st.caption(
            f"Loss in each class's probability on {effects.count:,} of its own images when the channel is set "
            "to 0, with 95% intervals. Orange: the channel supports the class. Blue: it opposes the class."
        )
    with right:
        if effects.dissection is None:
            st.info("Concepts of a channel can be named only for sets with known object locations: the scenes.")
            return
        draw_table(agreements(effects.dissection), "dissection")
        st.caption(_describe_detector(effects.dissection))


def losses(classifier: Classifier, effects: ChannelEffects) -> go.Figure:
    """Draw the largest effects as bars, with intervals."""
    names, deletion = classifier.names.short, effects.deletion
    drop, error = deletion.drop[0], deletion.error[0]
    largest = drop.abs().argsort(descending=True)[:TOP].flip(0)
    shown = [names[int(deletion.classes[k])] for k in largest]
    return bars(shown, drop[largest].tolist(), error[largest].tolist(), "probability lost")


def bars(names: list[str], values: list[float], errors: list[float], title: str) -> go.Figure:
    """Draw effects as horizontal bars, with 95% intervals from their standard errors."""
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


def agreements(dissection: Dissection) -> pd.DataFrame:
    """Return the three concepts the channel agrees with best."""
    best = dissection.agreement[0].argsort(descending=True)[:3].tolist()
    return pd.DataFrame(
        {
            "Responds to": [dissection.concepts[k] for k in best],
            "Agreement (IoU)": [f"{float(dissection.agreement[0, k]):.3f}" for k in best],
        }
    )


def _describe_detector(dissection: Dissection) -> str:
    chance = f"{float(dissection.chance[0]):.3f} is the best it reaches with masks shuffled across images"
    if bool(dissection.detects[0]):
        return f"It detects the first: {chance}."
    return f"It detects none of them: {chance}, and the threshold is .04."
