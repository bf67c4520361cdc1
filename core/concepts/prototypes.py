"""Networks that predict from prototypes: parts of training images to which an image's parts are compared.

Chen et al. 2019 (arXiv:1806.10574), ProtoPNet: the logit of class k is the sum over prototypes j of w_kj s_j, where s_j
is the largest similarity between prototype j and any patch of the image. A network shows its prototypes by the methods
of `PrototypeNetwork`; any network that has them is treated alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from PIL import Image
from torch import Tensor

from core.errors import ForetellError
from core.network.classifier import Classifier

SPAN = 3
"""Side of the part that is shown, in patches: the patch itself, and those around it."""


@runtime_checkable
class PrototypeNetwork(Protocol):
    """What a network with prototypes offers besides its logits."""

    def compare(self, x: Tensor) -> Tensor:
        """Return similarities (B, J, h, w) of the patches of inputs (B, C, H, W) to J prototypes."""
        ...

    def weigh(self) -> Tensor:
        """Return the weights (K, J) with which the largest similarities add up to the logits."""
        ...

    def show_prototype(self, prototype: int) -> tuple[Image.Image, int, int]:
        """Return the training image that a prototype is from, and the row and column of its patch."""
        ...


@dataclass(frozen=True)
class Match:
    """A prototype and the part of an image that is most similar to it.

    Attributes
    ----------
    prototype
        Its number.
    similarity, contribution
        The largest similarity, and what it adds to the logit of the class it was chosen for.
    row, column
        Of the patch, from 0.
    grid
        Rows and columns of patches.
    """

    prototype: int
    similarity: float
    contribution: float
    row: int
    column: int
    grid: tuple[int, int]


@dataclass(frozen=True)
class ImagePart:
    """A rectangle of an image, as shares of its width and height."""

    left: float
    top: float
    right: float
    bottom: float


@contextmanager
def use_prototypes(classifier: Classifier) -> Iterator[PrototypeNetwork]:
    """Lock a network with prototypes for one thread.

    Raises
    ------
    ForetellError
        The network has none.
    """
    with classifier.exclusive() as module:
        if not isinstance(module, PrototypeNetwork):
            raise ForetellError(
                f"{classifier.name} does not predict from prototypes: choose scenes:prototypes, or a network with the "
                "methods of core.concepts.prototypes.PrototypeNetwork."
            )
        yield module


def has_prototypes(classifier: Classifier) -> bool:
    """Return whether a network predicts from prototypes."""
    with classifier.exclusive() as module:
        return isinstance(module, PrototypeNetwork)


def find_matches(classifier: Classifier, inputs: Tensor, k: int, *, count: int = 2) -> tuple[Match, ...]:
    """Find the prototypes of class ``k`` that add most to its logit for an input (C, H, W), most first.

    Prototypes of a class are those that it weighs most of all classes: the choice does not depend on the prediction.

    Raises
    ------
    ForetellError
        A network without prototypes, or a class that has none.
    """
    with use_prototypes(classifier) as network, torch.no_grad():
        similarities = network.compare(inputs[None].to(classifier.device))[0].float().cpu()
        weights = network.weigh().float().cpu()
    highest, place = similarities.flatten(1).max(1)
    own = torch.nonzero(weights.argmax(0) == k)[:, 0]
    if not len(own):
        raise ForetellError(f"{classifier.name} has no prototype of {classifier.categories[k]}: choose another class.")
    adds = (weights[k] * highest)[own]
    grid = (similarities.shape[1], similarities.shape[2])
    return tuple(
        Match(j, float(highest[j]), float(weights[k, j] * highest[j]), *divmod(int(place[j]), grid[1]), grid)
        for j in own[adds.argsort(descending=True, stable=True)[:count]].tolist()
    )


def locate_part(row: int, column: int, grid: tuple[int, int], span: int = SPAN) -> ImagePart:
    """Return the part around a patch that is shown, cut at the image's edges."""
    (top, bottom), (left, right) = (
        (max(0, middle - span // 2) / count, min(count, middle + span // 2 + 1) / count)
        for middle, count in zip((row, column), grid, strict=True)
    )
    return ImagePart(left, top, right, bottom)


def show_match(classifier: Classifier, match: Match) -> tuple[Image.Image, ImagePart]:
    """Return the training image of a prototype, and its part there."""
    with use_prototypes(classifier) as network:
        image, row, column = network.show_prototype(match.prototype)
    return image, locate_part(row, column, match.grid)
