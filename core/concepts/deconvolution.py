"""Adaptive deconvolutional networks: layers of filters that rebuild images sparsely, learned without labels.

Zeiler, Taylor & Fergus 2011, Adaptive deconvolutional networks for mid and high level feature learning (ICCV). Each
layer minimises its error at the pixels, through the layers below: C = λ/2 ‖R z - y‖² + |z|₁ (eq. 1), where R alternates
convolutions and unpooling by the switches of the image.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn.functional import conv2d, conv_transpose2d, pad

from core.errors import ForetellError
from core.types import Progress, silent

POWER = 20
"""Steps of the power iteration for the largest step of the descent."""
SAFE = 1.05
"""Factor on its result, which is a lower bound."""
CONJUGATE = 4
"""Steps of conjugate gradients for the filters in each epoch."""


@dataclass(frozen=True)
class Switches:
    """Where the largest activation of each group was: ``chosen`` (B, G, h, w) counts the places of a group.

    A group has ``maps`` neighbouring feature maps and ``side`` x ``side`` places of a layer of ``shape`` (K, H, W).
    """

    chosen: Tensor
    shape: tuple[int, int, int]
    maps: int
    side: int

    def only(self, rows: Tensor | slice) -> Switches:
        """Select those of some images."""
        return Switches(self.chosen[rows], self.shape, self.maps, self.side)


@dataclass(frozen=True)
class DeconvolutionSettings:
    """How one layer is learned.

    Attributes
    ----------
    filters, size
        Number of filters, and their side in places of the layer below.
    maps, side
        Neighbouring feature maps, and side in places, of the groups of which one activation is left.
    weight
        λ, the price of the error compared with that of activations.
    epochs, steps
        Passes over the images, each with one update of the filters, and steps of inference in each (ISTA).
    """

    filters: int
    size: int = 5
    maps: int = 2
    side: int = 2
    weight: float = 2.0
    epochs: int = 8
    steps: int = 10

    def __post_init__(self) -> None:
        for name, low in {"filters": 1, "size": 1, "maps": 1, "side": 1, "epochs": 1, "steps": 1}.items():
            if getattr(self, name) < low:
                raise ForetellError(f"{name}={getattr(self, name)}: give a whole number of at least {low}.")
        if not self.weight > 0:
            raise ForetellError(f"weight={self.weight:g}: give a number above 0.")


@dataclass(frozen=True)
class LayerStack:
    """The filters (K, C, s, s) of each layer, from the pixels up, and the settings by which each was learned."""

    filters: tuple[Tensor, ...] = ()
    settings: tuple[DeconvolutionSettings, ...] = ()


@dataclass(frozen=True)
class Decomposition:
    """Images taken apart by the layers of a stack.

    Attributes
    ----------
    activations
        Feature maps (B, K, H, W) of each layer, where one activation of each group is left.
    switches
        Those of each layer.
    rebuilt
        The images (B, C, H, W) as each layer rebuilds them.
    """

    activations: tuple[Tensor, ...] = ()
    switches: tuple[Switches, ...] = ()
    rebuilt: tuple[Tensor, ...] = field(default=())


def pool(z: Tensor, maps: int, side: int) -> tuple[Tensor, Switches]:
    """Return the largest activation by magnitude of each group, with its sign (B, G, h, w), and the switches."""
    groups = _group(z, maps, side)
    chosen = groups.abs().argmax(-1)
    shape = int(z.shape[1]), int(z.shape[2]), int(z.shape[3])
    return groups.gather(-1, chosen[..., None])[..., 0], Switches(chosen, shape, maps, side)


def select(z: Tensor, switches: Switches) -> Tensor:
    """Return the activations at the switches, P z (B, G, h, w)."""
    return _group(z, switches.maps, switches.side).gather(-1, switches.chosen[..., None])[..., 0]


def unpool(p: Tensor, switches: Switches) -> Tensor:
    """Put activations (B, G, h, w) where the switches are, and 0 elsewhere: U p = Pᵀ p (B, K, H, W)."""
    maps, side = switches.maps, switches.side
    groups = p.new_zeros(*p.shape, maps * side**2).scatter(-1, switches.chosen[..., None], p[..., None])
    b, g, h, w = p.shape
    z = groups.view(b, g, h, w, maps, side, side).permute(0, 1, 4, 2, 5, 3, 6)
    k, height, width = switches.shape
    return z.reshape(b, g * maps, h * side, w * side)[:, :k, :height, :width]


def _group(z: Tensor, maps: int, side: int) -> Tensor:
    """Return the activations by group, (B, G, h, w, M); groups at the end are filled with 0."""
    k, height, width = z.shape[1:]
    z = pad(z, (0, -width % side, 0, -height % side, 0, -k % maps))
    b, k, height, width = z.shape
    z = z.view(b, k // maps, maps, height // side, side, width // side, side)
    return z.permute(0, 1, 3, 5, 2, 4, 6).reshape(b, k // maps, height // side, width // side, -1)


def reconstruct(z: Tensor, filters: Sequence[Tensor], switches: Sequence[Switches]) -> Tensor:
    """Rebuild images from the feature maps of the top layer: R z = F₁ U₁ F₂ U₂ ... F z (B, C, H, W).

    Parameters
    ----------
    z
        (B, K, H, W), larger than what it rebuilds by the filters' side less 1.
    filters
        Of each layer, from the pixels up.
    switches
        Of each layer but the top one.
    """
    for f, below in zip(reversed(filters), (*reversed(switches), None), strict=True):
        z = conv_transpose2d(z, f, padding=f.shape[-1] - 1)
        z = z if below is None else unpool(z, below)
    return z


def project(y: Tensor, filters: Sequence[Tensor], switches: Sequence[Switches]) -> Tensor:
    """Project images (B, C, H, W) up to the feature maps of the top layer: Rᵀ y, the transpose of `reconstruct`."""
    for f, above in zip(filters, (*switches, None), strict=True):
        y = conv2d(y, f, padding=f.shape[-1] - 1)
        y = y if above is None else select(y, above)
    return y


def shrink(z: Tensor, by: Tensor) -> Tensor:
    """Move each value by ``by`` towards 0, and no further: the proximal step of |z|₁ (soft threshold)."""
    return z.sign() * (z.abs() - by).clamp(min=0)


def infer(
    y: Tensor,
    filters: Sequence[Tensor],
    switches: Sequence[Switches],
    *,
    weight: float,
    steps: int,
    groups: tuple[int, int] | None = None,
    start: Tensor | None = None,
) -> Tensor:
    """Find the feature maps of the top layer for images (B, C, H, W), by ISTA (algorithm 1, lines 5 to 13).

    z ← shrink(z - λβ Rᵀ(R z - y), β). With ``groups``, how many feature maps and which side, one activation of each
    group is left after each step; without, z tends to the minimum of λ/2 ‖R z - y‖² + |z|₁. The document gives a β for
    each layer; here λβ is 1 / ‖R‖², the largest step that never raises the cost.
    """
    step = 1 / (SAFE * _estimate_norm(project(y, filters, switches), filters, switches))
    beta = step / weight
    z = torch.zeros_like(project(y, filters, switches)) if start is None else start
    for _ in range(steps):
        error = reconstruct(z, filters, switches) - y
        z = shrink(z - step * project(error, filters, switches), beta)
        if groups:
            z = unpool(*pool(z, *groups))
    return z


def _estimate_norm(start: Tensor, filters: Sequence[Tensor], switches: Sequence[Switches]) -> Tensor:
    """Estimate the largest eigenvalue of RᵀR for each image, (B, 1, 1, 1), by power iteration."""
    z = start + 1e-3 * start.abs().amax((1, 2, 3), keepdim=True) + 1e-12  # not orthogonal to constants
    norm = torch.ones(len(z), 1, 1, 1, dtype=z.dtype)
    for _ in range(POWER):
        z = project(reconstruct(z, filters, switches), filters, switches)
        norm = z.flatten(1).norm(dim=1).view(-1, 1, 1, 1)
        z = z / norm
    return norm


def solve_filters(
    z: Tensor, y: Tensor, start: Tensor, filters: Sequence[Tensor], switches: Sequence[Switches], steps: int
) -> Tensor:
    """Find the filters (K, C, s, s) of the layer above ``filters`` that rebuild images best, given its feature maps.

    Conjugate gradients from ``start`` on the normal equations of ‖R z - y‖² by the top filters (eq. 8).
    """

    def rebuild(f: Tensor) -> Tensor:
        return reconstruct(z, [*filters, f], switches)

    def transpose(error: Tensor) -> Tensor:
        with torch.enable_grad():
            f = start.detach().requires_grad_()
            product = (rebuild(f) * error).sum()
        gradient: Tensor = torch.autograd.grad(product, f)[0]
        return gradient

    f = start
    residual = transpose(y - rebuild(f))
    direction, size = residual, residual.square().sum()
    for _ in range(steps):
        if size <= 0:
            break
        image = rebuild(direction)
        length = size / image.square().sum().clamp(min=1e-30)
        f = f + length * direction
        residual = residual - length * transpose(image)
        last, size = size, residual.square().sum()
        direction = residual + size / last * direction
    return f


def normalise_filters(filters: Tensor) -> Tensor:
    """Divide each filter by its length, where it has one."""
    lengths: Tensor = filters.flatten(1).norm(dim=1)
    return filters / lengths.clamp(min=1e-12).view(-1, 1, 1, 1)


def draw_filters(below: int, settings: DeconvolutionSettings, generator: torch.Generator) -> Tensor:
    """Draw random filters of length 1 for a layer below which there are so many channels."""
    drawn = torch.randn(settings.filters, below, settings.size, settings.size, generator=generator)
    return normalise_filters(drawn)


def add_layer(
    stack: LayerStack,
    y: Tensor,
    settings: DeconvolutionSettings,
    *,
    generator: torch.Generator,
    progress: Progress = silent,
) -> LayerStack:
    """Learn one more layer of filters from images (B, C, H, W), above those that are there (algorithm 1)."""
    switches = decompose(y, stack).switches
    below = y.shape[1] if not switches else switches[-1].chosen.shape[1]
    f = draw_filters(below, settings, generator).to(y.dtype)
    z = None
    for epoch in range(settings.epochs):
        z = infer(y, [*stack.filters, f], switches, weight=settings.weight, steps=settings.steps,
                  groups=(settings.maps, settings.side), start=z)  # fmt: skip
        solved = solve_filters(z, y, f, stack.filters, switches, CONJUGATE)
        used = z.abs().sum((0, 2, 3)) > 0  # a filter without activations keeps its values
        f = torch.where(used.view(-1, 1, 1, 1), normalise_filters(solved), f)
        progress(epoch + 1, settings.epochs, f"epochs of layer {len(stack.filters) + 1}")
    return LayerStack((*stack.filters, f), (*stack.settings, settings))


def decompose(y: Tensor, stack: LayerStack, layers: Decomposition | None = None) -> Decomposition:
    """Take images (B, C, H, W) apart by every layer of a stack in turn, each with the switches of those below.

    ``layers`` is the decomposition of the same images by the lowest layers, where it was computed before.
    """
    layers = layers or Decomposition()
    for top in range(len(layers.activations), len(stack.settings)):
        settings = stack.settings[top]
        filters, groups = stack.filters[: top + 1], (settings.maps, settings.side)
        steps = settings.steps * settings.epochs
        z = infer(y, filters, layers.switches, weight=settings.weight, steps=steps, groups=groups)
        _, switches = pool(z, *groups)
        rebuilt = reconstruct(z, filters, layers.switches)
        layers = Decomposition((*layers.activations, z), (*layers.switches, switches), (*layers.rebuilt, rebuilt))
    return layers


def project_strongest(layers: Decomposition, stack: LayerStack, layer: int, b: int, count: int) -> Tensor:
    """Project the strongest activations of an image down to the feature maps of the first layer, each by itself.

    Zeiler et al. 2011, section on object recognition: the ``count`` largest by magnitude of a layer, (M, K, H, W) with
    M at most ``count`` and at least 1. Of layer 0, its feature maps themselves, (1, K, H, W).
    """
    z = layers.activations[layer][b]
    if layer == 0:
        return z[None]
    strongest = z.abs().flatten().topk(min(count, z.numel())).indices
    strongest = strongest[z.flatten()[strongest] != 0]
    each = z.new_zeros(max(1, len(strongest)), z.numel())
    each[torch.arange(len(strongest)), strongest] = z.flatten()[strongest]
    switches = [one.only(torch.tensor([b]).expand(len(each))) for one in layers.switches[:layer]]
    below = reconstruct(each.view(-1, *z.shape), stack.filters[1 : layer + 1], switches[1:])
    return unpool(below, switches[0])
