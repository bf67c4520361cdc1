"""Layer-wise relevance propagation: the logit distributed over the pixels, layer by layer.

Bach et al. 2015 (doi:10.1371/journal.pone.0130140); rules and composites after Montavon et al. 2019
(doi:10.1007/978-3-030-28954-6_10). How each kind of layer is met: `core.attribution.relevance.network`. What normalises
the image within the network counts as part of the image.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Literal

import torch
from torch import Tensor, nn

from core.attribution.cost import gradients
from core.attribution.method import Query, heatmap_method
from core.attribution.records import Family
from core.attribution.relevance.network import STABILISER, Composite, Relevance, relevance_of_inputs
from core.attribution.relevance.rules import AlphaBeta, Epsilon, Flat, Gamma, Rule, SquaredWeights, ZBox
from core.attribution.signs import SUPPORT
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.network.interception import hides_calls
from core.types import Explanation

Bias = Annotated[
    Literal["absorbs", "left_out"],
    "Whether biases absorb their share of the relevance, or are left out when it is distributed.",
]
LEAST, MOST = 0.1, 10.0
"""Shares of the logit below and above which a heatmap gets a warning."""
RuleName = Literal["zero", "epsilon", "gamma", "alpha_beta", "z_plus"]
FirstRule = Literal["same", "flat", "w_square", "z_box"]


@heatmap_method(family=Family.RELEVANCE, cost=gradients())
def lrp_0(query: Query, *, bias: Bias = "absorbs") -> Explanation:
    """Propagate relevance back by LRP-0: every layer distributes it in proportion to the contributions.

    Bach et al. 2015 (doi:10.1371/journal.pone.0130140), eq. 56. On a network of ReLUs and linear layers it is input
    x gradient.

    Parameters
    ----------
    bias
        Whether biases absorb their share of the relevance, or are left out when it is distributed: then the heatmap
        sums to the logit.
    """
    return explain_by_relevance(query, _uniform(Epsilon(0.0), bias), {"bias": bias})


@heatmap_method(family=Family.RELEVANCE, cost=gradients())
def lrp_epsilon(query: Query, *, epsilon: float = 0.01, bias: Bias = "absorbs") -> Explanation:
    """Propagate relevance back by LRP-epsilon, which damps outputs near 0 and absorbs some relevance.

    Bach et al. 2015 (doi:10.1371/journal.pone.0130140), eq. 58.

    Parameters
    ----------
    epsilon
        Number by which each output is moved away from 0 before relevance is divided by it; 0 is LRP-0.
    """
    _need(epsilon >= 0, f"epsilon={epsilon}: give 0 or more.")
    return explain_by_relevance(query, _uniform(Epsilon(epsilon), bias), {"epsilon": epsilon, "bias": bias})


@heatmap_method(family=Family.RELEVANCE, cost=gradients())
def lrp_gamma(query: Query, *, gamma: float = 0.25, bias: Bias = "absorbs") -> Explanation:
    """Propagate relevance back by LRP-gamma: contributions of the output's sign weigh 1 + gamma, which reduces noise.

    Montavon et al. 2019 (doi:10.1007/978-3-030-28954-6_10), section 10.2.3.

    Parameters
    ----------
    gamma
        How much more contributions of the output's sign weigh: 1 + gamma times; 0 is LRP-0.
    """
    _need(gamma >= 0, f"gamma={gamma}: give 0 or more.")
    return explain_by_relevance(query, _uniform(Gamma(gamma), bias), {"gamma": gamma, "bias": bias})


@heatmap_method(family=Family.RELEVANCE, cost=gradients())
def lrp_alpha_beta(query: Query, *, alpha: float = 2.0, beta: float = 1.0, bias: Bias = "absorbs") -> Explanation:
    """Propagate relevance back by LRP-alpha-beta: positive contributions gain alpha times, negative lose beta times.

    Bach et al. 2015 (doi:10.1371/journal.pone.0130140), eq. 60, in today's convention alpha - beta = 1, alpha >= 1;
    the paper writes alpha + beta = 1 with a plus sign: its beta is minus this one.

    Parameters
    ----------
    alpha
        Weight of positive contributions; alpha - beta must be 1.
    beta
        Weight of negative contributions, 0 or more; alpha - beta must be 1.
    """
    _need_convention(alpha, beta)
    return explain_by_relevance(
        query, _uniform(AlphaBeta(alpha, beta), bias), {"alpha": alpha, "beta": beta, "bias": bias}
    )


@heatmap_method(family=Family.RELEVANCE, sign=SUPPORT, cost=gradients())
def lrp_z_plus(query: Query, *, bias: Bias = "absorbs") -> Explanation:
    """Propagate relevance back by LRP-z+, through positive contributions only, as in deep Taylor decomposition.

    Montavon et al. 2017 (arXiv:1512.02479), eq. 15; LRP-alpha-beta with alpha = 1, beta = 0.
    """
    return explain_by_relevance(query, _uniform(AlphaBeta(1, 0), bias), {"bias": bias})


@heatmap_method(family=Family.RELEVANCE, cost=gradients())
def lrp_composite(
    query: Query,
    *,
    dense: RuleName = "epsilon",
    convolution: RuleName = "z_plus",
    first: FirstRule = "flat",
    epsilon: float = 1e-6,
    gamma: float = 0.25,
    alpha: float = 2.0,
    beta: float = 1.0,
    bias: Bias = "absorbs",
) -> Explanation:
    """Propagate relevance back with a rule for each kind of layer, for heatmaps both sharp and low in noise.

    Montavon et al. 2019 (doi:10.1007/978-3-030-28954-6_10), section 10.3; Kohlbrenner et al. 2020 (arXiv:1910.09840).
    Of the rules for the first layers, flat, w_square (arXiv:1512.02479, eq. 12) and z_box (z^B, eq. 14) suit values of
    either sign.

    Parameters
    ----------
    dense
        Rule for linear layers: LRP-0 (zero), LRP-epsilon, LRP-gamma, LRP-alpha-beta or LRP-z+.
    convolution
        Rule for convolutions: LRP-0 (zero), LRP-epsilon, LRP-gamma, LRP-alpha-beta or LRP-z+.
    first
        Rule for the layers that the image enters: the same as for others, equal shares (flat), shares by squared
        weights (w_square), or by the distance from the inputs of black and white (z_box).
    epsilon
        For the rule epsilon: number by which each output is moved away from 0 before relevance is divided by it.
    gamma
        For the rule gamma: contributions of the output's sign weigh 1 + gamma times as much.
    alpha
        For the rule alpha_beta: weight of positive contributions; alpha - beta must be 1.
    beta
        For the rule alpha_beta: weight of negative contributions, 0 or more; alpha - beta must be 1.
    """
    _need_convention(alpha, beta)
    _need(epsilon >= 0 and gamma >= 0, f"epsilon={epsilon}, gamma={gamma}: give 0 or more.")
    rules: dict[str, Rule] = {
        "zero": Epsilon(0.0),
        "epsilon": Epsilon(epsilon),
        "gamma": Gamma(gamma),
        "alpha_beta": AlphaBeta(alpha, beta),
        "z_plus": AlphaBeta(1, 0),
    }
    entries: dict[str, Rule | None] = {"same": None, "flat": Flat(), "w_square": SquaredWeights(), "z_box": ZBox()}
    composite = Composite(rules[dense], rules[convolution], entries[first], bias_absorbs=bias == "absorbs")
    known = {"dense": dense, "convolution": convolution, "first": first, "bias": bias}
    numbers = {"epsilon": {"epsilon": epsilon}, "gamma": {"gamma": gamma}, "alpha_beta": {"alpha": alpha, "beta": beta}}
    used = {key: value for name in {dense, convolution} for key, value in numbers.get(name, {}).items()}
    return explain_by_relevance(query, composite, known | used)


def _need(holds: bool, sentence: str) -> None:
    if not holds:
        raise ForetellError(sentence)


def _need_convention(alpha: float, beta: float) -> None:
    _need(abs(alpha - beta - 1) < 1e-9 and beta >= 0, f"alpha={alpha}, beta={beta}: alpha - beta must be 1, beta >= 0.")


def _uniform(rule: Rule, bias: Bias) -> Composite:
    """Use one rule everywhere; sums without weights distribute in proportion."""
    other = rule if isinstance(rule, Epsilon) else Epsilon(STABILISER)
    return Composite(rule, rule, other=other, bias_absorbs=bias == "absorbs")


def explain_by_relevance(query: Query, composite: Composite, parameters: dict[str, Any]) -> Explanation:
    """Explain by the relevance that a composite of rules gives the pixels; ``parameters`` has its ``bias``."""
    classifier, method = query.classifier, query.method
    black, white = classifier.black_and_white
    ends = torch.minimum(black, white), torch.maximum(black, white)

    def compute(part: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
        low, high = (end.to(classifier.device).expand(part.shape) for end in ends)
        with differentiable(classifier, method) as network:
            propagation = Relevance(classifier.name, method, composite)
            on_device = part.to(classifier.device, memory_format=classifier.layout), chosen.to(classifier.device)
            relevance, logits = relevance_of_inputs(network, *on_device, propagation, (low, high))
        return relevance.sum(1).float().cpu(), logits.float().cpu()

    maps, logits = query.in_parts(compute)
    if not bool(torch.isfinite(maps).all()):
        raise ForetellError(
            f"{method} overflows on {classifier.name}: it divides by sums near 0. Use lrp_gamma or lrp_composite, or "
            "bias='absorbs'."
        )
    kept = (maps.double().sum((1, 2)) / logits.double().gather(1, query.classes[:, None])[:, 0]).tolist()
    known = [{"conservation": share, "warnings": _warnings(share, parameters["bias"])} for share in kept]
    return query.explain(maps, known, logits=logits, parameters=parameters)


def _warnings(share: float, bias: Bias) -> tuple[str, ...]:
    """Return the warning of a heatmap that contains ``share`` of the logit."""
    if abs(share) > MOST:
        return (
            f"Relevance grew to {share:.2g} times the logit on the way: sums near 0 were divided by, and positive and "
            "negative parts cancel. Use lrp_gamma or lrp_composite.",
        )
    if share < 0:
        return (f"This heatmap sums to {-share:.2g} times the logit, with the opposite sign. Use lrp_gamma.",)
    if share < LEAST:
        why = "biases absorbed the rest" if bias == "absorbs" else "the rest ended in units active by their bias alone"
        return (f"Only {share:.1%} of the logit is in this heatmap: {why}.",)
    return ()


@contextmanager
def differentiable(classifier: Classifier, method: str) -> Iterator[nn.Module]:
    """Return `Classifier.differentiable` of a network whose layers can be intercepted one by one."""
    with classifier.exclusive() as module:
        refuse_hidden(classifier, module, method)
    with classifier.differentiable() as network:
        yield network


def refuse_hidden(classifier: Classifier, module: nn.Module, method: str) -> None:
    """Return the error for a network whose layers cannot be intercepted one by one."""
    if hides_calls(module):
        raise ForetellError(
            f"{classifier.name} has TorchScript or compiled parts, in which {method} cannot meet the layers. "
            "Load the network uncompiled, or use a method for any network, such as integrated_gradients or smoothgrad."
        )
