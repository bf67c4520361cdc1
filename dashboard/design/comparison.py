"""Compare two study files in a window of its own: the settings in which they differ, section by section."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from core.attribution import METHODS
from core.names import format_name
from dashboard.design import settings
from dashboard.design.editor import Editor, list_own
from dashboard.design.fields import Setting
from dashboard.design.places import describe_set
from dashboard.design.schema import rule_at
from dashboard.design.steps import TABLES
from dashboard.shared.messages import escape_markdown, show_errors
from study.conditions import CONDITIONS, format_condition
from study.plan import studyfiles
from study.plan.draft import StudyDraft
from study.plan.studyfiles import Difference
from study.plan.templates import templates
from study.workspace.workspace import home

OTHERS = (
    Setting("study.name", "Name"),
    Setting("classifier.model", "Network"),
    Setting("sets.pool", "Example pool"),
    Setting("sets.standard", "Standard images"),
    Setting("sets.adversarial", "Adversarial images"),
    Setting("trials.categories", "Categories"),
    Setting("conditions", "Conditions", names={name: format_condition(name) for name in CONDITIONS}),
    Setting("saliency.method", "Heatmap method", names={name: format_name(name) for name in METHODS}),
    Setting("texts.title", "Title (text)"),
    Setting("questionnaire", "Questionnaire"),
    Setting("check.questions", "Comprehension check"),
    Setting("analysis.models", "Mixed models"),
    Setting("analysis.contrasts", "Planned contrasts"),
)
"""Settings whose widgets are not in `settings`."""
_GROUPS = (OTHERS, *(group for group in vars(settings).values() if isinstance(group, tuple)))
NAMED = {one.place: one for group in _GROUPS for one in group if isinstance(one, Setting)}
"""The settings that the page has a name for, by place."""
MOST_LETTERS = 300
"""Letters of a value; a longer one is cut."""


@st.dialog("Compare two study files", width="large")
def compare(editor: Editor) -> None:
    """Choose another study file, and show in which settings it differs."""
    others = [path for path in list_own(home()) if path != editor.path]
    others += list(templates())
    other = st.selectbox("Compare with", others, format_func=lambda path: path.stem, key="compare_with")
    with show_errors():
        differences = _join_sets(studyfiles.compare_studies(editor.path, other), editor.path, other)
        if not differences:
            st.caption("The two files have the same settings.")
        for section, rows in _group(differences).items():
            st.subheader(section, anchor=False)
            st.table(pd.DataFrame(rows, columns=["Setting", editor.name, other.stem]), hide_index=True)


def _join_sets(differences: Sequence[Difference], *paths: Path) -> list[Difference]:
    """Join all settings of an image set into one difference, and describe both sets in words."""
    drafts = [StudyDraft.read(path) for path in paths]
    roles = dict.fromkeys(one.place.split(".")[1] for one in differences if one.place.startswith("sets."))
    joined = [Difference(f"sets.{role}", *(_describe_role(draft, role) for draft in drafts)) for role in roles]
    return [*joined, *(one for one in differences if not one.place.startswith("sets."))]


def _describe_role(draft: StudyDraft, role: str) -> str | None:
    content = draft.get(f"sets.{role}")
    return describe_set(content) if isinstance(content, Mapping) else None


def _group(differences: Sequence[Difference]) -> dict[str, list[tuple[str, str, str]]]:
    """Sort the differences into the page's sections, in its order, and write them in its words."""
    rows: dict[str, list[tuple[str, str, str]]] = {name: [] for name in (*TABLES, "File")}
    for one in differences:
        table = one.place.partition(".")[0]
        section = next((name for name, tables in TABLES.items() if table in tables), "File")
        rows[section].append(_write(one))
    return {section: written for section, written in rows.items() if written}


def _write(difference: Difference) -> tuple[str, str, str]:
    """Write one difference in Markdown; of two lists only the entries that one of them has."""
    place, first, second = difference
    name = format_name(place.rpartition(".")[2])
    setting = NAMED.get(place) or Setting(place, f"{name} ({place})")
    if isinstance(first, list) and isinstance(second, list):
        shared = [one for one in first if one in second]
        first, second = ([one for one in entries if one not in shared] for entries in (first, second))
    written = setting.label, _format(setting, first), _format(setting, second)
    label, one, other = map(escape_markdown, written)
    return label, one, other


def _format(setting: Setting, value: Any) -> str:
    """Write a value as the page does; a setting that the file leaves out has its default."""
    if value is not None:
        return _shorten(_describe(setting, value))
    try:
        default = rule_at(setting.place).default
    except KeyError:  # a parameter of a method, or a text
        default = None
    return "default" if default in (None, "") else f"{_shorten(_describe(setting, default))} (default)"


def _describe(setting: Setting, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return "; ".join(_describe(setting, one) for one in value) or "none of its own"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_describe(setting, one)}" for name, one in value.items())
    return str(setting.names.get(value, value))


def _shorten(text: str) -> str:
    return text if len(text) <= MOST_LETTERS else f"{text[:MOST_LETTERS]}…"
