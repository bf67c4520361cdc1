"""Expected gradients: integrated gradients from every reference at once, so that none of them is chosen.

References must come from somewhere. A method knows no data set, so it draws them from a source that prefers no colour,
or takes the user's own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from core.attribution.baselines import colour, noise
from core.attribution.common import certificates, checked, output_gradient, residual
from core.attribution.monte_carlo import moments
from core.classifier import Classifier
from core.device import draw_seed, stream
from core.errors import ForetellError
from core.masked import scores
from core.types import Explanation, Progress, silent

Source = Literal["colours", "noise"]
Pick = Callable[[torch.Generator], Tensor]
"""Draws one reference (C, H, W)."""
BLOCK = 64
"""References held at a time."""
SOURCES: Mapping[str, Callable[[Classifier, torch.Generator], Tensor]] = {"colours": colour, "noise": noise}


def expected_gradients(
    classifier: Classifier,
    images: Tensor,
    targets: Sequence[int],
    *,
    generator: torch.Generator | None = None,
    progress: Progress = silent,
    samples: int = 100,
    source: Source = "colours",
    references: Tensor | None = None,
) -> Explanation:
    """Integrated gradients averaged over references: what each pixel adds to what the network says on average.

    Erion et al. 2021 (arXiv:1906.10670), eq. 3, the limit of GradientSHAP: each sample is one reference and one point
    of the way from it. References are pictures of one random colour (``source="colours"``), so that no colour
    counts as nothing, or of random pixels (``"noise"``); ``references`` (N, C, H, W), such as training pictures, take
    their place and are drawn with replacement. The sum of the map is f(x) less the mean f of the references drawn, up
    to the certificate's completeness residual; `Explanation.error` is the standard error of the Monte Carlo mean.
    """
    if samples < 2:
        raise ForetellError(f"samples={samples}: expected gradients need at least 2 samples.")
    inputs, classes = checked(classifier, images, targets)
    seed = draw_seed(generator or torch.Generator().manual_seed(0))
    pick = _picker(classifier, source, references)

    def sampled(rows: Tensor) -> Iterator[Tensor]:
        origins, points = zip(*(_drawn(pick, seed, i) for i in rows.tolist()), strict=True)
        start, share = torch.stack(origins), torch.stack(points)[:, None, None, None]
        for x, target in zip(inputs, classes, strict=True):
            gradients = output_gradient(classifier, start + share * (x - start), target.expand(len(rows)))
            yield ((x - start) * gradients).sum(1)

    mean, variance = moments(sampled, inputs, samples, progress, "expected gradients")
    error = (variance / samples).sqrt().float()
    settings = {"samples": samples} | _origin(source, references)
    facts: dict[str, Any] = {"samples": samples, "seed": seed, "parameters": settings}
    starts = _average(classifier, pick, seed, samples)[classes].tolist()
    ends = scores(classifier, inputs, classes, "logit").tolist()
    known = [
        facts | {"completeness": residual(m, a, b), "standard_error": float(e.max())}
        for m, a, b, e in zip(mean, starts, ends, error, strict=True)
    ]
    return Explanation(mean.float(), 0.0, certificates(classifier, "expected_gradients", inputs, classes, known), error)


def _picker(classifier: Classifier, source: Source, references: Tensor | None) -> Pick:
    """What draws from the source, or from the user's own references."""
    if references is None:
        return lambda generator: SOURCES[source](classifier, generator)
    if tuple(references.shape[1:]) != classifier.input_shape or not len(references):
        raise ForetellError(
            f"References {tuple(references.shape)} are no inputs of {classifier.name}: "
            f"give (N, {', '.join(map(str, classifier.input_shape))}) with N of at least 1."
        )
    own = references.detach().to("cpu", torch.float32)
    return lambda generator: own[int(torch.randint(len(own), (), generator=generator))]


def _drawn(pick: Pick, seed: int, index: int) -> tuple[Tensor, Tensor]:
    """Reference (C, H, W) and point of the way in [0, 1) of one sample."""
    generator = stream(seed, index)
    point = torch.rand((), generator=generator)
    return pick(generator), point


def _average(classifier: Classifier, pick: Pick, seed: int, samples: int) -> Tensor:
    """Mean logits (K,) of the references drawn, float64."""
    total = torch.zeros(len(classifier.categories), dtype=torch.float64)
    for start in range(0, samples, BLOCK):
        drawn = [_drawn(pick, seed, index)[0] for index in range(start, min(start + BLOCK, samples))]
        total += classifier.logits(torch.stack(drawn)).double().sum(0)
    return total / samples


def _origin(source: Source, references: Tensor | None) -> dict[str, Any]:
    """What the certificate says of the references: their source, or their number and SHA-256."""
    if references is None:
        return {"source": source}
    own = references.detach().to("cpu", torch.float32).contiguous()
    return {"references": len(own), "references_sha256": hashlib.sha256(own.numpy().tobytes()).hexdigest()}
