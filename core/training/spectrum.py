"""Spectral bias: which frequencies of a known function a network of ReLUs learns first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from core.errors import ForetellError
from core.types import Progress, silent

REACHED = 0.5
"""Share of a wave from which it counts as learned."""


@dataclass(frozen=True)
class LearnedWaves:
    """How much of each wave a network has learned.

    Attributes
    ----------
    frequencies
        Cycles of the F waves over the interval.
    steps
        Numbers of the S steps after which the network was measured.
    shares
        Share (S, F) of each wave: 0 for nothing of it, 1 for its amplitude and phase.
    """

    frequencies: tuple[int, ...]
    steps: tuple[int, ...]
    shares: Tensor

    @property
    def order(self) -> list[int | None]:
        """Return for each wave the first measured step at which half of it is learned; None where it never is."""
        reached = self.shares >= REACHED
        return [self.steps[int(row.int().argmax())] if bool(row.any()) else None for row in reached.T]


def draw_waves(frequencies: Sequence[int], points: int, generator: torch.Generator) -> Tensor:
    """Return Σ sin(2πk z + φ_k) at ``points`` places z of [0, 1), float32 (N,), with phases drawn uniformly.

    Raises
    ------
    ForetellError
        Frequencies that so few points cannot tell apart.
    """
    if not frequencies or min(frequencies) < 1 or max(frequencies) >= points / 2:
        raise ForetellError(
            f"{points} points tell frequencies from 1 to {math.ceil(points / 2) - 1} apart, and {list(frequencies)} "
            "was asked for: give lower frequencies or more points."
        )
    z = torch.arange(points, dtype=torch.float64) / points
    phases = 2 * math.pi * torch.rand(len(frequencies), generator=generator, dtype=torch.float64)
    waves = [torch.sin(2 * math.pi * k * z + phase) for k, phase in zip(frequencies, phases, strict=True)]
    return torch.stack(waves).sum(0).float()


def project(values: Tensor, target: Tensor, frequencies: Sequence[int]) -> Tensor:
    """Compute the share (F,) of each wave of a target (N,) that is in values (N,).

    The real part of f̂(k) conj(t̂(k)) / |t̂(k)|², with the discrete Fourier transforms f̂ and t̂: 1 where amplitude and
    phase are the target's.
    """
    own, wanted = (torch.fft.rfft(one.double())[list(frequencies)] for one in (values, target))
    shares: Tensor = (own * wanted.conj()).real / wanted.abs().square()
    return shares


def record_waves(
    frequencies: Sequence[int],
    *,
    generator: torch.Generator,
    points: int = 200,
    width: int = 128,
    depth: int = 5,
    steps: int = 4000,
    rate: float = 3e-4,
    progress: Progress = silent,
) -> LearnedWaves:
    """Train a network of ReLUs on a sum of waves of equal amplitude, and record how much of each it has learned.

    Rahaman et al. 2019 (arXiv:1806.08734), section 3, experiment 1: places z of [0, 1) to Σ sin(2πk z + φ_k), mean
    squared error, all points in each step of Adam. ``depth`` counts hidden layers of ``width`` units.
    """
    target = draw_waves(frequencies, points, generator)
    network = _make_network(width, depth, generator)
    optimiser = torch.optim.Adam(network.parameters(), rate)
    z = (torch.arange(points) / points)[:, None]
    measured, shares = [], []
    for step in range(steps + 1):
        values = network(z)[:, 0]
        if step % max(1, steps // 40) == 0 or step == steps:
            measured.append(step)
            shares.append(project(values.detach(), target, frequencies))
            progress(step, steps, "learning waves")
        optimiser.zero_grad()
        (values - target).square().mean().backward()
        optimiser.step()
    return LearnedWaves(tuple(frequencies), tuple(measured), torch.stack(shares))


def _make_network(width: int, depth: int, generator: torch.Generator) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inside, outside in pairwise([1, *[width] * depth]):
        layers += [nn.Linear(inside, outside), nn.ReLU()]
    network = nn.Sequential(*layers, nn.Linear(width, 1))
    for layer in network:
        if not isinstance(layer, nn.Linear):
            continue
        nn.init.kaiming_uniform_(layer.weight, nonlinearity="relu", generator=generator)
        nn.init.uniform_(layer.bias, -(layer.in_features**-0.5), layer.in_features**-0.5, generator=generator)
    return network
