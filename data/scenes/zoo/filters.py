"""Fixed Gaussian filters in front of a network, as convolutions whose weights are never trained."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from data.scenes.classifier import SceneNet
from data.scenes.zoo.fitting import fit
from data.scenes.zoo.material import Material

EXACT = ("filter.",)
"""Weights that are stored in full precision: rounding would let other frequencies through."""


class FilteredNet(nn.Module):
    """The built-in network's layers behind a fixed filter.

    Parameters
    ----------
    sigma
        Standard deviation of the Gaussian in px; its gain at f cycles per px is exp(−2π²σ²f²).
    high
        Subtract the Gaussian from the image, which passes high frequencies, instead of applying it.
    """

    def __init__(self, sigma: float, *, high: bool) -> None:
        super().__init__()
        line = make_line(sigma)
        if high:
            kernel = -torch.outer(line, line)
            kernel[len(line) // 2, len(line) // 2] += 1
            self.filter = _fix(kernel)
        else:
            self.filter = nn.Sequential(_fix(line[:, None]), _fix(line[None]))
        self.net = SceneNet()

    def forward(self, x: Tensor) -> Tensor:
        """Compute logits (B, 16) of normalised inputs (B, 3, 96, 96)."""
        logits: Tensor = self.net(self.filter(x))
        return logits


def train_filtered(
    material: Material, sigma: float, *, high: bool, epochs: int, seed: int
) -> tuple[FilteredNet, dict[str, Any]]:
    """Train a network behind a filter on the images of the built-in network; return it with what its card tells."""
    images = material.training()
    network = FilteredNet(sigma, high=high)
    fit(network, images, epochs=epochs, generator=torch.Generator().manual_seed(seed))
    return network, {"images": len(images), "epochs": epochs, "seed": seed, "sigma_px": sigma}


def make_line(sigma: float) -> Tensor:
    """Return a Gaussian (S,) up to 3.5 σ that sums to 1, float64."""
    reach = int(3.5 * sigma + 0.5)
    line = torch.exp(-(torch.arange(-reach, reach + 1, dtype=torch.float64) ** 2) / (2 * sigma**2))
    return line / line.sum()


def _fix(kernel: Tensor) -> nn.Conv2d:
    """Return a convolution of each channel by a kernel (H, W); the image continues on its other side."""
    height, width = kernel.shape
    around = (height // 2, width // 2)
    layer = nn.Conv2d(3, 3, (height, width), padding=around, padding_mode="circular", groups=3, bias=False)
    layer.weight = nn.Parameter(kernel.float().expand(3, 1, -1, -1).clone(), requires_grad=False)
    return layer
