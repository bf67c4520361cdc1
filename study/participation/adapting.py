"""Adaptive choice of trials: a participant's plan grows by one trial with each response.

What does not depend on responses is drawn before the first: for each place in the order, the type of its trial and the
side of the right option, as in a study whose trials are all drawn; and the attention checks. A policy chooses among
the unseen trials of that type and side (`study.adaptive.policy`). So each type keeps its share, and no option is right
more than three times in a row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from study.adaptive.ability import PastTrial
from study.adaptive.policy import MARK, choose_trial
from study.bundle import Manifest, Trial
from study.conditions import CONDITIONS
from study.participation.allocation import Place
from study.participation.blocks import merge_types
from study.participation.screens import (
    PresentedTrial,
    choose_left,
    draw_letters,
    has_sides,
    lay_out_catches,
    lay_out_trial,
    order_trials,
    plan,
)
from study.plan.adaptive import Adaptive, adaptive_of
from study.plan.texts import word_task
from study.store.rows import Choice
from study.tasks.task import Task

TrialSlot = tuple[str, bool, str]
"""The type of a trial, whether the option on its left is the right one, and the order of its classes, by letters."""


@dataclass(frozen=True)
class Schedule:
    """What is drawn of a participant's trials before their first response.

    ``kinds`` are type and side of each trial of the study, as of a slot; ``checks`` are the attention checks, each
    with the main trial that it precedes, the last first.
    """

    adaptive: Adaptive
    manifest: Manifest
    place: Place
    kinds: tuple[tuple[str, bool], ...]
    slots: tuple[TrialSlot, ...]
    checks: tuple[tuple[int, PresentedTrial], ...]

    def list_next(self, history: Sequence[PastTrial]) -> list[PresentedTrial]:
        """List what follows the responses to main trials so far: a trial, after any attention check before it.

        Nothing after the last one.
        """
        number = len(history)
        if number >= len(self.slots):
            return []
        worded, condition = word_task(self.manifest), CONDITIONS[self.place.condition]
        left_is = choose_left(worded.task, self.place.side_flip)
        seen = {one.trial.id for one in history}
        slot = self.slots[number]
        known = zip(self.manifest.trials, self.kinds, strict=True)
        may_come = [trial for trial, kind in known if kind == slot[:2] and trial.id not in seen]
        rng = np.random.default_rng([self.place.order_seed, *MARK.encode(), number])
        chosen = choose_trial(self.adaptive, may_come, history, rng)
        laid = lay_out_trial("main", chosen.trial, condition, left_is, worded, slot[2])
        checks = [check for before, check in self.checks if before == number]
        return [*reversed(checks), replace(laid, screen={**laid.screen, **chosen.mark()})]

    def replay(self, responded: Sequence[bool]) -> list[PresentedTrial]:
        """List all main trials and attention checks that follow from responses, each correct or not."""
        made, history = self.list_next([]), list[PastTrial]()
        for right in responded[: len(self.slots)]:
            history.append(PastTrial(made[-1].trial, right))
            made += self.list_next(history)
        return made


def draw_schedule(manifest: Manifest, adaptive: Adaptive, place: Place) -> Schedule:
    """Draw the types, sides and attention checks of a participant, from the seed of their order."""
    worded, condition = word_task(manifest), CONDITIONS[place.condition]
    left_is, rng = choose_left(worded.task, place.side_flip), np.random.default_rng(place.order_seed)
    kinds = {trial.id: describe_kind(worded.task, left_is, trial) for trial in manifest.trials}
    drawn = [*islice(merge_types(manifest.trials, rng), adaptive.trials)]
    ordered = order_trials(drawn, worded.task, left_is, rng)
    slots = tuple((*kinds[trial.id], draw_letters(worded.task, rng)) for trial in ordered)
    checks = tuple(lay_out_catches(manifest, len(slots), condition, left_is, worded, rng))
    return Schedule(adaptive, manifest, place, tuple(kinds.values()), slots, checks)


def describe_kind(task: Task, left_is: Choice, trial: Trial) -> tuple[str, bool]:
    """Return the type of a trial, and whether the option on its left is right; False where no side is held even."""
    return trial.trial_type, has_sides(task) and task.order(left_is)[0] in task.find_right(trial)


def plan_trials(manifest: Manifest, place: Place, responded: Sequence[bool] = ()) -> list[PresentedTrial]:
    """Plan a participant's trials: all of them, or of a study with a policy those that follow from responses so far.

    Parameters
    ----------
    responded
        Whether each response to a main trial was correct, in their order; without a policy, nothing depends on it.
    """
    adaptive = adaptive_of(manifest)
    if adaptive is None:
        return plan(manifest, place.condition, place.side_flip, place.order_seed)
    worded = word_task(manifest)
    left_is = choose_left(worded.task, place.side_flip)
    practice = [
        lay_out_trial("practice", trial, CONDITIONS[place.condition], left_is, worded) for trial in manifest.practice
    ]
    return practice + draw_schedule(manifest, adaptive, place).replay(responded)


def hide_choice(screen: Mapping[str, Any]) -> dict[str, Any]:
    """Return a screen as the page may know it: without why its trial was chosen."""
    return {key: value for key, value in screen.items() if key != MARK}


def list_history(manifest: Manifest, item_ids: Sequence[str], choices: Mapping[str, str]) -> list[PastTrial]:
    """List the main trials that were responded to, in the order of ``item_ids``, with whether each was correct."""
    trials, task = {trial.id: trial for trial in manifest.trials}, word_task(manifest).task
    given = [name for name in item_ids if name in choices and name in trials]
    return [PastTrial(trials[name], choices[name] in task.find_right(trials[name])) for name in given]
