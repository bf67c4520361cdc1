"""The picture beside a gauge of how sure the AI is of its answer, whichever that is."""

from __future__ import annotations

from study.bundle import Trial
from study.conditions.condition import Condition, Shown, no_examples


def shown(trial: Trial) -> Shown:
    """The assets in their places."""
    return Shown(trial.assets.target, trial.assets.placebos["uncertainty"].target_map, no_examples(trial))


CONDITION = Condition(
    "uncertainty",
    shows_saliency=True,
    shows_examples=False,
    shown=shown,
    other=True,
    words={"map_legend": "gauge_legend", "example_map": "example_gauge"},
)
