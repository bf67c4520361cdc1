"""The classifier averaged over the prior next to the plain one, on labels known by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from core.teaching.kfac import KroneckerPrior
from study.building.averaged import DRAWS, compare

CLASSES, WIDTH, IMAGES = 6, 8, 600


def prior(spread: float) -> KroneckerPrior:
    """Weights around the identity, each with a normal error of standard deviation ``spread`` of its own."""
    head = torch.eye(CLASSES, WIDTH + 1, dtype=torch.float64)
    own = torch.eye(WIDTH + 1, dtype=torch.float64), spread**2 * torch.eye(CLASSES, dtype=torch.float64)
    return KroneckerPrior(head, *own, IMAGES, (1.0, 1.0))


@pytest.fixture
def pool() -> tuple[torch.Tensor, np.ndarray]:
    draws = torch.Generator().manual_seed(0)
    truth = torch.randint(CLASSES, (IMAGES,), generator=draws)
    features = torch.eye(WIDTH)[truth] + 0.4 * torch.randn(IMAGES, WIDTH, generator=draws)
    return features, truth.numpy().astype(np.int64)


@pytest.mark.parametrize(("spread", "warned"), [(0.01, False), (30.0, True)])
def test_both_accuracies_are_those_of_a_loop_over_drawn_heads(pool, spread: float, warned: bool) -> None:
    """An own average of softmaxes over own draws has the same top-1, to the noise of 30 draws."""
    features, truth = pool
    found = compare(prior(spread), features, truth, seed=1)
    z = np.column_stack([features.double().numpy(), np.ones(IMAGES)])
    head, rng = np.eye(CLASSES, WIDTH + 1), np.random.default_rng(0)
    total = np.zeros((IMAGES, CLASSES))
    for _ in range(DRAWS):
        logits = z @ (head + spread * rng.standard_normal(head.shape)).T
        e = np.exp(logits - logits.max(1, keepdims=True))
        total += e / e.sum(1, keepdims=True)
    assert found.averaged[0] == pytest.approx((total.argmax(1) == truth).mean(), abs=0.02 if spread < 1 else 0.25)
    plain = z @ head.T
    assert found.plain[0] == pytest.approx((plain.argmax(1) == truth).mean())
    fifth = [truth[i] in np.argsort(plain[i])[-5:] for i in range(IMAGES)]
    assert found.plain[1] == pytest.approx(np.mean(fifth))
    assert ("Warning: the prior is not that of this network" in found.text) is warned
    assert f"{found.averaged[0]:.1%}" in found.text


def test_images_without_a_known_class_are_left_out(pool) -> None:
    features, truth = pool
    known = truth.copy()
    known[::2] = -1
    assert compare(prior(0.01), features, known, seed=1).images == IMAGES // 2
    assert compare(prior(0.01), features, np.full(IMAGES, -1), seed=1) is None
