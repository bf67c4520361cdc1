"""Masks learned by gradient descent: what meaningful and extremal perturbations share.

The network gives its gradient with respect to the masked image; from there to the mask the chain rule runs outside
it, one image at a time, so that no image's mask hangs on another's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from core.network.classifier import Classifier
from core.network.gradients import differentiate
from core.network.masked import Output, iterate_masked_scores, select_output

Reference = Annotated[
    Literal["blur", "mean", "black"],
    "What the image fades into where it is masked: the image itself blurred, the data's mean colour, or black.",
]
Iterations = Annotated[int, "Steps of the search for the mask; each costs a forward and a backward pass."]


@dataclass(frozen=True)
class FadedImage:
    """One image (C, H, W), blended with a reference (C, H, W) by a mask, and the network's output for the blend."""

    classifier: Classifier
    image: Tensor
    reference: Tensor
    target: int
    output: Output

    def apply_mask(self, mask: Tensor) -> Tensor:
        """Return the image (C, H, W) where the mask (H, W) is 1, the reference where it is 0."""
        return self.reference + mask * (self.image - self.reference)

    def pull(self, mask: Tensor) -> Tensor:
        """Return a number with the gradient of the output with respect to the mask (H, W), but not its value."""
        shown = self.apply_mask(mask)
        inputs = shown.detach()[None].to(self.classifier.device).requires_grad_()
        with self.classifier.exclusive() as module, self.classifier.gradients(), torch.enable_grad():
            # A clone is not a leaf, so that a network may begin with an in-place operation.
            said = select_output(module(inputs.clone()), torch.tensor([self.target], device=inputs.device), self.output)
            (gradient,) = differentiate(said.sum(), inputs)
        return (gradient[0].float().cpu() * shown).sum()

    def scores(self, masks: Tensor) -> Tensor:
        """Compute the output for the image seen through each of masks (n, H, W), (n,) float64."""
        seen = iterate_masked_scores(
            self.classifier,
            self.image[None],
            torch.tensor([self.target]),
            [masks],
            fill=self.reference,
            output=self.output,
        )
        ((_, values),) = seen
        return values[0].cpu()

    @cached_property
    def ends(self) -> tuple[float, float]:
        """Compute the output for the reference alone and for the whole image."""
        empty, whole = self.scores(torch.stack([torch.zeros(self.size), torch.ones(self.size)])).tolist()
        return empty, whole

    @property
    def size(self) -> tuple[int, int]:
        """(H, W) of the image."""
        return self.image.shape[1], self.image.shape[2]


def descend(
    start: Tensor, objective: Callable[[Tensor, int], Tensor], iterations: int, rate: float, done: Callable[[int], None]
) -> Tensor:
    """Minimise ``objective(values, step)`` from ``start`` by Adam (Kingma & Ba 2015, arXiv:1412.6980).

    Values are kept in [0, 1]; ``done`` hears of each step.
    """
    values = start.clone().requires_grad_()
    optimizer = torch.optim.Adam([values], lr=rate)
    for i in range(iterations):
        with torch.enable_grad():
            (values.grad,) = torch.autograd.grad(objective(values, i), values)
        optimizer.step()
        with torch.no_grad():
            values.clamp_(0, 1)
        done(i + 1)
    return values.detach()


def full_size(coarse: Tensor, size: tuple[int, int]) -> Tensor:
    """Enlarge (..., h, w) to (..., H, W), bilinearly."""
    flat = F.interpolate(coarse.reshape(-1, 1, *coarse.shape[-2:]), list(size), mode="bilinear", align_corners=False)
    return flat.view(*coarse.shape[:-2], *size)
