"""A unit of a deep belief network as files: what is drawn with it clamped, next to images maximised for it."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from core.attribution.method import versions
from core.drawing.sheet import encode_png
from core.network.classifier import Classifier
from core.types import Progress, silent
from core.units.deep_belief import APART, BURN_IN, CHAINS, MIXED, SAMPLES, ClampedSamples, sample_unit
from core.units.display import convert_to_colours
from core.units.maximise import maximise
from core.units.unit import Unit, response
from inquiry.units import unit_sheets
from inquiry.units.unit_sheets import SIDE, Tile
from inquiry.units.units import ACROSS, WrittenFiles, name_file, name_of, parse_unit
from study.network.sources import open_classifier
from study.workspace.files import write_whole
from study.workspace.provenance import code_digest

HOW = "sampled"
DRAWN = 3
"""Samples on the sheet, next to the mean."""
STARTS, STEPS = 4, 128


@dataclass(frozen=True)
class SampledQuery:
    """A unit ``LAYER:CHANNEL`` of a deep belief network; ``starts`` and ``steps`` are those of the maximised images."""

    model: str
    unit: str
    starts: int = STARTS
    steps: int = STEPS
    seed: int = 0


@dataclass(frozen=True)
class SampledUnit:
    """What is drawn of a unit: samples, and inputs (B, C, H, W) with the unit's activation (B,) for each.

    ``drawn`` begins with the mean; ``maximised`` are the images of gradient ascent (Erhan et al. 2009, section 3).
    """

    unit: Unit
    samples: ClampedSamples
    drawn: Tensor
    activations: Tensor
    maximised: Tensor
    reached: Tensor


def sampled_files(query: SampledQuery, out: Path, progress: Progress = silent) -> WrittenFiles:
    """Write ``<model>.<unit>.sampled.png``, ``.npz`` and ``.json``: mean, samples and maximised images of a unit.

    Raises
    ------
    ForetellError
        A network that is no deep belief network, or no such unit.
    """
    classifier = open_classifier(query.model, Path.cwd())
    sampled_unit = sample(classifier, query, progress)
    said, name = warn(sampled_unit.samples), name_file(classifier, sampled_unit.unit, HOW)
    files = render_files(classifier, sampled_unit, query)
    (out / f"{name}.json").unlink(missing_ok=True)
    return WrittenFiles(tuple(write_whole(out / f"{name}.{end}", content) for end, content in files.items()), said)


def render_files(classifier: Classifier, sampled_unit: SampledUnit, query: SampledQuery) -> dict[str, bytes]:
    """Render the files by their endings, the facts last."""
    said = warn(sampled_unit.samples)
    facts = json.dumps(_facts(classifier, sampled_unit, query, said), indent=1, ensure_ascii=False) + "\n"
    sheet = draw_sheet(classifier, sampled_unit, query, said)
    return {"png": encode_png(sheet), "npz": _pack(sampled_unit), "json": facts.encode()}


def sample(classifier: Classifier, query: SampledQuery, progress: Progress = silent) -> SampledUnit:
    """Draw with the unit clamped, and maximise images for it from as many starts, of bounded norm."""
    unit = parse_unit(query.unit)
    samples, drawn = sample_unit(
        classifier, unit, generator=torch.Generator().manual_seed(query.seed), progress=progress
    )
    made = maximise(
        classifier,
        unit,
        generator=torch.Generator().manual_seed(query.seed),
        progress=progress,
        parameterisation="pixels",
        starts=query.starts,
        steps=query.steps,
    )
    with torch.no_grad():
        activations = response(classifier, unit, drawn.to(classifier.device)).float().cpu()
    return SampledUnit(unit, samples, drawn, activations, made.images, made.activations)


def warn(samples: ClampedSamples) -> tuple[str, ...]:
    """Say when the chains have not mixed."""
    if samples.has_mixed:
        return ()
    return (
        f"The chains have not mixed (ratio {samples.mixing:.2f}, {MIXED} at most): kinds of images may be drawn in "
        "other shares than the network gives them, and the error is too small.",
    )


def draw_sheet(
    classifier: Classifier, sampled_unit: SampledUnit, query: SampledQuery, warnings: tuple[str, ...]
) -> Image.Image:
    """Draw the mean and some samples in the first row, maximised images below, each with the unit's activation."""
    title = [
        f"{classifier.name}: {name_of(classifier, sampled_unit.unit)}",
        f"First row: {describe_samples(sampled_unit)}",
        f"Below: images of bounded norm that maximise it, {query.steps} steps. Under each: the unit's activation.",
    ]
    tiles = [*tile_samples(classifier, sampled_unit), *tile_ascents(classifier, sampled_unit)]
    return unit_sheets.sheet([*title, *warnings], tiles, ACROSS)


def describe_samples(sampled_unit: SampledUnit) -> str:
    """Describe the images drawn, with the error of their mean."""
    error = float(sampled_unit.samples.error.max())
    return (
        f"the mean of {CHAINS * SAMPLES:,} images drawn with the unit clamped to 1 (largest Monte Carlo error of a "
        f"value {error:.3f} of 1), then single ones."
    )


def tile_samples(classifier: Classifier, sampled_unit: SampledUnit) -> list[Tile]:
    """Tile the mean and some samples, each with the unit's activation."""
    names = ["mean", *(f"sample {k + 1}" for k in range(DRAWN))]
    return _tile(classifier, names, sampled_unit.drawn, sampled_unit.activations)


def tile_ascents(classifier: Classifier, sampled_unit: SampledUnit) -> list[Tile]:
    """Tile the images that maximise the unit, each with the activation reached."""
    names = [f"start {k}" for k in range(len(sampled_unit.maximised))]
    return _tile(classifier, names, sampled_unit.maximised, sampled_unit.reached)


def _tile(classifier: Classifier, names: list[str], inputs: Tensor, activations: Tensor) -> list[Tile]:
    shown = convert_to_colours(classifier, inputs[: len(names)]).numpy()
    size = (SIDE, round(SIDE * shown.shape[1] / shown.shape[2]))
    return [
        Tile(Image.fromarray(pixels).resize(size, Image.Resampling.NEAREST), f"{name}: {float(activation):.3g}")
        for name, pixels, activation in zip(names, shown, activations, strict=False)
    ]


def _pack(sampled_unit: SampledUnit) -> bytes:
    """Pack ``mean`` and ``error`` (V,), ``drawn`` (1 + C, C, H, W), ``maximised`` (S, C, H, W) and the activations."""
    buffer = io.BytesIO()
    np.savez(
        buffer,
        mean=sampled_unit.samples.mean.numpy(),
        error=sampled_unit.samples.error.numpy(),
        drawn=sampled_unit.drawn.numpy(),
        activations=sampled_unit.activations.numpy(),
        maximised=sampled_unit.maximised.numpy(),
        maximised_activations=sampled_unit.reached.numpy(),
    )
    return buffer.getvalue()


def _facts(
    classifier: Classifier, sampled_unit: SampledUnit, query: SampledQuery, warnings: tuple[str, ...]
) -> dict[str, Any]:
    return {
        "model": classifier.name,
        "fingerprint": classifier.fingerprint,
        "unit": query.unit,
        "seed": query.seed,
        "sampling": {"chains": CHAINS, "burn_in": BURN_IN, "samples": SAMPLES, "apart": APART},
        "maximised": {"starts": query.starts, "steps": query.steps},
        "mixing": round(sampled_unit.samples.mixing, 4),
        "largest_error": round(float(sampled_unit.samples.error.max()), 6),
        "activation_of_the_mean": round(float(sampled_unit.activations[0]), 6),
        "activation_of_samples": round(float(sampled_unit.activations[1:].mean()), 6),
        "activation_maximised": [round(float(one), 6) for one in sampled_unit.reached],
        "warnings": list(warnings),
        "versions": versions(),
        "code": code_digest(),
    }
