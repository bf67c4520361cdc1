"""One image set is divided into three by its network's errors."""

from __future__ import annotations

import numpy as np
import torch

from study.building.splitting import ROLES, split_by_errors
from study.network.predictions import Predictions


def answers(truth: list[int], predicted: list[int], probability: list[float]) -> Predictions:
    zeros, nothing = np.zeros(len(truth), dtype=np.float32), torch.zeros(0, 0)
    sure = np.array(probability, dtype=np.float32)
    return Predictions(np.array(truth), np.array(predicted), sure, np.zeros((3, 3)), nothing, zeros, zeros, nothing)


def test_the_confident_errors_are_adversarial() -> None:
    """By hand: of the errors 1 to 5 of class 0, the two most confident are 2 and 5; image 8 has no class."""
    truth, predicted = [0, 0, 0, 0, 0, 0, 1, 1, -1], [0, 1, 1, 2, 2, 1, 1, 1, 0]
    found = split_by_errors(answers(truth, predicted, [0.9, 0.3, 0.8, 0.5, 0.4, 0.7, 0.9, 0.9, 0.9]), 0)
    assert found["adversarial"].tolist() == [2, 5]
    assert {1, 3, 4} <= set(found["standard"].tolist())
    assert 8 not in {i for role in ROLES for i in found[role].tolist()}
    assert {role: len(found[role]) for role in ROLES} == {"pool": 2, "standard": 4, "adversarial": 2}


def test_no_image_has_two_roles_and_the_standard_images_keep_the_accuracy() -> None:
    """Catches a target that is its own example, and a standard set without errors."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 900)
    predicted = np.where(rng.random(900) < 0.7, truth, (truth + 1) % 3)
    found = split_by_errors(answers(truth.tolist(), predicted.tolist(), rng.random(900).tolist()), 1)
    everyone = np.concatenate([found[role] for role in ROLES])
    assert sorted(everyone.tolist()) == list(range(900))
    standard = found["standard"]
    assert abs(float((truth == predicted)[standard].mean()) - float((truth == predicted).mean())) < 0.02
    assert (truth == predicted)[found["pool"]].all()
    assert not (truth == predicted)[found["adversarial"]].any()


def test_the_seed_chooses_the_pool() -> None:
    truth = [0] * 40
    one, again, other = (split_by_errors(answers(truth, truth, [0.5] * 40), seed)["pool"] for seed in (1, 1, 2))
    assert one.tolist() == again.tolist()
    assert one.tolist() != other.tolist()
