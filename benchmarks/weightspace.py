"""The paper's recipe for the learner, in weight space: the reference for `benchmarks.teaching`."""

from __future__ import annotations

import time

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.special import expit

from core.teaching.kfac import KroneckerPrior
from core.teaching.learner import compute_expected_sigmoid

LABELS = np.array([1.0, 1.0, 0.0, 0.0])

Floats = NDArray[np.float64]


class WeightSpace:
    """The paper's recipe for one pair of classes: a Gaussian prior over 2 m weights, w_c first."""

    def __init__(self, prior: KroneckerPrior, classes: tuple[int, int], weight: float) -> None:
        self.weight = weight
        pair = list(classes)
        rows = prior.class_covariance[pair][:, pair].numpy()
        self.mean = prior.head[pair].numpy().ravel()
        self.precision = np.kron(np.linalg.inv(rows), np.linalg.inv(prior.feature_covariance.numpy()))

    def score(self, examples: Floats, image: Floats) -> tuple[float, float]:
        """Compute P(target | four examples, image), and the seconds of the recipe."""
        design = np.hstack([examples, -examples])  # log-odds = design . w
        start = time.perf_counter()
        optimum = minimize(self._loss, self.mean, (design,), "L-BFGS-B", jac=True, options={"maxiter": 500})
        hessian = self._hessian(optimum.x, design)
        covariance = np.linalg.inv(hessian)
        at = np.concatenate([image, -image])
        self._probability(float(at @ optimum.x), float(at @ covariance @ at))
        seconds = time.perf_counter() - start
        return self._polish(optimum.x, design, at), seconds

    def _loss(self, w: Floats, design: Floats) -> tuple[float, Floats]:
        away = self.precision @ (w - self.mean)
        signed = np.where(LABELS == 1, 1.0, -1.0) * (design @ w)
        gradient = away - self.weight * design.T @ (LABELS - expit(design @ w))
        return float(0.5 * (w - self.mean) @ away + self.weight * np.logaddexp(0, -signed).sum()), gradient

    def _hessian(self, w: Floats, design: Floats) -> Floats:
        p = expit(design @ w)
        hessian: Floats = self.precision + (design.T * (self.weight * p * (1 - p))) @ design
        return hessian

    def _polish(self, w: Floats, design: Floats, at: Floats) -> float:
        for _ in range(4):
            w = w - cho_solve(cho_factor(self._hessian(w, design)), self._loss(w, design)[1])
        spread = cho_solve(cho_factor(self._hessian(w, design)), at)
        return self._probability(float(at @ w), float(at @ spread))

    def _probability(self, mean: float, variance: float) -> float:
        return float(compute_expected_sigmoid(*torch.tensor([[mean], [variance]], dtype=torch.float64)))
