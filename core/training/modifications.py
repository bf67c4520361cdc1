"""Modified training data: the same images with other labels or other pixels, from which a network can learn less.

The six of Zhang et al. 2017 (arXiv:1611.03530), section 2. What they leave to be learned is known: nothing that holds
for other images under random labels and Gaussian pixels, no arrangement of pixels where these are moved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from core.errors import ForetellError


@dataclass(frozen=True)
class Examples:
    """Images with labels.

    Attributes
    ----------
    inputs
        Images (N, C, H, W) as the network reads them.
    labels
        The class (N,) that the network is trained or judged on.
    true
        The class (N,) before any modification.
    """

    inputs: Tensor
    labels: Tensor
    true: Tensor


@dataclass(frozen=True)
class Limits:
    """What a modification may draw: labels among ``classes`` (K,), and pixels from ``least`` to ``most`` (C, H, W).

    ``share`` is the probability with which a label is drawn again under ``corrupted``.
    """

    classes: Tensor
    least: Tensor
    most: Tensor
    share: float = 0.5


Modification = Callable[[Examples, Examples, Limits, torch.Generator], tuple[Examples, Examples]]


def modify_examples(
    kind: str, training: Examples, held_out: Examples, limits: Limits, generator: torch.Generator
) -> tuple[Examples, Examples]:
    """Return training and held-out examples modified as ``kind`` of `MODIFICATIONS` says.

    Held-out images get the pixels of the same modification and keep their labels.

    Raises
    ------
    ForetellError
        An unknown kind, or a share of labels that is none.
    """
    if kind not in MODIFICATIONS:
        raise ForetellError(
            f"There is no modification {kind!r} of training data. There are: {', '.join(MODIFICATIONS)}."
        )
    if not 0 <= limits.share <= 1:
        raise ForetellError(f"corrupted={limits.share:g} is not a share of the labels: choose 0 to 1.")
    return MODIFICATIONS[kind](training, held_out, limits, generator)


def draw_labels(labels: Tensor, classes: Tensor, share: float, generator: torch.Generator) -> Tensor:
    """Replace each label, with probability ``share``, by one drawn uniformly from ``classes``, its own included."""
    drawn = classes[torch.randint(len(classes), labels.shape, generator=generator)]
    return torch.where(torch.rand(labels.shape, generator=generator) < share, drawn, labels)


def _keep(training: Examples, held_out: Examples, _: Limits, __: torch.Generator) -> tuple[Examples, Examples]:
    return training, held_out


def _corrupt(
    training: Examples, held_out: Examples, limits: Limits, generator: torch.Generator
) -> tuple[Examples, Examples]:
    labels = draw_labels(training.labels, limits.classes, limits.share, generator)
    return replace(training, labels=labels), held_out


def _randomise(
    training: Examples, held_out: Examples, limits: Limits, generator: torch.Generator
) -> tuple[Examples, Examples]:
    return replace(training, labels=draw_labels(training.labels, limits.classes, 1.0, generator)), held_out


def _shuffle(
    training: Examples, held_out: Examples, _: Limits, generator: torch.Generator
) -> tuple[Examples, Examples]:
    """Move the pixels of every image in the same way."""
    order = torch.randperm(training.inputs[0, 0].numel(), generator=generator)
    first, second = (
        replace(one, inputs=one.inputs.flatten(2)[..., order].reshape(one.inputs.shape)) for one in (training, held_out)
    )
    return first, second


def _scatter(
    training: Examples, held_out: Examples, _: Limits, generator: torch.Generator
) -> tuple[Examples, Examples]:
    """Move the pixels of each image in a way of its own; a pixel keeps its colour."""

    def move(image: Tensor) -> Tensor:
        order = torch.randperm(image[0].numel(), generator=generator)
        return image.flatten(1)[:, order].view_as(image)

    first, second = (
        replace(one, inputs=torch.stack([move(image) for image in one.inputs])) for one in (training, held_out)
    )
    return first, second


def _draw_pixels(
    training: Examples, held_out: Examples, limits: Limits, generator: torch.Generator
) -> tuple[Examples, Examples]:
    """Draw pixels from a normal distribution with each channel's mean and deviation, within black and white."""
    deviation, mean = torch.std_mean(training.inputs, (0, 2, 3), keepdim=True)

    def draw(one: Examples) -> Examples:
        noise = torch.randn(one.inputs.shape, generator=generator)
        return replace(one, inputs=(mean + deviation * noise).clamp(limits.least, limits.most))

    return draw(training), draw(held_out)


MODIFICATIONS: Mapping[str, Modification] = {
    "true": _keep,
    "corrupted": _corrupt,
    "random_labels": _randomise,
    "shuffled": _shuffle,
    "random_pixels": _scatter,
    "gaussian": _draw_pixels,
}
"""Modifications by name, from the data as they are to pixels that say nothing."""
PLACED = frozenset({"true", "corrupted", "random_labels"})
"""Modifications that leave pixels in their places, so that spatial frequencies keep their meaning."""
