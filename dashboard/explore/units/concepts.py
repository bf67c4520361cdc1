"""The concepts a class relies on: effects of changing the images, and concepts of the layers (TCAV)."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from core.concepts.tcav import Tcav
from core.network.classifier import Classifier
from dashboard.explore.units import vae_effects
from dashboard.explore.units.concept_jobs import (
    InterventionEffects,
    list_concepts,
    make_intervention_task,
    make_tcav_task,
)
from dashboard.explore.units.effects import bars
from dashboard.shared.live import draw_when_ready
from dashboard.shared.messages import escape_markdown
from dashboard.shared.small_tables import draw_table
from data.types import ImageSet

TOP = 8
"""Concepts shown: those with the largest effects."""
NOT = "Not tested"
MOST_LAYERS = 3
LEVEL = 0.05


def show(classifier: Classifier, target: int, images: ImageSet) -> None:
    """Show the analyses of a class; those that change the images, only for a set that can."""
    st.markdown("**Concepts the class depends on**")
    if not images.factors:
        st.info(
            f"The content of these images cannot be changed one factor at a time. To test a concept in the layers, put "
            f"images of it, and other images, into two folders and run `python foretell.py concepts --target "
            f'"{classifier.categories[target]}" --concept FOLDER --random FOLDER`.'
        )
    else:
        left, right = st.columns(2, gap="large")
        with left:
            _effects(classifier, target, images)
        with right:
            _push(classifier, target, images)
    vae_effects.show(classifier, target, images, format_concept)


def _effects(classifier: Classifier, target: int, images: ImageSet) -> None:
    def draw(effects: InterventionEffects) -> None:
        st.plotly_chart(changes(effects, target), key="reliance", config={"displayModeBar": False})
        st.caption(
            f"Change in the probability of {escape_markdown(classifier.names.short[target])} when only this "
            f"factor is set in {effects.count:,} of the images, compared with its other values, with 95% intervals. "
            "Orange: for the class. Blue: against it."
        )

    draw_when_ready(make_intervention_task(classifier, images), draw, "_interventions")


def changes(effects: InterventionEffects, target: int) -> go.Figure:
    """Draw the largest effects on a class as bars, with intervals."""
    value = {name: float(effect.value[target]) for name, effect in effects.effects.items()}
    largest = sorted(value, key=lambda name: abs(value[name]))[-TOP:]
    errors = [float(effects.effects[name].error[target]) for name in largest]
    drawn = bars([format_concept(name) for name in largest], [value[n] for n in largest], errors, "probability gained")
    return drawn.update_layout(height=320)


def format_concept(concept: str) -> str:
    """Format a concept for display: ``"context=sea"`` -> ``"context: sea"``."""
    return concept.replace("=", ": ")


def _push(classifier: Classifier, target: int, images: ImageSet) -> None:
    """Choose concept and layers, and show the test."""
    concept = st.selectbox(
        "A concept in the layers (TCAV)",
        [NOT, *list_concepts(images)],
        format_func=format_concept,
        key="concept",
        bind="query-params",
        help="The direction of a concept in a layer is learned from images with and without it. If the class's logit "
        "rises in that direction more than in random ones, the class is sensitive to the concept.",
    )
    if concept == NOT:
        return
    chosen = _choose_layers(classifier)
    if not chosen:
        st.info("Choose one to three layers.")
        return
    task = make_tcav_task(classifier, images, target, concept, tuple(chosen))
    draw_when_ready(task, lambda effect: _draw_tests(effect, classifier.names.short[target]), "_tcav")


def _choose_layers(classifier: Classifier) -> list[str]:
    layers = classifier.layers
    return st.multiselect(
        "Layers",
        layers,
        [layers[len(layers) * k // (MOST_LAYERS + 1)] for k in range(1, MOST_LAYERS + 1)],
        max_selections=MOST_LAYERS,
        key="concept.layers",
        bind="query-params",
        wrap=True,
    )


def _draw_tests(tests: tuple[Tcav, ...], name: str) -> None:
    draw_table(make_test_table(tests), "tcav")
    chance = len(tests[0].random)
    st.caption(
        f"Score: share of the images of {escape_markdown(name)} whose logit rises towards the concept. "
        f"p: how often one of "
        f"{chance} random concepts has as large an effect, times the number of layers; its smallest possible value is "
        f"{len(tests) / (1 + chance):.3f}. The bars show how much the class depends on the concept."
    )
    for warning in (warning for one in tests for warning in one.warnings):
        st.warning(escape_markdown(warning))


def make_test_table(tests: tuple[Tcav, ...]) -> pd.DataFrame:
    """Return one row per layer, with its interpretation."""
    return pd.DataFrame(
        {
            "Layer": [one.layer for one in tests],
            "Score": [f"{one.score:.2f}\u00a0±\u00a0{one.error:.2f}" for one in tests],
            "p": [f"{one.p_value:.3f}" for one in tests],
            "Effect on the class": [_verdict(one) for one in tests],
        }
    )


def _verdict(one: Tcav) -> str:
    if one.p_value > LEVEL:
        return "no more than chance"
    return "raises its logit" if one.sensitivity > 0 else "lowers its logit"
