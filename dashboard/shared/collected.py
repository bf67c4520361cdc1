"""The responses that were collected in this workspace, as far as the account may see them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

import pandas as pd
import streamlit as st

from dashboard.shared import service
from dashboard.shared.keys import digest
from study.collection.access.permissions import Permission
from study.collection.researcher import Researcher
from study.service import Mode
from study.workspace.workspace import home

FRESH_S = 15
"""Responses that came in since are seen after this; people who begin or end are seen at once."""


def study_frames() -> Mapping[str, Callable[[], pd.DataFrame]]:
    """Return the collected studies by name, as far as the account may see their responses.

    Without the permission to see outcomes these are simulated ones only.
    """
    researcher = service.get_acting_researcher()
    statuses, coded = researcher.studies(), researcher.list_coded_studies()
    frames = {}
    for name in dict.fromkeys(status.name for status in statuses if status.sessions):
        seen = str([status.sessions for status in statuses if status.name == name])
        if researcher.may(Permission.SEE_OUTCOMES, name):
            modes: tuple[Mode, ...] = ("live", "sim")
        elif researcher.may(Permission.DESIGN, name) and any("sim" in s.sessions for s in statuses if s.name == name):
            modes = ("sim",)
        else:
            continue
        # The modes are part of the key: what an owner has read is not in the cache of an editor. So are the codes.
        codes = str(researcher.load_coding_progress(name, modes)) if name in coded else ""
        key = digest(str(home()), name, seen, codes, *modes)
        frames[name] = functools.partial(_load_collected, key, name, modes, researcher)
    return frames


@st.cache_resource(max_entries=4, ttl=FRESH_S, show_spinner="Reading the responses …")
def _load_collected(key: str, _name: str, _modes: tuple[Mode, ...], _researcher: Researcher) -> pd.DataFrame:  # noqa: ARG001
    return _researcher.responses(_name, _modes)
