"""The trials of a bundle with all their facts, for the researcher only."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from core.names import format_name
from dashboard.shared.messages import escape_markdown
from study.analysis.words.headings import format_headings
from study.bundle import TYPE_LABELS, Bundle, Trial
from study.conditions import CONDITIONS, format_condition
from study.conditions.condition import Condition
from study.facts import UnitFacts
from study.tasks.discover import find_sealed

PER_PAGE = 6
ALL = "All"
TRUE = "True explanations"


def show(bundle: Bundle) -> None:
    """Show a page of trials, and what was dropped when the study was built."""
    manifest = bundle.manifest
    _show_dropped(manifest.dropped)
    kinds = {ALL: (*manifest.trials, *manifest.practice), "Practice": manifest.practice}
    kinds |= {TYPE_LABELS[t]: tuple(x for x in manifest.trials if x.trial_type == t) for t in TYPE_LABELS}
    kind = st.segmented_control(
        "Trials", kinds, default=ALL, required=True, key="trial_kind", label_visibility="collapsed"
    )
    condition = _choose_condition(manifest.conditions)
    trials = kinds[kind]
    if not trials:
        st.info("No such trials.")
        return
    place = st.container()
    page = st.pagination(-(-len(trials) // PER_PAGE), key=f"trial_page_{manifest.name}_{kind}")
    grid = place.grid(2, min_column_width=330)
    for trial in trials[(page - 1) * PER_PAGE : page * PER_PAGE]:
        with grid.container(border=True):
            _trial(bundle, trial, condition)


def _choose_condition(conditions: tuple[str, ...]) -> Condition | None:
    """Choose the images to show: the study's explanations, or those of a condition that has its own."""
    offered = [name for name in conditions if CONDITIONS[name].is_separate]
    if not offered:
        return None
    chosen = st.selectbox(
        "Explanations",
        [TRUE, *offered],
        format_func=lambda name: name if name == TRUE else format_condition(name),
        key="trial_placebo",
        width=280,
        help="Participants of a condition see its own images instead of the study's. A placebo is uninformative about "
        "the prediction.",
    )
    return None if chosen == TRUE else CONDITIONS[chosen]


def _trial(bundle: Bundle, trial: Trial, condition: Condition | None) -> None:
    _show_question(trial)
    if trial.unit is not None:
        _show_unit(bundle, trial, trial.unit)
    elif trial.attributes is not None:
        _show_images(bundle, trial.assets.target, trial.assets.target_map, "Heatmaps")
    elif condition is None:
        _show_images(bundle, trial.assets.target, trial.assets.target_map, f"Heatmap for {trial.target}")
        with st.expander("Examples"):
            _examples(bundle, trial)
    else:
        _show_condition(bundle, trial, condition)
    with st.expander("Details"):
        st.table(pd.DataFrame(list_facts(trial)), border="horizontal", hide_header=True, hide_index=True)
        for warning in trial.saliency.warnings:
            st.warning(escape_markdown(warning))


def _show_question(trial: Trial) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        if trial.unit is not None:
            st.markdown(f"Unit **{escape_markdown(trial.unit.name)}**", width="content")
            if trial.assets.examples:
                st.badge(f"More active: the image on the {trial.target}", color="blue")
            return
        if trial.attributes is not None:
            st.markdown(
                f"From {escape_markdown(trial.target)} to {escape_markdown(trial.alternative)}", width="content"
            )
            return
        right = trial.truth == trial.target
        st.markdown(f"**{escape_markdown(trial.target)}** or {escape_markdown(trial.alternative)}?", width="content")
        st.badge("AI right" if right else f"AI wrong, true class: {trial.truth}", color="green" if right else "orange")


def _show_unit(bundle: Bundle, trial: Trial, unit: UnitFacts) -> None:
    """Show the references of a unit, and beneath them the two images with their activations, if it has any."""
    references = [
        (trial.assets.target, "References: least active"),
        (trial.assets.target_map, "References: most active"),
    ]
    images = [
        (example.image, f"{example.category.capitalize()}: activation {activation:.3g}")
        for example, activation in zip(trial.assets.examples, unit.activations, strict=False)
    ]
    for pair in filter(None, (references, images)):
        for place, (name, said) in zip(st.columns(2, wrap=False), pair, strict=True):
            place.image(str(bundle.asset(name)), caption=said, width="stretch", alt=said)


def _show_images(bundle: Bundle, plain: str | None, covered: str | None, caption: str) -> None:
    target, mapped = st.columns(2, wrap=False)
    if plain is not None:
        target.image(str(bundle.asset(plain)), caption="Image", width="stretch", alt="Image")
    if covered is not None:
        mapped.image(str(bundle.asset(covered)), caption=caption, width="stretch", alt=caption)


def _show_condition(bundle: Bundle, trial: Trial, condition: Condition) -> None:
    """Show exactly what participants of the condition see, and what they take it for."""
    shown = condition.shown(trial)
    kind, how = ("Placebo", "Placebo, presented as what the AI calls") if condition.placebo else ("Condition", "With")
    _show_images(bundle, shown.target, shown.target_map, f"{kind}: {format_condition(condition.name)}")
    for category, samples in shown.examples.items():
        if samples:
            st.caption(f"{how} {escape_markdown(category)}")
            places = st.columns(len(samples), wrap=False, gap="xsmall")
            for k, (place, name) in enumerate(zip(places, samples, strict=True), 1):
                place.image(str(bundle.asset(name)), width="stretch", alt=f"Example {k} of {category}")


def _examples(bundle: Bundle, trial: Trial) -> None:
    for category in trial.options:
        st.caption(f"The AI calls these {escape_markdown(category)}")
        examples = [example for example in trial.assets.examples if example.category == category]
        places = st.columns(2 * max(len(examples), 1), wrap=False, gap="xsmall")
        for k, example in enumerate(examples):
            said = f"Example {k + 1} of {category}"
            places[2 * k].image(str(bundle.asset(example.image)), width="stretch", alt=said)
            places[2 * k + 1].image(str(bundle.asset(example.map)), width="stretch", alt=f"{said}, with its heatmap")


def list_facts(trial: Trial) -> list[tuple[str, str]]:
    """List the facts of a trial."""
    teaching, saliency, unit = trial.teaching, trial.saliency, trial.unit
    facts: list[tuple[str, Any, str]] = [
        ("Trial", f"{trial.id}, {TYPE_LABELS[trial.trial_type]}", ""),
        ("Unit", None if unit is None else unit.name, ""),
        ("Difference in activation (SDs)", None if unit is None else unit.gap, ".2f"),
        ("True class", trial.truth or None, ""),
        ("Prediction", trial.ai_probability and f"{trial.target} ({trial.ai_probability:.1%})", ""),
        ("Attributes used", trial.attributes and find_sealed(trial), ""),
        ("Uncertainty", _format_uncertainty(trial), ""),
        ("Learner's P after the examples", teaching.p_learner, ".3f"),
        ("Learner's P before", teaching.p_prior, ".3f"),
        ("Gain (log-odds)", teaching.gain, "+.3f"),
        ("Policy", teaching.policy, ""),
        ("Heatmap method", saliency.method, ""),
        ("Origin of the heatmap", ", ".join(saliency.origin.values()) or None, ""),
        ("Effective sample size", saliency.effective_samples, ",.0f"),
        ("Largest standard error", saliency.standard_error, ".3g"),
        ("Completeness residual", saliency.completeness, "+.3%"),
        ("Relevance of the heatmap", trial.relevance, ".3f"),
        ("Region to find, share of the image", None if trial.region is None else trial.region.area, ".1%"),
        ("Source", trial.source, ""),
    ]
    return [(name, f"{value:{form}}") for name, value, form in facts if value is not None]


def _format_uncertainty(trial: Trial) -> str | None:
    """Format the uncertainty and its stratum, if the study has strata."""
    known = trial.stratum
    if known is None:
        return None
    value = "infinite" if known.value is None else f"{known.value:.3f}"
    error = f" ± {known.error:.3f}" if known.error else ""
    return f"{format_name(known.measure)} {value}{error}, stratum {known.stratum + 1} of {known.strata}"


def _show_dropped(dropped: tuple[dict[str, str], ...]) -> None:
    if dropped:
        with st.expander(f"{len(dropped)} group(s) of trials dropped, with reasons"):
            table = pd.DataFrame(dropped).replace({"trial_type": dict(TYPE_LABELS)})
            st.table(table.rename(columns=format_headings(table)), border="horizontal", hide_index=True)
