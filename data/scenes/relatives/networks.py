"""Small relatives of the built-in network, which differ in attributes that are known: architecture, training and data.

They read scenes that are shrunk to 24 x 24 px, so that one trains in seconds.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from data.scenes.classifier import CATEGORIES, normalise, read_pixels
from data.scenes.pen import SIZE

SIDE = 24
"""Side of a relative's input, px."""
ATTRIBUTES: Mapping[str, tuple[str, ...]] = {
    "activation": ("relu", "elu", "tanh"),
    "pooling": ("max", "mean", "stride"),
    "layers": ("1", "2", "3"),
    "width": ("8", "16"),
    "kernel": ("3", "5"),
    "batch norm": ("no", "yes"),
    "dropout": ("no", "yes"),
    "optimiser": ("sgd", "adam"),
    "images": ("600", "1200"),
    "mirrored": ("no", "yes"),
    "contexts": ("usual", "mixed"),
}
"""What relatives differ in, with the values.

``layers`` are convolutions; ``contexts`` are those of the training images, mixed where half are drawn at random.
"""
STEPS, BATCH = 200, 64
RATES = {"sgd": 0.02, "adam": 0.002}
DROPPED = 0.5
ACTIVATIONS = {"relu": nn.ReLU, "elu": nn.ELU, "tanh": nn.Tanh}
Values = Mapping[str, str]
"""The value of each attribute of one relative."""


def build_relative(values: Values) -> nn.Sequential:
    """Build an untrained relative: normalised inputs (B, 3, 24, 24) to logits (B, 16)."""
    width, side, inside = int(values["width"]), SIDE, 3
    layers: list[nn.Module] = []
    for _ in range(int(values["layers"])):
        layers += _list_block(inside, width, values)
        inside, side = width, side // 2
    dropout = [nn.Dropout(DROPPED)] if values["dropout"] == "yes" else []
    return nn.Sequential(*layers, nn.Flatten(), *dropout, nn.Linear(width * side**2, len(CATEGORIES)))


def _list_block(inside: int, outside: int, values: Values) -> list[nn.Module]:
    """List the parts of a convolution block, which halves the side."""
    kernel, strided = int(values["kernel"]), values["pooling"] == "stride"
    normed = values["batch norm"] == "yes"
    block: list[nn.Module] = [nn.Conv2d(inside, outside, kernel, 1 + strided, kernel // 2, bias=not normed)]
    block += [nn.BatchNorm2d(outside)] if normed else []
    pools = {"max": [nn.MaxPool2d(2)], "mean": [nn.AvgPool2d(2)], "stride": []}
    return [*block, ACTIVATIONS[values["activation"]](), *pools[values["pooling"]]]


def train_relative(values: Values, inputs: Tensor, labels: Tensor, *, generator: torch.Generator) -> nn.Module:
    """Train a relative on normalised inputs (N, 3, 24, 24) with their categories (N,); return it in eval mode.

    Everything random is drawn from ``generator``: the weights, the batches, mirroring and dropout.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(torch.randint(1 << 30, (), generator=generator)))
        network = build_relative(values)
        rate = RATES[values["optimiser"]]
        steps: dict[str, torch.optim.Optimizer] = {
            "sgd": torch.optim.SGD(network.parameters(), rate, momentum=0.9, weight_decay=5e-4),
            "adam": torch.optim.Adam(network.parameters(), rate),
        }
        optimiser = steps[values["optimiser"]]
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=STEPS, cycle_momentum=False)
        for _ in range(STEPS):
            rows = torch.randint(len(labels), (BATCH,))
            x = inputs[rows]
            if values["mirrored"] == "yes":
                x = torch.where(torch.rand(BATCH, 1, 1, 1) < 0.5, x.flip(3), x)
            optimiser.zero_grad()
            cross_entropy(network(x), labels[rows]).backward()
            optimiser.step()
            schedule.step()
    return network.eval().requires_grad_(False)


def shrink(pixels: Tensor) -> Tensor:
    """Shrink scenes (B, 3, 96, 96) uint8 to normalised inputs (B, 3, 24, 24), each pixel a mean of 4 x 4."""
    return torch.nn.functional.avg_pool2d(normalise(pixels), SIZE // SIDE)


def transforms(image: Image.Image) -> Tensor:
    """Transform an image to a relative's input (3, 24, 24); other sizes than that of the scenes are resized."""
    return shrink(read_pixels(image))[0]
