"""``scenes:federated``: one network trained by five clients that never share images (FedAvg, McMahan et al. 2017).

Each client sees scenes in two of the ten contexts only. In each round every client trains the server's weights on its
own images, and the server averages: w ← Σ_k (n_k / n) w_k.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from tqdm import tqdm

from data.scenes.classifier import CATEGORIES, MEAN_COLOUR, SceneNet, normalise, transforms
from data.scenes.contexts import CONTEXTS
from data.scenes.zoo.fitting import Augmenter
from data.scenes.zoo.material import Images, Material
from data.scenes.zoo.store import restore

__all__ = ["CATEGORIES", "MEAN_COLOUR", "average", "build", "train", "train_client", "transforms"]

TITLE = "Federated averaging"
DIFFERENCE = (
    "Five clients trained it together, each on scenes in two contexts that no other client saw; only weights were "
    "shared and averaged."
)
SEED = 6
CLIENTS = 5
IMAGES = 12_000
ROUNDS = 9
LOCAL_EPOCHS = 1
BATCH = 64
RATE, MOMENTUM = 0.05, 0.9
State = dict[str, Tensor]


def build() -> nn.Module:
    """Return the trained network."""
    return restore(SceneNet(), "federated")


def train(material: Material) -> tuple[nn.Module, dict[str, Any]]:
    """Run federated averaging over the training images with randomised contexts, divided by context."""
    images = material.random_contexts(IMAGES)
    clients = divide(images)
    generator = torch.Generator().manual_seed(SEED)
    change, network = Augmenter(generator), SceneNet()
    for turn in tqdm(range(ROUNDS), desc="Rounds", unit="round", mininterval=5):
        rate = RATE * (1 + math.cos(math.pi * turn / ROUNDS)) / 2
        states = []
        for index in clients:
            local = copy.deepcopy(network).train()
            inputs = [(images.pixels[part], images.labels[part]) for part in _shuffle(index, generator)]
            train_client(local, [(change(normalise(x)), y) for x, y in inputs], rate, LOCAL_EPOCHS)
            states.append(local.state_dict())
        network.load_state_dict(average(states, [len(index) for index in clients]))
    settings = {"images": len(images), "clients": CLIENTS, "rounds": ROUNDS, "local_epochs": LOCAL_EPOCHS}
    named = {f"client {k + 1}": names for k, names in enumerate(_contexts())}
    return network.eval(), settings | {"batch": BATCH, "seed": SEED, "contexts": named}


def divide(images: Images) -> list[Tensor]:
    """Return the indices of each client's images: those in its contexts."""
    names = list(CONTEXTS)
    return [
        torch.isin(images.contexts, torch.tensor([names.index(name) for name in own])).nonzero()[:, 0]
        for own in _contexts()
    ]


def train_client(network: nn.Module, batches: Sequence[tuple[Tensor, Tensor]], rate: float, epochs: int) -> None:
    """Train a client's copy in place: E epochs of stochastic gradient descent with momentum, which begins at 0."""
    optimiser = torch.optim.SGD([p for p in network.parameters() if p.requires_grad], rate, MOMENTUM)
    for _ in range(epochs):
        for x, labels in batches:
            low = x.dtype == torch.float32
            with torch.autocast("cpu", torch.bfloat16, enabled=low):
                logits = network(x)
            loss = cross_entropy(logits.float() if low else logits, labels)
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()


def average(states: Sequence[State], sizes: Sequence[int]) -> State:
    """Average the weights of clients by their numbers of images (McMahan et al. 2017, algorithm 1); counters add up."""
    total = sum(sizes)
    return {
        key: sum(state[key] * (size / total) for state, size in zip(states, sizes, strict=True))  # type: ignore[misc]
        if states[0][key].is_floating_point()
        else states[0][key]
        for key in states[0]
    }


def _contexts() -> list[list[str]]:
    names = list(CONTEXTS)
    return [names[k::CLIENTS] for k in range(CLIENTS)]


def _shuffle(index: Tensor, generator: torch.Generator) -> list[Tensor]:
    return list(index[torch.randperm(len(index), generator=generator)].split(BATCH))
