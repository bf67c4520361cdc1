"""Whether training a network of the zoo again gives the committed weights, or at least their accuracy.

Training is seeded and runs on one thread, but sums differ in their last bits between processors and versions of torch,
and training amplifies that.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn

from data.scenes.zoo.effects import measure_accuracy
from data.scenes.zoo.material import Images
from data.scenes.zoo.store import hash_weights, read_weights, round_weights

RETRAINED = Path(__file__).with_name("retrained.json")
"""By network, what training it again gave; each record names the committed weights that it was compared with."""


def compare(name: str, member: ModuleType, network: nn.Module, held_out: dict[str, Images]) -> dict[str, Any]:
    """Compare a network that was trained again with the committed weights, after the same rounding.

    Returns
    -------
    dict
        Whether the weights are equal to the bit, the accuracy on each split, and the software.
    """
    rounded, stored = round_weights(network, getattr(member, "EXACT", ())), read_weights(name)
    same = rounded.keys() == stored.keys() and all(torch.equal(rounded[key], stored[key]) for key in stored)
    again = member.build()
    again.load_state_dict(rounded)
    return {
        "weights_sha256": hash_weights(name),
        "same_weights": same,
        "accuracy": {split: measure_accuracy(again, images) for split, images in held_out.items()},
        "torch": torch.__version__,
        "instructions": torch.backends.cpu.get_cpu_capability(),
    }


def read_records() -> dict[str, dict[str, Any]]:
    """Return the records of networks that were trained again, by name."""
    records: dict[str, dict[str, Any]] = (
        json.loads(RETRAINED.read_text(encoding="utf-8")) if RETRAINED.is_file() else {}
    )
    return records


def write_record(name: str, record: dict[str, Any]) -> None:
    """Write the record of one network and keep the others."""
    records = read_records() | {name: record}
    RETRAINED.write_text(json.dumps(dict(sorted(records.items())), indent=1) + "\n", encoding="utf-8")
