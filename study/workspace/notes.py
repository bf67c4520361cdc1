"""Researchers' notes on images, and the views they saved: in the folder ``notes``, for all of the workspace."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from filelock import FileLock
from pydantic import TypeAdapter, ValidationError

from core.errors import ForetellError
from study.workspace.files import write_whole

FOLDER = "notes"
LONGEST_NOTE, LONGEST_NAME, LONGEST_QUERY, MOST_VIEWS = 2000, 80, 4000, 500
COLUMNS = ("image", "label_is_wrong", "note", "author", "written_at")


@dataclass(frozen=True)
class ImageNote:
    """A note on an image of a set: its text, whether its label is wrong, and who wrote it when (ISO 8601, UTC)."""

    text: str
    label_is_wrong: bool
    author: str
    written_at: str


@dataclass(frozen=True)
class SavedView:
    """A view under a name: the query of its link, and who saved it when (ISO 8601, UTC)."""

    query: str
    author: str
    saved_at: str


_NOTES = TypeAdapter(dict[str, dict[str, ImageNote]])
_VIEWS = TypeAdapter(dict[str, SavedView])


def read_notes(home: Path, images: str) -> dict[str, ImageNote]:
    """Read the notes on the images of a set, by the image's id."""
    notes: dict[str, dict[str, ImageNote]] = _read(home / FOLDER / "images.json", _NOTES)
    return notes.get(images, {})


def write_note(home: Path, images: str, image: str, note: ImageNote) -> None:
    """Write the note on an image of a set, in place of the one there; an empty one removes it.

    Raises
    ------
    ForetellError
        The text is too long, or the file of notes cannot be read.
    """
    if len(note.text) > LONGEST_NOTE:
        raise ForetellError(f"The note has {len(note.text):,} characters. Shorten it to {LONGEST_NOTE:,}.")
    with _change(home / FOLDER / "images.json", _NOTES) as notes:
        of_set = notes.setdefault(images, {})
        of_set.pop(image, None)
        if note.text or note.label_is_wrong:
            of_set[image] = note
        if not of_set:
            del notes[images]


def tabulate_notes(notes: dict[str, ImageNote]) -> pd.DataFrame:
    """Tabulate the notes on a set: `COLUMNS`, in the order of the images' ids."""
    rows = [(i, int(n.label_is_wrong), n.text, n.author, n.written_at) for i, n in sorted(notes.items())]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def read_views(home: Path) -> dict[str, SavedView]:
    """Read the saved views by name, in the order of their names."""
    views: dict[str, SavedView] = _read(home / FOLDER / "views.json", _VIEWS)
    return dict(sorted(views.items(), key=lambda pair: pair[0].casefold()))


def save_view(home: Path, name: str, view: SavedView) -> None:
    """Save a view under a name, in place of the one there.

    Raises
    ------
    ForetellError
        There is no name, name or view are too long, or there are too many.
    """
    if not name or len(name) > LONGEST_NAME:
        raise ForetellError(f"Give the view a name of 1 to {LONGEST_NAME} characters.")
    if len(view.query) > LONGEST_QUERY:
        raise ForetellError("This view has too many settings to be saved: choose fewer images or methods.")
    with _change(home / FOLDER / "views.json", _VIEWS) as views:
        if name not in views and len(views) >= MOST_VIEWS:
            raise ForetellError(f"{MOST_VIEWS} views are saved. Remove one first.")
        views[name] = view


def remove_view(home: Path, name: str) -> None:
    """Remove a saved view; one that is not there is removed already."""
    with _change(home / FOLDER / "views.json", _VIEWS) as views:
        views.pop(name, None)


@contextmanager
def _change(path: Path, kind: TypeAdapter[Any]) -> Iterator[dict[str, Any]]:
    """Change a file that no other process changes meanwhile; after an exception nothing has changed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_name(f".{path.name}.lock"), timeout=30):
        entries = _read(path, kind)
        yield entries
        content = {name: _plain(value) for name, value in entries.items()}
        write_whole(path, json.dumps(content, ensure_ascii=False, indent=1).encode())


def _plain(value: Any) -> Any:
    return {key: asdict(one) for key, one in value.items()} if isinstance(value, dict) else asdict(value)


def _read(path: Path, kind: TypeAdapter[Any]) -> Any:
    try:
        return kind.validate_json(path.read_bytes())
    except FileNotFoundError:
        return {}
    except ValidationError:
        raise ForetellError(f"{path} is damaged: restore it from a backup, or remove it to start over.") from None
