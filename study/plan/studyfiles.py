"""The study files of a workspace: make, copy, rename and archive them, and compare two."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from core.errors import ForetellError
from study.bundle import STUDY_NAME
from study.plan.draft import MISSING, StudyDraft
from study.plan.typed import copy_typed, move_typed, read_typed
from study.workspace.workspace import ROOT, bundles, study_files, study_name

ARCHIVE = "archive"
"""The folder, next to the study files, of those that are put away."""
TEMPLATES = {
    "demo": "The demo: drawn scenes and their network",
    "several-classes": "Which of five classes did the AI choose? With and without heatmaps",
    "accept-reject": "Right or wrong? The AI's label is shown, and participants judge it",
    "agreement": "Right or wrong, and how confident? The AI's label is shown, with four levels",
    "reliance": "Two responses to each image: alone, and again with the AI's label and its explanation",
    "folke2021": "The paper's study: ResNet-50 and ImageNet, 90 trials",
    "two-ais-scenes": "Two AIs, first study: this AI reads the context of an object",
    "two-ais-blind": "Two AIs, second study: this AI cannot read the context",
}
"""Study files of the project to begin with."""

PILOT = "-pilot"
"""How the name of a pilot ends."""
FULL_SIZE = ("analysis.participants", "analysis.stopping")
"""Settings that count on the participants of the whole study, which a pilot does not have."""
PILOT_SIZE = 3
"""Participants per condition of a pilot, unless another number is chosen."""


def folder_of(home: Path) -> Path:
    """Return the folder of the workspace's own study files."""
    return home / "studies"


def is_own(path: Path, home: Path) -> bool:
    """Whether a study file is the workspace's own, and not one that came with Foretell."""
    return path.parent == folder_of(home)


def copy_study(source: Path, home: Path, name: str, title: str = "") -> Path:
    """Make a study file under a new name from another one; return its path.

    Raises
    ------
    ForetellError
        A name that cannot be in a link or exists already, or a file that cannot be read or written.
    """
    target = _free_path(home, name)
    draft = StudyDraft.read(source)
    before = draft.content
    draft.set("study.name", name)
    if title:
        draft.set("study.title", title)
    if source.parent != target.parent:
        _rebase(draft, source)
    if source.parent == ROOT / "data" / "studies":
        draft.remove_heading()  # it says what the template is
        draft.remove("texts.consent")  # it says how long the demo takes, and that nobody is paid
    copy_typed(source, target, before, draft.content)
    draft.save(target)
    return target


def name_pilot(name: str) -> str:
    """Return the name of a study's pilot."""
    return f"{name}{PILOT}"


def is_pilot(name: str) -> bool:
    """Whether a study is named as the pilot of another."""
    return name.endswith(PILOT)


def copy_pilot(path: Path, home: Path, per_condition: int) -> Path:
    """Make a pilot of a study: a study of its own with fewer participants, whom the main study then turns away.

    The pilot has no interim analyses: they are planned for the main study's size.

    Raises
    ------
    ForetellError
        There is a pilot already, the name is too long, or a file cannot be read or written.
    """
    main = StudyDraft.read(path)
    name = main.get("study.name")
    pilot = copy_study(path, home, name_pilot(name))
    draft = StudyDraft.read(pilot)
    draft.set("allocation.per_condition", per_condition)
    for place in FULL_SIZE:
        draft.remove(place)
    draft.save(pilot)
    excluded = main.get("recruiter.exclude")
    main.set("recruiter.exclude", [*([] if excluded is MISSING else excluded), name_pilot(name)])
    main.save(path)
    return pilot


def rename_study(path: Path, home: Path, name: str) -> Path:
    """Rename a study that is not built; return the path of its file.

    Raises
    ------
    ForetellError
        It is built, so links and responses carry its name; or the new name is not free.
    """
    draft = StudyDraft.read(path)
    old = draft.get("study.name")
    if old in {study_name(folder) for folder in bundles(home)}:
        raise ForetellError(f"{old} is built, and links and responses carry its name. Duplicate it instead.")
    target = _free_path(home, name)
    draft.set("study.name", name)
    move_typed(path, target)
    draft.save(target)
    path.unlink()
    return target


def archive_study(path: Path) -> Path:
    """Put a study file away; return its new path. Bundles and responses stay where they are."""
    return _move(path, path.parent / ARCHIVE / path.name)


def restore_study(path: Path) -> Path:
    """Bring a study file back from the archive; return its path."""
    return _move(path, path.parent.parent / path.name)


def list_archived(home: Path) -> list[Path]:
    """List the study files in the archive."""
    return sorted((folder_of(home) / ARCHIVE).glob("*.toml"))


class Difference(NamedTuple):
    """A place at which two study files differ, with the value of each; None where a file leaves the default."""

    place: str
    first: Any
    second: Any


def compare_studies(first: Path, second: Path) -> list[Difference]:
    """List the settings in which two study files differ, by place."""
    one, other = (dict(_flatten(StudyDraft.read(path).content)) for path in (first, second))
    places = sorted(one.keys() | other.keys())
    return [Difference(p, one.get(p), other.get(p)) for p in places if one.get(p, MISSING) != other.get(p, MISSING)]


def _flatten(content: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in content.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def check_free(home: Path, name: str) -> None:
    """Refuse a name for a new study that cannot be in a link, or that another file or bundle has.

    Raises
    ------
    ForetellError
        The name is not free.
    """
    _free_path(home, name)


def _free_path(home: Path, name: str) -> Path:
    """Return the path of a new study file, or refuse a name that is no name or is taken."""
    if not STUDY_NAME.fullmatch(name):
        raise ForetellError(
            f"{name!r} cannot be in a link: name the study with at most 41 lower-case letters, digits and hyphens, the "
            "first not a hyphen."
        )
    path = folder_of(home) / f"{name}.toml"
    taken = {study_name(folder) for folder in bundles(home)} | {file.stem for file in study_files(home)}
    if name in taken or path.exists() or (path.parent / ARCHIVE / path.name).exists():
        raise ForetellError(f"There is already a study {name}. Choose another name.")
    return path


def _move(path: Path, target: Path) -> Path:
    if target.exists():
        raise ForetellError(f"There is already a study file {target.name}. Rename one of the two first.")
    target.parent.mkdir(parents=True, exist_ok=True)
    move_typed(path, target)
    return path.rename(target)


def _rebase(draft: StudyDraft, source: Path) -> None:
    """Make the files that a study file names relative to its folder absolute, where they are there.

    What accounts typed stays as it is: they are not told whether it is there.
    """
    base, typed = source.parent, read_typed(source)
    for place in ("sets.pool.path", "sets.standard.path", "sets.adversarial.path", "teaching.prior"):
        named = draft.get(place)
        if isinstance(named, str) and named not in typed.get(place, ()) and (base / named).exists():
            draft.set(place, str((base / named).resolve()))


def templates() -> dict[Path, str]:
    """Return the study files to begin with, each with what it is."""
    return {ROOT / "data" / "studies" / f"{name}.toml": text for name, text in TEMPLATES.items()}
