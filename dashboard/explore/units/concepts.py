"""What an AI relies on for a class: what changing the pictures does to it, and whether a layer's concept pushes it."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from core.classifier import Classifier
from core.concepts.tcav import Tcav
from dashboard.explore.heatmaps.cells import class_names
from dashboard.explore.units.concept_jobs import InterventionEffects, InterventionRequest, TcavRequest, list_concepts
from dashboard.explore.units.effects import bars
from dashboard.shared.live import draw_when_ready
from dashboard.shared.messages import escape_markdown
from data.types import ImageSet
from study.network.sources import plain

TOP = 8
"""Concepts shown: those with the largest effects."""
NOT = "Not tested"
MOST_LAYERS = 3
LEVEL = 0.05


def show(classifier: Classifier, target: int, images: ImageSet) -> None:
    """Both answers about one class; of a set whose pictures cannot be changed, where to ask."""
    st.markdown("**What it relies on**")
    if not images.factors:
        st.info(
            f"What is in these pictures cannot be changed one thing at a time: put pictures of a concept, and others, "
            f"into two folders and ask `python foretell.py concepts --target "
            f'"{plain(classifier.categories[target])}" --concept FOLDER --random FOLDER`.'
        )
        return
    left, right = st.columns(2, gap="large")
    with left:
        _effects(classifier, target, images)
    with right:
        _push(classifier, target, images)


def _effects(classifier: Classifier, target: int, images: ImageSet) -> None:
    def draw(found: InterventionEffects) -> None:
        st.plotly_chart(changes(found, target), key="reliance", config={"displayModeBar": False})
        st.caption(
            f"Change in the probability of {escape_markdown(class_names(classifier)[target])} when only this is "
            f"put into {found.pictures:,} of the images, against the other values it can have, with 95% intervals. "
            "Orange: for the class. Blue: against it."
        )

    draw_when_ready(InterventionRequest(classifier, images), draw, "_reliance")


def changes(found: InterventionEffects, target: int) -> go.Figure:
    """Bars of the largest effects on a class, their intervals as lines."""
    value = {name: float(effect.value[target]) for name, effect in found.effects.items()}
    largest = sorted(value, key=lambda name: abs(value[name]))[-TOP:]
    errors = [float(found.effects[name].error[target]) for name in largest]
    drawn = bars([format_concept(name) for name in largest], [value[n] for n in largest], errors, "probability gained")
    return drawn.update_layout(height=320)


def format_concept(concept: str) -> str:
    """A concept as people write it: ``"context=sea"`` -> ``"context: sea"``."""
    return concept.replace("=", ": ")


def _push(classifier: Classifier, target: int, images: ImageSet) -> None:
    """The choice of concept and layers, and the test."""
    concept = st.selectbox(
        "A concept in the layers (TCAV)",
        [NOT, *list_concepts(images)],
        format_func=format_concept,
        key="concept",
        bind="query-params",
        help="In which direction of a layer the concept lies is learned from pictures with it and without it. If the "
        "class's logit rises in that direction, more than in directions learned from nothing, the class goes by it.",
    )
    if concept == NOT:
        return
    layers = classifier.layers
    chosen = st.multiselect(
        "Layers",
        layers,
        [layers[len(layers) * k // (MOST_LAYERS + 1)] for k in range(1, MOST_LAYERS + 1)],
        max_selections=MOST_LAYERS,
        key="concept.layers",
        bind="query-params",
        wrap=True,
    )
    if not chosen:
        st.info("Choose one to three layers.")
        return
    request = TcavRequest(classifier, images, target, concept, tuple(chosen))
    draw_when_ready(request, lambda found: _draw_tests(found, class_names(classifier)[target]), "_push")


def _draw_tests(found: tuple[Tcav, ...], name: str) -> None:
    st.table(make_test_table(found), border="horizontal", hide_index=True)
    chance = len(found[0].random)
    st.caption(
        f"Score: share of the images of {escape_markdown(name)} whose logit rises towards the concept. "
        f"p: how often one of "
        f"{chance} concepts that are none pushes as hard, times the number of layers; {len(found) / (1 + chance):.3f} "
        "is the least it can be. How much the class owes to the concept, the bars say."
    )
    for warning in (warning for one in found for warning in one.warnings):
        st.warning(escape_markdown(warning))


def make_test_table(found: tuple[Tcav, ...]) -> pd.DataFrame:
    """A row a layer, with what to make of it."""
    return pd.DataFrame(
        {
            "Layer": [one.layer for one in found],
            "Score": [f"{one.score:.2f}\u00a0±\u00a0{one.error:.2f}" for one in found],
            "p": [f"{one.p_value:.3f}" for one in found],
            "Pushes": [_verdict(one) for one in found],
        }
    )


def _verdict(one: Tcav) -> str:
    if one.p_value > LEVEL:
        return "no more than chance"
    return "up" if one.sensitivity > 0 else "down"
