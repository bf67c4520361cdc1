"""Adversarial examples: the search for small changes of an image that change the prediction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from core.attribution.common import in_parts, prepare_inputs
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.network.device import draw_seed
from core.network.gradients import differentiate
from core.robustness.box import Box, around
from core.types import Progress, silent

RADIUS = 8 / 255
Step = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class AttackResult:
    """The result of a search.

    Attributes
    ----------
    images
        (B, C, H, W) within the box: the first that was not called the target any more, else the last tried.
    fooled
        (B,) bool: whether the network calls it something else.
    answers
        (B,) what it calls it.
    """

    images: Tensor
    fooled: Tensor
    predictions: Tensor


def fgsm(
    classifier: Classifier,
    images: Tensor,
    targets: Sequence[int],
    *,
    generator: torch.Generator | None = None,  # noqa: ARG001 - the contract of all attacks
    progress: Progress = silent,
    radius: float = RADIUS,
    pixels: bool = True,
) -> AttackResult:
    """Take one step of ``radius`` in the sign of the loss's gradient (Goodfellow et al. 2014, arXiv:1412.6572)."""
    inputs, classes = prepare_inputs(classifier, images, targets)
    box = around(classifier, inputs, radius, pixels=pixels)
    moved = box.clamp(inputs + radius * box.scale * compute_loss_gradient(classifier, inputs, classes, progress).sign())
    return _judge_attack(classifier, moved, classes)


def pgd(
    classifier: Classifier,
    images: Tensor,
    targets: Sequence[int],
    *,
    generator: torch.Generator | None = None,
    progress: Progress = silent,
    radius: float = RADIUS,
    steps: int = 20,
    step: float = 0.1,
    starts: int = 2,
    pixels: bool = True,
) -> AttackResult:
    """Take steps of ``step`` times the radius in the gradient's sign, kept in the box, from random starts in it.

    Madry et al. 2017 (arXiv:1706.06083), section 2.1. The first of ``starts`` is the image itself.
    """
    _refuse_steps(steps, starts)
    search, draws = _start_search(classifier, images, targets, radius, generator, pixels=pixels)
    box = search.box

    def move(x: Tensor, gradient: Tensor) -> Tensor:
        return x + step * radius * box.scale * gradient.sign()

    for start in range(starts):
        search.walk(search.inputs if not start else box.sample(draws), steps, move, progress, start, starts)
    return search.result


def langevin(
    classifier: Classifier,
    images: Tensor,
    targets: Sequence[int],
    *,
    generator: torch.Generator | None = None,
    progress: Progress = silent,
    radius: float = RADIUS,
    steps: int = 50,
    step: float = 0.25,
    noise: float = 0.2,
    pixels: bool = True,
) -> AttackResult:
    """Take steps in the gradient's sign with normal noise, both as shares of the radius, past the end of FGSM.

    Langevin adversarial sample search (Arpit et al. 2017, arXiv:1706.05394, algorithm 1), with the gradient where the
    search is and not where it began, and away from the prediction: the printed line 4 has neither.
    """
    _refuse_steps(steps, 1)
    search, draws = _start_search(classifier, images, targets, radius, generator, pixels=pixels)
    box = search.box

    def move(x: Tensor, gradient: Tensor) -> Tensor:
        jump = step * gradient.sign() + noise * torch.randn(x.shape, generator=draws)
        return x + radius * box.scale * jump

    search.walk(search.inputs, steps, move, progress, 0, 1)
    return search.result


class _Search:
    """Walks through the box that end, for each image, where the prediction changes."""

    def __init__(self, classifier: Classifier, inputs: Tensor, classes: Tensor, box: Box) -> None:
        self._classifier, self._classes = classifier, classes
        self.inputs, self.box = inputs, box
        self.result = _judge_attack(classifier, inputs, classes)

    def walk(self, begun: Tensor, steps: int, moved: Step, progress: Progress, number: int, of: int) -> None:
        """Take at most so many steps of every image that is not fooled yet."""
        place = torch.where(_each(self.result.fooled), self.result.images, begun)
        for k in range(steps):
            if bool(self.result.fooled.all()):
                break
            gradient = compute_loss_gradient(self._classifier, place, self._classes, silent)
            tried = self.box.clamp(moved(place, gradient))
            place = torch.where(_each(self.result.fooled), place, tried)
            self.result = _judge_attack(self._classifier, place, self._classes)
            progress(number * steps + k + 1, of * steps, "searching for another prediction")


def _start_search(
    classifier: Classifier,
    images: Tensor,
    targets: Sequence[int],
    radius: float,
    generator: torch.Generator | None,
    *,
    pixels: bool,
) -> tuple[_Search, torch.Generator]:
    """Return a search from the images in the box around them, and the draws of all its steps."""
    inputs, classes = prepare_inputs(classifier, images, targets)
    search = _Search(classifier, inputs, classes, around(classifier, inputs, radius, pixels=pixels))
    return search, torch.Generator().manual_seed(draw_seed(generator or torch.Generator().manual_seed(0)))


def _each(chosen: Tensor) -> Tensor:
    return chosen[:, None, None, None]


def compute_loss_gradient(classifier: Classifier, inputs: Tensor, classes: Tensor, progress: Progress) -> Tensor:
    """Compute the gradient (B, C, H, W) of each image's cross-entropy of its class (B,), by the image."""

    def part(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        x = x.detach().to(classifier.device, memory_format=classifier.layout).requires_grad_()
        with classifier.differentiable() as network, torch.enable_grad():
            logits = network(x.clone())
            (gradient,) = differentiate(F.cross_entropy(logits, y.to(classifier.device), reduction="sum"), x)
        return gradient.float().contiguous().cpu(), logits.detach().float().cpu()

    return in_parts(part, inputs, classes, classifier.device, progress, "searching for another prediction")[0]


def _judge_attack(classifier: Classifier, inputs: Tensor, classes: Tensor) -> AttackResult:
    predictions = classifier.logits(inputs).argmax(1)
    return AttackResult(inputs, predictions != classes, predictions)


def _refuse_steps(steps: int, starts: int) -> None:
    if steps < 1 or starts < 1:
        raise ForetellError(f"steps={steps}, starts={starts}: a search takes at least one step from one start.")
