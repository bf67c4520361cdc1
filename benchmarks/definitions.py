"""Heatmap methods written out from their papers, slowly and in float64, to compare the engine's heatmaps with.

They share no code with the engine: the layer and how it holds places come from `benchmarks.planted`, not from a
measurement. ``network`` is an unmodified module in float64, ``x`` (1, C, H, W) float64; heatmaps are (H, W).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.planted import Architecture


def interpolate_rows(size: int, count: int) -> Tensor:
    """Return the matrix (size, count) that enlarges a line bilinearly, both with their pixels' centres at k + 1/2."""
    at = (np.arange(size) + 0.5) * count / size - 0.5
    return torch.from_numpy(np.stack([np.interp(at, np.arange(count), row) for row in np.eye(count)], 1))


def enlarge(coarse: Tensor, size: int) -> Tensor:
    """Enlarge (h, w) bilinearly to (size, size)."""
    down, across = (interpolate_rows(size, count) for count in coarse.shape)
    return down @ coarse @ across.T


def shrink(heatmap: Tensor, side: int) -> Tensor:
    """Return the (side, side) values of which `enlarge` makes a heatmap, by least squares."""
    back = torch.linalg.pinv(interpolate_rows(len(heatmap), side))
    return back @ heatmap.double() @ back.T


def compute_gradient(network: nn.Module, x: Tensor, target: int) -> Tensor:
    """Return d logit / d x, (C, H, W)."""
    x = x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(network(x.clone())[0, target], x)
    return gradient[0]


def gradient(network: nn.Module, x: Tensor, target: int, _: Architecture) -> Tensor:
    """Sum the gradient over the channels."""
    return compute_gradient(network, x, target).sum(0)


def input_x_gradient(network: nn.Module, x: Tensor, target: int, _: Architecture) -> Tensor:
    """Sum image x gradient over the channels: also LRP-0 of a network of ReLUs (Ancona et al. 2018)."""
    return (x[0] * compute_gradient(network, x, target)).sum(0)


def _read(network: nn.Module, x: Tensor, target: int, architecture: Architecture) -> tuple[Tensor, Tensor]:
    """Return the layer's output and the gradient of the logit with respect to it, (K, h, w) both."""
    kept: list[Tensor] = []

    def keep(_: nn.Module, __: object, output: Tensor) -> Tensor:
        kept.append(output.detach().requires_grad_())
        return kept[0] * 1.0

    with network.get_submodule(architecture.layer).register_forward_hook(keep):
        logit = network(x)[0, target]
    (gradients,) = torch.autograd.grad(logit, kept[0])
    return architecture.to_maps(kept[0].detach())[0], architecture.to_maps(gradients)[0]


def grad_cam(network: nn.Module, x: Tensor, target: int, architecture: Architecture) -> Tensor:
    """Selvaraju et al. 2017 (arXiv:1610.02391), eq. 1 and 2."""
    maps, slopes = _read(network, x, target, architecture)
    return enlarge(sum((s.mean() * a for s, a in zip(slopes, maps, strict=True)), torch.zeros(())).relu(), x.shape[2])


def grad_cam_plus_plus(network: nn.Module, x: Tensor, target: int, architecture: Architecture) -> Tensor:
    """Chattopadhyay et al. 2018 (arXiv:1710.11063), eq. 19 and 9, without the factor exp(logit)."""
    maps, slopes = _read(network, x, target, architecture)
    total = torch.zeros(())
    for s, a in zip(slopes, maps, strict=True):
        alpha = torch.where(s != 0, s**2 / (2 * s**2 + a.sum() * s**3), torch.zeros_like(s))
        total = total + (alpha * s.relu()).nan_to_num(0).sum() * a
    return enlarge(total.relu(), x.shape[2])


def layer_cam(network: nn.Module, x: Tensor, target: int, architecture: Architecture) -> Tensor:
    """Jiang et al. 2021 (doi:10.1109/TIP.2021.3089943), eq. 5 to 7."""
    maps, slopes = _read(network, x, target, architecture)
    return enlarge((slopes.relu() * maps).sum(0).relu(), x.shape[2])


def cam(network: nn.Module, x: Tensor, target: int, architecture: Architecture) -> Tensor:
    """Zhou et al. 2016 (arXiv:1512.04150), eq. 2, of the feature maps that the pooling takes."""
    pooled: list[Tensor] = []
    pooling = network.get_submodule(architecture.following)
    with pooling.register_forward_pre_hook(lambda _, given: pooled.append(given[0])), torch.no_grad():
        network(x)
    maps = architecture.to_maps(pooled[0])[0]
    maps = maps.relu() if architecture.rectified else maps  # a ReLU may lie between
    head = [one for one in network.modules() if isinstance(one, nn.Linear)][-1]
    return enlarge(torch.einsum("k,khw->hw", head.weight.detach()[target], maps), x.shape[2])


@torch.no_grad()
def score_cam(network: nn.Module, x: Tensor, target: int, architecture: Architecture, fill: Tensor) -> Tensor:
    """Wang et al. 2020 (arXiv:1910.01279), algorithm 1: the image through feature maps and ``fill`` (C, H, W)."""
    kept: list[Tensor] = []
    with network.get_submodule(architecture.layer).register_forward_hook(lambda _, __, out: kept.append(out)):
        network(x)
    maps = architecture.to_maps(kept[0])[0]
    masks = torch.stack([enlarge(one, x.shape[2]) for one in maps])
    low, high = masks.amin((1, 2)), masks.amax((1, 2))
    used = high - low > 1e-5 * masks.abs().amax((1, 2))
    masks = ((masks - low[:, None, None]) / (high - low)[:, None, None])[used, None]
    blocks = [network(x * part + (1 - part) * fill)[:, target] for part in masks.split(32)]
    weights = torch.cat(blocks).softmax(0)
    return enlarge(torch.einsum("k,khw->hw", weights, maps[used]).relu(), x.shape[2])


@torch.no_grad()
def erasure(network: nn.Module, x: Tensor, target: int, architecture: Architecture) -> Tensor:
    """Li et al. 2016 (arXiv:1612.08220), eq. 1, a place at a time, its sign turned."""

    def surprise() -> Tensor:
        return -network(x).log_softmax(1)[0, target]

    whole, rises = surprise(), []
    kept: list[Tensor] = []
    layer = network.get_submodule(architecture.layer)
    with layer.register_forward_hook(lambda _, __, out: kept.append(out)):
        network(x)
    side = architecture.to_maps(kept[0]).shape[2]
    for place in range(side**2):

        def erase(_: nn.Module, __: object, output: Tensor, place: int = place) -> Tensor:
            output = output.clone()
            if architecture.kind == "tokens":
                output[:, architecture.prefix + place] = 0
            elif architecture.kind == "channels_last":
                output[:, place // side, place % side] = 0
            else:
                output[:, :, place // side, place % side] = 0
            return output

        with layer.register_forward_hook(erase):
            rises.append((surprise() - whole) / whole)
    return enlarge(torch.stack(rises).view(side, side), x.shape[2])


DEFINITIONS: dict[str, Callable[..., Tensor]] = {
    "gradient": gradient,
    "input_x_gradient": input_x_gradient,
    "lrp_0": input_x_gradient,
    "cam": cam,
    "grad_cam": grad_cam,
    "grad_cam_plus_plus": grad_cam_plus_plus,
    "layer_cam": layer_cam,
    "score_cam": score_cam,
    "erasure": erasure,
}
