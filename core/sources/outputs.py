"""Networks whose output is more than one tensor of logits."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from PIL import Image
from torch import Tensor, nn

from core.network.classifier import PROBE_SIDE, Classifier


class LogitsOnly(nn.Module):
    """A network of which only the logits are returned.

    Parameters
    ----------
    network
        Returns a mapping or an object with ``logits``, or a tuple, list or mapping that holds one (B, K) first.
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, inputs: Tensor) -> Any:
        """Return the logits (B, K) of inputs (B, C, H, W); the output itself where it has none."""
        output = self.network(inputs)
        logits = find_logits(output)
        return output if logits is None else logits


def find_logits(output: Any) -> Tensor | None:
    """Return the logits (B, K) of an output: itself, its ``logits``, or the first (B, K) that it holds."""
    if isinstance(output, Tensor):
        return output
    named = output.get("logits") if isinstance(output, Mapping) else getattr(output, "logits", None)
    if isinstance(named, Tensor):
        return named
    held = output.values() if isinstance(output, Mapping) else output if isinstance(output, (tuple, list)) else ()
    return next((one for one in held if isinstance(one, Tensor) and one.ndim == 2), None)


class GreyTransforms:
    """Transforms of a network of one channel: images become grey first.

    Parameters
    ----------
    transforms
        Takes a PIL image of mode L.
    """

    def __init__(self, transforms: Callable[[Image.Image], Tensor]) -> None:
        self.transforms = transforms

    def __call__(self, image: Image.Image) -> Tensor:
        """Return the input (1, H, W) of a PIL image."""
        return self.transforms(image.convert("L"))


def count_channels(network: nn.Module) -> int | None:
    """Return the number of channels that a network's first convolution takes; None where it has none."""
    return next((part.in_channels for part in network.modules() if isinstance(part, nn.Conv2d)), None)


def average(values: Sequence[float] | float) -> tuple[float]:
    """Return the mean or spread of grey where a library gives it for each colour, or once for all."""
    given = [float(value) for value in values] if isinstance(values, Sequence) else [float(values)]
    return (sum(given) / len(given),)


def build_classifier(network: nn.Module, transforms: Any, categories: Any, **settings: Any) -> Classifier:
    """Return the classifier of a network, which is wrapped only if its output is not a tensor.

    Parameters are those of `core.network.classifier.Classifier`. A network that returns a tensor stays as it is, and so
    do the names of its layers and its fingerprint.
    """
    network = network.to(settings.get("device", "cpu")).eval()
    output: Any = None
    with contextlib.suppress(Exception), torch.no_grad():  # what fails here fails in the classifier, in words
        inputs = transforms(Image.new("RGB", (PROBE_SIDE, PROBE_SIDE)))[None]
        output = network(inputs.to(settings.get("device", "cpu"), torch.float32))
    if output is not None and not isinstance(output, Tensor) and find_logits(output) is not None:
        network = LogitsOnly(network)
    return Classifier(network, transforms, categories, **settings)


def mean_colour(mean: Any) -> tuple[int, int, int]:
    """Return the colour (R, G, B) in 0..255 of a mean in 0..1, given for each channel or once for all."""
    values = [float(value) for value in mean] if isinstance(mean, (tuple, list)) else [float(mean)]
    red, green, blue = (values * 3)[:3] if len(values) == 1 else values[:3]
    return round(255 * red), round(255 * green), round(255 * blue)
