"""What a policy knew after each response of a study that chooses trials: the columns of its export."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from study.adaptive.ability import PastTrial, trace_ability
from study.bundle import Manifest
from study.plan.adaptive import adaptive_of
from study.tasks import find_task

ResponseKey = tuple[str, int]
"""Session and index of the trial."""


@dataclass(frozen=True)
class AbilityAfter:
    """A participant's ability after a response, mean and SD of its posterior, and the target of a staircase."""

    ability: float
    ability_sd: float
    target: float | None


def trace_responses(
    rows: Sequence[Mapping[str, Any]], manifests: Mapping[str, Manifest]
) -> dict[ResponseKey, AbilityAfter]:
    """Trace the ability of each participant of a study that chooses trials; ``rows`` are in the order of trials."""
    traced: dict[ResponseKey, AbilityAfter] = {}
    for (session_id, study_hash), group in groupby(rows, key=lambda row: (row["session_id"], row["study_hash"])):
        manifest = manifests[study_hash]
        adaptive = adaptive_of(manifest)
        if adaptive is None:
            continue
        own, task = [*group], find_task(manifest.config)
        trials = {trial.id: trial for trial in manifest.trials}
        history = [
            PastTrial(trials[row["item_id"]], row["choice"] in task.find_right(trials[row["item_id"]])) for row in own
        ]
        for row, after in zip(own, trace_ability(adaptive, history)[1:], strict=True):
            traced[session_id, row["trial_index"]] = AbilityAfter(*after, adaptive.target)
    return traced
