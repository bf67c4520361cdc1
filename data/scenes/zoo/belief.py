"""``scenes:belief``: a deep belief network of the scenes at 16 x 16 px, whose units can be sampled from.

A restricted Boltzmann machine with normal visible units (Welling, Rosen-Zvi & Hinton 2005; Krizhevsky 2009) and one
with binary units upon it, trained one after the other without labels (Hinton, Osindero & Teh 2006), and a logistic
regression that reads the category from the upper one.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

from data.boltzmann import BATCH, BoltzmannMachine, GaussianMachine, draw_binary, fit_head, fit_machine
from data.scenes.classifier import CATEGORIES, MEAN, MEAN_COLOUR, STD, normalise, transforms
from data.scenes.pen import SIZE
from data.scenes.zoo.material import Material
from data.scenes.zoo.store import restore

__all__ = ["CATEGORIES", "MEAN_COLOUR", "build", "measure", "train", "transforms"]

TITLE = "Deep belief network"
DIFFERENCE = (
    "It sees 16 × 16 px, and both hidden layers were trained without labels, as a model of the images: images can be "
    "drawn from it, also with one unit clamped (`units --how sampled`). Nothing in it says what is an object."
)
SIDE = 16
UNITS = (3 * SIDE**2, 400, 160)
"""Visible units, and hidden units of each machine."""
DEVIATION = 0.1
"""Standard deviation of a visible unit, a value of a pixel from 0 to 1, given the units above it."""
SEED = 13
EPOCHS, RATE, DECAY = (100, 50), (0.006, 0.02), (5e-4, 2e-3)
"""Of the lower and of the upper machine."""
FEW = 100
"""The first held-out images: the card has their error of its own, and a test measures it again."""
DRAWN, CHAINS, STEPS, APART = 1_000, 8, 2_000, 50
"""Images drawn to measure their spread, chains for each clamped unit, steps of each, and steps between two samples."""


class BeliefNet(nn.Module):
    """Two machines on scenes of 16 x 16 px, and a linear layer that reads the category; 0.38 M parameters.

    Attributes
    ----------
    deviation
        Standard deviation of the visible units: differences of pixels to the mean image ``typical``.
    """

    deviation = DEVIATION

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("typical", torch.zeros(UNITS[0]))
        self.shrink = nn.AvgPool2d(SIZE // SIDE)
        self.first, self.second = GaussianMachine(UNITS[0], UNITS[1]), BoltzmannMachine(UNITS[1], UNITS[2])
        self.head = nn.Linear(UNITS[2], len(CATEGORIES))

    def forward(self, x: Tensor) -> Tensor:
        """Compute logits (B, 16) of normalised inputs (B, 3, 96, 96)."""
        logits: Tensor = self.head(self.second(self.first(self.look(x) / DEVIATION)))
        return logits

    def look(self, x: Tensor) -> Tensor:
        """Return the visible units (B, V) of normalised inputs (B, 3, 96, 96)."""
        mean, std = self._scale(x)
        return (self.shrink(x) * std + mean).flatten(1) - self.typical

    def draw(self, visible: Tensor) -> Tensor:
        """Return normalised inputs (B, 3, 96, 96) of visible units (B, V), cut off where a pixel cannot be."""
        pixels = (visible + self.typical).clamp(0, 1).view(-1, 3, SIDE, SIDE)
        mean, std = self._scale(visible)
        return interpolate((pixels - mean) / std, scale_factor=SIZE // SIDE, mode="nearest")

    def list_machines(self) -> dict[str, tuple[Tensor, Tensor, Tensor]]:
        """List W, b and c of each machine, by the name of its module."""
        lower, upper = self.first, self.second
        return {
            "first": (lower.weight * DEVIATION, lower.visible * DEVIATION, lower.hidden),
            "second": (upper.weight, upper.visible, upper.hidden),
        }

    def _scale(self, like: Tensor) -> tuple[Tensor, Tensor]:
        mean, std = (torch.tensor(values, dtype=like.dtype, device=like.device).view(3, 1, 1) for values in (MEAN, STD))
        return mean, std


def build() -> nn.Module:
    """Return the trained network."""
    return restore(BeliefNet(), "belief")


def train(material: Material) -> tuple[nn.Module, dict[str, Any]]:
    """Train both machines on the images of the built-in network and their mirror images, and the head with labels."""
    images, generator = material.training(), torch.Generator().manual_seed(SEED)
    network = BeliefNet()
    with torch.no_grad():
        seen = _look(network, torch.cat([images.pixels, images.pixels.flip(3)]))
        network.typical.copy_(seen.mean(0))
        visible = (seen - network.typical) / DEVIATION
        network.first = fit_machine(visible, UNITS[1], kind=GaussianMachine, epochs=EPOCHS[0], rate=RATE[0],
                                    decay=DECAY[0], generator=generator)  # fmt: skip
        inside = network.first(visible)
        network.second = fit_machine(inside, UNITS[2], epochs=EPOCHS[1], rate=RATE[1], decay=DECAY[1],
                                     generator=generator)  # fmt: skip
        top = network.second(inside)
    fit_head(network.head, top, torch.cat([images.labels, images.labels]))
    facts = {"units": list(UNITS), "deviation": DEVIATION, "batch": BATCH, "rates": list(RATE), "decays": list(DECAY)}
    return network.eval(), {"images": len(images), "epochs": list(EPOCHS), "seed": SEED} | facts


@torch.no_grad()
def measure(network: BeliefNet, material: Material) -> dict[str, Any]:
    """Measure how well both layers rebuild held-out images, and how far drawn images spread.

    ``squared_error_of_rebuilt_images`` is the mean over values of pixels from 0 to 1, next to that of the mean image
    and of as many principal components of the training images as a layer has units. ``spread_of_drawn_images`` is the
    variance about the mean image of drawn images, over that of held-out images. For each unit of the upper layer,
    ``agreement_of_drawn_and_held_out_images`` is the correlation, over values of pixels, of E[v | h = 1] of the network
    and of held-out images weighted by p(h = 1 | v), both as differences to the mean image.
    """
    seen, known = (_look(network, one.pixels) for one in (material.held_out("standard"), material.training()))
    hidden = network.first(seen / DEVIATION)
    below = network.second.down(network.second(hidden))
    components = torch.linalg.svd(known - known.mean(0), full_matrices=False).Vh
    centred = seen - known.mean(0)
    rebuilt = {
        "mean_image": seen - centred,
        "first": network.first.down(hidden) * DEVIATION,
        "first_by_components": seen - centred + centred @ components[: UNITS[1]].T @ components[: UNITS[1]],
        "second": network.first.down(below) * DEVIATION,
        "second_by_components": seen - centred + centred @ components[: UNITS[2]].T @ components[: UNITS[2]],
    }
    spread = _dream(network).square().mean() / seen.square().mean()
    active = network.second(hidden)
    agreement = correlate_rows(_dream_clamped(network), active.T @ seen / active.sum(0)[:, None])
    quartiles = torch.quantile(agreement, torch.tensor([0.25, 0.5, 0.75])).tolist()
    errors = {name: (one - seen).square().mean(1) for name, one in rebuilt.items()}
    return {
        "squared_error_of_rebuilt_images": {name: round(float(one.mean()), 5) for name, one in errors.items()},
        "squared_error_of_first_images": {name: round(float(one[:FEW].mean()), 5) for name, one in errors.items()},
        "spread_of_drawn_images": round(float(spread), 3),
        "agreement_of_drawn_and_held_out_images": {
            "quartiles": [round(one, 3) for one in quartiles],
            "least": round(float(agreement.min()), 3),
        },
    }


def _look(network: BeliefNet, pixels: Tensor) -> Tensor:
    with torch.no_grad():
        return torch.cat([network.look(normalise(part)) for part in pixels.split(500)])


def correlate_rows(one: Tensor, other: Tensor) -> Tensor:
    """Compute the correlation (N,) of each row of (N, V) with that of the other."""
    one, other = (rows - rows.mean(1, keepdim=True) for rows in (one, other))
    product: Tensor = (one * other).sum(1) / (one.norm(dim=1) * other.norm(dim=1))
    return product


def _dream(network: BeliefNet) -> Tensor:
    """Draw E[v | h] (N, V) of images of the network, no unit clamped."""
    return network.first.down(_sample(network, torch.zeros(DRAWN, UNITS[2]))[-1]) * DEVIATION


def _dream_clamped(network: BeliefNet) -> Tensor:
    """Estimate E[v | h = 1] (H, V) for each upper unit, from `CHAINS` chains with the unit clamped."""
    drawn = _sample(network, torch.eye(UNITS[2]).repeat(CHAINS, 1)).unflatten(1, (CHAINS, UNITS[2]))
    return network.first.down(drawn.mean((0, 1))) * DEVIATION


def _sample(network: BeliefNet, clamped: Tensor) -> Tensor:
    """Draw the lower hidden units (T, N, H) of N chains, units of the upper layer clamped to 1 where (N, H) is 1."""
    generator = torch.Generator().manual_seed(SEED)
    hidden, kept = draw_binary(torch.full((len(clamped), UNITS[1]), 0.5), generator), []
    for step in range(STEPS):
        upper = torch.maximum(draw_binary(network.second(hidden), generator), clamped)
        hidden = network.second.draw_visible(upper, generator)
        if step >= STEPS // 2 and (step + 1) % APART == 0:
            kept.append(hidden)
    return torch.stack(kept)
