"""Taylor decomposition: the class's lead over its rivals, expanded around an image where it is 0.

Bach et al. 2015 (doi:10.1371/journal.pone.0130140), eq. 9 to 11.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import torch
from torch import Tensor

from core.attribution.baselines import Baseline, baselines
from core.attribution.common import INCOMPLETE, residual
from core.attribution.cost import Cost
from core.attribution.method import Query, heatmap_method
from core.attribution.records import Family
from core.network.classifier import Classifier
from core.network.gradients import differentiate
from core.types import Explanation, Progress

HALVINGS = 20
"""Bisections of the path between two images of opposite sign: about as many as float32 can resolve."""
ELSEWHERE: tuple[Baseline, ...] = ("black", "mean", "blur", "noise", "zero")
"""Baselines to try when the chosen one has the same sign as the image."""


Root = Literal["baseline", "least_remainder"]


def _search_roots(settings: Mapping[str, Any], _: Classifier) -> Cost:
    roots = 1 + len(ELSEWHERE) if settings["root"] == "least_remainder" else 1
    return Cost(forwards=HALVINGS * roots, gradients=roots)


@heatmap_method(family=Family.RELEVANCE, cost=_search_roots)
def taylor_decomposition(query: Query, *, baseline: Baseline = "blur", root: Root = "baseline") -> Explanation:
    """Expand the class's lead over its rivals to first order, around the nearest root on the path to a baseline.

    Bach et al. 2015 (doi:10.1371/journal.pone.0130140), eq. 9: f(x) = sum of grad f(x0) (x - x0) + a remainder, where f
    is the target's logit less the largest other and f(x0) = 0, found by halving the way from x to an image with the
    other sign. Where no baseline has the other sign, x0 is the baseline itself and the certificate warns. Its
    completeness is the remainder, which is warned of above 5% of the lead.

    Parameters
    ----------
    baseline
        Image towards which the root is searched. If the class's lead over its rivals has the same sign there, the first
        of the other baselines with another sign takes its place.
    root
        Root to expand around: the one on the path to the baseline, or that with the least remainder among the roots
        towards all baselines (the paper's section on root points), at six times the cost.
    """
    classifier, inputs, classes = query.classifier, query.inputs, query.classes
    far, has_root = _opposite(classifier, inputs, classes, baseline, query.seed)
    maps, remainders = _expand(query, far, has_root)
    if root == "least_remainder":
        for kind in ELSEWHERE:
            other = baselines(classifier, inputs, kind, query.seed)
            crosses = (_lead(classifier, other, classes) > 0) != (_lead(classifier, inputs, classes) > 0)
            others, missed = _expand(query, other, crosses)
            pairs = zip(missed, remainders, crosses.tolist(), strict=True)
            better = torch.tensor([crossed and _size(new) < _size(old) for new, old, crossed in pairs])
            maps = torch.where(better[:, None, None], others, maps)
            remainders = [new if take else old for new, old, take in zip(missed, remainders, better, strict=True)]
    known = [
        {
            "completeness": remainder,
            "warnings": (*(() if crossed else (_no_root(classifier, baseline),)), *_large(remainder)),
        }
        for remainder, crossed in zip(remainders, has_root.tolist(), strict=True)
    ]
    return query.explain(maps, known, parameters={"baseline": baseline, "root": root}, seed=query.seed)


def _expand(query: Query, far: Tensor, has_root: Tensor) -> tuple[Tensor, list[float | None]]:
    """Expand around the roots on the way to ``far`` (B, C, H, W): heatmaps (B, H, W), and their relative remainders."""
    classifier, inputs, classes = query.classifier, query.inputs, query.classes
    roots = _roots(classifier, inputs, far, classes, has_root, query.progress)

    def compute(part: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
        x, start = part.chunk(2, 1)
        gradient, logits = _lead_gradient(classifier, start, chosen)
        return (gradient * (x - start)).sum(1), logits

    maps, logits = query.in_parts(compute, inputs=torch.cat([inputs, roots], 1))
    leads, starts = _lead(classifier, inputs, classes), _margin(logits.double(), classes)
    return maps, [residual(m, *ends) for m, *ends in zip(maps, starts.tolist(), leads.tolist(), strict=True)]


def _size(remainder: float | None) -> float:
    return math.inf if remainder is None else abs(remainder)


def _large(remainder: float | None) -> tuple[str, ...]:
    if remainder is None or abs(remainder) <= INCOMPLETE:
        return ()
    return (
        f"The remainder is {abs(remainder):.0%} of the lead: the heatmap's first-order terms do not explain that part. "
        "Use integrated_gradients or deeplift, whose sums do.",
    )


def _no_root(classifier: Classifier, baseline: str) -> str:
    return (
        f"No root: {classifier.name} ranks this class alike (first, or not) on the image and on every baseline, "
        f"so the expansion is around the baseline {baseline!r} itself and explains the difference from it."
    )


def _lead(classifier: Classifier, inputs: Tensor, classes: Tensor) -> Tensor:
    """Compute the target's logit less the largest other, (B,) float64."""
    return _margin(classifier.logits(inputs).double(), classes)


def _margin(logits: Tensor, classes: Tensor) -> Tensor:
    own = logits.gather(1, classes[:, None])[:, 0]
    others = logits.scatter(1, classes[:, None], -torch.inf)
    return own - others.amax(1)


def _lead_gradient(classifier: Classifier, inputs: Tensor, classes: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the gradient of the lead (B, C, H, W), and the logits (B, K)."""
    leaf = inputs.detach().to(classifier.device, memory_format=classifier.layout).requires_grad_()
    with classifier.differentiable() as network, torch.enable_grad():
        logits = network(leaf.clone())
        (gradient,) = differentiate(_margin(logits, classes.to(classifier.device)).sum(), leaf)
    return gradient.float().contiguous(), logits.detach().float()


def _opposite(
    classifier: Classifier, inputs: Tensor, classes: Tensor, baseline: Baseline, seed: int
) -> tuple[Tensor, Tensor]:
    """Find for each image another whose lead has the other sign (B, C, H, W), and whether there is one (B,)."""
    sign = _lead(classifier, inputs, classes) > 0
    far = baselines(classifier, inputs, baseline, seed).clone()
    has_root = torch.zeros(len(inputs), dtype=torch.bool)
    for kind in (baseline, *(other for other in ELSEWHERE if other != baseline)):
        candidates = baselines(classifier, inputs, kind, seed)
        fresh = ((_lead(classifier, candidates, classes) > 0) != sign) & ~has_root
        far[fresh] = candidates[fresh]
        has_root |= fresh
    return far, has_root


def _roots(
    classifier: Classifier, inputs: Tensor, far: Tensor, classes: Tensor, has_root: Tensor, progress: Progress
) -> Tensor:
    """Find the points (B, C, H, W) where the lead changes sign on the line to ``far``, on the image's own side."""
    sign = _lead(classifier, inputs, classes) > 0
    near_end, far_end = torch.zeros(len(inputs)), torch.ones(len(inputs))

    def at(share: Tensor) -> Tensor:
        return inputs + share[:, None, None, None] * (far - inputs)

    def leads(points: Tensor) -> Tensor:
        """Evaluate image by image: rounding differs from batch to batch, and would choose between roots."""
        pairs = zip(points.split(1), classes.split(1), strict=True)  # type: ignore[no-untyped-call]
        return torch.cat([_lead(classifier, point, own) for point, own in pairs]) > 0

    for step in range(HALVINGS):
        middle = (near_end + far_end) / 2
        same = leads(at(middle)) == sign
        near_end, far_end = torch.where(same, middle, near_end), torch.where(same, far_end, middle)
        progress(step + 1, HALVINGS, "root search")
    return torch.where(has_root[:, None, None, None], at(near_end), far)
