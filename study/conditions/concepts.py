"""The picture, and for each option the concepts that make the AI answer with it, or not, as bars."""

from __future__ import annotations

from study.bundle import Trial
from study.conditions.condition import Condition, Shown


def shown(trial: Trial) -> Shown:
    """The assets in their places."""
    return Shown(trial.assets.target, None, dict(trial.assets.placebos["concepts"].examples))


CONDITION = Condition(
    "concepts",
    shows_saliency=False,
    shows_examples=True,
    shown=shown,
    other=True,
    words={"examples_legend": "concepts_legend", "example_examples": "example_concepts"},
)
