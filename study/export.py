"""The answers as a long CSV file, and beside it a description of every column."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from study.service import Mode, Service

DICTIONARY: dict[str, dict[str, str]] = {
    "participant": {"meaning": "pseudonym of the person, the same in every row of a person"},
    "mode": {"meaning": "live: a participant; preview: the researcher looking; sim: a simulated person"},
    "condition": {"meaning": "condition the person was allocated to"},
    "saliency": {"meaning": "whether the condition shows saliency maps", "values": "0, 1"},
    "examples": {"meaning": "whether the condition shows examples", "values": "0, 1"},
    "trial": {"meaning": "place of the trial in this person's order, practice not counted", "unit": "1 is the first"},
    "item": {"meaning": "id of the trial in the frozen study"},
    "trial_type": {"meaning": "kind of trial", "values": "adv_incorrect, std_incorrect, std_correct"},
    "category": {"meaning": "what the AI chose (the target category)"},
    "alternative": {"meaning": "the other option"},
    "truth": {"meaning": "what the picture shows"},
    "choice": {"meaning": "what the person predicted the AI to choose"},
    "correct": {"meaning": "whether the person foretold the AI: choice equals category", "values": "0, 1"},
    "rt_ms": {
        "meaning": "from the second frame after the pictures were ready to the answer, on the browser's clock",
        "unit": "ms",
    },
    "input": {"meaning": "how the answer was given", "values": "key, mouse, touch, sim"},
    "resumed": {"meaning": "whether the page was reloaded while this trial was on the screen", "values": "0, 1"},
    "shown_sha256": {
        "meaning": "SHA-256 over the SHA-256 of every picture shown, one a line: target, map, left, right"
    },
    "study_hash": {"meaning": "SHA-256 of the frozen study the person took"},
    "received_at": {"meaning": "when the server received the answer", "unit": "ISO 8601, UTC"},
}

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def export(service: Service, study: str, path: Path, modes: Sequence[Mode] = ("live",)) -> Path:
    """Write the answers to `path` and ``data-dictionary.json`` beside it; returns `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_csv(service.responses(study, modes), path)
    dictionary = json.dumps(DICTIONARY, indent=2, ensure_ascii=False) + "\n"
    (path.parent / "data-dictionary.json").write_text(dictionary, encoding="utf-8")
    return path


def write_csv(frame: pd.DataFrame, path: Path) -> None:
    """UTF-8, comma, one header line; texts that a spreadsheet would run as a formula get a leading apostrophe."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(frame.columns)
        writer.writerows([_safe(value) for value in row] for row in frame.itertuples(index=False, name=None))


def _safe(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
