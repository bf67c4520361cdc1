"""Cost of a hundred predictions under noise, in the network's own bare forward passes of as many images.

``python -m benchmarks.uncertainty [--networks resnet50] [--passes 100]``. Bare passes run on as many copies of the
image at once as the memory budget allows: ``of_bare`` compares with the network as it came, ``of_fused`` with the
program that `core.network.inference` makes of it to predict. A sampler with noise in late layers computes the earlier
ones once; one with noise in every layer pays for the random numbers. Weights are random.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from tqdm import tqdm

from benchmarks.machine import arguments, hand_over, in_turns
from benchmarks.networks import make_random_classifier
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.network.device import chunk_size
from core.uncertainty import SAMPLERS

NETWORKS = ("mobilenet_v2", "resnet18", "resnet50")
SIX = "all layers, six images"
"""A sixth of the passes of six images at once (a chunk), which share the random draws for the weights."""
SETTINGS: dict[str, dict[str, dict[str, Any]]] = {
    "mc_dropout": {"own dropout": {}},
    "inserted_dropout": {"last layer": {"last": 1}, "last five layers": {"last": 5}, "all layers": {}},
    "multiplicative_noise": {"last layer": {"last": 1}, "all layers": {}},
    "drop_connect": {"last layer": {"last": 1}, "all layers": {}, SIX: {}},
    "additive_noise": {"last layer": {"last": 1}, "all layers": {}, SIX: {}},
}
ROUNDS = 1
"""Rounds, after one to warm up: a hundred passes are long enough."""


def measure(networks: list[str], passes: int) -> dict[str, Any]:
    """Measure rows by network, sampler and noise; ``of_...`` is the time relative to other passes."""
    rows: dict[str, Any] = {name: {} for name in networks}
    work = [(name, sampler, where) for name in networks for sampler, places in SETTINGS.items() for where in places]
    for name, sampler, where in tqdm(work, unit="sampler"):
        asked = partial(SAMPLERS[sampler], **SETTINGS[sampler][where])
        rows[name].setdefault(sampler, {})[where] = _row(
            make_random_classifier(name), asked, passes, 6 if where == SIX else 1
        )
    return rows


def _row(classifier: Classifier, sampler: Callable[..., Tensor], passes: int, count: int) -> dict[str, Any] | str:
    images = torch.randn(count, *classifier.input_shape, generator=torch.Generator().manual_seed(1))
    all_passes = images.expand(passes // count, *images.shape).flatten(0, 1)
    asked = partial(sampler, classifier, images, passes=passes // count)
    try:
        asked()
    except ForetellError as error:
        return str(error)
    with classifier.exclusive() as module:
        work = {"sampler": asked, "bare": partial(_bare, module, all_passes)}
        work["fused"] = partial(classifier.logits, all_passes)
        seconds = in_turns(work, ROUNDS)
    of = {f"of_{name}": round(seconds["sampler"] / seconds[name], 3) for name in ("bare", "fused")}
    return {"seconds": {name: round(value, 3) for name, value in seconds.items()}} | of


@torch.inference_mode()
def _bare(module: nn.Module, images: Tensor) -> None:
    device = next(module.parameters()).device
    for part in images.split(chunk_size(images[0], device)):
        module(part.to(device))


def main() -> None:
    parser = arguments("uncertainty")
    parser.add_argument("--networks", default=",".join(NETWORKS), help="torchvision names, with commas")
    parser.add_argument("--passes", type=int, default=100)
    given = parser.parse_args()
    hand_over("uncertainty", given, lambda: measure(given.networks.split(","), given.passes))


if __name__ == "__main__":
    main()
