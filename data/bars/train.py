"""Train the network ``bars`` and write its weights and card: ``python -m data.bars.train`` (15 s, one core)."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from data.bars.classifier import WEIGHTS, build
from data.bars.generator import COLOURS, ORIENTATIONS, Bar, render
from data.bars.network import EPOCHS, train, transforms
from data.bars.observer import best_observer
from data.scenes.zoo.effects import Z, wilson

CARD = Path(__file__).with_name("card.json")
SEED = 0
IMAGES = 8_000
RED = (98, 2)
"""Red bars per hundred horizontal and per hundred vertical ones, in training."""
HELD_OUT, HELD_OUT_SEED = 2_000, 1_000_003
SPLITS = {"like the training images": RED, "colour at random": (50, 50)}
FIRST = 200
"""The first held-out images: the card counts their correct predictions, and a test counts again."""


def main() -> None:
    """Draw, train, store, and measure what was stored."""
    torch.set_num_threads(1)
    start = time.perf_counter()
    known = draw_bars(RED, IMAGES, SEED)
    network = train(read(known), list_labels(known), generator=torch.Generator().manual_seed(SEED))
    save_file(network.state_dict(), WEIGHTS)
    training = {"images": IMAGES, "red": list(RED), "epochs": EPOCHS, "seed": SEED}
    card = make_card(build(), training | {"seconds": round(time.perf_counter() - start)})
    CARD.write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(card, indent=1))  # noqa: T201


def make_card(network: nn.Module, training: dict[str, Any]) -> dict[str, Any]:
    """Measure a network: accuracy on held-out bars, and the effect of the colour next to the best observer's."""
    held_out = {name: draw_bars(red, HELD_OUT, HELD_OUT_SEED) for name, red in SPLITS.items()}
    return {
        "name": "bars",
        "parameters": sum(p.numel() for p in network.parameters()),
        "training": training,
        "held_out": {"images_per_split": HELD_OUT, "seed": HELD_OUT_SEED},
        "accuracy": {name: measure_accuracy(network, images) for name, images in held_out.items()},
        "effect_of_red_on_horizontal": {
            "network": measure_effect(network, held_out["colour at random"]),
            "best_observer": round(best_observer(*RED)["best_causal"], 4),
        },
    }


def measure_accuracy(network: nn.Module, images: Sequence[Bar]) -> dict[str, Any]:
    """Measure the share of correct predictions with Wilson's 95% interval, and count those of the first images."""
    right = predict(network, read(images)).argmax(1) == list_labels(images)
    share = {"accuracy": round(float(right.float().mean()), 4), "interval_95": wilson(int(right.sum()), len(right))}
    return share | {"first_images": [int(right[:FIRST].sum()), FIRST]}


def measure_effect(network: nn.Module, images: Sequence[Bar]) -> list[float]:
    """Measure what red in place of green adds to the probability of "horizontal", with its 95% interval."""
    red, green = (predict(network, read(images, colour))[:, 0].double() for colour in COLOURS)
    mean, half = float((red - green).mean()), Z * float((red - green).std()) / len(images) ** 0.5
    return [round(value, 4) for value in (mean, mean - half, mean + half)]


def draw_bars(red: tuple[int, int], size: int, seed: int) -> list[Bar]:
    """Draw the bars of the image set ``bars`` of this seed, of which so many per hundred of each class are red."""
    shares = (red[0] / 100, red[1] / 100)
    return [render(seed << 32 | i, orientation=ORIENTATIONS[i % len(ORIENTATIONS)], red=shares) for i in range(size)]


def list_labels(images: Sequence[Bar]) -> Tensor:
    """List the class (N,) of each image."""
    return torch.tensor([ORIENTATIONS.index(one.orientation) for one in images])


def read(images: Sequence[Bar], colour: str | None = None) -> Tensor:
    """Read the images (N, 3, 24, 24), unchanged or all in one colour."""
    changed = images if colour is None else [render(i.seed, orientation=i.orientation, colour=colour) for i in images]
    return torch.stack([transforms(one.image) for one in changed])


def predict(network: nn.Module, inputs: Tensor) -> Tensor:
    """Return the probabilities (N, 2) of inputs (N, 3, 24, 24)."""
    with torch.inference_mode():
        return torch.cat([network(part).softmax(1) for part in inputs.split(256)])


if __name__ == "__main__":
    main()
