"""``scenes:student``: a small network distilled from the built-in one (Hinton, Vinyals and Dean 2015)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import kl_div, log_softmax, softmax

from data.scenes.classifier import CATEGORIES, MEAN_COLOUR, transforms
from data.scenes.classifier import build as build_teacher
from data.scenes.zoo.effects import predict, wilson
from data.scenes.zoo.fitting import fit
from data.scenes.zoo.material import Images, Material
from data.scenes.zoo.store import restore

__all__ = ["CATEGORIES", "MEAN_COLOUR", "build", "measure", "train", "transforms"]

TITLE = "Distilled from the built-in network"
DIFFERENCE = (
    "It has about a sixth of the built-in network's weights and never saw a label: it learnt that network's "
    "probabilities, mistakes included. The card says how often both predict the same class."
)
WIDTHS = ((3, 12, 2), (12, 24, 2), (24, 32, 1), (32, 40, 2), (40, 48, 1), (48, 56, 2))
"""Input channels, output channels, stride of each convolution."""
SEED = 8
EPOCHS = 4
TEMPERATURE = 3.0


class StudentNet(nn.Module):
    """Six 3 x 3 convolutions with batch norm, global average pooling, one linear layer; 0.06 M parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(*(_block(*widths) for widths in WIDTHS))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.head = nn.Linear(WIDTHS[-1][1], len(CATEGORIES))

    def forward(self, x: Tensor) -> Tensor:
        """Compute logits (B, 16) of normalised inputs (B, 3, 96, 96)."""
        logits: Tensor = self.head(self.flatten(self.pool(self.features(x))))
        return logits


def build() -> nn.Module:
    """Return the trained network."""
    return restore(StudentNet(), "student")


def train(material: Material) -> tuple[nn.Module, dict[str, Any]]:
    """Train on the built-in network's probabilities at a temperature, for scenes in usual and in random contexts."""
    sets = (material.training(), material.random_contexts())
    images = Images(*(torch.cat([getattr(one, field) for one in sets]) for field in ("pixels", "labels", "contexts")))
    network, teacher = StudentNet(), build_teacher()

    def loss(x: Tensor, index: Tensor) -> Tensor:  # noqa: ARG001 - the teacher's probabilities replace the labels
        with torch.no_grad():
            target = softmax(teacher(x).float() / TEMPERATURE, 1)
        student = log_softmax(network(x).float() / TEMPERATURE, 1)
        return TEMPERATURE**2 * kl_div(student, target, reduction="batchmean")

    fit(network, images, epochs=EPOCHS, generator=torch.Generator().manual_seed(SEED), loss=loss)
    return network, {"images": len(images), "epochs": EPOCHS, "seed": SEED, "temperature": TEMPERATURE}


def measure(network: nn.Module, material: Material) -> dict[str, Any]:
    """Measure fidelity: the share of held-out images for which both networks predict the same class."""
    teacher, shares = build_teacher(), {}
    for split in ("standard", "adversarial"):
        pixels = material.held_out(split).pixels  # type: ignore[arg-type]
        same = predict(network, pixels).argmax(1) == predict(teacher, pixels).argmax(1)
        count = int(same.sum())
        shares[split] = {"share": round(count / len(same), 4), "interval_95": wilson(count, len(same))}
    return {"same_class_as_the_built_in_network": shares}


def _block(inside: int, outside: int, stride: int) -> nn.Sequential:
    convolution = nn.Conv2d(inside, outside, 3, stride, padding=1, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outside), nn.ReLU())
