"""DeepLIFT: what the picture's difference from a reference contributes to the logit's difference.

Shrikumar, Greenside & Kundaje 2017 (arXiv:1704.02685); how each kind of layer is met:
`core.attribution.differences`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from core.attribution.baselines import Baseline, baselines
from core.attribution.common import certificates, checked, in_parts, residual
from core.attribution.differences import Differences, Rule, contributions
from core.attribution.lrp import refuse_hidden
from core.classifier import Classifier
from core.device import draw_seed
from core.errors import ForetellError
from core.types import Explanation, Progress, silent

LogitKind = Literal["logit", "normalised"]


def deeplift(
    classifier: Classifier,
    images: Tensor,
    targets: Sequence[int],
    *,
    generator: torch.Generator | None = None,
    progress: Progress = silent,
    rule: Rule = "rescale",
    baseline: Baseline = "black",
    references: int = 1,
    output: LogitKind = "logit",
) -> Explanation:
    """DeepLIFT: every layer passes back its difference from a reference, so that the map sums to the logit's.

    Shrikumar, Greenside & Kundaje 2017 (arXiv:1704.02685), sections 3.2 to 3.5. ``output="normalised"`` is eq. 5: less
    the mean over all classes, so that what speaks for every class speaks for none. Several ``references`` (of
    ``baseline="noise"``) are averaged, as in DeepLIFT-SHAP (Lundberg & Lee 2017, arXiv:1705.07874, section 4.2), and
    `Explanation.error` is the standard error of that mean. The certificate's completeness is the residual of the sum.
    """
    if references < 1 or (references > 1 and baseline != "noise"):
        raise ForetellError(
            f"references={references} with baseline={baseline!r}: there is one reference of each kind but 'noise'. "
            "Use references=1, or baseline='noise'."
        )
    inputs, classes = checked(classifier, images, targets)
    random = generator or torch.Generator().manual_seed(0)
    seeds = [draw_seed(random) for _ in range(references)]
    maps, changes = [], []
    for seed in seeds:
        origins = baselines(classifier, inputs, baseline, seed)
        found, change, logits = _contributions(classifier, inputs, origins, classes, rule, output, progress)
        maps.append(found)
        changes.append(change)
    spread = torch.stack(maps).std(0) / references**0.5 if references > 1 else None
    mean, differences = torch.stack(maps).mean(0), torch.stack(changes).mean(0).tolist()
    parameters = {"rule": rule, "baseline": baseline, "references": references, "output": output}
    drawn = {"seed": seeds[0], "samples": references} if baseline == "noise" else {}
    known = [
        drawn
        | {"parameters": parameters, "completeness": residual(m, 0.0, difference)}
        | ({} if spread is None else {"standard_error": float(spread[i].max())})
        for i, (m, difference) in enumerate(zip(mean, differences, strict=True))
    ]
    return Explanation(mean, 0.0, certificates(classifier, "deeplift", inputs, classes, known, logits), spread)


def _contributions(
    classifier: Classifier,
    inputs: Tensor,
    origins: Tensor,
    classes: Tensor,
    rule: Rule,
    output: LogitKind,
    progress: Progress,
) -> tuple[Tensor, Tensor, Tensor]:
    """Maps (B, H, W), the differences they explain (B,) and the logits (B, K), for one reference each."""

    def explained(logits: Tensor, target: Tensor) -> Tensor:
        own = logits.gather(1, target[:, None])[:, 0]
        return own - logits.mean(1) if output == "normalised" else own

    def compute(part: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
        pixels, reference = part.to(classifier.device).chunk(2, 1)
        target = chosen.to(classifier.device)
        with classifier.exclusive() as module:
            refuse_hidden(classifier, module, "deeplift")
            propagation = Differences(classifier.name, "deeplift", rule)
            found, *ends = contributions(module, pixels, reference, propagation, lambda out: explained(out, target))
        return found.sum(1).float().cpu(), torch.stack(ends, 1).float().cpu()

    maps, ends = in_parts(compute, torch.cat([inputs, origins], 1), classes, progress, "deeplift")
    logits, starts = ends.unbind(1)
    return maps, explained(logits, classes) - explained(starts, classes), logits
