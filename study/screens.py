"""One person's plan: every trial in order, and exactly what stands where on the screen."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from study.bundle import Manifest, Trial
from study.conditions import CONDITIONS
from study.conditions.condition import Condition
from study.order import shuffled

Choice = Literal["a", "b"]
Phase = Literal["practice", "main"]


@dataclass(frozen=True)
class PlannedTrial:
    """A trial as one person will see it.

    Attributes
    ----------
    phase, trial
        Practice or main; the trial of the bundle.
    left_is
        Which option stands on the left.
    screen
        What the page is told: assets and names by place. Nothing here depends on which option the AI chose.
    shown_sha256
        SHA-256 over the shown assets, in the order target, map, left, right.
    """

    phase: Phase
    trial: Trial
    left_is: Choice
    screen: dict[str, Any]
    shown_sha256: str


def plan(manifest: Manifest, condition_name: str, side_flip: int, order_seed: int) -> list[PlannedTrial]:
    """Practice trials in the bundle's order, then the main trials in this person's order."""
    condition: Condition = CONDITIONS[condition_name]
    left_is: Choice = "b" if side_flip else "a"
    ai_left = [trial.ai_choice == left_is for trial in manifest.trials]
    order = shuffled(ai_left, np.random.default_rng(order_seed))
    practice = [planned("practice", trial, condition, left_is) for trial in manifest.practice]
    return practice + [planned("main", manifest.trials[i], condition, left_is) for i in order]


def planned(phase: Phase, trial: Trial, condition: Condition, left_is: Choice) -> PlannedTrial:
    """One trial laid out for one condition and one choice of sides."""
    shown = condition.shown(trial)
    left, right = trial.options if left_is == "a" else trial.options[::-1]
    screen = {
        "target": shown.target,
        "map": shown.target_map,
        "left": {"name": left, "samples": list(shown.examples[left])},
        "right": {"name": right, "samples": list(shown.examples[right])},
    }
    return PlannedTrial(phase, trial, left_is, screen, shown_hash(screen))


def assets(screen: dict[str, Any]) -> list[str]:
    """The assets of a screen in the order target, map, left, right."""
    mapped = [screen["map"]] if screen["map"] else []
    return [screen["target"], *mapped, *screen["left"]["samples"], *screen["right"]["samples"]]


def shown_hash(screen: dict[str, Any]) -> str:
    """SHA-256 of the assets' SHA-256 in their order on the screen, one a line."""
    return hashlib.sha256("\n".join(assets(screen)).encode()).hexdigest()
