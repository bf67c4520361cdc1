"""What no plan named: measures one at a time, explanations against answers, and theories of people."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from dashboard import analysiswork
from dashboard.analysiswork import SEED, Analysed, Theory
from dashboard.widgets import live, numbers
from study.analysis import exploratory, items, plots
from study.analysis.exploratory import Measure
from study.bundle import Manifest

ITEMS, THEORIES = "Trials and their explanations", "Theories of people"
FIRST = ("p_learner", "relevance", "effective_samples", "ai_probability")


def show(found: Analysed, manifest: Manifest | None) -> None:
    """One measure, chosen by its name."""
    offers = {offer.title: offer for offer in exploratory.offers(found.data.frame, seed=SEED)}
    about_trials = [ITEMS, THEORIES] if manifest is not None else []
    choice = st.selectbox("Measure", [*offers, *about_trials], key="measure", bind="query-params", width=420)
    numbers.heading(choice, "exploratory")
    if choice in offers:
        live.shown(analysiswork.measured(found, offers[choice]), _measure, "measure")
    elif manifest is not None and choice == ITEMS:
        _items(found, manifest)
    elif manifest is not None:
        live.shown(analysiswork.theories(found, manifest), _theories, "theories")


def _measure(measure: Measure) -> None:
    st.caption(measure.says)
    if measure.figure is None:
        numbers.table(measure.table, f"exploratory_{measure.name}")
    else:
        numbers.chart(measure.figure, measure.table, f"exploratory_{measure.name}")


def _items(found: Analysed, manifest: Manifest) -> None:
    """How often each trial is foretold, beside what its explanation is worth."""
    trials = items.trials(manifest)
    scores = [name for name in trials if name != "item" and trials[name].nunique() > 1]
    scores.sort(key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))
    if not scores:
        st.info("The explanations of this study do not differ in any number.")
        return
    score = st.selectbox(
        "Against",
        scores,
        format_func=lambda n: n.replace("_", " "),
        key="score",
        bind="query-params",
        width=420,
        help="Frozen with the study.",
    )
    joined = items.against(found.data.frame, trials, score)
    numbers.chart(items.figure(joined, score), joined, f"exploratory_items_{score}")
    numbers.table(items.association(joined, score), f"exploratory_association_{score}")
    st.caption("Each mark is a trial in one condition. rho is Spearman's rank correlation over trials.")


def _theories(theories: list[Theory]) -> None:
    """Which theory the answers fit best, and its accuracy beside people's, cell by cell."""
    rows = [
        {
            "theory": t.fitted.name.replace("_", " "),
            "aic": t.fitted.aic,
            "loglik": t.fitted.loglik,
            **t.fitted.parameters,
        }
        for t in theories
    ]
    numbers.table(pd.DataFrame(rows), "exploratory_theories")
    st.caption("Parameters that make the answers likeliest, as if all people were alike; the smallest AIC first.")
    best = theories[0]
    st.plotly_chart(_overlay(best), key="figure_overlay", config={"displaylogo": False})
    with st.expander("The numbers"):
        numbers.table(best.cells, "exploratory_overlay")


def _overlay(best: Theory) -> go.Figure:
    """People and theory in the same cells, as points on one line where they agree."""
    cells = best.cells
    figure = go.Figure()
    for k, (name, column) in enumerate((("people", "people"), (best.fitted.name.replace("_", " "), "theory"))):
        figure.add_scatter(
            x=cells[column],
            y=cells["cell"],
            mode="markers",
            name=name,
            marker={"color": plots.PALETTE[k], "symbol": plots.MARKS[k], "size": 11},
        )
    plots.laid_out(figure, "", percent=False)
    return figure.update_layout(height=90 + 32 * len(cells)).update_xaxes(tickformat=".0%", range=[0, 1.03])
