"""Train networks of the zoo and write their weights and cards: ``python -m data.scenes.zoo.train NAME ...``.

Everything is seeded and runs on one thread, so that sums have one order. ``--images FOLDER`` keeps the drawn images
for the next network; ``--card`` measures the stored weights again without training; ``--confirm`` trains, keeps the
stored weights, and records whether the new ones are equal, or as accurate, in ``retrained.json``.
"""

from __future__ import annotations

import argparse
import importlib
import time
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn
from tqdm import tqdm

import data
from data.scenes.classifier import build as build_scenes
from data.scenes.zoo.confirm import compare, write_record
from data.scenes.zoo.effects import measure_accuracy, measure_effects
from data.scenes.zoo.material import CHANGED, HELD_OUT, HELD_OUT_SEED, Images, Material
from data.scenes.zoo.store import PREFIX, read_card, store, write_card

SPLITS = ("standard", "adversarial")
FIRST = 80
"""The first held-out images of each split: the card counts their correct predictions, and a test counts again."""


def main(words: Sequence[str] | None = None) -> None:
    """Train each named network, store it, and measure what was stored."""
    names = [name.removeprefix(PREFIX) for name in data.CLASSIFIERS if name.startswith(PREFIX)]
    parser = argparse.ArgumentParser(
        prog="python -m data.scenes.zoo.train", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("names", nargs="+", choices=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--images", type=Path, help="folder that keeps the drawn images")
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--card", action="store_true", help="only measure the stored weights again")
    instead.add_argument("--confirm", action="store_true", help="train, and only compare with the stored weights")
    given = parser.parse_args(words)
    torch.set_num_threads(1)
    material, built_in = Material(given.images), None
    for name in given.names:
        member = importlib.import_module(f"{__package__}.{name}")
        if given.confirm:
            _confirm(name, member, material)
            continue
        training = read_card(name)["training"] if given.card else _train(name, member, material)
        built_in = built_in or measure_effects(build_scenes(), material.changes())
        card = make_card(name, member, training, material, built_in)
        write_card(name, card)
        tqdm.write(f"{name}: {card['training']['seconds']} s, {card['accuracy']}")


def make_card(
    name: str, member: ModuleType, training: dict[str, Any], material: Material, built_in: dict[str, Any]
) -> dict[str, Any]:
    """Measure the stored weights of a network; ``built_in`` are the effects on the built-in one, on the same images."""
    network, changes, held_out = member.build(), material.changes(), _hold_out(material)
    further = getattr(member, "measure", None)
    return {
        "name": f"{PREFIX}{name}",
        "title": member.TITLE,
        "difference": member.DIFFERENCE,
        "parameters": sum(p.numel() for p in network.parameters()),
        "training": training,
        "held_out": {"images_per_split": HELD_OUT, "seed": HELD_OUT_SEED, "changed_scenes": CHANGED},
        "accuracy": {split: measure_accuracy(network, images) for split, images in held_out.items()},
        "first_images": {split: count_correct(network, images) for split, images in held_out.items()},
        "effects": {"network": measure_effects(network, changes), "scenes": built_in},
        "further": further(network, material) if further else {},
    }


def count_correct(network: nn.Module, images: Images) -> int:
    """Count the correct predictions among the first `FIRST` images."""
    first = Images(images.pixels[:FIRST], images.labels[:FIRST], images.contexts[:FIRST])
    return round(measure_accuracy(network, first)["accuracy"] * FIRST)


def _train(name: str, member: ModuleType, material: Material) -> dict[str, Any]:
    network, facts = _fit(member, material)
    store(network, name, getattr(member, "EXACT", ()))
    return facts


def _confirm(name: str, member: ModuleType, material: Material) -> None:
    network, facts = _fit(member, material)
    record = compare(name, member, network, _hold_out(material)) | {"seconds": facts["seconds"]}
    write_record(name, record)
    tqdm.write(f"{name}: {'the same weights' if record['same_weights'] else 'other weights'}, {record['accuracy']}")


def _fit(member: ModuleType, material: Material) -> tuple[nn.Module, dict[str, Any]]:
    start = time.perf_counter()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(member.SEED)
        network, facts = member.train(material)
    return network, facts | {"seconds": round(time.perf_counter() - start)}


def _hold_out(material: Material) -> dict[str, Images]:
    return {split: material.held_out(split) for split in SPLITS}  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
