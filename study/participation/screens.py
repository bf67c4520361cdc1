"""One participant's plan: every trial in order, and exactly what is where on the screen."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from study.bundle import Manifest, Trial
from study.conditions import CONDITIONS
from study.conditions.condition import Condition
from study.participation.catch import NO_IMAGES, catch_trials, draw_catch_positions
from study.participation.order import shuffle_trials
from study.store.rows import Choice

Phase = Literal["practice", "main", "catch"]


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
        What the page is told: assets and names by place. Nothing here depends on which option the AI chose.
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
    left_is: Choice = "b" if side_flip else "a"
    rng = np.random.default_rng(order_seed)
    order = shuffle_trials([trial.ai_choice == left_is for trial in manifest.trials], rng)
    practice = [lay_out_trial("practice", trial, condition, left_is) for trial in manifest.practice]
    main = [lay_out_trial("main", manifest.trials[i], condition, left_is) for i in order]
    catches = catch_trials(manifest)
    for before, trial in reversed(list(zip(draw_catch_positions(len(main), len(catches), rng), catches, strict=True))):
        side: Choice = "a" if rng.random() < 0.5 else "b"
        main.insert(before, lay_out_trial("catch", trial, condition, side))
    return practice + main


def lay_out_trial(phase: Phase, trial: Trial, condition: Condition, left_is: Choice) -> PresentedTrial:
    """Lay out one trial for one condition and one choice of sides."""
    left, right = trial.options if left_is == "a" else trial.options[::-1]
    if trial.assets == NO_IMAGES:
        sides = [{"name": name, "samples": []} for name in (left, right)]
        screen = {"target": None, "map": None, "left": sides[0], "right": sides[1], "asked": trial.target}
    else:
        shown = condition.shown(trial)
        screen = {
            "target": shown.target,
            "map": shown.target_map,
            "left": {"name": left, "samples": list(shown.examples[left])},
            "right": {"name": right, "samples": list(shown.examples[right])},
        }
    return PresentedTrial(phase, trial, left_is, screen, hash_screen(screen))


def assets(screen: dict[str, Any]) -> list[str]:
    """List the assets of a screen in the order target, heatmap, left, right."""
    targets = [sha256 for sha256 in (screen["target"], screen["map"]) if sha256]
    return [*targets, *screen["left"]["samples"], *screen["right"]["samples"]]


def hash_screen(screen: dict[str, Any]) -> str:
    """Hash a screen: SHA-256 of its assets' SHA-256 in order, one a line; of an attention check its named option."""
    shown = "\n".join(assets(screen)) or f"asked: {screen['asked']}"
    return hashlib.sha256(shown.encode()).hexdigest()
