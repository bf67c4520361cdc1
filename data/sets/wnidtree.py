"""Published trees of folders named by WordNet id, and a check that they are complete."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from data.errors import DataError
from data.sets.folder import describe_missing
from data.sets.folder import load as load_folder
from data.sets.wnids import WNID, imagenet_names
from data.types import ImageSet

HELP = "docs/how-to/imagenet.md says how to get and arrange it"


@dataclass(frozen=True)
class PublishedTree:
    """A data set as published: its name, categories, the images of each (None: varies) and of all."""

    name: str
    wnids: Sequence[str]
    each: int | None
    total: int | None


def load_tree(
    published: PublishedTree, path: str | Path, partial: bool, progress: Callable[[int, int, str], None] | None
) -> ImageSet:
    """Read the tree as an image set whose images are hashed but not decoded until they are needed.

    Raises
    ------
    DataError
        Something is missing or misplaced; with ``partial`` missing categories and images are allowed.
    """
    root = Path(path).expanduser()
    if not root.exists():
        raise DataError(f"{describe_missing(root)} These images do not come with Foretell: {HELP}.")
    if root.is_dir():
        _refuse_misplaced(published, root)
        if not partial:
            _refuse_missing(published, root)
    return load_folder(path=root, name=published.name, progress=progress, decode=False)


def _refuse_misplaced(published: PublishedTree, root: Path) -> None:
    entries = [entry for entry in root.iterdir() if not entry.name.startswith(".")]
    folders = sorted(entry.name for entry in entries if entry.is_dir())
    known = set(published.wnids)
    if not known & set(folders):
        inside = [name for name in folders if any((root / name / wnid).is_dir() for wnid in published.wnids)]
        if inside:
            raise DataError(f"{root} holds the categories one folder deeper: give {root / inside[0]}.")
        loose = [entry.name for entry in entries if entry.suffix.lower() in (".jpeg", ".jpg", ".tar", ".gz")]
        if loose:
            raise DataError(
                f"{root} holds {loose[0]} but no category folders such as {published.wnids[0]}: unpack and sort it "
                f"first; {HELP}."
            )
    foreign = [name for name in folders if name not in known]
    if foreign:
        what = "is an ImageNet category, but not one of it" if _of_imagenet(foreign[0]) else "is none of its categories"
        raise DataError(
            f"{root} is not {published.name}: its folder {foreign[0]!r} {what}. Give the right folder, or move "
            f"{_format_names(foreign)} elsewhere."
        )


def _refuse_missing(published: PublishedTree, root: Path) -> None:
    missing = [wnid for wnid in published.wnids if not (root / wnid).is_dir()]
    remedy = f"{HELP}; partial = true accepts an incomplete set."
    if missing:
        named = f"{missing[0]} ({imagenet_names()[missing[0]]})"
        raise DataError(
            f"{root} lacks {len(missing)} of the {len(published.wnids)} categories of {published.name}, such as "
            f"{named}: {remedy}"
        )
    counts = {wnid: sum(1 for file in (root / wnid).iterdir() if file.is_file()) for wnid in published.wnids}
    short = [wnid for wnid, count in counts.items() if published.each is not None and count != published.each]
    if short:
        raise DataError(
            f"{root / short[0]} has {counts[short[0]]} images where {published.name} has {published.each} (so have "
            f"{len(short)} categories): {remedy}"
        )
    total = sum(counts.values())
    if published.total is not None and total != published.total:
        raise DataError(f"{root} has {total:,} images where {published.name} has {published.total:,}: {remedy}")


def _of_imagenet(name: str) -> bool:
    return bool(WNID.fullmatch(name)) and name in imagenet_names()


def _format_names(names: list[str]) -> str:
    return "it" if len(names) == 1 else f"it and {len(names) - 1} more"
