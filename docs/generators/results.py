"""Read benchmark results: the JSON files of ``benchmarks/results``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results"


def read_result(name: str) -> dict[str, Any] | None:
    """Return the whole record of a benchmark, or None where it was not run yet."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def describe_machine(record: dict[str, Any]) -> str:
    """Say when and on what a benchmark was run."""
    machine = record["machine"]
    threads = machine["torch_threads"]
    device = machine["accelerator"] or f"{machine['cores']} cores, {threads} torch thread{'s' if threads > 1 else ''}"
    return (
        f"Measured on {machine['measured_at'][:10]}: {machine['processor']}, {device}, "
        f"load average {machine['load_average_1min']:g}.{_describe_joined(machine.get('joined', []))}"
    )


def _describe_joined(notes: list[dict[str, Any]]) -> str:
    """Say which methods, or networks, were measured later, and when."""
    later = []
    for note in notes:
        parts = [note["networks"]] if "networks" in note else note["methods"].values()
        names = dict.fromkeys(f"`{name}`" for part in parts for name in part)
        later.append(f"{', '.join(names)} on {note['measured_at'][:10]} (load average {note['load_average_1min']:g})")
    return f" Measured later: {'; '.join(later)}." if later else ""
