"""An explainer network: features of a layer that each detect one part, from which the layer can be restored.

Zhang, Chen, Liu & Zhu 2018, Unsupervised Learning of Neural Networks to Explain Neural Networks (arXiv:1805.07468). An
encoder with two tracks reads a layer, and a decoder restores it:

    x_enc = p x_interp + (1 − p) x_ordin,    Loss = Σ_l λ_l ‖x_l − x_l*‖² + Σ_f λ_f Loss_f(x_f) − η log p.

The features x_f of the interpretable track have the filter loss −MI(X; T) of Zhang, Wu & Zhu 2018 (arXiv:1710.00935),
and only what is near a feature's maximum goes on. For places μ of an (n, n) output, and for "nowhere",

    T_μ,ij = τ max(1 − β ‖(i, j) − μ‖₁ / n, −1),    T⁻_ij = −τ,    p(T_μ) = α/n²,  p(T⁻) = 1 − α,
    p(x | T) = exp(tr(xT)) / Σ_x' exp(tr(x'T)),    MI(X; T) = Σ_T p(T) Σ_x p(x | T) log(p(x | T) / p(x)).

Here the only l is the layer itself, with channels in units of their root mean square; the source restores the fully
connected layers above it. Both tracks start as the layer, feature k being channel k, so that a feature can be compared
with its channel, and p with 1/2. Where a feature has no place, with a filter loss of 0, p says how much of the layer is
near the maxima of its channels. Each feature is divided by its mean over a batch, as the source's norm layers do for a
whole track, so that p cannot be bought by scale.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from core.errors import ForetellError
from core.types import Progress, silent

BETA = 4.0
TINY = 1e-12
LEAST = 1e-6
"""Mean of a feature by which it is divided at least."""
CHUNK = 128
"""Images that are read at a time."""
KEPT = 0.9
"""Of the running mean of a feature over a batch, with each step."""


@dataclass(frozen=True)
class ExplainerSettings:
    """What an explainer is trained with. The source prints no value: these are ours.

    Attributes
    ----------
    filters
        λ_f, of each feature's filter loss.
    eta
        η of −log p.
    tau
        τ of the templates, for features whose sum over places is 1 in the mean image.
    present
        α: the prior probability that a part is in an image.
    rate, share_rate
        Of Adam's steps, and of those of p (its log-odds), which moves alone and far.
    """

    filters: float = 1.0
    eta: float = 1.0
    tau: float = 5.0
    present: float = 0.5
    steps: int = 300
    batch: int = 64
    rate: float = 2e-3
    share_rate: float = 2e-2


@dataclass(frozen=True)
class TrainedExplainer:
    """A trained explainer.

    Attributes
    ----------
    network
        In eval mode.
    losses
        Error of the restored outputs in units of the channels' mean squares, sum of the filter losses in nats, and p,
        by step.
    """

    network: Explainer
    losses: tuple[tuple[float, float, float], ...]

    @property
    def share(self) -> float:
        """Return p."""
        return float(self.network.share)

    def read_features(self, maps: Tensor) -> Tensor:
        """Return the interpretable features (N, K, h, w) of outputs, before what is far is left out."""
        with torch.no_grad():
            return torch.cat([self.network.read_features(part) for part in torch.split(maps, CHUNK)])

    def restore(self, maps: Tensor) -> Tensor:
        """Restore outputs (N, K, h, w) from the features of both tracks."""
        with torch.no_grad():
            return torch.cat([self.network(part)[0] for part in torch.split(maps, CHUNK)])


def train_explainer(
    maps: Tensor,
    classes: Tensor,
    settings: ExplainerSettings | None = None,
    *,
    generator: torch.Generator | None = None,
    progress: Progress = silent,
) -> TrainedExplainer:
    """Train an explainer for a layer's outputs (N, K, h, w) for images that are predicted to be of classes (N,).

    Raises
    ------
    ForetellError
        A setting out of its range, fewer than 2 images, or a layer without places.
    """
    chosen, draws = settings or ExplainerSettings(), generator or torch.Generator().manual_seed(0)
    check_settings(chosen)
    _check_maps(maps)
    with torch.random.fork_rng(devices=[]):  # modules draw weights that the identity replaces
        network = Explainer(maps).train()
    templates = make_templates(maps.shape[2], maps.shape[3], chosen.tau)
    assigned = assign_classes(maps, classes)
    others = [weights for name, weights in network.named_parameters() if name != "weight"]
    groups: list[dict[str, Any]] = [{"params": others}, {"params": [network.weight], "lr": chosen.share_rate}]
    optimiser = torch.optim.Adam(groups, lr=chosen.rate)
    falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, chosen.steps)
    losses = []
    with torch.enable_grad():
        for step in range(1, chosen.steps + 1):
            rows = torch.randperm(len(maps), generator=draws)[: chosen.batch]
            own = assigned[:, None] == classes[rows][None]
            terms = _compute_terms(network, maps[rows], own, templates, chosen)
            optimiser.zero_grad()
            (terms[0] + chosen.filters * terms[1] - chosen.eta * terms[2].log()).backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            falling.step()
            losses.append((float(terms[0].detach()), float(terms[1].detach()), float(terms[2].detach())))
            progress(step, chosen.steps, "training the explainer")
    return TrainedExplainer(network.eval().requires_grad_(False), tuple(losses))


def _compute_terms(
    network: Explainer, maps: Tensor, own: Tensor, templates: Tensor, settings: ExplainerSettings
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the error of the restored outputs, the sum of the filter losses, and p."""
    restored, features = network(maps)
    error = ((restored - maps) / network.scale).square().mean()
    return error, compute_filter_losses(features, templates, settings.present, own).sum(), network.share


def check_settings(settings: ExplainerSettings) -> None:
    """Refuse settings that are out of their range."""
    for name in ("filters", "eta"):
        if not (math.isfinite(getattr(settings, name)) and getattr(settings, name) >= 0):
            raise ForetellError(f"{name}={getattr(settings, name)}: give a number of 0 or more.")
    for name in ("tau", "rate", "share_rate"):
        if not (math.isfinite(getattr(settings, name)) and getattr(settings, name) > 0):
            raise ForetellError(f"{name}={getattr(settings, name)}: give a number above 0.")
    if not 0 < settings.present < 1:
        raise ForetellError(f"present={settings.present}: give a number between 0 and 1.")
    if settings.steps < 1:
        raise ForetellError(f"steps={settings.steps}: give a whole number of at least 1.")


def _check_maps(maps: Tensor) -> None:
    if len(maps) < 2 or maps.shape[2:].numel() < 4:
        raise ForetellError(
            f"An explainer is trained with 2 or more images and 4 or more places, and here are {len(maps)} and "
            f"{maps.shape[2:].numel()}: give more images, or a layer with more places."
        )
    if not bool(maps.isfinite().all()):
        raise ForetellError("The layer has values that are not finite: choose another layer.")


def make_templates(height: int, width: int, tau: float, beta: float = BETA) -> Tensor:
    """Return the templates (h·w + 1, h·w) of the places, row by row, and of "nowhere"."""
    y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    places = torch.stack([y, x], -1).reshape(-1, 2).float()
    apart = (places[:, None] - places[None]).abs().sum(-1)
    there = tau * (1 - beta * apart / max(height, width)).clamp(min=-1)
    return torch.cat([there, torch.full((1, len(places)), -tau)])


def compute_filter_losses(maps: Tensor, templates: Tensor, present: float, own: Tensor | None = None) -> Tensor:
    """Compute −MI(X; T) (K,), in nats, of K features (B, K, h, w), not negative, in a batch of images.

    Its gradient is the source's, through the template T̂ of each image alone, with p(x) and the sum in p(x | T̂) taken as
    constant: that of the maximum's place for images of a feature's class, which ``own`` (K, B) says, and of "nowhere"
    for others. Without ``own`` all images are of the class. Each feature is divided by its mean sum over places, a
    constant too.
    """
    x = maps.flatten(2).transpose(0, 1)
    scale = x.detach().sum(2).mean(1).clamp(min=TINY)
    fits = (x / scale[:, None, None]) @ templates.T.to(x.dtype)
    images = fits.detach().log_softmax(1)  # log p(x | T)
    places = len(templates) - 1
    prior = torch.tensor([present / places] * places + [1 - present], dtype=x.dtype)
    every = (images + prior.log()).logsumexp(2, keepdim=True)  # log p(x)
    terms = prior * images.exp() * (images - every)
    at = x.argmax(2) if own is None else torch.where(own, x.argmax(2), places)
    weights, fit = terms.gather(2, at[..., None]), fits.gather(2, at[..., None])
    return (weights * (fit.detach() - fit)).sum((1, 2)) - terms.sum((1, 2))


def assign_classes(maps: Tensor, classes: Tensor) -> Tensor:
    """Assign each channel of outputs (N, K, h, w) the class, of classes (N,), whose images it responds to most."""
    sums = maps.relu().mean((2, 3))
    every = torch.tensor(sorted(set(classes.tolist())))
    means = torch.stack([sums[classes == k].mean(0) for k in every])
    class_of_filter: Tensor = every[means.argmax(0)]
    return class_of_filter


def keep_places(maps: Tensor, shapes: Tensor) -> Tensor:
    """Weigh features (B, K, h, w) by the shape (h·w, h·w) that belongs to the place of each one's maximum."""
    return maps * shapes[maps.flatten(2).argmax(2)].view_as(maps)


class Explainer(nn.Module):
    """Two tracks and a decoder for a layer's outputs (B, K, h, w)."""

    scale: Tensor
    shapes: Tensor

    def __init__(self, maps: Tensor) -> None:
        """Start at the identity of a layer's outputs (N, K, h, w)."""
        super().__init__()
        _, channels, height, width = maps.shape
        scale = maps.square().mean((0, 2, 3)).sqrt()
        scale = torch.where(scale > TINY, scale, torch.ones_like(scale))
        mean = maps.relu().mean((0, 2, 3)) / scale
        self.interpretable, self.ordinary, self.decoder = (_start_at_identity(channels) for _ in range(3))
        self.decoder.weight.data.mul_(mean.view(1, -1, 1, 1))
        self.norms = nn.ModuleList(_MeanNorm(mean) for _ in range(2))
        self.weight = nn.Parameter(torch.zeros(()))
        self.register_buffer("scale", scale.view(1, -1, 1, 1))
        self.register_buffer("shapes", make_templates(height, width, 1.0)[:-1].clamp(min=0))

    @property
    def share(self) -> Tensor:
        """Return p, the share of the interpretable track."""
        return self.weight.sigmoid()

    def read_features(self, maps: Tensor) -> Tensor:
        """Return the interpretable features (B, K, h, w) of a layer's outputs, before what is far is left out."""
        features: Tensor = self.interpretable(maps / self.scale).relu()
        return features

    def forward(self, maps: Tensor) -> tuple[Tensor, Tensor]:
        """Return the restored outputs and the interpretable features, both (B, K, h, w)."""
        features = self.read_features(maps)
        ordinary = self.ordinary(maps / self.scale).relu()
        kept = keep_places(features, self.shapes)
        p = self.share
        encoded = p * self.norms[0](kept) + (1 - p) * self.norms[1](ordinary)
        return self.decoder(encoded) * self.scale, features


class _MeanNorm(nn.Module):
    """Divide each feature by its mean over a batch; by the running mean when evaluated."""

    mean: Tensor

    def __init__(self, mean: Tensor) -> None:
        super().__init__()
        self.register_buffer("mean", mean.clone())

    def forward(self, x: Tensor) -> Tensor:
        mean = self.mean
        if self.training:
            mean = x.mean((0, 2, 3))
            self.mean.copy_(KEPT * self.mean + (1 - KEPT) * mean.detach())
        return x / mean.clamp(min=LEAST).view(1, -1, 1, 1)


def _start_at_identity(channels: int) -> nn.Conv2d:
    """Return a 3 x 3 convolution that starts as the identity."""
    layer = nn.Conv2d(channels, channels, 3, padding=1)
    nn.init.dirac_(layer.weight)
    assert layer.bias is not None
    nn.init.zeros_(layer.bias)
    return layer
