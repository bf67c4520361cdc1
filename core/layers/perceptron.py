"""A two-layer perceptron on the features of a layer, trained to its minimum."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, minimize
from scipy.special import log_softmax

Floats = NDArray[np.float64]
Reader = Callable[[Floats], Floats]
"""Logits (N, L) of features (N, D)."""
STARTS = 3
"""Random starts: the loss has several minima."""
ITERATIONS = 500
FTOL = 1e-8
"""Relative change of the loss at which a search ends."""


def fit_perceptron(
    x: Floats,
    y: NDArray[np.int64],
    labels: int,
    penalty: float,
    step: Callable[[], None] = lambda: None,
    *,
    hidden: int,
    generator: torch.Generator,
) -> Reader:
    """Fit tanh(x W1 + b1) W2 + b2 with the least mean cross-entropy + penalty (|W1|^2 + |W2|^2) / (2 N).

    L-BFGS from `STARTS` random starts in float64; the one with the least loss is kept. The best W1 are sums of the
    images, so the search is within their span where that is smaller than all D. ``step`` is called at each step of the
    search; what it raises ends it.
    """
    span = np.linalg.qr(x.T)[0] if len(x) < x.shape[1] else None
    z, size = x if span is None else x @ span, len(y)
    shapes = [(z.shape[1], hidden), (hidden,), (hidden, labels), (labels,)]

    def loss(parameters: Floats) -> tuple[float, Floats]:
        first, first_bias, second, second_bias = _split(parameters, shapes)
        active = np.tanh(z @ first + first_bias)
        log_p = log_softmax(active @ second + second_bias, axis=1)
        value = -log_p[np.arange(size), y].mean() + penalty / (2 * size) * ((first**2).sum() + (second**2).sum())
        pull = np.exp(log_p)
        pull[np.arange(size), y] -= 1
        back = (pull @ second.T) * (1 - active**2)
        slopes = (z.T @ back + penalty * first, back.sum(0), active.T @ pull + penalty * second, pull.sum(0))
        return float(value), np.concatenate([slope.ravel() for slope in slopes]) / size

    best = min((_search(loss, shapes, generator, step) for _ in range(STARTS)), key=lambda weights: float(weights.fun))
    first, first_bias, second, second_bias = _split(best.x, shapes)

    def read(other: Floats) -> Floats:
        features = other if span is None else other @ span
        logits: Floats = np.tanh(features @ first + first_bias) @ second + second_bias
        return logits

    return read


def _search(
    loss: Callable[[Floats], tuple[float, Floats]],
    shapes: list[tuple[int, ...]],
    generator: torch.Generator,
    step: Callable[[], None],
) -> OptimizeResult:
    parts = [torch.randn(shape, generator=generator, dtype=torch.float64) / shape[0] ** 0.5 for shape in shapes]
    start = torch.cat([part.flatten() for part in parts]).numpy()
    options = {"maxiter": ITERATIONS, "ftol": FTOL, "gtol": 1e-6}
    return minimize(loss, start, jac=True, method="L-BFGS-B", callback=lambda _: step(), options=options)


def _split(flat: Floats, shapes: list[tuple[int, ...]]) -> list[Floats]:
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
    return [part.reshape(shape) for part, shape in zip(np.split(flat, ends[:-1]), shapes, strict=True)]
