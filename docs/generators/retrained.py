"""Section of ``docs/zoo.md`` on networks that were trained again, from ``data/scenes/zoo/retrained.json``."""

from __future__ import annotations

from typing import Any

from data.scenes.zoo.confirm import read_records
from data.scenes.zoo.store import PREFIX
from generators.markdown import format_table

TEXT = """\
## Training the networks again

`python -m data.scenes.zoo.train NAME --confirm` trains a network with its script, keeps the committed weights, and
compares. Everything is seeded and runs on one thread; still, sums differ in their last bits between processors and
versions of torch, and training amplifies that. The accuracy of the new weights is compared with the interval of the
committed ones, which is about the sampling of images and not of trainings.
"""
SPLITS = ("standard", "adversarial")


def render(cards: dict[str, dict[str, Any]]) -> list[str]:
    """Render the section: committed and new accuracy of the networks that were trained again."""
    records = read_records()
    again = {name: records[name.removeprefix(PREFIX)] for name in cards if name.removeprefix(PREFIX) in records}
    head = [
        "network",
        *(f"{split}, {which}" for split in SPLITS for which in ("committed", "again")),
        "weights",
        "torch",
    ]
    rows = [[f"`{name}`", *_compare(cards[name], one)] for name, one in again.items()]
    missing = ", ".join(f"`{name}`" for name in cards if name not in again)
    return [TEXT, *format_table(head, rows), "", *([f"Not trained again yet: {missing}.", ""] if missing else [])]


def _compare(card: dict[str, Any], record: dict[str, Any]) -> list[str]:
    cells = []
    for split in SPLITS:
        committed, again = card["accuracy"][split], record["accuracy"][split]["accuracy"]
        low, high = committed["interval_95"]
        outside = "" if low <= again <= high else ", outside"
        cells += [f"{committed['accuracy']:.1%} ({low:.1%} to {high:.1%})", f"{again:.1%}{outside}"]
    same = "the same" if record["same_weights"] else "different"
    return [*cells, same, f"{record['torch']}, {record['instructions']}"]
