"""A small network that tells horizontal bars from vertical ones, trained in seconds on a CPU."""

from __future__ import annotations

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from data.bars.generator import ORIENTATIONS, SIZE

CATEGORIES = list(ORIENTATIONS)
EPOCHS = 10
BATCH = 64
PEAK_RATE = 5e-3


class BarNet(nn.Module):
    """Two convolutions and two linear layers; 10 thousand parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.ReLU()
        )
        self.flatten = nn.Flatten()
        self.hidden = nn.Sequential(nn.Linear(16 * (SIZE // 4) ** 2, 16), nn.ReLU())
        self.head = nn.Linear(16, len(ORIENTATIONS))

    def forward(self, x: Tensor) -> Tensor:
        """Compute logits (B, 2) of inputs (B, 3, 24, 24) in [0, 1]."""
        logits: Tensor = self.head(self.hidden(self.flatten(self.features(x))))
        return logits


def transforms(image: Image.Image) -> Tensor:
    """Transform an image to (3, 24, 24) float32 in [0, 1]; other sizes are resized."""
    image = image.convert("RGB")
    if image.size != (SIZE, SIZE):
        image = image.resize((SIZE, SIZE), Image.Resampling.BILINEAR)
    return torch.from_numpy(np.array(image)).permute(2, 0, 1).float() / 255


def train(inputs: Tensor, labels: Tensor, *, generator: torch.Generator, epochs: int = EPOCHS) -> BarNet:
    """Fit a fresh network to inputs (N, 3, 24, 24) and labels (N,) with AdamW on a one-cycle rate."""
    net = BarNet()
    for layer in net.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu", generator=generator)
            nn.init.zeros_(layer.bias)  # type: ignore[arg-type]
    optimiser = torch.optim.AdamW(net.parameters(), PEAK_RATE)
    steps = epochs * -(-len(labels) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, PEAK_RATE, total_steps=steps, pct_start=0.2)
    for _ in range(epochs):
        for batch in torch.randperm(len(labels), generator=generator).split(BATCH):
            loss = cross_entropy(net(inputs[batch]), labels[batch])
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            schedule.step()
    return net.eval().requires_grad_(False)
