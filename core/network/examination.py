"""Checks of a network's output, made once when it is loaded: every later number depends on it."""

from __future__ import annotations

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from core.errors import ForetellError
from core.network.classifier import PROBE_SIDE, Classifier

SAME, MOST = 1e-3, 0.05
"""Differences between two passes that give a warning and an error, as shares of the distance between images."""
ROUNDING = 1e-4
"""Share of the largest logit that float32 may change."""
SUM = 1e-3
"""Largest distance of the sum of probabilities from 1."""
PHOTOGRAPHS = 3


def examine(classifier: Classifier) -> tuple[str, ...]:
    """Return the warnings of a network's output, which all its heatmaps carry.

    Raises
    ------
    ForetellError
        The output is not what every method takes it for: logits, at least two, finite, the same each time, and of one
        image whatever the others in its batch are. The cause is named.
    """
    name = classifier.name
    inputs = probe_inputs(classifier)
    logits = _try_several(classifier, inputs)
    if logits.shape[1] == 1:
        raise ForetellError(
            f"{name} returns one number for an image. Foretell compares classes: wrap the network so that it returns "
            "two logits, torch.cat([torch.zeros_like(z), z], 1) for the logit z of the second class."
        )
    if not torch.isfinite(logits).all():
        raise ForetellError(
            f"{name} returns NaN or infinite logits. Make its transforms and its layers give finite numbers."
        )
    if bool((logits >= 0).all()) and bool(((logits.sum(1) - 1).abs() <= SUM).all()):
        raise ForetellError(
            f"{name} returns probabilities (they sum to 1), and Foretell would apply the softmax again. Return the "
            "logits, which the last layer gives before the softmax."
        )
    moved = _measure_shift(_logits(classifier, inputs), logits)
    if moved > MOST:
        raise ForetellError(
            f"{name} returns different logits each time for the same image: something in it is random in eval mode, "
            "such as F.dropout without training=self.training. None of its heatmaps would be reproducible."
        )
    mixed = _measure_shift(torch.cat([_logits(classifier, one[None]) for one in inputs]), logits)
    if mixed > MOST:
        raise ForetellError(
            f"{name} returns different logits for an image when its batch changes: it normalises by the batch in "
            "eval mode, such as BatchNorm2d with track_running_stats=False. Use the statistics of the training."
        )
    return tuple(_warnings(classifier, logits, max(moved, mixed)))


def _try_several(classifier: Classifier, inputs: Tensor) -> Tensor:
    """Return the logits (n, K) of n inputs at once, which a network may not take that was written for one image."""
    try:
        logits = _logits(classifier, inputs)
        said = f"{len(inputs)} images give {tuple(logits.shape)}"
    except torch.OutOfMemoryError:
        raise
    except Exception as error:  # the user's own code
        logits, said = torch.empty(0), f"{type(error).__name__}: {str(error).strip().rpartition(chr(10))[2]}"
    if logits.ndim != 2 or len(logits) != len(inputs):
        raise ForetellError(
            f"{classifier.name} takes one image at a time ({said}). Make its forward keep the first axis, whatever the "
            "number of images: x.flatten(1) in place of x.view(1, -1)."
        )
    return logits


def _warnings(classifier: Classifier, logits: Tensor, moved: float) -> list[str]:
    sentences = []
    if moved > SAME:
        sentences.append(
            f"The logits of {classifier.name} move by {moved:.1%} of the difference between images, from pass to pass "
            "or with the batch, as with layers quantised as they run: heatmaps move with them."
        )
    if bool(((logits >= 0) & (logits <= 1)).all()):
        sentences.append(
            f"All outputs of {classifier.name} lie between 0 and 1. If they are probabilities of separate labels (a "
            "sigmoid), return the logits before it: Foretell applies a softmax."
        )
    if not torch.isfinite(
        _logits(classifier, torch.stack([classifier.fill(kind) for kind in ("black", "mean")]))
    ).all():
        sentences.append(
            f"{classifier.name} returns NaN for images of one colour, as when transforms divide by an image's own "
            "spread: methods that mask parts of an image may fail."
        )
    if classifier.transforms_vary:
        sentences.append(
            f"The transforms of {classifier.name} change at random: each heatmap is of one random change of its image."
        )
    return sentences


def probe_inputs(classifier: Classifier) -> Tensor:
    """Make inputs (n, C, H, W) of coarse and fine noise in colour, in place of photographs."""
    return torch.stack([classifier.preprocess(image) for image in _photographs()])


def _photographs() -> list[Image.Image]:
    """Make coarse and fine noise in colour in place of photographs."""
    draws = np.random.default_rng(0)
    coarse = [draws.integers(0, 256, (side, side, 3), np.uint8) for side in (PROBE_SIDE, 8, 32)[:PHOTOGRAPHS]]
    return [Image.fromarray(one).resize((PROBE_SIDE, PROBE_SIDE), Image.Resampling.BICUBIC) for one in coarse]


@torch.no_grad()
def _logits(classifier: Classifier, inputs: Tensor) -> Tensor:
    with classifier.exclusive() as module:
        logits: Tensor = module(inputs.to(classifier.device, copy=True))
    return logits.double().cpu()


def _measure_shift(one: Tensor, other: Tensor) -> float:
    """Return the largest difference as a share of the distance between images' logits; 0 where it is rounding."""
    difference = float((one - other).abs().max())
    if difference <= ROUNDING * float(other.abs().max()):
        return 0.0
    return difference / max(float((other - other.mean(0)).abs().max()), torch.finfo(torch.float64).tiny)
