"""One participant's plan: every trial in order, and exactly what is where on the screen."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from study.bundle import Manifest, Trial
from study.conditions import CONDITIONS
from study.conditions.condition import Condition
from study.participation.catch import NO_IMAGES, catch_trials, draw_catch_positions
from study.participation.order import shuffle_trials
from study.plan.texts import word_task
from study.store.rows import Choice
from study.tasks.task import WordedTask

Phase = Literal["practice", "main", "catch"]
_OTHER: dict[Choice, Choice] = {"a": "b", "b": "a"}


@dataclass(frozen=True)
class PresentedTrial:
    """A trial as one participant will see it.

    Attributes
    ----------
    phase, trial
        Practice, main or catch; the trial of the bundle, or an attention check.
    left_is
        Which option is on the left.
    screen
        What the page is told: assets and names by place, ``label`` where the task shows it. Nothing here depends on
        which option is right.
    shown_sha256
        SHA-256 over what is shown: see `hash_screen`.
    """

    phase: Phase
    trial: Trial
    left_is: Choice
    screen: dict[str, Any]
    shown_sha256: str


def plan(manifest: Manifest, condition_name: str, side_flip: int, order_seed: int) -> list[PresentedTrial]:
    """Lay out practice trials in the bundle's order, then main trials in this participant's, with attention checks."""
    condition: Condition = CONDITIONS[condition_name]
    worded = word_task(manifest)
    left_is: Choice = "b" if side_flip else "a"
    rng = np.random.default_rng(order_seed)
    order = shuffle_trials([worded.task.find_right(trial) == left_is for trial in manifest.trials], rng)
    practice = [lay_out_trial("practice", trial, condition, left_is, worded) for trial in manifest.practice]
    main = [lay_out_trial("main", manifest.trials[i], condition, left_is, worded) for i in order]
    catches = catch_trials(manifest)
    for before, trial in reversed(list(zip(draw_catch_positions(len(main), len(catches), rng), catches, strict=True))):
        side: Choice = "a" if rng.random() < 0.5 else "b"
        if worded.buttons is not None:  # the same side as on all other trials
            side = left_is if trial.options == worded.buttons else _OTHER[left_is]
        main.insert(before, lay_out_trial("catch", trial, condition, side, worded))
    return practice + main


def lay_out_trial(
    phase: Phase, trial: Trial, condition: Condition, left_is: Choice, worded: WordedTask
) -> PresentedTrial:
    """Lay out one trial for one condition, one choice of sides and one task."""
    is_catch = trial.assets == NO_IMAGES
    names = trial.options if is_catch else worded.name_options(trial)
    left, right = names if left_is == "a" else names[::-1]
    shown = None if is_catch else condition.shown(trial)
    examples = dict.fromkeys(names, ()) if shown is None or worded.task.shows_label else shown.examples
    screen: dict[str, Any] = {
        "target": shown and shown.target,
        "map": shown and shown.target_map,
        "left": {"name": left, "samples": list(examples[left])},
        "right": {"name": right, "samples": list(examples[right])},
    }
    if shown is None:
        screen["asked"] = trial.target
    elif (text := worded.write_label(trial.target)) is not None:
        screen["label"] = {"name": trial.target, "text": text, "samples": list(shown.examples[trial.target])}
    return PresentedTrial(phase, trial, left_is, screen, hash_screen(screen))


def list_samples(screen: Mapping[str, Any]) -> list[str]:
    """List the example images of a screen in the order left, right, of the AI's label."""
    return [sha256 for place in ("left", "right", "label") if place in screen for sha256 in screen[place]["samples"]]


def assets(screen: Mapping[str, Any]) -> list[str]:
    """List the assets of a screen in the order target, heatmap, left, right, of the AI's label."""
    targets = [sha256 for sha256 in (screen["target"], screen["map"]) if sha256]
    return [*targets, *list_samples(screen)]


def hash_screen(screen: Mapping[str, Any]) -> str:
    """Hash a screen: SHA-256 of its assets' SHA-256 in order, one a line, and of the AI's label where it is shown.

    That of an attention check is of its named option.
    """
    lines = assets(screen) or [f"asked: {screen['asked']}"]
    if "label" in screen:
        lines.append(f"label: {screen['label']['name']}")
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
