"""Effects of interventions on the scene on the network's output: the ground truth for heatmaps of evidence."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from core.attribution.common import prepare_inputs
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.network.masked import Output, scores


def effect(
    classifier: Classifier,
    images: Tensor,
    targets: Sequence[int],
    changed: Tensor,
    *,
    output: Output = "logit",
) -> Tensor:
    """Compute what a part of each image gives its target, (B,) float64: f(x) less the mean f with other parts.

    ``changed`` (B, N, C, H, W) holds N images for each of ``images`` that differ from it in this part alone, as
    scenes do that were drawn again with another context. Averaged over the others, it is the average causal effect of
    this part (Pearl 2009, doi:10.1017/CBO9780511803161, definition 3.2.1 of do).

    Raises
    ------
    ForetellError
        Images that do not fit the network or one another; no changed images.
    """
    inputs, classes = prepare_inputs(classifier, images, targets)
    if changed.ndim != 5 or changed.shape[0] != len(inputs) or not changed.shape[1]:
        raise ForetellError(
            f"Changed images {tuple(changed.shape)} do not fit {tuple(inputs.shape)}: give (B, N, C, H, W), "
            "at least one changed image for each."
        )
    others = changed.shape[1]
    again, repeated = prepare_inputs(classifier, changed.flatten(0, 1), classes.repeat_interleave(others).tolist())
    left = scores(classifier, again, repeated, output).view(-1, others)
    return scores(classifier, inputs, classes, output) - left.mean(1)


def share(one: Tensor, other: Tensor) -> Tensor:
    """Return ``one`` as a share of both, (B,) in [0, 1], where effects below 0 count as none; NaN where both do."""
    given, rest = one.clamp_min(0), other.clamp_min(0)
    return given / (given + rest)
