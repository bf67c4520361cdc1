"""Bayesian teaching by examples: the sets of four pictures that make the learner infer what the classifier says."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

from core.errors import ForetellError
from core.teaching.learner import expected_sigmoid, learn
from core.teaching.prior import KroneckerPrior
from core.types import TeachingSet

Policy = Literal["first", "best", "random", "unhelpful"]
PER_CATEGORY = 2
BATCH = 4096


def choose_examples(
    prior: KroneckerPrior,
    features: Tensor,
    of_target: Tensor,
    of_alternative: Tensor,
    image: Tensor,
    classes: tuple[int, int],
    *,
    generator: torch.Generator,
    policy: Policy = "first",
    sets: int = 200,
    threshold: float = 0.8,
    weight: float = 128.0,
) -> TeachingSet | None:
    """Draw ``sets`` teaching sets, 2 of the target and 2 of the alternative category, score them, choose one.

    Folke et al. 2021 (arXiv:2106.09106), eq. 1: P_teacher(D | c, x) is proportional to P_learner(Y = c | D, x).

    Parameters
    ----------
    features
        Pool features (N, M).
    of_target, of_alternative
        Indices into the pool of the candidates of each category (the target image itself left out by the caller).
    image
        The target image's features (M,).
    classes
        (target, alternative) class indices.
    policy
        ``first`` with P above ``threshold`` (the paper), ``best``, ``random`` (a control), ``unhelpful`` (the minimum).
    weight
        How often each example enters the likelihood.

    Returns
    -------
    TeachingSet or None
        None when the policy is ``first`` and no set is above the threshold.
    """
    if policy not in get_args(Policy):
        raise ForetellError(f"Unknown teaching policy {policy!r}. Use one of {', '.join(get_args(Policy))}.")
    drawn = torch.cat([_draw(of_target, sets, generator), _draw(of_alternative, sets, generator)], 1)
    at_mean = float(prior.mean(image[None], *classes))
    at_variance = float(prior.kernel(image[None], image[None], *classes))
    probabilities = score_sets(prior, features, drawn, image, classes, weight=weight)
    chosen = _select(probabilities, policy, threshold)
    if chosen is None:
        return None
    p_prior = float(expected_sigmoid(torch.tensor(at_mean).double(), torch.tensor(at_variance).double()))
    p = float(probabilities[chosen])
    gain = _log_odds(p) - _log_odds(p_prior)
    return TeachingSet(tuple(drawn[chosen].tolist()), p, p_prior, gain, policy, sets)


def score_sets(
    prior: KroneckerPrior,
    features: Tensor,
    sets: Tensor,
    image: Tensor,
    classes: tuple[int, int],
    *,
    weight: float,
) -> Tensor:
    """P_learner(Y = target | D, x), (S,) float64, of sets (S, 4) of pool indices, the target's examples first."""
    used, local = torch.unique(sets, return_inverse=True)
    gram = prior.kernel(features[used], features[used], *classes)
    means = prior.mean(features[used], *classes)
    cross = prior.kernel(features[used], image[None], *classes)[:, 0]
    at_mean = float(prior.mean(image[None], *classes))
    at_variance = float(prior.kernel(image[None], image[None], *classes))
    labels = torch.tensor([1.0] * PER_CATEGORY + [0.0] * PER_CATEGORY)
    results = []
    for part in torch.split(local, BATCH):
        kernel = gram[part[:, :, None], part[:, None, :]]
        learned = learn(kernel, means[part], labels, cross[part], at_mean, at_variance, weight=weight)
        results.append(learned.probability)
    return torch.cat(results)


def _draw(candidates: Tensor, sets: int, generator: torch.Generator) -> Tensor:
    """(sets, 2) candidates, without replacement within a set."""
    if len(candidates) < PER_CATEGORY:
        raise ForetellError(
            f"The pool has {len(candidates)} usable images of a category; a teaching set needs {PER_CATEGORY}. "
            "Add images to the pool or drop the category."
        )
    order = torch.rand(sets, len(candidates), generator=generator).argsort(1)[:, :PER_CATEGORY]
    return candidates[order]


def _select(probabilities: Tensor, policy: Policy, threshold: float) -> int | None:
    if policy == "best":
        return int(probabilities.argmax())
    if policy == "unhelpful":
        return int(probabilities.argmin())
    if policy == "random":
        return 0
    above = torch.nonzero(probabilities > threshold)
    return int(above[0]) if len(above) else None


def _log_odds(p: float) -> float:
    """Finite also where a probability rounds to 0 or 1."""
    return float(torch.logit(torch.tensor(p, dtype=torch.float64), eps=1e-15))
