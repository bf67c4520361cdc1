"""One study file on the page: the file is read at each run and written at each change, so it is always the truth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import streamlit as st

from core.errors import ForetellError
from core.files import FileLimits
from core.text import decode_text
from dashboard.design.schema import rule_at
from dashboard.shared import service
from dashboard.studies.workspace_studies import Study, list_studies
from study.collection.access.door import name_of_file
from study.collection.access.permissions import Permission
from study.plan.draft import MISSING, StudyDraft
from study.plan.studyfiles import folder_of
from study.plan.typed import find_study_limits
from study.workspace.workspace import home

UNDO, ERROR, UNSAVED = "design_undo", "design_error", "design_unsaved"
"""In the session: texts that changes replaced, with the file of each; why the last change failed; and by file, texts
that were typed and are not saved."""
MOST_UNDO = 50


class Editor:
    """A study file with its settings, or with everything that is wrong in it.

    Raises
    ------
    ForetellError
        The file cannot be read, or is not valid TOML.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.draft = StudyDraft.read(path)
        self.config, self.faults = self.draft.check()

    @property
    def name(self) -> str:
        """The study's name, as far as the file says one."""
        named = self.draft.get("study.name")
        return named if isinstance(named, str) else self.path.stem

    def value(self, place: str) -> Any:
        """Return the value at a place, or its default."""
        content = self.draft.get(place)
        return rule_at(place).default if content is MISSING else content

    def find_limits(self, place: str) -> FileLimits | None:
        """Find the folders to which a setting that names files is limited; None where no account typed it."""
        limits = find_study_limits(self.path, self.draft.content)
        return None if limits is None else limits.find(place)

    def faults_at(self, place: str) -> list[str]:
        """List what is wrong at a place or below it."""
        return [fault.text for fault in self.faults if fault.place == place or fault.place.startswith(f"{place}.")]


def read_now(path: Path, place: str) -> Any:
    """Read a place of a study file as it is now; `MISSING` where the file leaves it out.

    For callbacks that write more than what was chosen: Streamlit calls one again for a choice that the page had dropped
    and the browser sends once more.
    """
    return StudyDraft.read(path).get(place)


def change(path: Path, changes: Mapping[str, Any]) -> None:
    """Write new values into a study file; `MISSING` removes one, and a default that the file leaves out stays out."""
    with keep_errors():
        draft = StudyDraft.read(path)
        before = draft.text
        for place, value in changes.items():
            if value is MISSING:
                draft.remove(place)
            elif draft.get(place) is not MISSING or not _is_default(place, value):
                draft.set(place, value)
        service.get_acting_researcher().save_study_file(path, draft)
        _remember(path, before)


class UnsavedText(NamedTuple):
    """A text that was typed for a file and is not saved, and why it could not be, if that was tried."""

    text: str
    refusal: str = ""


def replace_text(path: Path, text: str) -> None:
    """Replace the whole file by a text that was edited by hand, or keep the text with what prevents it."""
    try:
        before, draft = decode_text(path.read_bytes(), errors="replace"), StudyDraft(text)
        service.get_acting_researcher().save_study_file(path, draft)
    except ForetellError as error:
        keep_unsaved(path, UnsavedText(text, str(error)))
    else:
        _remember(path, before)
        drop_unsaved(path)


def keep_unsaved(path: Path, unsaved: UnsavedText) -> None:
    """Keep a text that was typed for a file until it is saved: Streamlit forgets a field that is not drawn."""
    st.session_state[UNSAVED] = {**st.session_state.get(UNSAVED, {}), str(path): unsaved}


def find_unsaved(path: Path) -> UnsavedText | None:
    """Return what was typed for a file and is not saved; None without any."""
    unsaved: UnsavedText | None = st.session_state.get(UNSAVED, {}).get(str(path))
    return unsaved


def drop_unsaved(path: Path) -> None:
    """Forget the text that was typed for a file."""
    st.session_state.get(UNSAVED, {}).pop(str(path), None)


def undo(path: Path) -> None:
    """Take back the last change of a file."""
    texts = st.session_state.get(UNDO, [])
    last = next((i for i in reversed(range(len(texts))) if texts[i][0] == str(path)), None)
    if last is not None:
        with keep_errors():
            service.get_acting_researcher().save_study_file(path, StudyDraft(texts[last][1]))
            st.session_state[UNDO] = texts[:last] + texts[last + 1 :]


def can_undo(path: Path) -> bool:
    """Whether a change of this file can be taken back."""
    return any(file == str(path) for file, _ in st.session_state.get(UNDO, []))


@contextmanager
def keep_errors() -> Iterator[None]:
    """Keep an error of a callback, which cannot draw, for the run that follows it."""
    st.session_state.pop(ERROR, None)
    try:
        yield
    except ForetellError as error:
        st.session_state[ERROR] = str(error)


def _remember(path: Path, before: str) -> None:
    st.session_state[UNDO] = [*st.session_state.get(UNDO, []), (str(path), before)][-MOST_UNDO:]


def _is_default(place: str, value: Any) -> bool:
    try:
        return bool(rule_at(place).default == value)
    except KeyError:  # a parameter of a method, or a text
        return False


def may_design(path: Path) -> bool:
    """Whether the account may design the study of this file."""
    return service.get_acting_researcher().may(Permission.DESIGN, name_of_file(path))


def list_own(home: Path) -> list[Path]:
    """List the workspace's own study files that the account may design."""
    return [path for path in sorted(folder_of(home).glob("*.toml")) if may_design(path)]


def find_study(editor: Editor) -> Study | None:
    """Return the study of a file as the workspace knows it; None while the file has faults."""
    return next(
        (study for study in list_studies(home(), service.get_acting_researcher()) if study.file == editor.path), None
    )
