"""The trials of a study: how many, of which categories, what they show, and what the images allow."""

from __future__ import annotations

import streamlit as st

from dashboard.design import build_check, preview, stimuli
from dashboard.design.adapting import choose_policy
from dashboard.design.attributes import show_attributes
from dashboard.design.columns import side_by_side
from dashboard.design.editor import Editor, change, read_now
from dashboard.design.fields import Setting, follow, show, show_all, show_faults, toggle_table
from dashboard.design.schema import FieldRule
from dashboard.design.settings import BLOCKS, STRATA, TRIALS
from dashboard.design.tasks import asks_attributes, asks_units
from dashboard.design.units import show_units
from study.building.check import StudyCheck
from study.bundle import TRIAL_TYPES

NUMBER, NAMED = "How many", "By name"
DEFAULT = 10
FIRST_BLOCKS = {"training": 5, "test": 7, "rounds": 1}
"""Blocks where a study gets some."""


def show_trials(editor: Editor) -> None:
    """Draw the trials, what they show and what the images allow, next to a trial as the settings make it now."""
    settings, trial = side_by_side("trial", (5, 4))
    with settings:
        if asks_units(editor):
            show_units(editor)
        elif asks_attributes(editor):
            show_attributes(editor)
        else:
            _show_numbers(editor)
        stimuli.show_stimuli(editor)
        if editor.config is not None:
            st.header("What these images allow", anchor=False)
            build_check.show_report(editor)
    with trial:
        st.header("A trial", anchor=False)
        preview.show_preview(editor)


def _show_numbers(editor: Editor) -> None:
    """Draw categories, trials per category and strata."""
    has_names = _choose_categories(editor)
    show_all(editor, [one for one in TRIALS if not (has_names and one.place == "trials.spread")], 2)
    _choose_strata(editor)
    _choose_blocks(editor)
    choose_policy(editor)
    _count_trials(editor)


def _choose_categories(editor: Editor) -> bool:
    """Choose the categories, by number or by name; return whether by name."""
    value = editor.value("trials.categories")
    has_names = isinstance(value, list | tuple)
    key = f"design.{editor.name}.by"
    follow(key, NAMED if has_names else NUMBER)
    checked = build_check.find_checked(editor)

    def switch() -> None:
        now = read_now(editor.path, "trials.categories")
        is_named = isinstance(now, list | tuple)
        if is_named == (st.session_state[key] == NAMED):
            return
        named = list(checked.chosen) if checked else []
        change(editor.path, {"trials.categories": (len(now) or DEFAULT) if is_named else named})

    st.radio("Categories", (NUMBER, NAMED), key=key, horizontal=True, on_change=switch)
    if has_names:
        _choose_names(editor, list(value), checked)
    else:
        show(editor, Setting("trials.categories", "Number of categories"), FieldRule("integer", value, least=1))
    return has_names


def _choose_names(editor: Editor, value: list[str], checked: StudyCheck | None) -> None:
    """Choose categories by name, of those that the last check found images for; before one, names are typed."""
    key = f"design.{editor.name}.trials.categories.names"
    follow(key, value)
    supply = checked.supply.table() if checked is not None and checked.supply is not None else []
    known = {str(row["category"]): str(row["missing"]) for row in supply}

    def write() -> None:
        change(editor.path, {"trials.categories": st.session_state[key]})

    st.multiselect(
        "Categories by name",
        list(dict.fromkeys([*known, *value])),
        format_func=lambda name: f"{name}: too few images" if known.get(name) else name,
        key=key,
        on_change=write,
        accept_new_options=not known,
        placeholder="Choose categories" if known else "Type a name and press Enter",
    )
    show_faults(editor, "trials.categories")


def _choose_strata(editor: Editor) -> None:
    """Spread the targets over an image measure, or not."""
    label = "Balance the target images over a measure"
    explained = "Chooses targets evenly over the values of a measure, so that Results can relate it to accuracy."
    if toggle_table(editor, "trials.strata", {"measure": "margin"}, label, explained):
        show_all(editor, STRATA, 3)


def _choose_blocks(editor: Editor) -> None:
    """Alternate training and test, or not."""
    label = "Train participants, then test them"
    explained = (
        "Blocks of training, with the explanation and, after the response, the AI's prediction, alternate with blocks "
        "of test, with the image alone. Only responses in test are analysed."
    )
    if toggle_table(editor, "blocks", FIRST_BLOCKS, label, explained):
        show_all(editor, BLOCKS, 3)


def _count_trials(editor: Editor) -> None:
    if editor.config is None:
        return
    settings, blocks = editor.config.trials, editor.config.blocks
    categories = settings.categories if isinstance(settings.categories, int) else len(settings.categories)
    made = f"{categories} categories × {len(TRIAL_TYPES)} types × {settings.per_type}"
    if blocks is not None:
        made = (
            f"{blocks.rounds} × ({blocks.training} training + {blocks.test} test), drawn from {settings.most} ({made})"
        )
    trials = settings.most if blocks is None else blocks.total
    if editor.config.allocation.within:
        conditions = len(editor.config.conditions)
        each = len(TRIAL_TYPES) * (settings.most // len(TRIAL_TYPES) // conditions)
        trials, drawn = each * conditions, f", drawn from {settings.most}" if each * conditions < settings.most else ""
        made = f"{each} in each of {conditions} conditions{drawn} ({made})"
    if (adaptive := editor.config.adaptive) is not None:
        trials, made = adaptive.trials, f"chosen by responses from {settings.most} ({made})"
    st.markdown(f"**{trials} trials** for each participant: {made}, and {settings.practice} for practice.")
