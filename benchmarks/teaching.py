"""Scoring teaching sets: in function space (ours) against in weight space (the paper's recipe).

``python -m benchmarks.teaching``. The recipe fits a two-class logistic regression with the prior of `KroneckerPrior` on
four examples by L-BFGS over all 2 m weights, inverts the full 2 m x 2 m Hessian, and integrates. Both compute the same
Laplace approximation, so their probabilities must agree; before they are compared, the recipe's optimum is polished by
two Newton steps, which its time does not contain.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.special import expit

from benchmarks.machine import report
from core.teaching.learner import expected_sigmoid
from core.teaching.prior import KroneckerPrior, fit_prior, with_bias
from core.teaching.scoring import score_sets

FEATURES = 512
CLASSES = 10
POOL = 1500
SETS = 20_000
RECIPE_SETS = 3
PAIR = (0, 1)
WEIGHT = 128.0
LABELS = np.array([1.0, 1.0, 0.0, 0.0])

Floats = NDArray[np.float64]


def measure() -> dict[str, Any]:
    """Sets a second of both, their ratio, and the largest difference of probabilities."""
    generator = torch.Generator().manual_seed(7)
    features = torch.rand(POOL, FEATURES, generator=generator)
    head = torch.randn(CLASSES, FEATURES + 1, generator=generator).double() / FEATURES**0.5
    prior = fit_prior(head, features.split(500), damping=0.01)
    image = torch.rand(FEATURES, generator=generator)
    sets = torch.stack([torch.randperm(POOL, generator=generator)[:4] for _ in range(SETS)])
    score_sets(prior, features, sets[:256], image, PAIR, weight=WEIGHT)  # warm
    start = time.perf_counter()
    ours = score_sets(prior, features, sets, image, PAIR, weight=WEIGHT)
    seconds = time.perf_counter() - start
    recipe = WeightSpace(prior)
    timed = [recipe.score(with_bias(features[four]).numpy(), with_bias(image[None])[0].numpy()) for four in
             sets[:RECIPE_SETS]]  # fmt: skip
    per_set = statistics.median(second for _, second in timed)
    difference = max(abs(p - float(ours[i])) for i, (p, _) in enumerate(timed))
    return {
        "features_with_bias": FEATURES + 1,
        "function_space_sets_per_second": round(SETS / seconds),
        "weight_space_sets_per_second": round(1 / per_set, 3),
        "ratio": round(SETS / seconds * per_set),
        "sets_scored": [SETS, RECIPE_SETS],
        "probabilities_span": [round(float(ours.min()), 4), round(float(ours.max()), 4)],
        "largest_difference_of_probabilities": difference,
    }


class WeightSpace:
    """The paper's recipe for one pair of classes: a Gaussian prior over 2 m weights, w_c first."""

    def __init__(self, prior: KroneckerPrior) -> None:
        pair = list(PAIR)
        rows = prior.class_covariance[pair][:, pair].numpy()
        self.mean = prior.head[pair].numpy().ravel()
        self.precision = np.kron(np.linalg.inv(rows), np.linalg.inv(prior.feature_covariance.numpy()))

    def score(self, examples: Floats, image: Floats) -> tuple[float, float]:
        """P(target | four examples, image), and the seconds of the recipe."""
        design = np.hstack([examples, -examples])  # log-odds = design . w
        start = time.perf_counter()
        found = minimize(self._loss, self.mean, (design,), "L-BFGS-B", jac=True, options={"maxiter": 500})
        hessian = self._hessian(found.x, design)
        covariance = np.linalg.inv(hessian)
        at = np.concatenate([image, -image])
        self._probability(float(at @ found.x), float(at @ covariance @ at))
        seconds = time.perf_counter() - start
        return self._polished(found.x, design, at), seconds

    def _loss(self, w: Floats, design: Floats) -> tuple[float, Floats]:
        away = self.precision @ (w - self.mean)
        signed = np.where(LABELS == 1, 1.0, -1.0) * (design @ w)
        gradient = away - WEIGHT * design.T @ (LABELS - expit(design @ w))
        return float(0.5 * (w - self.mean) @ away + WEIGHT * np.logaddexp(0, -signed).sum()), gradient

    def _hessian(self, w: Floats, design: Floats) -> Floats:
        p = expit(design @ w)
        hessian: Floats = self.precision + (design.T * (WEIGHT * p * (1 - p))) @ design
        return hessian

    def _polished(self, w: Floats, design: Floats, at: Floats) -> float:
        for _ in range(4):
            w = w - cho_solve(cho_factor(self._hessian(w, design)), self._loss(w, design)[1])
        spread = cho_solve(cho_factor(self._hessian(w, design)), at)
        return self._probability(float(at @ w), float(at @ spread))

    def _probability(self, mean: float, variance: float) -> float:
        return float(expected_sigmoid(torch.tensor(mean).double(), torch.tensor(variance).double()))


if __name__ == "__main__":
    report("teaching", measure)
