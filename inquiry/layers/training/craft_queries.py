"""Craft images whose predictions disclose how a network was built.

``python -m inquiry.layers.training.craft_queries NETWORKS``, with the file that
``python -m data.scenes.relatives.train --networks NETWORKS`` writes. Writes ``crafted.npz`` next to the relatives'
other predictions, and how it was made into their card. All is seeded and runs on one thread, and what is crafted for
one output does not depend on the others: ``--only ranking`` leaves the rest as it is.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from tqdm import tqdm

from core.training.crafting import CraftingSettings, Network, craft_queries, craft_single_queries, encode_networks
from core.training.metamodel import OUTPUTS, MetamodelSettings, Output, train_metamodels
from data.scenes.classifier import normalise
from data.scenes.relatives import crafted
from data.scenes.relatives.networks import ATTRIBUTES, SIDE
from data.scenes.relatives.outputs import EACH, open_query
from data.scenes.relatives.train import CARD, RELATIVES, draw_values, number_values, read_networks
from data.scenes.zoo.material import stack

SINGLE = CraftingSettings(epochs=60)
SEVERAL = CraftingSettings(epochs=20)
METAMODELS = MetamodelSettings(folds=crafted.PARTS)
EVERY = 5
"""Of the scenes that relatives are asked about, every fifth is one to start crafting from."""
COUNTS = tuple(len(names) for names in ATTRIBUTES.values())
SINGLE_NAME = "single"


def main(words: Sequence[str] | None = None) -> None:
    """Craft the images, ask the relatives about them, and store both."""
    parser = argparse.ArgumentParser(prog="python -m inquiry.layers.training.craft_queries",
                                     description=(__doc__ or "").splitlines()[0])  # fmt: skip
    parser.add_argument("networks", type=Path, help="file of data.scenes.relatives.train --networks")
    parser.add_argument("--only", nargs="+", choices=[SINGLE_NAME, *OUTPUTS], default=[SINGLE_NAME, *OUTPUTS],
                        help="what to craft; the rest stays as it is")  # fmt: skip
    given = parser.parse_args(words)
    torch.set_num_threads(1)
    networks = [wrap_network(network) for network in read_networks(given.networks)]
    values = torch.tensor([number_values(draw_values(torch.Generator().manual_seed(k))) for k in range(RELATIVES)])
    scenes = shrink_scenes()
    card = json.loads(CARD.read_text(encoding="utf-8"))
    accuracy, seconds = (card.get("crafting", {}).get(key, {}) for key in ("accuracy", "seconds"))
    plain = scenes[::EVERY].expand(crafted.PARTS, -1, -1, -1, -1)
    for name in given.only:
        start = time.perf_counter()
        if name == SINGLE_NAME:
            single, predicted = craft_single(networks, values, scenes)
            crafted.store_single(to_bytes(single), predicted)
        else:
            queries = craft_several(networks, values, scenes, name)
            crafted.store_several(name, to_bytes(queries), predict_parts(networks, queries))
            accuracy[name] = {"scenes": measure_accuracy(networks, values, plain, name),
                              "crafted": measure_accuracy(networks, values, queries, name)}  # fmt: skip
        seconds[name] = round(time.perf_counter() - start)
    card["crafting"] = {
        "single": {"epochs": SINGLE.epochs, "rate": SINGLE.rate},
        "several": {"epochs": SEVERAL.epochs, "rate": SEVERAL.rate, "rounds": SEVERAL.rounds},
        "accuracy": {output: accuracy[output] for output in OUTPUTS if output in accuracy},
        "seconds": {name: seconds[name] for name in (SINGLE_NAME, *OUTPUTS) if name in seconds},
    }
    CARD.write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")


def wrap_network(network: nn.Module) -> Network:
    """Make a relative read images (B, 3, 24, 24) of values from 0 to 1."""
    network = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload] # a third faster

    def predict(images: Tensor) -> Tensor:
        logits: Tensor = network(normalise(255 * images).contiguous(memory_format=torch.channels_last))
        return logits

    return predict


def shrink_scenes() -> Tensor:
    """Return the scenes (n, 3, 24, 24) that the relatives are asked about, with values from 0 to 1."""
    pixels = stack([np.asarray(open_query(k)) for k in range(2 * EACH)]).float() / 255
    return torch.nn.functional.avg_pool2d(pixels, pixels.shape[-1] // SIDE)


def craft_single(networks: Sequence[Network], values: Tensor, scenes: Tensor) -> tuple[Tensor, np.ndarray]:
    """Craft an image for each attribute (A, 3, 24, 24) with all relatives.

    Also return the classes (R, A) that relatives predict of such images, crafted without their part.
    """
    parts = torch.from_numpy(crafted.number_parts(len(networks)))
    left_out = torch.stack([parts == part for part in range(-1, crafted.PARTS)])  # the first leaves out none
    queries = craft_single_queries(networks, values, left_out, scenes[: len(ATTRIBUTES)], SINGLE,
                                   generator=torch.Generator().manual_seed(0), progress=Bar())  # fmt: skip
    held_out = predict_parts(networks, queries[1:]).argmax(3)
    own = held_out[parts.numpy(), np.arange(len(networks))]
    return queries[0], own.astype(np.uint8)


def craft_several(networks: Sequence[Network], values: Tensor, scenes: Tensor, output: Output) -> Tensor:
    """Craft images (F, n, 3, 24, 24) for networks that disclose ``output``, in turn with metamodels."""
    parts = torch.from_numpy(crafted.number_parts(len(networks)))
    return craft_queries(networks, values, COUNTS, parts, scenes[::EVERY], output, SEVERAL, METAMODELS,
                         floor=crafted.FLOOR, generator=torch.Generator().manual_seed(0), progress=Bar())  # fmt: skip


def measure_accuracy(networks: Sequence[Network], values: Tensor, queries: Tensor, output: Output) -> float:
    """Return the mean accuracy of metamodels about relatives that were left out, by images (F, n, 3, 24, 24)."""
    features = encode_networks(networks, queries.flatten(0, 1), crafted.PARTS, output, crafted.FLOOR)
    parts = torch.from_numpy(crafted.number_parts(len(networks)))
    trained = train_metamodels(features, values, COUNTS, METAMODELS, generator=torch.Generator().manual_seed(0),
                               parts=parts)  # fmt: skip
    correct = [own.argmax(1) == values[:, a] for a, own in enumerate(trained.held_out)]
    return round(float(torch.stack(correct).float().mean()), 3)


def predict_parts(networks: Sequence[Network], queries: Tensor) -> np.ndarray:
    """Return the log probabilities (F, R, n, K) of networks for images (F, n, 3, 24, 24)."""
    with torch.inference_mode():
        log_p = torch.stack([network(queries.flatten(0, 1)) for network in networks]).log_softmax(2)
    nested: np.ndarray = log_p.reshape(len(log_p), *queries.shape[:2], -1).transpose(0, 1).numpy()
    return nested


def to_bytes(queries: Tensor) -> np.ndarray:
    """Return images (..., 3, h, w) of values from 0 to 1 as bytes (..., h, w, 3)."""
    pixels: np.ndarray = (queries * 255).round().byte().movedim(-3, -1).numpy()
    return pixels


class Bar:
    """Show the progress of crafting."""

    def __init__(self) -> None:
        self._bar: tqdm[None] = tqdm(unit="")

    def __call__(self, done: int, total: int, what: str) -> None:
        """Show how many of how many are done."""
        self._bar.total = total
        self._bar.set_description(what)
        self._bar.update(done - self._bar.n)


if __name__ == "__main__":
    main()
