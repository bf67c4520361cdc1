"""What the benchmarks of readers and of the exact heatmap compute."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch

from benchmarks import exact, readers
from study.bundle import TRIAL_TYPES, Bundle
from study.conditions import CONDITIONS
from study.plan.simulated_participants import compute_expected_accuracy
from study.tasks.theory import ShownExplanations
from tests.study.test_conditions import TRIAL


def test_every_condition_is_read_by_who_can_read_it() -> None:
    """Catches a heatmap that is read as examples, and a condition without a reader."""
    found = {name: readers.list_readers(CONDITIONS[name]) for name in CONDITIONS}
    assert found["none"] == ["belief_projector"]
    assert found["saliency"] == found["uncertainty"] == ["map_reader"]
    assert found["rules"] == found["prototypes"] == found["concepts"] == found["x_features"] == ["bayesian_learner"]
    assert found["both"] == found["counterfactual"] == ["map_reader", "bayesian_learner"]


def test_a_condition_is_read_with_its_own_values_trial_type_by_trial_type() -> None:
    """By hand from the simulated participant. Catches the study's gain in place of the condition's, and mixed types."""
    trials = [
        TRIAL.model_copy(update={"trial_type": kind, "truth": truth})
        for kind, truth in zip(TRIAL_TYPES, ("boat", "boat", "fish"), strict=True)
    ]
    bundle = cast(Bundle, SimpleNamespace(manifest=SimpleNamespace(trials=[*trials, trials[2]])))
    (row,) = readers.read(bundle, CONDITIONS["rules"])
    for kind, trial in zip(TRIAL_TYPES, trials, strict=True):
        teaching = trial.teaching.model_copy(update={"gain": 0.4})
        own = trial.model_copy(update={"teaching": teaching})
        expected = compute_expected_accuracy({"bayesian_learner": 1.0}, own, ShownExplanations(examples=True))
        assert row[kind][0] == pytest.approx(expected, abs=1e-4)
    assert row["std_correct"][1:] == row["std_correct"][:1] * 2  # two equal trials


def test_rows_of_one_network_are_replaced_and_the_others_kept() -> None:
    """Catches rows of both measurements, a lost network, and results of different studies in one table."""
    stored = {
        "machine": {},
        "result": {"categories": 2, "rows": [{"network": "scenes", "x": 1}, {"network": "scenes:prototypes", "x": 2}]},
    }
    machine = {"processor": "p", "measured_at": "2026-01-02", "load_average_1min": 1.0, "versions": {}}
    for network, expected in (("scenes", [3, 2]), ("scenes:prototypes", [1, 3])):
        again = {"categories": 2, "rows": [{"network": network, "x": 3}]}
        joined = readers.join_networks(stored, again, machine)
        assert [row["x"] for row in joined["result"]["rows"]] == expected
        assert joined["machine"]["joined"] == [machine | {"methods": {"networks": [network]}}]
    with pytest.raises(SystemExit, match="of 2 categories: give --categories"):
        readers.join_networks(stored, {"categories": 3, "rows": []}, machine)


def test_the_interval_of_a_mean_is_normal_and_within_probabilities() -> None:
    mean, low, high = readers.summarise([0.2, 0.4, 0.6])
    assert (mean, high - mean) == pytest.approx((0.4, 1.96 * 0.2 / np.sqrt(3)), abs=1e-4)
    assert mean - low == pytest.approx(high - mean, abs=2e-4)
    assert readers.summarise([0.9, 1.0])[2] == 1


def test_heatmaps_are_compared_over_cells_and_pixels() -> None:
    """A shuffle within cells changes the pixels and not the cells. Catches a cell taken from another place."""
    draws = torch.Generator().manual_seed(0)
    true = torch.rand(12, 12, generator=draws).repeat_interleave(8, 0).repeat_interleave(8, 1)
    noise = torch.rand(12, 8, 12, 8, generator=draws)
    noise = (noise - noise.mean((1, 3), keepdim=True)).reshape(96, 96)
    found: dict[str, Any] = exact.compare([true + noise, true + noise], [true, true])
    assert found["cells"][0] == pytest.approx(1, abs=1e-3)
    assert 0.3 < found["pixels"][0] < 0.9
    assert exact.correlate(true, -true) == pytest.approx(-1)
    assert exact.correlate(torch.zeros(4, 4), torch.rand(4, 4)) == 0
