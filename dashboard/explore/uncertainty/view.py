"""Uncertainty of the prediction of one image, from repeated passes under noise."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from core.names import format_name
from core.network.classifier import Classifier
from core.uncertainty import SAMPLERS
from core.uncertainty.passes import explain_refusal
from dashboard.explore.figures import DELETION, INSERTION
from dashboard.explore.images import ClassifiedImage
from dashboard.explore.uncertainty.jobs import PASSES, UncertaintyResult, make_uncertainty_task
from dashboard.shared import links
from dashboard.shared.live import draw_when_ready
from dashboard.shared.messages import escape_markdown
from dashboard.shared.small_tables import draw_table

NOT = "None"
OFFERED = [name for name in SAMPLERS if name != "laplace"]
"""The Laplace approximation needs a posterior from a training set, which only the command line has."""
TOP = 5
MEANINGS = {
    "least_confidence": "1 minus the largest mean probability",
    "entropy": "total uncertainty, in bits",
    "mutual_information": "the part that knowing the weights would remove, in bits",
    "variation_ratio": "share of sampled predictions that are not the most frequent one",
}


UNITS = {"entropy": math.log(2), "mutual_information": math.log(2)}
"""The nats of the unit in which a measure is shown: a bit, as elsewhere on Explore."""


def show(seen: ClassifiedImage, seed: int) -> None:
    """Choose the noise, and show the predictions under it."""
    st.subheader("Uncertainty of the prediction", anchor=False)
    refusals = _explain_refusals(seen.classifier.fingerprint, seen.classifier)
    fitting = [name for name in OFFERED if not refusals[name]]
    links.check("noise", [format_name(name) for name in [NOT, *fitting]], "noise")
    chosen = st.selectbox(
        f"Noise for {PASSES} repeated passes",
        [NOT, *fitting],
        format_func=format_name,
        key="noise",
        bind="query-params",
        width=320,
        help="Noise on the weights or the activations represents what training left undetermined. If the predictions "
        "differ, the network is uncertain. The command `uncertainty` does this for whole sets and tests whether "
        "uncertainty detects errors.",
    )
    for why in dict.fromkeys(filter(None, refusals.values())):
        names = [format_name(name) for name in OFFERED if refusals[name] == why]
        st.caption(escape_markdown(f"Not offered: {', '.join(names)}. {why}"))
    if chosen == NOT:
        return
    task = make_uncertainty_task(seen.classifier, chosen, seen.inputs, seed)
    draw_when_ready(task, lambda result: _draw_result(seen, result), "_uncertainty")


@st.cache_data(max_entries=50, show_spinner=False)  # the page is drawn after every click
def _explain_refusals(fingerprint: str, _classifier: Classifier) -> dict[str, str]:  # noqa: ARG001
    """Say of each sampler why it does not fit a network; empty if it does."""
    return {name: explain_refusal(_classifier, SAMPLERS[name]) for name in OFFERED}


def _draw_result(seen: ClassifiedImage, result: UncertaintyResult) -> None:
    left, right = st.columns(2, gap="large")
    with left:
        st.plotly_chart(figure(seen, result), key="uncertainty", config={"displayModeBar": False})
        st.caption(
            "Bars: mean prediction under noise; lines: middle 90% of the passes. Diamonds: prediction without noise."
        )
    with right:
        draw_table(make_measure_table(result), "uncertainty")


def figure(seen: ClassifiedImage, result: UncertaintyResult) -> go.Figure:
    """Draw mean and middle 90% of the passes for the likeliest classes, with the prediction without noise."""
    mean, names = result.probabilities.mean(0), seen.classifier.names.short
    top = mean.argsort(descending=True)[:TOP].tolist()[::-1]
    low, high = np.quantile(result.probabilities[:, top].numpy(), [0.05, 0.95], axis=0)
    middle = mean[top].numpy()
    drawn = go.Figure()
    drawn.add_bar(
        x=middle,
        y=[names[k] for k in top],
        orientation="h",
        name="under noise",
        marker={"color": INSERTION},
        error_x={"array": np.maximum(high - middle, 0), "arrayminus": np.maximum(middle - low, 0), "color": "#777"},
    )
    sure = seen.probabilities[top].numpy()
    marker = {"symbol": "diamond", "size": 11, "color": DELETION}
    drawn.add_scatter(x=sure, y=[names[k] for k in top], mode="markers", name="without noise", marker=marker)
    drawn.update_layout(
        height=250,
        margin={"l": 0, "r": 0, "t": 10, "b": 0},
        xaxis={"title": "Probability", "range": [0, 1.02]},
        legend={"orientation": "h", "y": 1.15},
    )
    return drawn


def make_measure_table(result: UncertaintyResult) -> pd.DataFrame:
    """Return each measure with its Monte Carlo error."""
    rows = [
        {
            "Measure": format_name(name),
            "Value": "\u00a0±\u00a0".join(
                f"{float(value[0]) / UNITS.get(name, 1.0):.3f}" for value in (estimate.value, estimate.error)
            ),
            "Meaning": MEANINGS[name],
        }
        for name, estimate in result.measures.items()
    ]
    return pd.DataFrame(rows)
