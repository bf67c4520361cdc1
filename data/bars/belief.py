"""``bars:belief``: a deep belief network of the bars, whose units can be sampled from (Hinton, Osindero & Teh 2006).

Two restricted Boltzmann machines, trained one after the other without labels by persistent contrastive divergence
(Tieleman 2008), and a logistic regression that reads the class from the upper one. ``python -m data.bars.belief``
trains it again; ``belief.json`` says how well it does.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, cross_entropy, interpolate

from data.bars.classifier import MEAN_COLOUR
from data.bars.generator import GROUND, SIZE
from data.bars.network import CATEGORIES, transforms
from data.bars.train import FIRST, HELD_OUT, HELD_OUT_SEED, draw_bars, list_labels, measure_accuracy, read
from data.weights import load_weights, save_weights

__all__ = ["CATEGORIES", "MEAN_COLOUR", "build", "transforms"]

WEIGHTS = Path(__file__).with_name("belief.safetensors")
CARD = Path(__file__).with_name("belief.json")
HALVED = SIZE // 2
BRIGHT = 160.0
"""Grey levels above the ground at which a visible unit is 1."""
UNITS = (3 * HALVED**2, 48, 24)
"""Visible units, and hidden units of each machine."""
RED = (50, 50)
SEED, IMAGES = 0, 8_000
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
        """Compute p(v = 1 | h) (B, V) of hidden units (B, H)."""
        return torch.sigmoid(h @ self.weight + self.visible)


class BeliefNet(nn.Module):
    """Two machines on bars of 12 x 12 px, and a linear layer that reads the class."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = BoltzmannMachine(UNITS[0], UNITS[1]), BoltzmannMachine(UNITS[1], UNITS[2])
        self.head = nn.Linear(UNITS[2], len(CATEGORIES))

    def forward(self, x: Tensor) -> Tensor:
        """Compute logits (B, 2) of inputs (B, 3, 24, 24) in [0, 1]."""
        logits: Tensor = self.head(self.second(self.first(look(x))))
        return logits

    def list_machines(self) -> dict[str, tuple[Tensor, Tensor, Tensor]]:
        """List weight, visible and hidden biases of each machine, by the name of its module."""
        return {name: (own.weight, own.visible, own.hidden) for name, own in self.named_children()
                if isinstance(own, BoltzmannMachine)}  # fmt: skip

    def draw(self, visible: Tensor) -> Tensor:
        """Return inputs (B, 3, 24, 24) of values (B, V) of the lowest visible units in [0, 1]."""
        pixels = (visible.view(-1, 3, HALVED, HALVED) * BRIGHT + GROUND) / 255
        return interpolate(pixels, scale_factor=2, mode="nearest")


def look(x: Tensor) -> Tensor:
    """Return the visible units (B, V) of inputs (B, 3, 24, 24): means of 2 x 2 px, 0 at the ground."""
    return ((avg_pool2d(x, 2) * 255 - GROUND) / BRIGHT).flatten(1)


def build() -> nn.Module:
    """Return the trained network: eval mode, no gradients for its weights.

    Raises
    ------
    DataError
        The weights are missing.
    """
    return load_weights(BeliefNet(), WEIGHTS, "data.bars.belief")


@torch.no_grad()
def fit_machine(
    data: Tensor,
    hidden: int,
    *,
    epochs: int = EPOCHS,
    batch: int = BATCH,
    rate: float = RATE,
    decay: float = DECAY,
    generator: torch.Generator,
) -> BoltzmannMachine:
    """Fit a machine to probabilities (N, V) of its visible units by persistent contrastive divergence, one step each.

    The rate falls linearly to 0. Negative particles go on from batch to batch (Tieleman 2008).
    """
    machine = BoltzmannMachine(data.shape[1], hidden)
    machine.weight.normal_(0, 0.05, generator=generator)
    machine.visible.copy_(torch.logit(data.mean(0).clamp(0.01, 0.99)))
    machine.hidden.fill_(-1.0)
    particles, done = _draw(data[:batch], generator), 0
    total = epochs * (len(data) // batch)
    for _ in range(epochs):
        for rows in torch.randperm(len(data), generator=generator).split(batch)[: len(data) // batch]:
            step = rate * (1 - done / total)
            seen, own = data[rows], machine(data[rows])
            particles = _draw(machine.down(_draw(machine(particles), generator)), generator)
            dreamt = machine(particles)
            machine.weight += step * ((own.T @ seen - dreamt.T @ particles) / len(rows) - decay * machine.weight)
            machine.visible += step * (seen.mean(0) - particles.mean(0))
            machine.hidden += step * (own.mean(0) - dreamt.mean(0))
            done += 1
    return machine


def train(images: Tensor, labels: Tensor, *, generator: torch.Generator) -> BeliefNet:
    """Fit both machines to inputs (N, 3, 24, 24), the upper one to what the lower one makes of them, and the head."""
    network, visible = BeliefNet(), look(images).clamp(0, 1)
    network.first = fit_machine(visible, UNITS[1], generator=generator)
    with torch.no_grad():
        inside = network.first(visible)
        network.second = fit_machine(inside, UNITS[2], generator=generator)
        top = network.second(inside)
    optimiser = torch.optim.LBFGS(network.head.parameters(), max_iter=200)
    for parameter in network.head.parameters():
        nn.init.zeros_(parameter)

    def step() -> Tensor:
        optimiser.zero_grad()
        loss = cross_entropy(network.head(top), labels) + 1e-4 * network.head.weight.square().sum()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    optimiser.step(step)  # type: ignore[no-untyped-call]
    return network.eval().requires_grad_(False)


def main() -> None:
    """Draw, train, store, and measure what was stored."""
    torch.set_num_threads(1)
    start = time.perf_counter()
    known = draw_bars(RED, IMAGES, SEED)
    network = train(read(known), list_labels(known), generator=torch.Generator().manual_seed(SEED))
    save_weights(network, WEIGHTS)
    facts = {"images": IMAGES, "red": list(RED), "epochs": EPOCHS, "seed": SEED}
    card: dict[str, Any] = {
        "name": "bars:belief",
        "units": list(UNITS),
        "training": facts | {"seconds": round(time.perf_counter() - start)},
        "held_out": {"images": HELD_OUT, "seed": HELD_OUT_SEED, "first_images": FIRST},
        "accuracy": measure_accuracy(build(), draw_bars(RED, HELD_OUT, HELD_OUT_SEED)),
    }
    CARD.write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(card, indent=1))  # noqa: T201


def _draw(probability: Tensor, generator: torch.Generator) -> Tensor:
    return (torch.rand(probability.shape, generator=generator) < probability).float()


if __name__ == "__main__":
    main()
