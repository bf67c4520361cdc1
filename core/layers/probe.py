"""Probes: how well a label can be decoded from a layer, linearly or by a two-layer perceptron."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from core.errors import ForetellError
from core.shares import PairedDifference, compare_paired, share_of
from core.types import Progress, silent

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]
Fit = Callable[[Floats, Labels, float, Callable[[], None]], Any]
"""``fit(x, y, penalty, step)``: a classifier of scikit-learn; what ``step`` raises ends the search."""
READING = "reading the features"
GRADIENT, STEPS = 1e-8, 1000
"""Largest slope of the loss, and steps, at which the search of a linear probe ends."""
STARTS = 3
"""Random starts of a perceptron: the loss has several minima."""
ROUND, ROUNDS = 50, 10
"""Steps of a perceptron's search between two calls of ``step``, and how often it goes on."""


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
    fit = partial(_fit_perceptron, hidden=hidden, generator=draws)
    return _judge(
        out_of_fold(features, labels, folds=folds, penalty=penalty, generator=draws, progress=progress, fit=fit)
    )


def _judge(read: tuple[Labels, Labels, Floats]) -> Probe:
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
) -> tuple[Labels, Labels, Floats]:
    """Predict labels out of fold: the labels (L,), each image's index (N,), and the probe's probabilities (N, L).

    The readers of `linear_probe`, or those that ``fit`` trains: each image's was trained without its fold, so that it
    has not seen its label.
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
        reader = (fit or _fit_linear)((x[train] - centre) / spread, y[train], penalty, told)
        p[~train] = reader.predict_proba((x[~train] - centre) / spread)
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


@dataclass(frozen=True)
class _Step:
    """A callback of scikit-learn's that calls ``told`` at each step of a search; what it raises ends the search."""

    told: Callable[[], None]

    def setup(self, *_: Any, **__: Any) -> None:
        """Do nothing before a fit."""

    def teardown(self, *_: Any, **__: Any) -> None:
        """Do nothing after a fit."""

    def on_fit_task_begin(self, *_: Any, **__: Any) -> None:
        """Tell that a step begins."""
        self.told()

    def on_fit_task_end(self, *_: Any, **__: Any) -> None:
        """Do nothing after a step."""


def _fit_linear(x: Floats, y: Labels, penalty: float, step: Callable[[], None]) -> Any:
    """Fit weights W (D, L) and biases with the least mean cross-entropy + penalty |W|^2 / (2 N)."""
    from sklearn.linear_model import LogisticRegression  # seconds, which only a fit is to cost

    # Of two labels scikit-learn has one column w, the difference of two that are w / 2 and -w / 2: |W|^2 = |w|^2 / 2.
    c = (2 if y.max() == 1 else 1) / penalty
    return LogisticRegression(C=c, tol=GRADIENT, max_iter=STEPS).set_callbacks(_Step(step)).fit(x, y)


def _fit_perceptron(
    x: Floats, y: Labels, penalty: float, step: Callable[[], None], *, hidden: int, generator: torch.Generator
) -> Any:
    """Fit tanh(x W1 + b1) W2 + b2 with the least mean cross-entropy + penalty (|W1|^2 + |W2|^2) / (2 N).

    By L-BFGS from `STARTS` random starts, of which the one with the least loss is kept. Two labels have one logit.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    given = {"activation": "tanh", "solver": "lbfgs", "alpha": penalty, "tol": 1e-6, "max_iter": ROUND}
    fits = []
    for _ in range(STARTS):
        seed = int(torch.randint(2**31, (1,), generator=generator))
        fits.append(MLPClassifier((hidden,), **given, warm_start=True, random_state=seed))
        for _ in range(ROUNDS):  # it takes no callback, so it goes on from where it was
            step()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                fits[-1].fit(x, y)
            if fits[-1].n_iter_ < ROUND:
                break
    return min(fits, key=lambda one: float(one.loss_))
