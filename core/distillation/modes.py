"""Decision modes: the few reasons for which a network predicts a class, after Zhang et al. 2019 (arXiv:1802.00121).

For an image i the logit is locally linear in the channels x_i of a layer, with gradient g_i. A mode v of images says

    h_v(x) = wᵀx + b,   w = α ∘ ḡ,   ḡ ∝ Σ_i g_i / ‖g_i‖,   ‖ḡ‖ = 1,
    (α, b) = argmin (1 / n) Σ_i (wᵀx_i + b − y_i)² + λ‖α‖₁.

At first every image that is predicted to be of the class is a mode of its own, with w = g_i; then modes are merged,
each time the two that raise log E most, until none raises it. E = Π P(x_i) / Π Q(x_i) · exp(−β |V|), over the images of
the class, with |V| modes and the constant Q of the first tree; P(x_i) is the share of exp(γ h(x_i)) among those of all
images, each under its most similar mode. The paper compares all pairs of modes; here only the most similar ones are.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from core.errors import ForetellError
from core.types import Progress, silent

Floats = NDArray[np.float64]
SWEEPS, TOLERANCE = 20_000, 1e-9
PAIRS = 6
"""Pairs of modes, the most similar ones, that are tried in each step."""
TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True)
class Mode:
    """One decision mode.

    Attributes
    ----------
    images
        Rows of its images.
    direction, strengths, bias
        ḡ (D,), α (D,) and b.
    """

    images: tuple[int, ...]
    direction: Floats
    strengths: Floats
    bias: float

    @property
    def weights(self) -> Floats:
        """Return w (D,)."""
        return np.asarray(self.strengths * self.direction)


@dataclass(frozen=True)
class DecisionModes:
    """The modes, the largest first, and log E, up to a constant, before the first and after each merge."""

    modes: tuple[Mode, ...]
    trace: tuple[float, ...]


@dataclass(frozen=True)
class ModeEvidence:
    """What modes are found from.

    Attributes
    ----------
    features, gradients
        Channels x (N, D) and gradients g (N, D) of the class's logit.
    logits
        The class's logit y (N,).
    predicted
        (N,) bool: the images that are predicted to be of the class.
    """

    features: Floats
    gradients: Floats
    logits: Floats
    predicted: NDArray[np.bool_]


def find_modes(
    evidence: ModeEvidence,
    *,
    sparsity: float = 0.1,
    gamma: float = 1.0,
    beta: float = 1.0,
    progress: Progress = silent,
) -> DecisionModes:
    """Find the decision modes of a class.

    Parameters
    ----------
    sparsity
        λ, as a share of the least λ with which α = 0.
    gamma
        γ, in units of 1 / the standard deviation of the logits.
    beta
        β: what a mode has to be worth, in units of log-likelihood.

    Raises
    ------
    ForetellError
        Fewer than 2 images of the class, or no others.
    """
    rows = np.flatnonzero(evidence.predicted)
    if len(rows) < 2 or len(rows) == len(evidence.logits):
        raise ForetellError(
            f"Decision modes compare images of a class with others: of {len(evidence.logits)} images, {len(rows)} are "
            "predicted to be of this class. Give more images, or another class."
        )
    scale = gamma / (evidence.logits.std() + TINY)
    modes = [_start(evidence, int(i)) for i in rows]
    trace = [_value(evidence, modes, scale, beta)]
    while len(modes) > 1:
        best: tuple[float, list[Mode]] | None = None
        for one, other in _list_pairs(modes):
            kept = [mode for k, mode in enumerate(modes) if k not in (one, other)]
            tried = [*kept, _fit(evidence, modes[one].images + modes[other].images, sparsity)]
            value = _value(evidence, tried, scale, beta)
            if best is None or value > best[0]:
                best = value, tried
        assert best is not None
        if best[0] <= trace[-1]:
            break
        modes = best[1]
        trace.append(best[0])
        progress(len(rows) - len(modes), len(rows) - 1, "merging modes")
    return DecisionModes(tuple(sorted(modes, key=lambda mode: -len(mode.images))), tuple(trace))


def fit_sparse_strengths(columns: Floats, values: Floats, penalty: float) -> tuple[Floats, float]:
    """Return the α (D,) and b with the least (1 / n) Σ (Aα + b − y)² + penalty ‖α‖₁, A (n, D) and y (n,)."""
    from sklearn.linear_model import Lasso  # seconds, which only a fit is to cost

    # scikit-learn halves the squares, and so the penalty.
    fit = Lasso(alpha=max(penalty / 2, TINY), tol=TOLERANCE, max_iter=SWEEPS).fit(columns, values)
    return fit.coef_, float(fit.intercept_)


def compute_largest_penalty(columns: Floats, values: Floats) -> float:
    """Compute the least penalty of `fit_sparse_strengths` with which α = 0."""
    return float(2 / len(values) * np.abs((columns - columns.mean(0)).T @ (values - values.mean())).max())


def assign_modes(modes: list[Mode] | tuple[Mode, ...], evidence: ModeEvidence) -> NDArray[np.int64]:
    """Return the mode of each image (N,): its own, or for other images the one whose w is most like their gradient."""
    weights = _normalise(np.stack([mode.weights for mode in modes]))
    modes_of: NDArray[np.int64] = (_normalise(evidence.gradients) @ weights.T).argmax(1)
    for k, mode in enumerate(modes):
        modes_of[list(mode.images)] = k
    return modes_of


def _start(evidence: ModeEvidence, i: int) -> Mode:
    gradient = evidence.gradients[i]
    bias = float(evidence.logits[i] - gradient @ evidence.features[i])
    return Mode((i,), gradient, np.ones_like(gradient), bias)


def _fit(evidence: ModeEvidence, images: tuple[int, ...], sparsity: float) -> Mode:
    rows = list(images)
    direction = _normalise(_normalise(evidence.gradients[rows]).sum(0, keepdims=True))[0]
    columns, values = evidence.features[rows] * direction, evidence.logits[rows]
    penalty = sparsity * compute_largest_penalty(columns, values)
    return Mode(images, direction, *fit_sparse_strengths(columns, values, penalty))


def _value(evidence: ModeEvidence, modes: list[Mode], scale: float, beta: float) -> float:
    """Compute log E without the constant of the first tree."""
    assigned = assign_modes(modes, evidence)
    weights = np.stack([mode.weights for mode in modes])[assigned]
    biases = np.array([mode.bias for mode in modes])[assigned]
    said = scale * ((weights * evidence.features).sum(1) + biases)
    own = said[evidence.predicted]
    return float(own.sum() - len(own) * logsumexp(said) - beta * len(modes))


def _list_pairs(modes: list[Mode]) -> list[tuple[int, int]]:
    directions = _normalise(np.stack([mode.direction for mode in modes]))
    alike = directions @ directions.T
    return sorted(combinations(range(len(modes)), 2), key=lambda pair: -alike[pair])[:PAIRS]


def _normalise(rows: Floats) -> Floats:
    return np.asarray(rows / (np.linalg.norm(rows, axis=1, keepdims=True) + TINY))
