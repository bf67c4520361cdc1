"""Train the relatives and write their predictions: ``python -m data.scenes.relatives.train`` (20 minutes on one core).

Writes ``outputs.npz``, ``card.json`` and the weights of one more relative, ``example.safetensors``, next to this file.
Everything is seeded and runs on one thread, so that sums have one order. ``--images FOLDER`` keeps the drawn images,
``--networks FILE`` the weights of the relatives, from which `inquiry.layers.training.craft_queries` crafts images.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from tqdm import tqdm

from data.scenes.relatives.networks import ATTRIBUTES, BATCH, STEPS, Values, build_relative, shrink, train_relative
from data.scenes.relatives.outputs import EACH, list_query_labels, open_query, store
from data.scenes.shapes import CATEGORIES
from data.scenes.zoo.material import Material, stack
from data.weights import save_weights

FOLDER = Path(__file__).parent
CARD = FOLDER / "card.json"
RELATIVES = 400
EXAMPLE = RELATIVES
"""Number of the relative whose weights are kept: its predictions are not among those of the others."""
MOST_IMAGES = int(max(ATTRIBUTES["images"], key=int))


def main(words: Sequence[str] | None = None) -> None:
    """Draw the images, train the relatives, and store what they predict."""
    parser = argparse.ArgumentParser(prog="python -m data.scenes.relatives.train",
                                     description=(__doc__ or "").splitlines()[0])  # fmt: skip
    parser.add_argument("--images", type=Path, help="folder that keeps the drawn images")
    parser.add_argument("--networks", type=Path, help="file that keeps the relatives' weights")
    given = parser.parse_args(words)
    torch.set_num_threads(1)
    inputs, labels = draw_inputs(Material(given.images))
    queries = shrink(stack([np.asarray(open_query(k)) for k in range(2 * EACH)]))
    start, relatives, networks = time.perf_counter(), [], []
    for number in tqdm(range(RELATIVES), desc="Training", unit="network"):
        network, values = train_numbered(number, inputs, labels)
        relatives.append((number_values(values), _predict(network, queries)))
        networks.append(network)
    seconds = time.perf_counter() - start
    if given.networks is not None:
        save_networks(networks, given.networks)
    store(np.array([values for values, _ in relatives]), np.stack([log_p for _, log_p in relatives]))
    network, values = train_numbered(EXAMPLE, inputs, labels)
    save_weights(network, FOLDER / "example.safetensors")
    right = np.stack([log_p.argmax(1) for _, log_p in relatives]) == list_query_labels()
    card = {
        "relatives": RELATIVES,
        "training": {"steps": STEPS, "batch": BATCH, "seconds": round(seconds)},
        "accuracy": {split: describe_accuracy(right[:, part]) for split, part in
                     (("standard", slice(EACH)), ("adversarial", slice(EACH, None)))},
        "example": dict(values),
    }  # fmt: skip
    CARD.write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")


def draw_inputs(material: Material) -> tuple[dict[str, Tensor], Tensor]:
    """Draw the training images: inputs (N, 3, 24, 24) by their contexts, and the categories (N,) of either."""
    usual, random = material.training(MOST_IMAGES), material.random_contexts(MOST_IMAGES)
    turns = torch.arange(MOST_IMAGES) // len(CATEGORIES) % 2 == 0
    mixed = torch.where(turns[:, None, None, None], usual.pixels, random.pixels)
    return {"usual": shrink(usual.pixels), "mixed": shrink(mixed)}, usual.labels


def train_numbered(number: int, inputs: dict[str, Tensor], labels: Tensor) -> tuple[nn.Module, Values]:
    """Draw the attributes of a relative from its number, and train it."""
    generator = torch.Generator().manual_seed(number)
    values = draw_values(generator)
    count = int(values["images"])
    return train_relative(values, inputs[values["contexts"]][:count], labels[:count], generator=generator), values


def save_networks(networks: Sequence[nn.Module], file: Path) -> None:
    """Write the weights of all relatives into one file."""
    save_file({f"{number}/{name}": value for number, network in enumerate(networks)
               for name, value in network.state_dict().items()}, file)  # fmt: skip


def read_networks(file: Path) -> list[nn.Module]:
    """Read what `save_networks` wrote: the relatives by their numbers, in eval mode, no gradients for their weights."""
    states: dict[int, dict[str, Tensor]] = {}
    for key, value in load_file(file).items():
        number, name = key.split("/")
        states.setdefault(int(number), {})[name] = value
    networks = []
    for number in sorted(states):
        network = build_relative(draw_values(torch.Generator().manual_seed(number)))
        network.load_state_dict(states[number])
        networks.append(network.eval().requires_grad_(False))
    return networks


def draw_values(generator: torch.Generator) -> Values:
    """Draw a value of each attribute, all alike."""
    return {name: values[int(torch.randint(len(values), (), generator=generator))]
            for name, values in ATTRIBUTES.items()}  # fmt: skip


def number_values(values: Values) -> list[int]:
    """Return the number of the value of each attribute."""
    return [ATTRIBUTES[name].index(value) for name, value in values.items()]


def describe_accuracy(right: np.ndarray) -> dict[str, float]:
    """Return the least, the median and the highest accuracy of networks (R, n)."""
    each = right.mean(1)
    return {"least": round(float(each.min()), 3), "median": round(float(np.median(each)), 3),
            "highest": round(float(each.max()), 3)}  # fmt: skip


def _predict(network: nn.Module, inputs: Tensor) -> np.ndarray:
    with torch.inference_mode():
        log_p: np.ndarray = network(inputs).log_softmax(1).numpy()
    return log_p


if __name__ == "__main__":
    main()
