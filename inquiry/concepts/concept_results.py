"""What both ways to measure the effects of concepts share: their question, their results, and the files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from core.types import Progress
from study.network.sources import open_classifier, set_named
from study.workspace.blocks import table_files


@dataclass(frozen=True)
class EffectQuery:
    """A network, a class and concepts.

    ``concepts`` are ``FACTOR=VALUE`` or ``FACTOR`` (for all its values) of a set that knows each image's value, or
    folders of images; then ``random`` is a folder of other images.
    """

    model: str
    target: str
    concepts: tuple[str, ...]
    random: str | None = None
    image_set: str = "scenes"
    settings: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0


@dataclass(frozen=True)
class EffectResults:
    """One row per concept, and layer where there are some; and the report: settings, provenance, effects on classes."""

    table: pd.DataFrame
    report: dict[str, Any]


def write_effects(
    measure: Callable[..., EffectResults], request: EffectQuery, out: Path, ending: str, progress: Progress
) -> tuple[Path, Path]:
    """Write ``<model>.<class><ending>.csv`` and ``.json`` into ``out``; a run that was killed resumes there."""
    classifier = open_classifier(request.model, Path.cwd())
    images = set_named(request.image_set, request.settings)
    results = measure(classifier, request, images, out / "parts", progress)
    stem = f"{classifier.file_name}.{request.target.replace(' ', '_')}{ending}"
    return table_files(out, stem, results.table, results.report, out / "parts")
