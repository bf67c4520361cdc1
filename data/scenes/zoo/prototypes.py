"""``scenes:prototypes``: a prototypical part network (ProtoPNet, Chen et al. 2019).

Its logits are weighted similarities to prototypes, each of which is a patch of a training image. The similarity of a
patch at squared distance d² is log((d² + 1) / (d² + ε)); a prototype's is the largest over the image's patches.

As in the paper, training starts from a trained network, here the built-in one. What follows its convolutions is fitted
to them first, then everything is trained together. Each cycle ends with the projection of prototypes onto patches of
training images and the fit of the last layer alone.
"""

from __future__ import annotations

from typing import Any

import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn.functional import conv2d, cross_entropy

from data.scenes.classifier import CATEGORIES, MEAN_COLOUR, WIDTHS, normalise, transforms
from data.scenes.classifier import build as build_scenes
from data.scenes.generator import USUAL_SHARE
from data.scenes.zoo.fitting import BATCH, RATE, Loss, fit
from data.scenes.zoo.material import Images, Material, draw_scene
from data.scenes.zoo.store import halve, read_card, restore

__all__ = ["CATEGORIES", "EXACT", "MEAN_COLOUR", "build", "similarity", "train", "transforms"]

TITLE = "Prototypical parts"
DIFFERENCE = (
    "It compares patches of an image with 80 prototypes, five for each category; each prototype is a patch of one "
    "training image, which the card names. Its patches are described by five convolutions of the built-in network, "
    "trained further."
)
EXACT = ("prototypes",)
"""Prototypes keep their precision, so that the distance to their own patch is 0 but for arithmetic."""
PER_CLASS = 5
SIZE = 64
"""Numbers that describe a patch."""
EPSILON = 1e-4
CLUSTER, SEPARATION, SPARSITY = 0.8, 0.08, 1e-4
"""Weights λ₁ and λ₂ of the costs, and of the last layer's L1 norm, as in the paper."""
OTHER = -0.5
"""First weight between a prototype and another category."""
SEED = 10
DEPTH = 5
"""Convolutions of the built-in network: the sixth would widen what a patch depends on from 39 to 55 px of 96."""
WARM_UP = 1
"""Epochs in which the convolutions are left as they are."""
CYCLES = ((3, RATE / 2), (1, RATE / 4), (1, RATE / 4))
"""Epochs and peak rate of everything but the last layer, which is fitted after the projection that ends each cycle."""
BORDER = 2
"""Patches nearest to the edge, from which no prototype starts."""
LAST_STEPS = 150


class PrototypeNet(nn.Module):
    """Five of the built-in network's convolutions, patches of 64 numbers, 80 prototypes, one linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(*(_block(*widths) for widths in WIDTHS[:DEPTH]))
        width = WIDTHS[DEPTH - 1][1]
        self.add_on = nn.Sequential(nn.Conv2d(width, SIZE, 1), nn.ReLU(), nn.Conv2d(SIZE, SIZE, 1), nn.Sigmoid())
        self.prototypes = nn.Parameter(torch.rand(PER_CLASS * len(CATEGORIES), SIZE))
        self.head = nn.Linear(len(self.prototypes), len(CATEGORIES), bias=False)
        own = owner_of(torch.arange(len(self.prototypes)))[None] == torch.arange(len(CATEGORIES))[:, None]
        self.head.weight.data.copy_(torch.where(own, 1.0, OTHER))

    def forward(self, x: Tensor) -> Tensor:
        """Compute logits (B, 16) of normalised inputs (B, 3, 96, 96)."""
        logits: Tensor = self.head(similarity(self.distances(x)).amax((2, 3)))
        return logits

    def describe(self, x: Tensor) -> Tensor:
        """Return the patches (B, 64, 12, 12) of inputs."""
        patches: Tensor = self.add_on(self.features(x))
        return patches

    def distances(self, x: Tensor) -> Tensor:
        """Return the squared distances (B, 80, 12, 12) between patches and prototypes."""
        return self.measure_distances(self.describe(x))

    def measure_distances(self, patches: Tensor) -> Tensor:
        """Return the squared distances (B, 80, 12, 12) between patches (B, 64, 12, 12) and prototypes."""
        product = conv2d(patches, self.prototypes[..., None, None])
        norms = (self.prototypes**2).sum(1).view(1, -1, 1, 1)
        return ((patches**2).sum(1, keepdim=True) - 2 * product + norms).relu()

    def compare(self, x: Tensor) -> Tensor:
        """Return the similarities (B, 80, 12, 12) of patches to prototypes."""
        return similarity(self.distances(x))

    def weigh(self) -> Tensor:
        """Return the weights (16, 80) of the largest similarities in the logits."""
        return self.head.weight

    def show_prototype(self, prototype: int) -> tuple[Image.Image, int, int]:
        """Return the training image that a prototype is from, and the row and column of its patch."""
        source = read_card("prototypes")["training"]["prototypes"][prototype]
        scene = draw_scene("training", 0, USUAL_SHARE, source["training_image"])
        return scene.image, source["row"], source["column"]


def similarity(squared: Tensor) -> Tensor:
    """Return log((d² + 1) / (d² + ε)) of squared distances (Chen et al. 2019, section 2.1)."""
    return torch.log((squared + 1) / (squared + EPSILON))


def owner_of(prototype: Tensor) -> Tensor:
    """Return the category of prototypes."""
    return prototype // PER_CLASS


def build() -> nn.Module:
    """Return the trained network."""
    return restore(PrototypeNet(), "prototypes")


def train(material: Material) -> tuple[nn.Module, dict[str, Any]]:
    """Warm up, then train in cycles; each ends with `push` and the fit of the last layer alone."""
    images, generator = material.training(), torch.Generator().manual_seed(SEED)
    network = start_from_built_in(images, generator)
    loss = make_loss(network, images.labels)
    network.head.requires_grad_(False)
    network.features.requires_grad_(False)
    fit(network, images, epochs=WARM_UP, generator=generator, loss=loss)
    network.features.requires_grad_(True)
    for epochs, rate in CYCLES:
        fit(network, images, epochs=epochs, generator=generator, loss=loss, rate=rate)
        halve(network)
        patches = push(network, images)
        _fit_last_layer(network, images)
    epochs = WARM_UP + sum(epochs for epochs, _ in CYCLES)
    return network, {"images": len(images), "epochs": epochs, "seed": SEED, "prototypes": patches}


def start_from_built_in(images: Images, generator: torch.Generator) -> PrototypeNet:
    """Return a network with the built-in one's convolutions, whose prototypes are random patches of their category."""
    network = PrototypeNet().eval()
    convolutions = build_scenes().features[:DEPTH]  # type: ignore[index]
    network.features.load_state_dict(convolutions.state_dict())  # type: ignore[union-attr]
    with torch.no_grad():
        for j in range(len(network.prototypes)):
            own = torch.nonzero(images.labels == owner_of(torch.tensor(j)))[:, 0]
            i = own[torch.randint(len(own), (1,), generator=generator)]
            patches = network.describe(normalise(images.pixels[i]))[0]
            row, column = torch.randint(BORDER, patches.shape[-1] - BORDER, (2,), generator=generator).tolist()
            network.prototypes[j] = patches[:, row, column]
    return network


def make_loss(network: PrototypeNet, labels: Tensor) -> Loss:
    """Make the loss of the paper (section 2.2): cross-entropy, and the costs of clusters and of their separation."""
    owners = owner_of(torch.arange(len(network.prototypes)))

    def loss(x: Tensor, index: Tensor) -> Tensor:
        features = network.features(x)
        with torch.autocast("cpu", enabled=False):  # small distances vanish in bfloat16
            distances = network.measure_distances(network.add_on(features.float())).flatten(2).amin(2)
            logits = network.head(similarity(distances))
        own = owners[None] == labels[index][:, None]
        cluster = torch.where(own, distances, torch.inf).amin(1).mean()
        separation = torch.where(own, torch.inf, distances).amin(1).mean()
        return cross_entropy(logits, labels[index]) + CLUSTER * cluster - SEPARATION * separation

    return loss


def push(network: PrototypeNet, images: Images) -> list[dict[str, Any]]:
    """Replace each prototype by the nearest patch of an image of its category; return where each one is from.

    No image gives two prototypes. Rows and columns are those of the grid of 12 x 12 patches.
    """
    nearest = torch.full((len(network.prototypes), len(images)), torch.inf)
    place = torch.zeros(nearest.shape, dtype=torch.long)
    with torch.no_grad():
        for index in torch.arange(len(images)).split(BATCH):
            least, where = network.distances(normalise(images.pixels[index])).flatten(2).min(2)
            nearest[:, index], place[:, index] = least.T, where.T
        patches, taken = [], set()
        for j in range(len(network.prototypes)):
            allowed = images.labels == owner_of(torch.tensor(j))
            allowed[sorted(taken)] = False
            i = int(torch.where(allowed, nearest[j], torch.inf).argmin())
            taken.add(i)
            row, column = divmod(int(place[j, i]), 12)
            network.prototypes[j] = network.describe(normalise(images.pixels[i : i + 1]))[0, :, row, column]
            patches.append({"category": CATEGORIES[j // PER_CLASS], "training_image": i, "row": row, "column": column})
    return patches


def _fit_last_layer(network: PrototypeNet, images: Images) -> None:
    """Fit the last layer alone, a convex problem, with an L1 penalty between prototypes and other categories."""
    with torch.no_grad():
        parts = [similarity(network.distances(normalise(part))).amax((2, 3)) for part in images.pixels.split(256)]
    similarities = torch.cat(parts)
    own = owner_of(torch.arange(len(network.prototypes)))[None] == torch.arange(len(CATEGORIES))[:, None]
    network.head.requires_grad_(True)
    optimiser = torch.optim.Adam(network.head.parameters(), 0.01)
    for _ in range(LAST_STEPS):
        penalty = SPARSITY * torch.where(own, 0.0, network.head.weight.abs()).sum()
        loss = cross_entropy(network.head(similarities), images.labels) + penalty
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    network.head.requires_grad_(False)


def _block(inside: int, outside: int, stride: int) -> nn.Sequential:
    convolution = nn.Conv2d(inside, outside, 3, stride, padding=1, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outside), nn.ReLU())
