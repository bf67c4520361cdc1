"""How faithful, orthogonal and local x-features are (Qi, Khorram & Li 2018, arXiv:1709.05360, evaluation metrics)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

TINY = 1e-12
FAITHFUL, FEW = 0.8, 10
"""Share of the variance below which x-features are not faithful, and held-out images of a class below which the shares
are uncertain."""


def measure_orthogonality(features: Tensor) -> tuple[float, float]:
    """Measure O1 = ‖P‖_F − √n and O2 = −log det P of x-features (M, n), P being their correlations.

    Both are 0 where P is the identity. An x-feature that does not vary is counted as uncorrelated; O2 is infinite
    where one x-feature is a linear function of the others.
    """
    centred = features.double() - features.double().mean(0)
    norms = centred.norm(dim=0)
    p = (centred / norms.clamp(min=TINY)).T @ (centred / norms.clamp(min=TINY))
    p.fill_diagonal_(1.0)
    o1, o2 = float(p.norm()) - math.sqrt(len(p)), -float(torch.linalg.slogdet(p).logabsdet)
    return o1, o2 if o2 < -math.log(TINY) else math.inf


def match_features(one: Tensor, other: Tensor) -> Tensor:
    """Compute the correlation (n,) of each x-feature with its partner among others, both (M, n), over the images.

    Partners are one to one, with the largest sum of correlations. Given is what x-features add to the logit, so that
    one for the class is no partner of one against it. An x-feature that does not vary has the correlation 0.
    """
    units = []
    for values in (one.double(), other.double()):
        centred = values - values.mean(0)
        units.append(centred / centred.norm(dim=0).clamp(min=TINY))
    correlations = units[0].T @ units[1]
    rows, columns = linear_sum_assignment(-correlations.numpy())
    matched: Tensor = correlations[rows, columns]
    return matched


def compute_locality(shares: Tensor) -> Tensor:
    """Compute the entropy H (...) in nats of how a heatmap is distributed over P parts, shares (..., P) not negative.

    0 where one part has everything, ln K where K parts have as much each; not a number where all shares are 0.
    """
    p = shares.double() / shares.double().sum(-1, keepdim=True)
    entropy: Tensor = torch.special.entr(p).sum(-1)
    return entropy


def divide_images(own: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return the rows to fit, two thirds of the class's images ``own`` (M,) and of the others; and to judge."""
    parts: tuple[list[Tensor], list[Tensor]] = ([], [])
    for chosen in (own, ~own):
        rows = torch.nonzero(chosen)[:, 0]
        rows = rows[torch.randperm(len(rows), generator=generator)]
        held = max(1, round(len(rows) / 3))
        parts[0].append(rows[held:])
        parts[1].append(rows[:held])
    return torch.cat(parts[0]).sort().values, torch.cat(parts[1]).sort().values


@dataclass(frozen=True)
class Faithfulness:
    """How faithful x-features are to the class's output of images.

    Attributes
    ----------
    explained
        R²: share of the variance of the output that they explain; below 0 they are worse than its mean.
    error
        F_reg: mean absolute difference, in logits.
    same
        F_cls: share of the images whose prediction stays with the x-features' output in place of the class's logit.
    """

    explained: float
    error: float
    same: float


def measure_faithfulness(predicted: Tensor, logits: Tensor, k: int) -> Faithfulness:
    """Measure how well x-features give logit ``k``: predicted (M,) against logits (M, K)."""
    logits, predicted = logits.double(), predicted.double()
    true = logits[:, k]
    left = (predicted - true).square().sum()
    variance = (true - true.mean()).square().sum()
    replaced = logits.clone()
    replaced[:, k] = predicted
    same = float((replaced.argmax(1) == logits.argmax(1)).double().mean())
    explained = float(1 - left / variance) if float(variance) > 0 else math.nan
    return Faithfulness(explained, float((predicted - true).abs().mean()), same)
