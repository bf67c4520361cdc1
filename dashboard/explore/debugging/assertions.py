"""Assertions: which images of a set break the rules in a file of the workspace, by rule and category."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from core.errors import ForetellError
from core.names import format_name
from core.network.classifier import Classifier
from dashboard.explore import picker
from dashboard.explore.debugging.jobs import make_assertions_task
from dashboard.explore.debugging.rates import draw_rates
from dashboard.shared import cache, links, numbers, service
from dashboard.shared.cache import Gallery
from dashboard.shared.live import get_result
from dashboard.shared.messages import escape_markdown, show_errors
from dashboard.shared.uploads import read_upload
from inquiry.assertions import ready_rules
from inquiry.assertions.assertions import COLUMNS, CONFIDENCE, PREDICTED, AssertionResults
from inquiry.assertions.rules import RuleProcess
from inquiry.debugging.debugging import DebuggingResults
from study.collection.access.permissions import Permission
from study.workspace.modelfiles import add_file, remove_file
from study.workspace.workspace import home

NOT = "None"
READY = "Mirror image (ready-made)"
READING_S = 20.0
"""Time that reading an added file may take, in seconds: its page waits for it."""
EXAMPLE = Path(ready_rules.__file__).read_text(encoding="utf-8").partition("\n\n")[2]
OnPick = Callable[[int], None]


def show(classifier: Classifier, results: DebuggingResults, gallery: Gallery, name: str, picked: OnPick) -> None:
    """Choose the ready-made assertion or a file, or add a file, and show the results."""
    with st.expander("Add a file of assertions", icon=":material/add:"), show_errors():
        _show_adding()
    chosen = st.selectbox(
        "Rules",
        [NOT, READY, *cache.list_rule_files()],
        key="rules",
        bind="query-params",
        width=320,
        help="A ready-made assertion, or a Python file in the workspace's folder `rules/`, which is executed.",
    )
    if chosen == NOT:
        st.caption(f"Choose **{READY}** to test whether predictions change when the images are mirrored.")
        return
    file = Path(ready_rules.__file__) if chosen == READY else home() / cache.RULES / chosen
    task = make_assertions_task(classifier, file, file.read_bytes(), results.images)
    asserted: AssertionResults | None = get_result(task, "_assertions")
    if asserted is not None:
        _draw_report(asserted, gallery, f"{name}.{file.stem}", picked)


def _show_adding() -> None:
    """Draw the upload of a file, for accounts that may run code on this machine; one that is added is chosen."""
    refusal = service.get_acting_researcher().explain_refusal(Permission.ADMINISTER)
    if refusal is not None:  # what runs here can read every response
        st.info(escape_markdown(f"A file is run on this machine. {refusal}"))
        return
    st.warning(
        "The file is run on this machine, with the rights of the user who runs Foretell. Add only files that you trust."
    )
    st.code(EXAMPLE, language=None, wrap_lines=True)  # colours too faint, and no way to scroll
    file = st.file_uploader("A Python file of functions (image, prediction)", "py", key="rules_file")
    if st.button("Add", type="primary", key="rules_add", disabled=file is None):
        assert file is not None
        st.session_state["rules"] = _add_file(file.name, read_upload(file))


def _add_file(name: str, content: bytes) -> str:
    """Add a file to the workspace and load it; one that cannot be loaded is removed. Return its name."""
    if not name.lower().endswith(".py"):
        raise ForetellError(f"{name} is no Python file. Add a file that ends in .py.")
    service.get_acting_researcher().require(Permission.ADMINISTER)
    path = add_file(home() / cache.RULES, name, content)
    try:
        with st.spinner(f"Reading {escape_markdown(path.name)} …"):
            RuleProcess(path, COLUMNS, READING_S).close()
    except ForetellError:
        remove_file(path.parent, path.name)
        raise
    return path.name


def _draw_report(results: AssertionResults, gallery: Gallery, name: str, picked: OnPick) -> None:
    report: Mapping[str, Mapping[str, Any]] = results.report["assertions"]
    left, right = st.columns(2, gap="large")
    with left:
        st.plotly_chart(figure(report), key="assertions", config={"displayModeBar": False})
    with right:
        st.table(sentences(report), border="horizontal", hide_index=True)
    st.caption(
        "Broken: the share of images that break a rule, among those it applies to. The 95% intervals treat the images "
        "as a random sample."
    )
    rule = links.selectbox("Rule", list(report), next(iter(report)), key="rule", format_func=format_name, width=320)
    worst = results.worst(rule)
    if worst:
        picker.show_ranked(gallery, f"{name}_{rule}", worst, picked, lambda i: evidence(results, rule, i))
    else:
        st.caption("No image breaks it.")
    with st.expander("Data table"):
        st.caption(f"{escape_markdown(format_name(rule))}, by labelled category")
        numbers.table(by_category(report[rule]), f"{name}.{rule}.categories")
        st.caption("All rules")
        numbers.table(overall(report), f"{name}.assertions", {"rule": format_name})
        st.caption("All images: 0 if the rule holds, its severity if it is broken, empty if it does not apply")
        numbers.table(results.table, f"{name}.images", headings={rule: format_name(rule) for rule in report})


def figure(report: Mapping[str, Mapping[str, Any]]) -> go.Figure:
    """Draw the share of images that break each rule, with its interval."""
    table = overall(report).rename(columns={"rule": "name", "broken": "count", "applied": "of"})
    return draw_rates(table.assign(name=table["name"].map(format_name)), "Broken")


def sentences(report: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """Return one row per rule: what it says, and how often it is broken."""
    return pd.DataFrame(
        {
            "Rule": [escape_markdown(_format_rule(rule, one["says"])) for rule, one in report.items()],
            "Broken by": [
                f"{one['broken']:,} of {one['applied']:,}: {one['share']:.1%} ({one['low']:.1%} to {one['high']:.1%})"
                for one in report.values()
            ],
        }
    )


def _format_rule(rule: str, says: str) -> str:
    return format_name(rule) if says == rule else f"{format_name(rule)}: {says}"


def overall(report: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """Return one row per rule, in numbers."""
    return pd.DataFrame([{"rule": rule, **_counts(one), "says": one["says"]} for rule, one in report.items()])


def by_category(one: Mapping[str, Any]) -> pd.DataFrame:
    """Return one row per category that a rule applies to, the most often broken first."""
    table = pd.DataFrame([{"category": name, **_counts(of)} for name, of in one["by_category"].items()])
    return table.sort_values("share", ascending=False, kind="stable")


def _counts(one: Mapping[str, Any]) -> dict[str, Any]:
    return {name: one[name] for name in ("broken", "applied", "share", "low", "high")}


def evidence(results: AssertionResults, rule: str, i: int) -> list[str]:
    """Describe how badly an image breaks a rule, with its label and prediction."""
    row, severities = results.table.iloc[i], results.table[rule].dropna()
    how = "breaks it" if set(severities) <= {0, 1} else f"broken by {row[rule]:.3g}"
    return [how, f"Labelled {row['label']}; the AI predicts {row[PREDICTED]}, {row[CONFIDENCE]:.0%}."]
