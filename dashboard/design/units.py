"""The units that a study asks about: their layer, their number, and what participants see of each."""

from __future__ import annotations

import streamlit as st

from dashboard.design.editor import Editor
from dashboard.design.fields import Setting, show, show_all
from dashboard.design.schema import FieldRule
from study.tasks import TASKS

LAYER = Setting(
    "units.layer",
    "Layer",
    "The name of the layer in the network; a unit is one of its channels. The page Units lists the layers.",
)
PER_UNIT = Setting("units.per_unit", "Trials of each unit")
UNITS = (
    Setting(
        "units.references",
        "References on each side",
        "Images of the pool that activate the unit least, and as many that activate it most: 1, 4 or 9.",
    ),
    Setting("trials.practice", "Practice trials", "Each asks about a unit of its own."),
)


def show_units(editor: Editor) -> None:
    """Draw which units participants are asked about."""
    show(editor, LAYER)
    channels = editor.value("units.channels")
    if isinstance(channels, list | tuple):
        st.caption(f"Units {', '.join(map(str, channels))}: they are listed in the study file.")
    else:
        number = Setting("units.channels", "Number of units", "Drawn at random. A study file may list them instead.")
        show(editor, number, FieldRule("integer", channels, least=1))
    is_named = TASKS[editor.value("study.task")].is_written
    show_all(editor, UNITS if is_named else (PER_UNIT, *UNITS), 2)
    if is_named:
        st.caption("Each unit has one trial. Two raters code the texts on the page Coding; [coding] sets their codes.")
    if editor.config is not None:
        units = editor.config.units
        st.markdown(
            f"**{units.most} trials** for each participant: {units.count} units × {units.per_unit}, and "
            f"{editor.config.trials.practice} for practice."
        )
