"""What the report consists of: its title, the facts of the study, and its sections in their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date

import pandas as pd
import plotly.graph_objects as go

from core.names import lower_first
from study.analysis.exploratory import slopes
from study.analysis.exploratory.analysis import ExploratoryResult
from study.analysis.models.sentences import alpha_text, coverage_text
from study.analysis.planned.analysis import PlannedAnalysis
from study.analysis.planned.nested import NestedAnalysis
from study.analysis.report import captions, figures, headline
from study.analysis.report.document import SHOWN, Part, Section
from study.analysis.responses.accuracies import order
from study.analysis.responses.blocks import describe_training
from study.analysis.responses.outcome import find_outcome
from study.analysis.responses.reading import Responses
from study.bundle import Manifest
from study.conditions import format_condition
from study.plan.adaptive import adaptive_of, describe_policy
from study.plan.orders import is_within
from study.plan.sittings import describe_times
from study.tasks import DEFAULT_TASK
from study.tasks.task import Task

MOST = 200
"""Rows of a table on the page; its file has all of them."""


def write_title(task: Task, manifest: Manifest | None) -> str:
    """Write the report's title, with the name of the study if it is known."""
    return task.aim if manifest is None else f"{manifest.name}: {lower_first(task.aim)}"


def list_facts(data: Responses, plan: PlannedAnalysis | None, manifest: Manifest | None) -> dict[str, str]:
    """List what a reader must know of the study before its results."""
    facts = {} if manifest is None else {"Study": f"{manifest.name}, version {manifest.study_hash[:12]}"}
    if data.dates is not None:
        facts["Dates of the responses (UTC)"] = " to ".join(map(_write_date, dict.fromkeys(data.dates)))
    if data.task.name != DEFAULT_TASK:
        correct = "a response is correct if " if data.task.is_scored else ""
        facts["Task"] = f"{data.task.name}; {correct}{data.task.meaning}"
    if chance := data.task.explain_chance():
        facts["Chance"] = chance
    if manifest is not None and is_within(manifest):
        facts["Design"] = "Conditions within participants, in the orders of a balanced Latin square"
    if adaptive := None if manifest is None else adaptive_of(manifest):
        facts["Choice of trials"] = describe_policy(adaptive)
    if manifest is not None and (times := describe_times(manifest)):
        facts["Sittings"] = times
    if training := describe_training(data.messages):
        facts["Training"] = training
    facts |= {"Participants": _count_participants(data), "Responses": _count_responses(data)}
    facts["Analysis"] = _describe_plan(plan, manifest)
    return facts if plan is None else {**facts, "Status": plan.stopping}


def _write_date(day: str) -> str:
    known = date.fromisoformat(day)
    return f"{known.day} {known:%B %Y}"


def _count_participants(data: Responses) -> str:
    people = data.frame.groupby("condition")["participant"].nunique()
    if len(people) > 1 and (people == data.frame["participant"].nunique()).all():
        return f"{people.iloc[0]:,}, each in all {len(people)} conditions"
    each = ", ".join(f"{lower_first(format_condition(name))}: {people[name]:,}" for name in order(data.frame))
    return f"{data.frame['participant'].nunique():,} ({each})"


def _count_responses(data: Responses) -> str:
    what = "attributes" if data.task.of_attributes else "units" if data.task.of_units else "predicted classes"
    return f"{len(data.frame):,}, to {data.frame['category'].nunique():,} {what}; {data.dropped:,} rows left out"


def _describe_plan(plan: PlannedAnalysis | None, manifest: Manifest | None) -> str:
    if plan is None:
        return "No analysis plan was given: everything here is exploratory."
    what = f"models, contrasts, exclusions and stopping rule (alpha = {alpha_text(plan.plan.alpha)})"
    if manifest is None:
        return (
            f"A plan was given for the {what}. Whether it predates the data is unknown, because the study it was "
            "frozen with was not named."
        )
    return (
        f"Planned: {what}, frozen with this version of the study before its first participant. Whether the plan was "
        "also registered elsewhere is not known here."
    )


def list_sections(
    analysis: NestedAnalysis,
    tables: Mapping[str, pd.DataFrame],
    figure: go.Figure,
    results: Sequence[ExploratoryResult],
    *,
    task: Task,
    planned: Sequence[Section],
    caption: str,
    explained: str,
    label: str,
    level: float,
    simulated: bool,
) -> list[Section]:
    """List the sections: what the label says first, then the exploratory results.

    Parameters
    ----------
    tables
        By the names of their files.
    figure
        Figure 1, which ``caption`` explains.
    explained
        Explains the random effects.
    planned
        Sections on what else the plan asks for: evidence for no difference, estimated means.
    level
        That of the intervals of contrasts.
    """
    name, is_scored = list(analysis.models)[-1], task.is_scored
    sections = [
        _show_contrasts(tables["contrasts"], name, label, level, simulated=simulated),
        *planned,
        Section("figure1", figures.TITLES[is_scored], label, caption, [Part(tables["figure1"])], figure),
        Section(
            "models",
            "Nested models",
            label,
            captions.explain_models(analysis.random, is_scored=is_scored),
            [Part(tables["models"], captions.MODELS)],
        ),
        Section(
            "table1",
            f"Table 1: the {name} model",
            label,
            captions.explain_table_1(analysis.largest),
            [Part(tables["table1"])],
        ),
        Section(
            "random_effects",
            f"Random effects of the {name} model",
            label,
            explained,
            [Part(tables["random_effects"])],
        ),
    ]
    if "exclusions" in tables:
        sections.append(Section("exclusions", "Exclusions", label, "", [Part(tables["exclusions"])]))
    return sections + [
        Section(
            each.name,
            each.title,
            "exploratory",
            each.says,
            [_show_result(each, level)],
            each.figure,
            [each.conclusion] if each.conclusion else (),
        )
        for each in results
    ]


def _show_result(result: ExploratoryResult, level: float) -> Part:
    """Fold a long table, except that of random slopes, which the main result rests on."""
    if result.name == "slopes":
        return Part(result.table.drop(columns=list(slopes.ACCURACIES)), coverage=coverage_text(level))
    rows, file = len(result.table), f"exploratory_{result.name}.csv"
    if rows > MOST:
        return Part(result.table.head(MOST), summary=f"The first {MOST} of {rows:,} rows of {file}")
    return Part(result.table, summary=f"{rows} rows, as in {file}" if rows > SHOWN else "")


def _show_contrasts(table: pd.DataFrame, model: str, label: str, level: float, *, simulated: bool) -> Section:
    """Show accuracies and differences first, then the same contrasts in log-odds."""
    if table.empty:
        return Section(
            "contrasts", "Contrasts", label, "The plan names no contrast between conditions that have responses.", []
        )
    coverage, is_scored = coverage_text(level), find_outcome(table).is_scored
    first, second = map(list, captions.choose_columns(table))
    folded = f"In {'log-odds' if is_scored else 'odds ratios of a higher level'}, as in contrasts.csv"
    return Section(
        "contrasts",
        "Contrasts",
        label,
        f"{captions.explain_contrasts(level, is_scored=is_scored)} "
        f"{captions.explain_estimates(model, is_scored=is_scored)}",
        [
            Part(table[first], captions.CONTRASTS, coverage),
            Part(table[second], captions.CONTRASTS, coverage, folded),
        ],
        headline.forest(table, level, simulated=simulated),
    )
