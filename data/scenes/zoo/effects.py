"""What is known of a network of the zoo: its accuracy, and what interventions do to its predicted probabilities.

``do(context)`` and ``do(object)`` draw a scene again with another context or object; ``do(low frequencies)`` and
``do(high frequencies)`` replace one band of an image by that of another image, exactly (a projection in the Fourier
domain). An effect is the mean loss of a class's probability, over scenes, with a 95% interval of the mean.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from data.scenes.classifier import normalise
from data.scenes.pen import SIZE
from data.scenes.zoo.material import Changes, Images

LOW, HIGH = 4, 16
"""The low band lies below, the high band above so many cycles per image."""
Z = 1.959964
"""Quantile of the normal distribution for 95% intervals."""
CHUNK = 256


def predict(network: nn.Module, pixels: Tensor) -> Tensor:
    """Return the probabilities (N, K) of pixels (N, 3, 96, 96) uint8, or of normalised inputs of that shape."""
    with torch.inference_mode():
        chunks = pixels.split(CHUNK)
        return torch.cat([network(normalise(x) if x.dtype == torch.uint8 else x).softmax(1) for x in chunks])


def measure_accuracy(network: nn.Module, images: Images) -> dict[str, Any]:
    """Measure the share of correct predictions with Wilson's 95% interval (Wilson 1927)."""
    correct = int((predict(network, images.pixels).argmax(1) == images.labels).sum())
    return {"accuracy": round(correct / len(images), 4), "interval_95": wilson(correct, len(images)),
            "images": len(images)}  # fmt: skip


def wilson(correct: int, count: int, z: float = Z) -> list[float]:
    """Return Wilson's interval of a share (Wilson 1927, equation 1)."""
    share, weight = correct / count, z * z / count
    centre = (share + weight / 2) / (1 + weight)
    half = z * math.sqrt(share * (1 - share) / count + weight / (4 * count)) / (1 + weight)
    return [round(max(0.0, centre - half), 4), round(min(1.0, centre + half), 4)]


def measure_effects(network: nn.Module, changes: Changes) -> dict[str, dict[str, list[float]]]:
    """Measure the effect of each intervention: on the true class's probability and on the predicted class's.

    Returns
    -------
    dict
        By intervention and by class, the mean loss of probability and the limits of its 95% interval.
    """
    before = predict(network, changes.images.pixels)
    after = {
        "do(context)": _predict_each(network, changes.contexts),
        "do(object)": _predict_each(network, changes.objects),
    }
    for name, high in (("do(low frequencies)", False), ("do(high frequencies)", True)):
        after[name] = predict(network, exchange_band(normalise(changes.images.pixels), high=high))[:, None]
    classes = {"true_class": changes.images.labels, "predicted_class": before.argmax(1)}
    return {
        name: {kind: _effect(before, changed, target) for kind, target in classes.items()}
        for name, changed in after.items()
    }


def exchange_band(x: Tensor, *, high: bool) -> Tensor:
    """Give each input (N, C, 96, 96) the low or the high band of the next one; nothing else changes."""
    cycles = torch.fft.fftfreq(SIZE, 1 / SIZE)
    radius = torch.hypot(cycles[:, None], cycles[None])
    band = radius > HIGH if high else radius < LOW
    own = torch.fft.fft2(x)
    return torch.fft.ifft2(torch.where(band, own.roll(-1, 0), own)).real.float().contiguous()


def _predict_each(network: nn.Module, pixels: Tensor) -> Tensor:
    """Return probabilities (N, M, K) of pixels (N, M, 3, 96, 96)."""
    return predict(network, pixels.flatten(0, 1)).unflatten(0, pixels.shape[:2])


def _effect(before: Tensor, after: Tensor, target: Tensor) -> list[float]:
    """Average the loss of the target's probability over changes, then over scenes."""
    rows = torch.arange(len(target))
    lost = (before[rows, target] - after[rows, :, target].mean(1)).double()
    mean, half = lost.mean().item(), Z * lost.std().item() / math.sqrt(len(lost))
    return [round(value, 4) for value in (mean, mean - half, mean + half)]
