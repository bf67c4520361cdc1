"""The policies: which trial comes next, a pure function of the frozen trials, a seed and the responses so far.

Staircases: Levitt (1971, J. Acoust. Soc. Am. 49, 467-477); steps of different size: Kaernbach (1991, Perception &
Psychophysics 49, 227-229). Information in the Rasch model: van der Linden & Glas (2010, Elements of Adaptive Testing);
a draw from the best few: Kingsbury & Zara (1989, Applied Measurement in Education 2, 359-375).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from study.adaptive.ability import PastTrial, estimate_ability, read_score
from study.bundle import Trial
from study.plan.adaptive import Adaptive

Reason = Literal["start", "harder", "same", "easier", "information"]
"""Why a level is aimed at: the first one; the one before was too easy; it stays; it was too hard; or information."""
MARK = "adaptive"
"""Key of a screen under which the choice of its trial is: never sent to the page, as it tells what was correct."""


@dataclass(frozen=True)
class ChosenTrial:
    """A trial that was chosen, the level that a staircase aimed at, and why."""

    trial: Trial
    aimed: int | None
    chosen_by: Reason

    def mark(self) -> dict[str, Any]:
        """Return what the screen of the trial has of it."""
        level = None if self.trial.difficulty is None else self.trial.difficulty.level
        return {MARK: asdict(ChoiceMark(level, self.aimed, self.chosen_by))}


@dataclass(frozen=True)
class ChoiceMark:
    """What is stored of a choice: the level of the trial, the level that was aimed at, and why."""

    level: int | None
    aimed: int | None
    chosen_by: Reason


def choose_trial(
    adaptive: Adaptive, unseen: Sequence[Trial], history: Sequence[PastTrial], rng: np.random.Generator
) -> ChosenTrial:
    """Choose the next of the trials that may come, ``unseen``, after the responses so far, the oldest first."""
    if adaptive.policy == "staircase":
        *_, (level, reason) = climb(adaptive, [one.right for one in history])
        distances = [abs((trial.difficulty.level or 0) - level) if trial.difficulty else 0 for trial in unseen]
        nearest = [trial for trial, far in zip(unseen, distances, strict=True) if far == min(distances)]
        return ChosenTrial(nearest[int(rng.integers(len(nearest)))], level, reason)
    ability = estimate_ability(adaptive, history)[0]
    far = np.round([abs(read_score(adaptive, trial) - ability) for trial in unseen], 6)
    order = rng.permutation(len(unseen))
    best = order[np.argsort(far[order], kind="stable")][: adaptive.among]
    return ChosenTrial(unseen[int(best[rng.integers(len(best))])], None, "information" if history else "start")


def climb(adaptive: Adaptive, rights: Sequence[bool]) -> Iterator[tuple[int, Reason]]:
    """Yield the level of a staircase before each response and after the last, each with the reason.

    At the easiest and the hardest level, a step that leads out is none.
    """
    level, run, most = adaptive.start or 1, 0, adaptive.levels or 1
    yield level, "start"
    for right in rights:
        run = run + 1 if right else 0
        up = (adaptive.harder_by or 1) if right and run == adaptive.right else 0
        run = 0 if up else run
        new = min(max(level + up - (0 if right else adaptive.easier_by or 1), 1), most)
        reason: Reason = "harder" if new > level else "easier" if new < level else "same"
        level = new
        yield level, reason
