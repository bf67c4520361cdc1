"""``scenes:bayesian``: a network trained with dropout, whose draws at prediction time approximate a posterior.

Gal and Ghahramani 2016. `python foretell.py uncertainty --model scenes:bayesian` uses its own dropout.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from data.scenes.classifier import CATEGORIES, MEAN_COLOUR, WIDTHS, transforms
from data.scenes.zoo.effects import predict
from data.scenes.zoo.fitting import fit
from data.scenes.zoo.material import Material
from data.scenes.zoo.store import restore

__all__ = ["CATEGORIES", "MEAN_COLOUR", "build", "measure", "train", "transforms"]

TITLE = "Trained with dropout"
DIFFERENCE = (
    "Dropout after its four last convolutions and before its linear layer, in training, makes predictions under the "
    "same dropout draws from an approximate posterior. Without draws it predicts like any other network."
)
RATES = (0.0, 0.0, 0.1, 0.1, 0.2, 0.2)
"""Dropout after each convolution."""
HEAD_RATE = 0.3
SEED = 7
EPOCHS = 6
DRAWS = 20


class DropoutNet(nn.Module):
    """The layers of the built-in network with dropout between them; 0.32 M parameters."""

    def __init__(self) -> None:
        super().__init__()
        blocks = []
        for (inside, outside, stride), rate in zip(WIDTHS, RATES, strict=True):
            layers = [nn.Conv2d(inside, outside, 3, stride, padding=1, bias=False), nn.BatchNorm2d(outside), nn.ReLU()]
            blocks.append(nn.Sequential(*layers, *([nn.Dropout(rate)] if rate else [])))
        self.features = nn.Sequential(*blocks)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.dropout = nn.Dropout(HEAD_RATE)
        self.head = nn.Linear(WIDTHS[-1][1], len(CATEGORIES))

    def forward(self, x: Tensor) -> Tensor:
        """Compute logits (B, 16) of normalised inputs (B, 3, 96, 96)."""
        logits: Tensor = self.head(self.dropout(self.flatten(self.pool(self.features(x)))))
        return logits


def build() -> nn.Module:
    """Return the trained network."""
    return restore(DropoutNet(), "bayesian")


def train(material: Material) -> tuple[nn.Module, dict[str, Any]]:
    """Train on the images of the built-in network, with dropout."""
    images = material.training()
    network = DropoutNet()
    fit(network, images, epochs=EPOCHS, generator=torch.Generator().manual_seed(SEED))
    rates = {"after_convolutions": list(RATES), "before_the_head": HEAD_RATE}
    return network, {"images": len(images), "epochs": EPOCHS, "seed": SEED, "dropout": rates}


def measure(network: nn.Module, material: Material) -> dict[str, Any]:
    """Compare the mean of draws with the plain prediction, and the uncertainty of right and wrong predictions."""
    figures: dict[str, Any] = {"draws": DRAWS}
    for split in ("standard", "adversarial"):
        images = material.held_out(split, 2_000)  # type: ignore[arg-type]
        pixels, labels = images.pixels[:500], images.labels[:500]
        plain, draws = predict(network, pixels), draw(network, pixels)
        mean = draws.mean(0)
        shared = _entropy(mean) - _entropy(draws).mean(0)
        wrong = mean.argmax(1) != labels
        figures[split] = {
            "calibration_error": {"plain": _calibration(plain, labels), "mean_of_draws": _calibration(mean, labels)},
            "mutual_information": {"right": _mean(shared[~wrong]), "wrong": _mean(shared[wrong])},
        }
    return figures


def draw(network: nn.Module, pixels: Tensor, seed: int = 0) -> Tensor:
    """Return the probabilities (`DRAWS`, N, 16) of predictions under dropout; batch norms stay as they are."""
    dropouts = [module for module in network.modules() if isinstance(module, nn.Dropout)]
    for module in dropouts:
        module.train()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        draws = torch.stack([predict(network, pixels) for _ in range(DRAWS)])
    for module in dropouts:
        module.eval()
    return draws


def _entropy(probability: Tensor) -> Tensor:
    return torch.special.entr(probability).sum(-1)


def _mean(values: Tensor) -> float:
    return round(values.mean().item(), 4)


def _calibration(probability: Tensor, labels: Tensor, bins: int = 10) -> float:
    """Compute the expected calibration error (Guo et al. 2017, equation 3)."""
    confidence, predicted = probability.max(1)
    place = (confidence * bins).long().clamp(max=bins - 1)
    gaps = [(predicted[own] == labels[own]).float().mean() - confidence[own].mean() if own.any() else torch.tensor(0.0)
            for own in (place == k for k in range(bins))]  # fmt: skip
    weights = torch.stack([(place == k).float().mean() for k in range(bins)])
    return round((torch.stack(gaps).abs() * weights).sum().item(), 4)
