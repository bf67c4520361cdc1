"""E[m | x, c] from weighted random masks, streamed: the estimate, its standard error, and how many masks count."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from core.network.device import CPU, send

SMALLEST = torch.finfo(torch.float64).tiny


class WeightedMasks:
    """Sums over masks m (n, H, W) with weights q (B, n), all the estimates need, in float64.

    Parameters
    ----------
    images, height, width
        B, H, W.
    prior_mean
        E[m], known exactly: the control variate's expectation.
    device
        Where the masks are, and the sums; all else is on the CPU.
    """

    def __init__(self, images: int, height: int, width: int, prior_mean: float, device: torch.device = CPU) -> None:
        self.shape, self.prior_mean = (images, height, width), prior_mean
        pixels = height * width
        self.count = 0
        zeros = partial(torch.zeros, dtype=torch.float64, device=device)
        self.m, self.m2 = (zeros(pixels) for _ in range(2))
        self.q, self.q2 = (zeros(images) for _ in range(2))
        self.qm, self.qm2, self.q2m, self.q2m2 = (zeros(images, pixels) for _ in range(4))

    def add(self, masks: Tensor, weights: Tensor) -> None:
        """Take in masks (n, H, W) with weights (B, n)."""
        flat, weights = masks.flatten(1).double(), send(weights, masks.device)
        square = flat * flat
        self.count += len(flat)
        self.m += flat.sum(0)
        self.m2 += square.sum(0)
        weights2 = weights * weights
        self.q += weights.sum(1)
        self.q2 += weights2.sum(1)
        self.qm += weights @ flat
        self.qm2 += weights @ square
        self.q2m += weights2 @ flat
        self.q2m2 += weights2 @ square

    @property
    def effective(self) -> Tensor:
        """Kish's effective sample size (sum q)^2 / sum q^2, (B,)."""
        return (self.q**2 / self.q2.clamp(min=SMALLEST)).cpu()

    def estimate_plain(self) -> tuple[Tensor, Tensor]:
        """Estimate sum q m / sum q, as in the paper, and its standard error by the delta method; both (B, H, W)."""
        estimate, influence = self._ratio()
        return estimate.view(self.shape).cpu(), (influence.sqrt() / self.count).view(self.shape).cpu()

    def estimate_controlled(self) -> tuple[Tensor, Tensor]:
        """Estimate the same expectation with the masks' own mean as control variate, and its standard error.

        With a_i = q_i (m_i - E) / mean(q), the ratio's influence, and c_i = m_i - mean(m), whose expectation is known,
        E - beta (mean(m) - E[m]) with beta = sum a c / sum c^2 has variance (sum a^2 - beta^2 sum c^2) / n^2, never
        above the plain one's: for a classifier that barely depends on the masks, where plain heatmaps are mostly noise
        of the masks themselves, it is close to 0.
        """
        estimate, influence = self._ratio()
        mean = self.m / self.count
        spread = (self.m2 - self.count * mean * mean).clamp(min=SMALLEST)
        shared = (self.qm2 - estimate * self.qm) / (self.q[:, None] / self.count).clamp(min=SMALLEST)
        beta = shared / spread
        variance = (influence - beta * beta * spread).clamp(min=0)
        better = estimate - beta * (mean - self.prior_mean)
        return better.view(self.shape).cpu(), (variance.sqrt() / self.count).view(self.shape).cpu()

    def _ratio(self) -> tuple[Tensor, Tensor]:
        """Return the ratio (B, H*W) and the sum of its squared influences."""
        total = self.q[:, None].clamp(min=SMALLEST)
        estimate = self.qm / total
        squares = self.q2m2 - 2 * estimate * self.q2m + estimate * estimate * self.q2[:, None]
        return estimate, squares.clamp(min=0) * (self.count / total) ** 2
