"""Random smooth masks: a squashed Gaussian process on the pixel grid, sampled exactly.

Source: Yang et al. 2021 (doi:10.1038/s41598-021-89267-4), as used by Folke et al. 2021 (arXiv:2106.09106), appendix B.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import torch
from torch import Tensor

from core.errors import ForetellError
from core.network.device import CPU, send, stream

BLOCK = 64
"""Masks drawn from one random stream; a fixed number, so that no result depends on the chunk size."""

FLOAT32_RANK = 1e-12
"""Eigenvalues below this share of the largest change no float32 digit of a sample."""


@dataclass(frozen=True)
class MaskPrior:
    """p(m): m = sigmoid(g), g a Gaussian process with constant mean and RBF kernel on the pixel grid.

    Parameters
    ----------
    height, width
        Grid in px.
    length_scale
        Of the RBF kernel: up to 1 a share of the grid's shorter side (the paper's 22.4 px of 224 are .1), above 1 px.
    mean, amplitude
        Mean and standard deviation of g. The paper's text says variance 100, but only a standard deviation of 100
        gives its range of [-500, 300]; with variance 100 every mask is empty.
    device
        Where masks are made, from coefficients drawn on the CPU: the same masks on any device, up to rounding.

    Notes
    -----
    The RBF kernel on a grid is a Kronecker product of two one-dimensional kernels, so mean + amplitude * L_y Q L_x^T
    with Q standard normal is an exact sample; the kernels' eigenvalues fall so fast that some twenty columns of L
    reach float32 precision.
    """

    height: int
    width: int
    length_scale: float = 0.1
    mean: float = -100.0
    amplitude: float = 100.0
    device: torch.device = CPU

    def __post_init__(self) -> None:
        if not 0 < self.length_scale <= max(self.height, self.width):
            raise ForetellError(
                f"Mask length scale {self.length_scale} is out of range: give a share of the side in (0, 1], or px up "
                f"to {max(self.height, self.width)}."
            )
        if self.amplitude <= 0:
            raise ForetellError(f"Mask amplitude {self.amplitude} must be positive.")

    @cached_property
    def _factors(self) -> tuple[Tensor, Tensor]:
        share = min(self.height, self.width) if self.length_scale <= 1 else 1
        scale = self.length_scale * share
        return send(_factor(self.height, scale), self.device), send(_factor(self.width, scale), self.device)

    @cached_property
    def expected_value(self) -> float:
        """E[m] of every pixel, by quadrature over the one-dimensional normal: the map of a constant classifier."""
        return _expect(self.mean, self.amplitude)

    @property
    def rank(self) -> tuple[int, int]:
        """Numbers of coefficients (rows, columns) a mask is made of."""
        rows, columns = self._factors
        return rows.shape[1], columns.shape[1]

    def sample(self, count: int, generator: torch.Generator) -> Tensor:
        """Return ``count`` masks (count, H, W), float32 in [0, 1]."""
        return self.masks(torch.randn(count, *self.rank, generator=generator))

    def masks(self, normal: Tensor) -> Tensor:
        """Compute masks (n, H, W), float32 in [0, 1], of coefficients (n, *rank), standard normal under p(m)."""
        rows, columns = self._factors
        field = torch.einsum("hr,nrc,wc->nhw", rows, send(normal, self.device), columns)
        return torch.sigmoid_(field.mul_(self.amplitude).add_(self.mean))

    def blocks(self, count: int, seed: int) -> Iterator[Tensor]:
        """Return ``count`` masks in blocks (n <= 64, H, W), each from its own stream of ``seed``."""
        for block, start in enumerate(range(0, count, BLOCK)):
            yield self.sample(BLOCK, stream(seed, block))[: count - start]


def elsewhere(values: Tensor, generator: torch.Generator) -> Tensor:
    """Return flat places (H, W) from which a heatmap takes its own values so that a random mask arranges them.

    The largest of ``values`` (H, W) is where a mask of the prior is most open, the smallest where it is least: the
    same values, as smooth as a mask, in places that know nothing of the image. The mask's standard deviation is 1
    here, which changes no order: with the prior's 100 most pixels are closed alike.
    """
    height, width = values.shape
    mask = MaskPrior(height, width, mean=0.0, amplitude=1.0).sample(1, generator)[0]
    places = torch.empty(values.numel(), dtype=torch.long)
    places[mask.flatten().argsort(stable=True)] = values.flatten().argsort(stable=True)
    return places.view(values.shape)


@lru_cache(16)
def _expect(mean: float, amplitude: float) -> float:
    """Return E sigmoid(mean + amplitude z), z standard normal."""
    z = torch.linspace(-10, 10, 200_001, dtype=torch.float64)
    density = torch.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    return float(torch.trapezoid(torch.sigmoid(mean + amplitude * z) * density, z))


@lru_cache(16)
def _factor(side: int, scale: float) -> Tensor:
    """Return L (side, rank), float32, with L L^T = the RBF kernel of ``side`` points to float32 precision."""
    x = torch.arange(side, dtype=torch.float64)
    kernel = torch.exp(-((x[:, None] - x[None, :]) ** 2) / (2 * scale**2))
    values, vectors = torch.linalg.eigh(kernel)
    keep = values > FLOAT32_RANK * values[-1]
    factor: Tensor = vectors[:, keep] * values[keep].sqrt()
    return factor.float().contiguous()
