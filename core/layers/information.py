"""Information that a layer has about labels, a lower bound, and about the input, by a linear-Gaussian decoder.

For any decoder q, I(y; h) >= E[log q(y given h)] + H(y) (Barber & Agakov 2003); Darlow & Storkey 2020
(arXiv:2003.01687) track both quantities in the layers of a ResNet. Decoders are judged on images that they were not
fitted to, so that neither quantity grows with the number of units alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from core.errors import ForetellError
from core.layers.probe import out_of_fold
from core.types import Progress, silent

COMPONENTS = 8
"""Principal components of the input that are decoded."""
PENALTIES = np.logspace(-4, 4, 17)
"""Ridge penalties to choose from, in units of the features' mean square."""
LEAST = 4 * COMPONENTS
"""Fewest images."""
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Information:
    """Bits, their standard error over images, and the most that is possible (infinite for the input)."""

    bits: float
    error: float
    most: float


def compute_label_information(
    features: Tensor, labels: Tensor, *, generator: torch.Generator | None = None, progress: Progress = silent
) -> Information:
    """Bound from below what features (N, K) tell about labels (N,), in bits, by a linear probe out of fold.

    The probe's log-probability of the label minus that of the label's frequency, averaged over images: never above the
    entropy of the labels, and below 0 where the probe is worse than the frequencies.
    """
    names, y, p = out_of_fold(features, labels, generator=generator, progress=progress)
    share = np.bincount(y, minlength=len(names)) / len(y)
    least = np.finfo(float).tiny
    gains = np.log2(np.maximum(p[np.arange(len(y)), y], least)) - np.log2(share[y])
    return Information(*_average(gains), float(-(share * np.log2(share)).sum()))


def compute_input_information(
    features: Tensor, inputs: Tensor, *, components: int = COMPONENTS, generator: torch.Generator | None = None
) -> Information:
    """Estimate what features (N, D) tell about inputs (N, M), in bits, by a linear-Gaussian decoder.

    Half of the images choose the inputs' principal components, a ridge regression and the covariances of the inputs
    and of its residuals; the other half is judged: E[log q(x given h)] - E[log q(x)]. Exact in the limit if features
    and inputs are jointly normal; otherwise an estimate of neither side, as the inputs' entropy is not known.

    Raises
    ------
    ForetellError
        Fewer than `LEAST` images, or fewer than 4 for each component.
    """
    count = len(features)
    if count < max(LEAST, 4 * components):
        raise ForetellError(
            f"Information about the input needs at least {max(LEAST, 4 * components)} images, not {count}."
        )
    order = torch.randperm(count, generator=generator or torch.Generator().manual_seed(0)).numpy()
    fitted, judged = order[: count // 2], order[count // 2 :]
    x, h = (one.double().flatten(1).numpy() for one in (inputs, features))
    x = x - x[fitted].mean(0)
    axes = np.linalg.svd(x[fitted], full_matrices=False)[2][:components]
    z = x @ axes.T
    told = _predict(h[fitted], z[fitted], h)
    gains = _log_density(z - told[0], told[1], judged) - _log_density(z, z[fitted], judged)
    return Information(*_average(gains / math.log(2)), math.inf)


def _predict(h: Floats, z: Floats, every: Floats) -> tuple[Floats, Floats]:
    """Predict (N, C) from all features by ridge regression; return also the residuals without each image itself.

    The penalty has the least squared error without each image itself, which a closed form gives.
    """
    from sklearn.linear_model import RidgeCV  # seconds, which only a fit is to cost

    scale = ((h - h.mean(0)) ** 2).sum() / min(h.shape) + np.finfo(float).tiny
    tried = PENALTIES * scale
    fit = RidgeCV(tried, scoring="neg_mean_squared_error", store_cv_results=True).fit(h, z)
    without = fit.cv_results_[..., np.flatnonzero(tried == fit.alpha_)[0]]
    return fit.predict(every), z - without


def _log_density(values: Floats, fitted: Floats, judged: NDArray[np.int64]) -> Floats:
    """Compute the log-density of the judged rows under a normal distribution with the fitted rows' covariance."""
    covariance = fitted.T @ fitted / len(fitted)
    covariance += 1e-9 * np.trace(covariance) / len(covariance) * np.eye(len(covariance))
    rows = values[judged]
    squares = (rows * np.linalg.solve(covariance, rows.T).T).sum(1)
    return np.asarray(-0.5 * (squares + np.linalg.slogdet(2 * np.pi * covariance)[1]))


def _average(gains: Floats) -> tuple[float, float]:
    return float(gains.mean()), float(gains.std(ddof=1) / math.sqrt(len(gains)))
