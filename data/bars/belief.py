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
from torch.nn.functional import avg_pool2d, interpolate

from data.bars.classifier import MEAN_COLOUR
from data.bars.generator import GROUND, SIZE
from data.bars.network import CATEGORIES, transforms
from data.bars.train import FIRST, HELD_OUT, HELD_OUT_SEED, draw_bars, list_labels, measure_accuracy, read
from data.boltzmann import EPOCHS, BoltzmannMachine, fit_head, fit_machine
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


def train(images: Tensor, labels: Tensor, *, generator: torch.Generator) -> BeliefNet:
    """Fit both machines to inputs (N, 3, 24, 24), the upper one to what the lower one makes of them, and the head."""
    network, visible = BeliefNet(), look(images).clamp(0, 1)
    network.first = fit_machine(visible, UNITS[1], generator=generator)
    with torch.no_grad():
        inside = network.first(visible)
        network.second = fit_machine(inside, UNITS[2], generator=generator)
        top = network.second(inside)
    fit_head(network.head, top, labels)
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


if __name__ == "__main__":
    main()
