"""The filter loss: filters of a layer that each detect one part of an object.

Zhang, Wu and Zhu 2018, Interpretable Convolutional Neural Networks (arXiv:1710.00935). A filter's output x in an image,
(n, n) and not negative, should be active at one place, or nowhere. The templates of the n² places μ and the one of
"nowhere" say what that looks like:

    T_μ,ij = τ max(1 − β ‖(i, j) − μ‖₁ / n, −1),    T⁻_ij = −τ,    p(T_μ) = α/n²,  p(T⁻) = 1 − α,
    p(x | T) = exp(tr(xT)) / Σ_x' exp(tr(x'T)),    Loss_f = −MI(X; T) = −Σ_T p(T) Σ_x p(x | T) log(p(x | T) / p(x)).

The gradient is that of this sum, p(x) = Σ_T p(T) p(x | T) included. Four things differ from the source. It gives each
image one template in the gradient: T⁻ unless the image is of the filter's category, the one to which the filter
responds most. Here p(x | T_μ) is 0 for images of other categories. X is a batch. α is ½, so that "nowhere" counts as
much as all places together; the source's is n²/(1 + n²). And each filter's x is divided by its mean sum over places:
the source's τ = 0.5/n² is for the outputs of its networks, and this loss does not depend on the scale of a filter.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

BETA = 4.0
PRESENT = 0.5
"""α, the prior probability that the part is in an image."""
IMPOSSIBLE = -1e4
"""tr(xT) of an image that a template cannot have."""
KEPT = 0.95
"""Of the running mean of a filter's output for a category, with each batch."""


def make_templates(side: int, tau: float, beta: float = BETA) -> Tensor:
    """Return the templates (side² + 1, side²) of the places, row by row, and of "nowhere"."""
    y, x = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    places = torch.stack([y, x], -1).reshape(-1, 2).float()
    apart = (places[:, None] - places[None]).abs().sum(-1)
    there = tau * (1 - beta * apart / side).clamp(min=-1)
    return torch.cat([there, torch.full((1, len(places)), -tau)])


def compute_filter_losses(
    maps: Tensor, templates: Tensor, own: Tensor | None = None, present: float = PRESENT
) -> Tensor:
    """Compute Loss_f (K,), in nats, of K filters' outputs (B, K, n, n), not negative, in a batch of images.

    ``own`` (K, B) says which images are of a filter's category; without it all are. ``present`` is α.
    """
    x = maps.flatten(2).transpose(0, 1)
    scale = x.sum(2).mean(1).clamp(min=1e-12)
    fits = (x / scale[:, None, None]) @ templates.T
    if own is not None:
        fits = torch.cat([fits[..., :-1].masked_fill(~own[..., None], IMPOSSIBLE), fits[..., -1:]], 2)
    images = fits.log_softmax(1)  # log p(x | T)
    places = len(templates) - 1
    prior = torch.tensor([present / places] * places + [1 - present], dtype=images.dtype)
    every = (images + prior.log()).logsumexp(2, keepdim=True)  # log p(x)
    return -(prior * images.exp() * (images - every)).sum((1, 2))


class Assignment:
    """The category of each filter: the one whose images it responds to most, by a running mean over batches."""

    def __init__(self, categories: int) -> None:
        self._categories = categories
        self._means: Tensor | None = None

    def find_own(self, maps: Tensor, labels: Tensor) -> Tensor:
        """Return which images (K, B) of outputs (B, K, n, n) are of each filter's category."""
        sums = maps.detach().sum((2, 3)).T
        of = nn.functional.one_hot(labels, self._categories).to(sums.dtype)
        means = (sums @ of) / of.sum(0).clamp(min=1)
        if self._means is not None:
            seen = of.sum(0) > 0
            means = torch.where(seen, KEPT * self._means + (1 - KEPT) * means, self._means)
        self._means = means
        return labels[None] == means.argmax(1)[:, None]


class KeepPlace(nn.Module):
    """Keep of each filter's output (B, K, n, n) what is near its maximum: max(x ∘ T_μ, 0)/τ for the maximum's μ."""

    templates: Tensor

    def __init__(self, side: int) -> None:
        super().__init__()
        self.register_buffer("templates", make_templates(side, 1.0)[:-1].clamp(min=0), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Weigh the places by their distance from the maximum."""
        return x * self.templates[x.flatten(2).argmax(2)].view_as(x).to(x.dtype)
