"""The attributes that a study asks about, and the grids of images in which participants look for them."""

from __future__ import annotations

import streamlit as st

from dashboard.design.editor import Editor
from dashboard.design.fields import Setting, show_all

NAMES = (
    Setting(
        "attributes.used",
        "Attributes that the AI uses",
        "One on each line, in the words that participants read. Which of them the AI uses is sealed.",
        lines=4,
    ),
    Setting("attributes.unused", "Attributes that it does not use", "One on each line.", lines=4),
)
GRIDS = (
    Setting("attributes.classes", "The two classes", "One on each line, as the network names them."),
    Setting("attributes.images", "Images in a grid", "A multiple of 5, half of each class."),
    Setting("attributes.trials", "Trials", "Each has a grid of its own."),
    Setting("trials.practice", "Practice trials", "They tell nothing: the trials that follow ask the same."),
)


def show_attributes(editor: Editor) -> None:
    """Draw which attributes participants are asked about, and their grids."""
    show_all(editor, NAMES, 2)
    show_all(editor, GRIDS, 2)
    if editor.config is not None:
        settings = editor.config.attributes
        st.markdown(
            f"**{settings.trials} trials** for each participant, each with {settings.images} images and "
            f"{len(settings.names)} attributes to judge, and {editor.config.trials.practice} for practice."
        )
