"""Probes: how well a label can be decoded from a layer, linearly or by a two-layer perceptron."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from torch import Tensor

from core.errors import ForetellError
from core.layers.perceptron import Reader, fit_perceptron
from core.shares import PairedDifference, compare_paired, share_of
from core.types import Progress, silent

Floats = NDArray[np.float64]
Fit = Callable[[Floats, NDArray[np.int64], int, float, Callable[[], None]], Reader]
READING = "reading the features"
FTOL = 1e-12
"""Relative change of the loss at which the search ends."""


@dataclass(frozen=True)
class Probe:
    """Performance of a probe on images it was not trained on.

    Attributes
    ----------
    accuracy, low, high
        Share of labels read rightly, each image by a reader trained without its fold, and its 95 % interval (Wilson).
    chance
        The share of the most common label: what reading nothing gives.
    predicted
        (N,) int64: the label that was read of each image.
    """

    accuracy: float
    low: float
    high: float
    chance: float
    predicted: Tensor


def compare_probes(one: Probe, other: Probe, labels: Tensor) -> PairedDifference:
    """Compare the accuracy of one probe with that of another on the same images, whose labels are (N,)."""
    right, also = one.predicted == labels, other.predicted == labels
    return compare_paired(int((right & ~also).sum()), int((also & ~right).sum()), len(labels))


def linear_probe(
    features: Tensor, labels: Tensor, *, folds: int = 5, penalty: float = 1.0, generator: torch.Generator | None = None
) -> Probe:
    """Decode ``labels`` (N,), integers, from ``features`` (N, D) by cross-validated multinomial logistic regression.

    Alain & Bengio 2016 (arXiv:1610.01644), section 3. ``penalty`` is that of the squared weights, after the features
    were divided by their overall spread.

    Raises
    ------
    ForetellError
        Fewer than two labels, or fewer images of one than folds.
    """
    return _judge(out_of_fold(features, labels, folds=folds, penalty=penalty, generator=generator))


def perceptron_probe(
    features: Tensor,
    labels: Tensor,
    *,
    hidden: int = 16,
    folds: int = 5,
    penalty: float = 1.0,
    generator: torch.Generator | None = None,
    progress: Progress = silent,
) -> Probe:
    """Decode ``labels`` as `linear_probe` does, by a perceptron with one hidden layer of ``hidden`` units (tanh).

    An analytic neural stethoscope (Fuchs et al. 2018, arXiv:1806.05502): the network is not changed. Folds, scale,
    penalty and interval are those of the linear probe, so that a difference is information that is there and not
    linear. Each fold takes the best of `STARTS` random starts by the loss on its own training images.
    """
    if hidden < 1:
        raise ForetellError(f"hidden={hidden}: the perceptron needs at least one hidden unit.")
    draws = generator or torch.Generator().manual_seed(0)
    fit = partial(fit_perceptron, hidden=hidden, generator=draws)
    return _judge(
        out_of_fold(features, labels, folds=folds, penalty=penalty, generator=draws, progress=progress, fit=fit)
    )


def _judge(read: tuple[NDArray[np.int64], NDArray[np.int64], Floats]) -> Probe:
    names, y, p = read
    chosen = p.argmax(1)
    accuracy = share_of(int((chosen == y).sum()), len(y))
    return Probe(*accuracy, np.bincount(y).max() / len(y), torch.from_numpy(names[chosen]))


def out_of_fold(
    features: Tensor,
    labels: Tensor,
    *,
    folds: int = 5,
    penalty: float = 1.0,
    generator: torch.Generator | None = None,
    progress: Progress = silent,
    fit: Fit | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
    """Predict labels out of fold: the labels (L,), each image's index (N,), and the probe's probabilities (N, L).

    The readers of `linear_probe`: each image's was trained without its fold, so that it has not seen its label.
    ``fit(x, y, labels, penalty, step)`` trains another kind of reader, and returns its logits as a function of x.
    """
    names, y = np.unique(labels.numpy(), return_inverse=True)
    rarest = np.bincount(y).min(initial=len(y))
    if len(names) < 2 or rarest < folds or folds < 2:
        raise ForetellError(
            f"A probe in {folds} folds needs 2 or more labels and {max(folds, 2)} images of each, not {rarest} "
            f"of the rarest of {len(names)}: give more images, or labels that more of them share."
        )
    x = features.double().flatten(1).numpy()
    p = np.empty((len(y), len(names)))
    fold = _folds(y, folds, generator or torch.Generator().manual_seed(0))
    for k in range(folds):
        train, told = fold != k, partial(progress, k, folds, READING)
        centre, spread = x[train].mean(0), x[train].std()
        if not spread > 0:
            raise ForetellError("The layer gives the same output for all these images: choose another layer.")
        reader = (fit or _fit_linear)((x[train] - centre) / spread, y[train], len(names), penalty, told)
        p[~train] = softmax(reader((x[~train] - centre) / spread), axis=1)
        progress(k + 1, folds, READING)
    return names, y, p


def _folds(y: NDArray[np.int64], folds: int, generator: torch.Generator) -> NDArray[np.int64]:
    """Return a fold for each image, each label spread evenly over the folds."""
    order = torch.randperm(len(y), generator=generator).numpy()
    fold = np.empty(len(y), dtype=np.int64)
    for label in range(y.max() + 1):
        own = order[y[order] == label]
        fold[own] = np.arange(len(own)) % folds
    return fold


def _fit_linear(x: Floats, y: NDArray[np.int64], labels: int, penalty: float, step: Callable[[], None]) -> Reader:
    weights, bias = _fit_weights(x, y, labels, penalty, step)
    return lambda other: other @ weights + bias


def _fit_weights(
    x: Floats, y: NDArray[np.int64], labels: int, penalty: float, step: Callable[[], None] = lambda: None
) -> tuple[Floats, Floats]:
    """Return weights (D, labels) and biases with the least mean cross-entropy + penalty |W|^2 / (2 N).

    The best weights are sums of the images (representer theorem), so the search is within their span where that is
    smaller than all D. ``step`` is called at each step of the search; what it raises ends it.
    """
    span = np.linalg.qr(x.T)[0] if len(x) < x.shape[1] else None
    z, size = x if span is None else x @ span, len(y)

    def loss(parameters: Floats) -> tuple[float, Floats]:
        weights, bias = np.split(parameters.reshape(-1, labels), [-1])
        log_p = log_softmax(z @ weights + bias, axis=1)
        pull = np.exp(log_p)
        pull[np.arange(size), y] -= 1
        slope = np.concatenate([z.T @ pull + penalty * weights, pull.sum(0, keepdims=True)]) / size
        value = -log_p[np.arange(size), y].mean() + penalty / (2 * size) * (weights**2).sum()
        return value, slope.ravel()

    best = minimize(
        loss,
        np.zeros((z.shape[1] + 1) * labels),
        jac=True,
        method="L-BFGS-B",
        callback=lambda _: step(),
        options={"maxiter": 1000, "ftol": FTOL, "gtol": 1e-8},
    )
    weights, bias = np.split(best.x.reshape(-1, labels), [-1])
    return weights if span is None else span @ weights, bias
