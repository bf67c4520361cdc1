"""Which trials of a participant are in which sitting: drawn from their seed, and frozen in their plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from study.bundle import Manifest, Trial
from study.plan.orders import is_within
from study.plan.procedure import procedure_of
from study.plan.sittings import count_sittings
from study.plan.texts import fill_placeholders

MARK = "sitting"
"""Key of a screen under which the sitting of its trial is."""


@dataclass(frozen=True)
class Sitting:
    """The sitting of a trial: its number, from 1, and whether the trial is its first."""

    number: int
    opens: bool

    def mark(self) -> dict[str, Any]:
        """Return what the screen of the trial has of it."""
        return {MARK: asdict(self)}


def divide_trials(trials: Sequence[Trial], count: int, rng: np.random.Generator) -> list[list[Trial]]:
    """Divide all trials among sittings, before they are put in order.

    The sittings have each type, and all trials, equally often or within one; the trials of a category are spread.
    """
    sittings: list[list[Trial]] = [[] for _ in range(count)]
    place = int(rng.integers(count))
    for kind in sorted({trial.trial_type for trial in trials}):
        own = [trial for trial in trials if trial.trial_type == kind]
        shuffled = [own[i] for i in rng.permutation(len(own))]
        names = rng.permutation(sorted({trial.category for trial in own})).tolist()
        ranks = {name: rank for rank, name in enumerate(names)}
        for trial in sorted(shuffled, key=lambda trial: ranks[trial.category]):
            sittings[place % count].append(trial)
            place += 1
    return sittings


def mark_place(number: int, count: int, *, opens: bool) -> dict[str, Any]:
    """Return what the screen of a trial has of its sitting; nothing in a study of one."""
    return Sitting(number, opens).mark() if count > 1 else {}


def read_sitting(screen: Mapping[str, Any]) -> Sitting | None:
    """Read the sitting of a screen; None of an attention check, in practice, and in a study of one sitting."""
    return Sitting(**screen[MARK]) if MARK in screen else None


def is_return(screen: Mapping[str, Any]) -> bool:
    """Whether the trial of a screen is the first of a sitting but the participant's first."""
    return (sitting := read_sitting(screen)) is not None and sitting.opens and sitting.number > 1


def hide_sitting(screen: Mapping[str, Any]) -> dict[str, Any]:
    """Return a screen without its sitting, as the page is told of it."""
    return {key: value for key, value in screen.items() if key != MARK}


def find_ends(screens: Sequence[Mapping[str, Any]]) -> list[int]:
    """Find the index after the last trial of each sitting; none in a study of one.

    An attention check belongs to the sitting of the trial before it.
    """
    opening = [k for k, screen in enumerate(screens) if (sitting := read_sitting(screen)) and sitting.opens]
    return [*opening[1:], len(screens)] if opening else []


def describe_opening(
    screen: Mapping[str, Any], manifest: Manifest, texts: Mapping[str, str], shown: Sequence[str]
) -> dict[str, Any]:
    """Describe the page before a sitting but the first, by the keys of the page's state; nothing on any other trial.

    Parameters
    ----------
    shown
        Texts on what is shown, which follow the instructions.
    """
    sitting = read_sitting(screen)
    if sitting is None or not is_return(screen):
        return {}
    values = {"number": sitting.number, "total": count_sittings(manifest)}
    text = "\n\n".join([texts["sitting_again"], texts["instructions"], *filter(None, shown)])
    return {"opening": {"title": fill_placeholders(texts["sitting_title"], values), "text": text}}


def find_sitting_faults(manifest: Manifest) -> Iterator[str]:
    """Yield why the trials of a study cannot be divided among its sittings."""
    sittings = procedure_of(manifest).sittings
    if sittings is None or is_within(manifest):
        return
    if shortage := sittings.find_shortage(Counter[str](trial.trial_type for trial in manifest.trials)):
        yield shortage
