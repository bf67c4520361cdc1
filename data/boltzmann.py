"""Restricted Boltzmann machines and how they are trained, for the built-in deep belief networks.

Persistent contrastive divergence (Tieleman 2008) of machines with binary hidden units, whose visible units are binary,
or normal with variance 1 (Welling, Rosen-Zvi & Hinton 2005).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

EPOCHS, BATCH, RATE, DECAY = 100, 100, 0.02, 2e-3


class BoltzmannMachine(nn.Module):
    """A restricted Boltzmann machine of binary units; its output is p(h = 1 | v)."""

    def __init__(self, visible: int, hidden: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(hidden, visible))
        self.visible = nn.Parameter(torch.zeros(visible))
        self.hidden = nn.Parameter(torch.zeros(hidden))

    def forward(self, v: Tensor) -> Tensor:
        """Compute p(h = 1 | v) (B, H) of visible units (B, V)."""
        return torch.sigmoid(v @ self.weight.T + self.hidden)

    def down(self, h: Tensor) -> Tensor:
        """Compute E[v | h] (B, V) of hidden units (B, H)."""
        return torch.sigmoid(h @ self.weight + self.visible)

    def draw_visible(self, h: Tensor, generator: torch.Generator) -> Tensor:
        """Draw visible units (B, V) given hidden units (B, H)."""
        return draw_binary(self.down(h), generator)

    def start_at(self, data: Tensor) -> None:
        """Set the visible biases to those of independent units with the means of the data (N, V)."""
        self.visible.copy_(torch.logit(data.mean(0).clamp(0.01, 0.99)))


class GaussianMachine(BoltzmannMachine):
    """A machine with normal visible units of variance 1: E(v, h) = |v - b|^2 / 2 - hᵀWv - cᵀh."""

    def down(self, h: Tensor) -> Tensor:
        """Compute E[v | h] (B, V) of hidden units (B, H)."""
        return h @ self.weight + self.visible

    def draw_visible(self, h: Tensor, generator: torch.Generator) -> Tensor:
        """Draw visible units (B, V) given hidden units (B, H)."""
        mean = self.down(h)
        return mean + torch.randn(mean.shape, generator=generator)

    def start_at(self, data: Tensor) -> None:
        """Set the visible biases to the means of the data (N, V)."""
        self.visible.copy_(data.mean(0))


@torch.no_grad()
def fit_machine(
    data: Tensor,
    hidden: int,
    *,
    kind: type[BoltzmannMachine] = BoltzmannMachine,
    epochs: int = EPOCHS,
    batch: int = BATCH,
    rate: float = RATE,
    decay: float = DECAY,
    generator: torch.Generator,
) -> BoltzmannMachine:
    """Fit a machine to its visible units (N, V) by persistent contrastive divergence, one step each.

    Binary units are given by their probabilities. The rate falls linearly to 0. Negative particles go on from batch to
    batch (Tieleman 2008).
    """
    machine = kind(data.shape[1], hidden)
    machine.weight.normal_(0, 0.05, generator=generator)
    machine.start_at(data)
    machine.hidden.fill_(-1.0)
    particles = data[:batch].clone() if kind is GaussianMachine else draw_binary(data[:batch], generator)
    done, total = 0, epochs * (len(data) // batch)
    for _ in range(epochs):
        for rows in torch.randperm(len(data), generator=generator).split(batch)[: len(data) // batch]:
            step = rate * (1 - done / total)
            particles = machine.draw_visible(draw_binary(machine(particles), generator), generator)
            weight, visible, inside = compute_gradient(machine, data[rows], particles)
            machine.weight += step * (weight - decay * machine.weight)
            machine.visible += step * visible
            machine.hidden += step * inside
            done += 1
    return machine


def compute_gradient(machine: BoltzmannMachine, seen: Tensor, particles: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Estimate the gradient of the mean log likelihood of visible units (N, V) by as many particles of it.

    Returns
    -------
    tuple
        The gradients by W, b and c: the means of -∂E/∂θ over the images, less those over the particles, the hidden
        units in expectation.
    """
    own, dreamt = machine(seen), machine(particles)
    return (
        (own.T @ seen - dreamt.T @ particles) / len(seen),
        seen.mean(0) - particles.mean(0),
        own.mean(0) - dreamt.mean(0),
    )


def fit_head(head: nn.Linear, features: Tensor, labels: Tensor, *, decay: float = 1e-4, steps: int = 200) -> None:
    """Fit a logistic regression of labels (N,) to features (N, D) in place; ``decay`` weights its squared weights."""
    optimiser = torch.optim.LBFGS(head.parameters(), max_iter=steps)
    for parameter in head.parameters():
        nn.init.zeros_(parameter)

    def step() -> Tensor:
        optimiser.zero_grad()
        loss = cross_entropy(head(features), labels) + decay * head.weight.square().sum()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    optimiser.step(step)  # type: ignore[no-untyped-call]


def draw_binary(probability: Tensor, generator: torch.Generator) -> Tensor:
    """Draw units that are 1 with these probabilities, else 0."""
    return (torch.rand(probability.shape, generator=generator) < probability).float()
