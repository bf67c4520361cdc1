"""Soft decision trees: every image takes every path, each with a probability (İrsoy, Yıldız & Alpaydın 2012).

An inner node i sends an image right with probability s_i = sigmoid(w_i x + b_i); the probability P_l of a leaf is the
product along its path, and the tree predicts sum_l P_l Q_l, with a distribution Q_l over classes in each leaf. It is
distilled from a network's probabilities, as by Frosst & Hinton (2017, arXiv:1711.09784), by the cross-entropy of this
mixture; they average the leaves' cross-entropies instead.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from core.errors import ForetellError
from core.types import Progress, silent

STEPS = 200
DEEPEST = 6
SPREAD = 0.1
"""Standard deviation of the first weights and leaves, which breaks their symmetry."""


@dataclass(frozen=True)
class SoftTree:
    """A fitted tree of depth d.

    Attributes
    ----------
    weights, biases
        Of the inner nodes (2^d - 1, D) and (2^d - 1,), level by level.
    leaves
        Log-probabilities (2^d, K) of the classes in each leaf.
    """

    weights: Tensor
    biases: Tensor
    leaves: Tensor

    def predict(self, features: Tensor) -> Tensor:
        """Return the log-probabilities (N, K) of features (N, D)."""
        return _predict(features.double(), self.weights, self.biases, self.leaves)


def fit_soft_tree(
    features: Tensor,
    targets: Tensor,
    *,
    depth: int,
    penalty: float = 1.0,
    leaves: Tensor | None = None,
    generator: torch.Generator | None = None,
    progress: Progress = silent,
) -> SoftTree:
    """Fit a soft tree to features (N, D) and a network's probabilities (N, K), by L-BFGS from a random start.

    The loss is the mean cross-entropy + penalty |W|^2 / (2 N). With depth 1 and ``leaves`` that are certain of one
    class each it is logistic regression.

    Parameters
    ----------
    leaves
        Log-probabilities (2^depth, K) to keep; learnt by default.

    Raises
    ------
    ForetellError
        A depth outside 1 to 6.
    """
    if not 1 <= depth <= DEEPEST:
        raise ForetellError(f"depth={depth}: a soft tree has a depth of 1 to {DEEPEST}.")
    x, t = features.double(), targets.double()
    draws = generator or torch.Generator().manual_seed(0)
    weights = torch.zeros(2**depth - 1, x.shape[1], dtype=torch.double)
    own = [weights.normal_(0, SPREAD, generator=draws), torch.zeros(2**depth - 1, dtype=torch.double)]
    own.append(torch.zeros(2**depth, t.shape[1], dtype=torch.double).normal_(0, SPREAD, generator=draws))
    free = [one.requires_grad_() for one in (own if leaves is None else own[:2])]
    optimiser = torch.optim.LBFGS(
        free,
        max_iter=STEPS,
        history_size=20,
        tolerance_grad=1e-9,
        tolerance_change=1e-12,
        line_search_fn="strong_wolfe",
    )
    taken = 0

    def closure() -> Tensor:
        nonlocal taken
        optimiser.zero_grad()
        fixed = own[2].log_softmax(1) if leaves is None else leaves.double()
        told = _predict(x, own[0], own[1], fixed)
        loss = -torch.where(t > 0, t * told, 0).sum(1).mean() + penalty * own[0].square().sum() / (2 * len(x))
        loss.backward()  # type: ignore[no-untyped-call]
        taken += 1
        progress(min(taken, STEPS), STEPS, "fitting a soft tree")
        return loss

    optimiser.step(closure)  # type: ignore[no-untyped-call]
    kept = own[2].detach().log_softmax(1) if leaves is None else leaves.double()
    return SoftTree(own[0].detach(), own[1].detach(), kept)


def _predict(x: Tensor, weights: Tensor, biases: Tensor, leaves: Tensor) -> Tensor:
    scores = x @ weights.T + biases
    reached = torch.zeros(len(x), 1, dtype=x.dtype)
    for level in range(leaves.shape[0].bit_length() - 1):
        own = scores[:, 2**level - 1 : 2 ** (level + 1) - 1]
        reached = (reached[..., None] + torch.stack([logsigmoid(-own), logsigmoid(own)], 2)).flatten(1)
    return (reached[..., None] + leaves).logsumexp(1)
