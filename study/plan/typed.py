"""Values of a study file that accounts have typed: the files that these name are limited to folders of the workspace.

They are listed next to the study file, and stay listed until an administrator writes the same value: a study file may
change while it is opened. Values that were written at this machine are in no list.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.errors import ForetellError
from core.files import FileLimits
from study.workspace.files import write_whole
from study.workspace.folders import find_limits

PLACES = ("classifier.model", "sets", "saliency.method", "teaching.prior", "trials.strata.parameters")
"""Settings of a study file that name files, with all below them."""
ENDING = ".typed.json"
Values = dict[str, list[str]]
"""The values typed at each place."""


@dataclass(frozen=True)
class StudyLimits:
    """Limits for the settings of one study file whose values accounts have typed."""

    places: frozenset[str]
    folders: FileLimits

    def find(self, *places: str) -> FileLimits | None:
        """Find the limits for a setting or several that work together; None where no account typed one."""
        below = tuple(f"{place}." for place in places)
        return self.folders if any(typed in places or typed.startswith(below) for typed in self.places) else None


def find_study_limits(path: Path, content: Mapping[str, Any]) -> StudyLimits | None:
    """Find the limits for the content of a study file, which was read before; None where no account typed a path."""
    typed = read_typed(path)
    places = frozenset(place for place, value in _list_values(content) if value in typed.get(place, ()))
    return StudyLimits(places, find_limits(path.resolve().parent.parent)) if places else None


def read_typed(path: Path) -> Values:
    """Read the values that accounts have typed into a study file.

    Raises
    ------
    ForetellError
        The list next to the study file is damaged.
    """
    file = list_of(path)
    try:
        return dict(json.loads(file.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ForetellError(
            f"{file} cannot be read ({error}). Put it back, or remove it to trust {path.name}."
        ) from None


def note_typed(path: Path, before: Mapping[str, Any], after: Mapping[str, Any], *, trusted: bool) -> None:
    """Note who changes the values of a study file: call it before the file is written.

    Parameters
    ----------
    path
        The study file.
    before, after
        Its content so far, and the new one.
    trusted
        Whether an administrator changes it.
    """
    noted, old = read_typed(path), dict(_list_values(before))
    for place, value in _list_values(after):
        values = [one for one in noted.get(place, ()) if one != value]
        if old.get(place) != value:
            noted[place] = values if trusted else [*values, value]
    _write(path, noted)


def copy_typed(source: Path, target: Path, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Note the typed values of a study file for a copy, whose paths may be written otherwise."""
    noted, now = read_typed(source), dict(_list_values(after))
    for place, value in _list_values(before):
        if value in noted.get(place, ()) and place in now:
            noted[place] = [*noted[place], now[place]]
    _write(target, noted)


def move_typed(path: Path, target: Path) -> None:
    """Move the list of a study file that is moved."""
    if list_of(path).is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        list_of(path).replace(list_of(target))


def _write(path: Path, noted: Values) -> None:
    kept = {place: values for place, values in noted.items() if values}
    if kept or list_of(path).is_file():
        write_whole(list_of(path), json.dumps(kept, indent=1).encode())


def list_of(path: Path) -> Path:
    """Return the path of a study file's list."""
    return path.with_name(f"{path.stem}{ENDING}")


def _list_values(content: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    """List the texts at the settings that name files, each by its place."""
    for name, value in content.items():
        place = f"{above}{name}"
        if isinstance(value, Mapping):
            yield from _list_values(value, f"{place}.")
        elif isinstance(value, str) and any(f"{place}.".startswith(f"{one}.") for one in PLACES):
            yield place, value
