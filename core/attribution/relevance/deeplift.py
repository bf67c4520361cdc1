"""DeepLIFT: what the image's difference from a reference contributes to the logit's difference.

Shrikumar, Greenside & Kundaje 2017 (arXiv:1704.02685); how each kind of layer is met:
`core.attribution.relevance.differences`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import torch
from torch import Tensor

from core.attribution.baselines import Baseline, baselines
from core.attribution.common import complete, in_parts
from core.attribution.cost import gradients, sampled_references
from core.attribution.method import Query, heatmap_method
from core.attribution.records import Family
from core.attribution.references import ReferenceSource, describe_references, picker
from core.attribution.relevance.differences import DeepLiftRule, Differences, contributions
from core.attribution.relevance.lrp import differentiable
from core.errors import ForetellError
from core.network.device import stream
from core.types import Explanation, Progress, silent

LogitKind = Annotated[
    Literal["logit", "normalised"],
    "Output that is explained: the class's logit, or normalised: less the mean logit of all classes, so that what "
    "speaks for every class speaks for none.",
]

MOST = 100.0
"""Sum of the absolute values above which a heatmap gets a warning, as a multiple of the change that it explains."""
REMEDY = "Use integrated_gradients, or another baseline."


@heatmap_method(family=Family.RELEVANCE, cost=gradients())
def deeplift(
    query: Query, *, rule: DeepLiftRule = "rescale", baseline: Baseline = "black", output: LogitKind = "logit"
) -> Explanation:
    """Backpropagate differences from a reference, so that the heatmap sums to the difference of the logit.

    Shrikumar, Greenside & Kundaje 2017 (arXiv:1704.02685), sections 3.2 to 3.5; ``output="normalised"`` is eq. 5. The
    certificate's completeness is the residual of the sum; it warns above 5% of the difference, and where the absolute
    values sum to more than 100 times the difference.
    """
    origins = baselines(query.classifier, query.inputs, baseline, query.seed)
    maps, changes, logits = _contributions(query, origins, rule, output, query.progress)
    known = _certify(maps, changes)
    facts: dict[str, Any] = {"parameters": {"rule": rule, "baseline": baseline, "output": output}}
    facts |= {"seed": query.seed} if baseline == "noise" else {}
    return query.explain(maps, known, logits=logits, **facts)


@heatmap_method(family=Family.RELEVANCE, cost=sampled_references)
def deep_shap(
    query: Query,
    *,
    rule: DeepLiftRule = "rescale",
    samples: int = 20,
    source: ReferenceSource = "colours",
    output: LogitKind = "logit",
    references: Tensor | None = None,
) -> Explanation:
    """Average DeepLIFT over many references, which approximates Shapley values against a background.

    Lundberg & Lee 2017 (arXiv:1705.07874), section 4.2 (DeepSHAP). `Explanation.error` is the standard error over the
    references.

    Parameters
    ----------
    samples
        Number of random references that DeepLIFT is averaged over; each costs a forward and a backward pass.
    references
        References (N, C, H, W), such as training images, drawn with replacement in place of those of ``source``.
    """
    if samples < 2:
        raise ForetellError(f"samples={samples}: DeepSHAP needs at least 2 references. For one, use deeplift.")
    pick = picker(query.classifier, source, references)
    maps, changes = [], []
    for i in range(samples):
        origins = pick(stream(query.seed, i)).expand_as(query.inputs)
        attributions, change, logits = _contributions(query, origins, rule, output, silent)
        maps.append(attributions)
        changes.append(change)
        query.progress(i + 1, samples, "deep shap")
    error = torch.stack(maps).std(0) / samples**0.5
    mean = torch.stack(maps).mean(0)
    settings = {"rule": rule, "samples": samples, "output": output} | describe_references(source, references)
    known = _certify(mean, torch.stack(changes).mean(0))
    facts: dict[str, Any] = {"samples": samples, "seed": query.seed, "parameters": settings}
    return query.explain(mean, known, error=error, logits=logits, **facts)


def _certify(maps: Tensor, changes: Tensor) -> list[dict[str, Any]]:
    """Return the residuals of the sums, with warnings of sums that are wrong and of sums of what nearly cancels."""
    known = complete(maps, changes, REMEDY)
    for facts, m, change in zip(known, maps.double(), changes.double(), strict=True):
        if float(m.abs().sum()) > MOST * float(change.abs()) > 0:
            grown = f"{float(m.abs().sum() / change.abs()):.1g}"
            facts["warnings"] += (
                f"The absolute values of this heatmap sum to {grown} times the change they explain: parts of either "
                f"sign nearly cancel. {REMEDY}",
            )
    return known


def _contributions(
    query: Query, origins: Tensor, rule: DeepLiftRule, output: LogitKind, progress: Progress
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute heatmaps (B, H, W), the differences they explain (B,) and the logits (B, K), for one reference each."""
    classifier, inputs, classes = query.classifier, query.inputs, query.classes

    def compute_explained_logit(logits: Tensor, target: Tensor) -> Tensor:
        own = logits.gather(1, target[:, None])[:, 0]
        return own - logits.mean(1) if output == "normalised" else own

    def compute(part: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
        pixels, reference = (x.to(classifier.device, memory_format=classifier.layout) for x in part.chunk(2, 1))
        target = chosen.to(classifier.device)
        with differentiable(classifier, "deeplift") as network:
            propagation = Differences(classifier.name, "deeplift", rule)
            attributions, *ends = contributions(
                network, pixels, reference, propagation, lambda out: compute_explained_logit(out, target)
            )
        return attributions.sum(1).float().cpu(), torch.stack(ends, 1).float().cpu()

    maps, ends = in_parts(compute, torch.cat([inputs, origins], 1), classes, classifier.device, progress, "deeplift")
    logits, starts = ends.unbind(1)
    return maps, compute_explained_logit(logits, classes) - compute_explained_logit(starts, classes), logits
