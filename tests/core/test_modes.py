"""Decision modes: a planted network with two, and the sparse step against a closed form."""

from __future__ import annotations

import numpy as np
import pytest

from core.distillation.modes import (
    ModeEvidence,
    assign_modes,
    compute_largest_penalty,
    find_modes,
    fit_sparse_strengths,
)
from core.errors import ForetellError


@pytest.mark.parametrize("share", [0.02, 0.3, 0.9])
def test_the_sparse_step_is_the_lasso(share: float) -> None:
    """Closed form: of orthogonal columns a with mean 0, α = S(aᵀy, n λ / 2) / aᵀa, with S the soft threshold.

    Catches a penalty of the sum or of half the squares, and a bias that is penalised.
    """
    rng = np.random.default_rng(0)
    centred = rng.normal(size=(30, 8))
    a = np.linalg.qr(centred - centred.mean(0))[0] * np.arange(1, 9)
    y = a @ [2.0, 0, -1, 0, 0, 0.3, 0, 0] + 4 + 0.1 * rng.normal(size=30)
    penalty = share * compute_largest_penalty(a, y)
    pull = a.T @ y
    alpha, bias = fit_sparse_strengths(a + 3, y, penalty)
    expected = np.sign(pull) * np.maximum(np.abs(pull) - 30 * penalty / 2, 0) / (a**2).sum(0)
    np.testing.assert_allclose(alpha, expected, atol=1e-6)
    assert bias == pytest.approx(y.mean() - 3 * expected.sum(), abs=1e-5)
    assert not fit_sparse_strengths(a, y, 1.0001 * compute_largest_penalty(a, y))[0].any()


def plant() -> tuple[ModeEvidence, np.ndarray]:
    """A piecewise linear logit: y = relu(2 x0 + x1) + relu(3 x2) - 1, with one of both parts active in each image."""
    rng = np.random.default_rng(1)
    x = np.abs(rng.normal(1, 0.3, size=(60, 6)))
    kind = np.repeat([0, 1, 2], 20)
    x[kind != 0, :2] = -rng.uniform(0, 8, size=(40, 2))
    x[kind != 1, 2] = -rng.uniform(0, 8, size=40)
    gates = np.stack([2 * x[:, 0] + x[:, 1] > 0, x[:, 2] > 0], 1)
    g = gates[:, :1] * np.array([2.0, 1, 0, 0, 0, 0]) + gates[:, 1:] * np.array([0, 0, 3.0, 0, 0, 0])
    g = g + 0.02 * rng.normal(size=g.shape)
    return ModeEvidence(x, g, (g * x).sum(1) - 1, kind < 2), kind


def test_two_planted_modes_are_found_and_the_objective_rises() -> None:
    """Catches modes merged across the two parts, and a merge that lowers log E."""
    evidence, kind = plant()
    found = find_modes(evidence, sparsity=0.01)
    assert sorted(sorted(set(kind[list(mode.images)].tolist())) for mode in found.modes) == [[0], [1]]
    assert [len(mode.images) for mode in found.modes] == [20, 20]
    assert len(found.trace) == 40 - 2 + 1
    assert (np.diff(found.trace) > 0).all()
    for mode in found.modes:
        assert np.linalg.norm(mode.direction) == pytest.approx(1)
        own = list(mode.images)
        said = evidence.features[own] @ mode.weights + mode.bias
        assert np.abs(said - evidence.logits[own]).mean() < 0.2 * evidence.logits[own].std()
        strongest = (
            set(np.abs(mode.weights).argsort()[-2:].tolist())
            if 0 in kind[own]
            else {int(np.abs(mode.weights).argmax())}
        )
        assert strongest == ({0, 1} if 0 in kind[own] else {2})
    assigned = assign_modes(found.modes, evidence)
    for k, mode in enumerate(found.modes):
        assert set(assigned[list(mode.images)].tolist()) == {k}


def test_a_price_on_modes_merges_them_all() -> None:
    evidence, _ = plant()
    assert len(find_modes(evidence, beta=1e6).modes) == 1
    rows = np.flatnonzero(evidence.predicted)[:20]
    parts = (evidence.features, evidence.gradients, evidence.logits, evidence.predicted)
    with pytest.raises(ForetellError, match="of 20 images, 20 are predicted"):
        find_modes(ModeEvidence(*(one[rows] for one in parts)))
