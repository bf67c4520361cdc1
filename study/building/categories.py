"""Categories that a study can have: counted, chosen, or refused with everything that is missing."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from core.class_names import ClassNames, fold
from core.errors import ForetellError
from study.building.candidates import MIN_POOL_IMAGES, ROLE_OF_TYPE, SetPredictions, suitable
from study.bundle import TRIAL_TYPES, TYPE_LABELS, TrialType
from study.network.predictions import Indices
from study.tasks.task import TWO

MOST_ROWS = 20
"""Categories that a table in a message lists."""
MOST_ADDITIONS = 3
"""Categories whose missing images a message names; its table has all."""

IMAGE_WORDS: dict[TrialType, str] = {
    "adv_incorrect": "misclassified adversarial image",
    "std_incorrect": "misclassified standard image",
    "std_correct": "correctly classified standard image",
}


class CategoryShortage(ForetellError):
    """Fewer categories than the study wants; ``summary`` is the message without its table."""

    def __init__(self, supply: Supply, wanted: int) -> None:
        reason, remedy = _explain_shortage(supply, wanted), _advise(supply, wanted)
        self.summary = f"{reason} {remedy}"
        super().__init__("\n".join([reason, *describe(supply), remedy]))


@dataclass(frozen=True)
class Supply:
    """The images of each category for a study with ``per_type`` images of every trial type.

    Counts are of images as the network classifies them: the pool's are those it classifies correctly, and an
    image counts for a trial type only if examples of both of its options can be shown.
    """

    material: SetPredictions
    per_type: int

    @cached_property
    def names(self) -> ClassNames:
        """The network's class names."""
        return ClassNames(self.material.categories)

    @cached_property
    def pool(self) -> Indices:
        """(K,) correctly classified images of the pool."""
        pool = self.material.pool
        counts: Indices = np.bincount(pool.truth[pool.correct], minlength=len(self.material.categories))
        return counts

    @cached_property
    def trials(self) -> Indices:
        """(K, 3) images that can be trials, by `TRIAL_TYPES`."""
        return np.stack([self._count(trial_type) for trial_type in TRIAL_TYPES], 1)

    @cached_property
    def complete(self) -> NDArray[np.int64]:
        """Categories with enough images of everything, from the least to the most accurate."""
        return self.complete_with(self.per_type)

    def complete_with(self, per_type: int) -> NDArray[np.int64]:
        """Return the categories that have ``per_type`` images of every type, by accuracy."""
        complete = np.flatnonzero((self.trials >= per_type).all(1) & self.material.teachable)
        order = sorted(complete.tolist(), key=lambda k: (self.material.accuracy[k], k))
        return np.array(order, dtype=np.int64)

    def list_missing(self, category: int) -> list[str]:
        """Return what has to be added for this category, one phrase each."""
        needed = [MIN_POOL_IMAGES] + [self.per_type] * len(TRIAL_TYPES)
        offered = [int(self.pool[category]), *self.trials[category].tolist()]
        kinds = ("correctly classified pool image", *(IMAGE_WORDS[kind] for kind in TRIAL_TYPES))
        short = [(want - has, kind) for want, has, kind in zip(needed, offered, kinds, strict=True)]
        return [count_of(count, kind) for count, kind in short if count > 0]

    @property
    def with_images(self) -> list[int]:
        """Categories of which any set has an image, the most complete first."""
        material = self.material
        labels = np.concatenate([material.of(role).truth for role in ("pool", "standard", "adversarial")])
        present = np.unique(labels[labels >= 0]).tolist()
        return sorted(present, key=lambda k: (self._distance(k), k))

    def table(self) -> list[dict[str, str | int]]:
        """Return one row per category that has images: its counts and what is missing."""
        return [
            {
                "category": self.names.short[k],
                "pool": int(self.pool[k]),
                **{TYPE_LABELS[t]: int(count) for t, count in zip(TRIAL_TYPES, self.trials[k], strict=True)},
                "missing": ", ".join(self.list_missing(k)),
            }
            for k in self.with_images
        ]

    def largest(self) -> list[tuple[int, int]]:
        """Return the studies that fit as (categories, images per type), without those that another one contains."""
        fits: list[tuple[int, int]] = []
        for per_type in range(1, int(self.trials.min(1).max(initial=0)) + 1):
            count = len(self.complete_with(per_type))
            if fits and fits[-1][0] == count:
                fits.pop()
            fits += [(count, per_type)] if count else []
        return fits

    def _count(self, trial_type: TrialType) -> Indices:
        truth = self.material.of(ROLE_OF_TYPE[trial_type]).truth
        counts: Indices = np.bincount(truth[suitable(self.material, trial_type)], minlength=len(self.pool))
        return counts

    def _distance(self, category: int) -> int:
        pool = max(0, MIN_POOL_IMAGES - int(self.pool[category]))
        return pool + int((self.per_type - self.trials[category]).clip(min=0).sum())


def choose_categories(
    material: SetPredictions, wanted: int | Sequence[str], per_type: int, spread: str = "ranks"
) -> list[int]:
    """Return the study's categories: those named, or ``wanted`` of them spread over the range of accuracy.

    ``spread`` is ``"ranks"`` (evenly over the order by accuracy) or ``"accuracy"`` (evenly over accuracy itself).

    Raises
    ------
    ForetellError
        A name that is no class or has too few images: all of them at once; or fewer classes than a trial has options.
    CategoryShortage
        Fewer complete categories than wanted: with a table of what the images offer, the largest study that fits, and
        what to add.
    """
    supply = Supply(material, per_type)
    _refuse_few_options(material)
    if not isinstance(wanted, int):
        return _find_named(supply, wanted)
    complete = supply.complete
    if len(complete) < wanted:
        raise CategoryShortage(supply, wanted)
    if spread == "accuracy":
        return _evenly_by_accuracy(material, complete.tolist(), wanted)
    places = np.linspace(0, len(complete) - 1, wanted).round().astype(int)
    return [int(k) for k in complete[places]]


def _refuse_few_options(material: SetPredictions) -> None:
    """Refuse more options than there are classes, where that is what a study lacks."""
    known = int(material.teachable.sum())
    if TWO < material.options > known:
        raise ForetellError(
            f"trials.options is {material.options}, but only {known} classes have {MIN_POOL_IMAGES} images in the "
            "example pool that the network classifies correctly. Set fewer options, or give a larger pool."
        )


def _evenly_by_accuracy(material: SetPredictions, complete: list[int], wanted: int) -> list[int]:
    """Return for each of evenly spaced accuracies the nearest category that is not taken yet, by accuracy."""
    accuracy, left, chosen = material.accuracy, list(complete), []
    for goal in np.linspace(accuracy[complete[0]], accuracy[complete[-1]], wanted):
        nearest = min(left, key=lambda k: (abs(accuracy[k] - goal), k))
        left.remove(nearest)
        chosen.append(nearest)
    return sorted(chosen, key=complete.index)


def _find_named(supply: Supply, names: Sequence[str]) -> list[int]:
    """Return the classes of these names, or say of all of them at once what is wrong."""
    chosen: list[int] = []
    faults: list[str] = []
    for name in names:
        matches = supply.names.find(name)
        if len(matches) == 1:
            chosen += matches
            missing = supply.list_missing(matches[0])
            faults += [f"Category {name!r} has too few images. Missing: {', '.join(missing)}."] if missing else []
        elif matches:
            faults.append(f"trials.categories: {supply.names.describe_ambiguous(name, matches, 'the network')}")
        else:
            faults.append(
                f"trials.categories names {name!r}, which is not a class of the network.{_suggest(supply, name)}"
            )
    if faults:
        raise ForetellError("\n".join(faults))
    return chosen


def _suggest(supply: Supply, name: str) -> str:
    known = {fold(one): one for one in (*supply.material.categories, *supply.names.short)}
    near = difflib.get_close_matches(fold(name), known, 1)
    return f" Did you mean {known[near[0]]!r}?" if near else ""


def _explain_shortage(supply: Supply, wanted: int) -> str:
    """Say why there are not enough categories: too few exist, or too few have enough images."""
    count, known = len(supply.complete), len(supply.with_images)
    usable = f"only {count}" if count else "none"
    limit = f"the images allow {usable}"
    if wanted > known:
        limit = f"the image sets have only {known:,}" + (f", of which {usable} can be used" if count < known else "")
    return (
        f"You ask for {count_of(wanted, 'category', 'categories')}, but {limit}: each needs "
        f"{count_of(MIN_POOL_IMAGES, 'pool image')} that the network classifies correctly and "
        f"{count_of(supply.per_type, 'image')} of each trial type."
    )


def _advise(supply: Supply, wanted: int) -> str:
    """Say what to do about a shortage: a lower number, or images for the categories that lack least."""
    complete, present = set(supply.complete.tolist()), supply.with_images
    lower = "Lower the number (Trials; trials.categories in the file)"
    nearest = [k for k in present if k not in complete][: wanted - len(complete)]
    names = [supply.names.short[k] for k in nearest]
    additions = [f"{name} ({', '.join(supply.list_missing(k))})" for name, k in zip(names, nearest, strict=True)]
    images = list_some(additions, MOST_ADDITIONS, "; ")
    if wanted <= len(present):
        return f"{lower}, or add images: {images}."
    whole = f" To use all {len(present):,}, add images: {images}." if additions else ""
    return f"{lower}, or add categories.{whole}" if present else f"{lower}, or add images of classes of the network."


def describe(supply: Supply) -> list[str]:
    """Return a table of the categories as lines of text, and the largest studies that fit."""
    columns = ("pool", *(TYPE_LABELS[kind] for kind in TRIAL_TYPES))
    table = supply.table()
    rows = [["category", *columns], *([str(row[name]) for name in ("category", *columns)] for row in table[:MOST_ROWS])]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    if len(table) > MOST_ROWS:
        lines.append(f"  (and {len(table) - MOST_ROWS} more categories with at least as much missing)")
    return [*(line.rstrip() for line in lines), largest_study(supply)]


def largest_study(supply: Supply) -> str:
    """Say which studies these images allow: the one with most trials, then most categories and most images of each."""
    fits = supply.largest()
    if not fits:
        return "No study fits these images yet."
    largest = max(fits, key=lambda fit: fit[0] * fit[1])
    first, *others = (
        f"{count_of(categories, 'category', 'categories')} with {count_of(per_type, 'image')} per trial type "
        f"({categories * per_type * len(TRIAL_TYPES)} trials)"
        for categories, per_type in dict.fromkeys([largest, fits[0], fits[-1]])
    )
    also = f" Others that fit: {'; '.join(others)}." if others else ""
    return f"Largest study that fits: {first}.{also}"


def count_of(count: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun: ``1 image``, ``2 images``."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def list_some(texts: Sequence[str], most: int, separator: str = ", ") -> str:
    """List the first texts, and count the others: ``cat, dog and 3 more``."""
    more = f" and {len(texts) - most:,} more" if len(texts) > most else ""
    return f"{separator.join(texts[:most])}{more}"
