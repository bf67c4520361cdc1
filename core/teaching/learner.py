"""The learner: Bayesian logistic regression on the classifier's features, in function space, batched.

With prior w_c - w_c' ~ N(m, s U^-1) the Laplace posterior of the weights is exactly Gaussian-process classification
with mean m^T z and kernel s z^T U^-1 z' (representer theorem), so a teaching set of n examples costs an n x n Newton
iteration instead of a weight-space one. Newton as in Rasmussen & Williams 2006, algorithms 3.1 and 3.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from core.errors import ForetellError

MAX_STEPS = 100
TOLERANCE = 1e-12
HERMITE_POINTS = 64
NARROW = 1.0
"""Standard deviation up to which the Hermite points are exact to the last digits."""
TAIL, STEP = 40.0, 0.5
"""Range and step of the logistic variable: both errors are below 1e-16."""


@dataclass(frozen=True)
class LearnerPrediction:
    """The learner's Gaussian over the log-odds of the target image, and the probability it implies.

    Each (S,) float64, one per teaching set: mean and variance of the log-odds, P(Y = c | D, x), and its Monte Carlo
    standard error (None where it was integrated).
    """

    mean: Tensor
    variance: Tensor
    probability: Tensor
    error: Tensor | None = None


def learn(
    kernel: Tensor,
    mean: Tensor,
    labels: Tensor,
    cross: Tensor,
    at_mean: float,
    at_variance: float,
    *,
    weight: float,
    normal: Tensor | None = None,
) -> LearnerPrediction:
    """Return the learner's prediction for one target image after each of S teaching sets of n examples.

    Parameters
    ----------
    kernel, mean
        Prior covariance (S, n, n) and mean (S, n) of the examples' log-odds.
    labels
        (n,) 1 for the target category, 0 for the alternative.
    cross
        (S, n), prior covariance of the target image with each example.
    at_mean, at_variance
        Prior mean and variance of the target image's log-odds.
    weight
        How often each example enters the likelihood (the paper trains 128 epochs: 128).
    normal
        Draws for `estimate_expected_sigmoid`; None integrates.

    Raises
    ------
    ForetellError
        Newton's iteration did not converge.
    """
    y = labels.to(mean).expand_as(mean)
    alpha, p = _mode(kernel, mean, y, weight)
    root = (weight * p * (1 - p)).sqrt()
    b = torch.eye(kernel.shape[-1]).to(kernel) + root[:, :, None] * kernel * root[:, None, :]
    shrink = torch.linalg.solve_triangular(torch.linalg.cholesky(b), (root * cross)[..., None], upper=False)[..., 0]
    posterior_mean = at_mean + (cross * alpha).sum(1)
    variance = (at_variance - (shrink * shrink).sum(1)).clamp(min=0)
    if normal is None:
        return LearnerPrediction(posterior_mean, variance, compute_expected_sigmoid(posterior_mean, variance))
    return LearnerPrediction(
        posterior_mean, variance, *estimate_expected_sigmoid(posterior_mean, variance, normal.to(mean))
    )


def _mode(kernel: Tensor, mean: Tensor, y: Tensor, weight: float) -> tuple[Tensor, Tensor]:
    """Find alpha = K^-1 (f - mean) at the posterior mode, and sigmoid(f), both (S, n), by damped Newton steps."""
    eye = torch.eye(kernel.shape[-1]).to(kernel)
    alpha = torch.zeros_like(mean)
    f = mean.clone()
    value = _objective(f, alpha, mean, y, weight)
    for _ in range(MAX_STEPS):
        p = torch.sigmoid(f)
        h = weight * p * (1 - p)
        b = h * (f - mean) + weight * (y - p)
        root = h.sqrt()
        system = eye + root[:, :, None] * kernel * root[:, None, :]
        inner = root * (kernel @ b[..., None])[..., 0]
        full = b - root * torch.cholesky_solve(inner[..., None], torch.linalg.cholesky(system))[..., 0]
        step = torch.ones(len(f), 1).to(f)
        # Heavy likelihood weights make the full step overshoot: halve it, set by set, until the objective rises.
        for _ in range(40):
            trial = alpha + step * (full - alpha)
            moved = mean + (kernel @ trial[..., None])[..., 0]
            better = _objective(moved, trial, mean, y, weight) >= value - TOLERANCE * (1 + value.abs())
            if bool(better.all()):
                break
            step = torch.where(better[:, None], step, step / 2)
        change = (moved - f).abs().amax()
        alpha, f, value = trial, moved, _objective(moved, trial, mean, y, weight)
        if float(change) < 1e-10 * (1 + float(f.abs().amax())):
            return alpha, torch.sigmoid(f)
    raise ForetellError(f"The learner did not converge in {MAX_STEPS} steps. Use a stronger prior (larger damping).")


def _objective(f: Tensor, alpha: Tensor, mean: Tensor, y: Tensor, weight: float) -> Tensor:
    """Log posterior (S,) up to a constant."""
    likelihood = weight * torch.nn.functional.logsigmoid((2 * y - 1) * f).sum(1)
    return likelihood - 0.5 * (alpha * (f - mean)).sum(1)


def compute_expected_sigmoid(mean: Tensor, variance: Tensor) -> Tensor:
    """Compute E[sigmoid(N(mean, variance))] to 1e-13; any shape, float64.

    Where the Gaussian is narrow, Gauss-Hermite quadrature. Where it is wide, that sees too little of the sigmoid's
    bend; but a sigmoid is the distribution function of a logistic variable L, so that the same expectation is
    E[Phi((mean - L) / sd)], whose integrand is then the smooth one: the trapezoidal rule over L.
    """
    sd = variance.sqrt()
    wide = sd > NARROW
    result = torch.empty_like(mean)
    z, w = (torch.from_numpy(array).to(mean) for array in np.polynomial.hermite_e.hermegauss(HERMITE_POINTS))
    result[~wide] = torch.sigmoid(mean[~wide, None] + sd[~wide, None] * z) @ (w / w.sum())
    logistic = torch.arange(-TAIL, TAIL + STEP, STEP).to(mean)
    density = STEP * torch.sigmoid(logistic) * torch.sigmoid(-logistic)
    result[wide] = torch.special.ndtr((mean[wide, None] - logistic) / sd[wide, None]) @ density
    return result


def estimate_expected_sigmoid(mean: Tensor, variance: Tensor, normal: Tensor) -> tuple[Tensor, Tensor]:
    """Estimate the same expectation as the paper has it, by Monte Carlo, and its standard error, both (S,).

    ``normal`` (s,) are standard normal draws, the same for all sets, so that the sets compare.
    """
    draws = torch.sigmoid(mean[:, None] + variance.sqrt()[:, None] * normal)
    return draws.mean(1), draws.std(1) / len(normal) ** 0.5
