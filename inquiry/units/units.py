"""Feature visualisations of a unit as files: maximised images and exemplars, each on a sheet, and the facts."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from PIL import Image

from core.attribution.method import versions
from core.drawing.sheet import encode_png
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.types import Progress, silent
from core.units import PARAMETERISATIONS
from core.units.maco import MOST_OPAQUE
from core.units.maximise import MaximisedImages, Parameterisation, maximise
from core.units.unit import READING, Unit, find_layer_shape
from inquiry.files.targets import find_class
from inquiry.units import unit_sheets
from inquiry.units.exemplars import Exemplars, ImageCollection, exemplars, open_blocks, open_images
from study.network.sources import open_classifier
from study.workspace.files import write_whole
from study.workspace.provenance import code_digest

ACROSS, STRIPS_ACROSS = 4, 3
"""Images, and strips of three, in a row of a sheet."""
FORM = "LAYER:CHANNEL or LAYER:CHANNEL:ROW,COLUMN"


@dataclass(frozen=True)
class VisualisationSettings:
    """Settings of feature visualisation (`core.units.maximise`)."""

    how: Parameterisation = "fourier"
    starts: int = 4
    steps: int = 128
    seed: int = 0

    @property
    def reads_images(self) -> bool:
        """Tell whether the images depend on the spectrum of an image set."""
        return bool(PARAMETERISATIONS[self.how].READS_IMAGES)

    def make(
        self, classifier: Classifier, unit: Unit, progress: Progress = silent, images: ImageCollection | None = None
    ) -> MaximisedImages:
        """Maximise images for a unit; ``images`` are read only by what `reads_images`."""

        def report_progress(done: int, total: int, what: str) -> None:
            progress(done, len(images) if images and what == READING else total, what)

        return maximise(
            classifier,
            unit,
            images=open_blocks(classifier, images) if images else (),
            generator=torch.Generator().manual_seed(self.seed),
            progress=report_progress,
            parameterisation=self.how,
            starts=self.starts,
            steps=self.steps,
        )


@dataclass(frozen=True)
class UnitQuery:
    """A unit, as text or as a class's name or index, and what to show for it."""

    model: str
    unit: str | None = None
    category: str | None = None
    settings: VisualisationSettings = VisualisationSettings()
    images: str | None = None


@dataclass(frozen=True)
class WrittenFiles:
    """The written files, the facts last, and warnings about the images."""

    files: tuple[Path, ...]
    warnings: tuple[str, ...]


def visualise_files(request: UnitQuery, out: Path, progress: Progress = silent) -> WrittenFiles:
    """Write ``<model>.<unit>.<how>.png``, ``.npz``, ``.json`` and, with images, ``.top.png``.

    Old facts are removed first and new ones written last, so that facts always match the files next to them.

    Raises
    ------
    ForetellError
        Wrong input.
    """
    check(request)
    classifier = open_classifier(request.model, Path.cwd())
    unit = unit_of(classifier, request)
    images = open_images(request.images) if request.images else None
    best_images = exemplars(classifier, unit, images, progress=progress) if images else None
    made = request.settings.make(classifier, unit, progress, images)
    files, name = render_files(classifier, made, request.settings, best_images), stem(classifier, made)
    for ending in ("json", "top.png"):
        (out / f"{name}.{ending}").unlink(missing_ok=True)
    paths = tuple(write_whole(out / f"{name}.{ending}", content) for ending, content in files.items())
    return WrittenFiles(paths, made.warnings + (best_images.warnings if best_images else ()))


def check(request: UnitQuery) -> None:
    """Refuse a wrong query before a network is opened."""
    if (request.unit is None) == (request.category is None):
        raise ForetellError(f"Give one unit: --unit {FORM}, or --class NAME.")
    if request.settings.how not in get_args(Parameterisation):
        raise ForetellError(f"--how {request.settings.how!r} is not one of {', '.join(PARAMETERISATIONS)}.")
    if request.settings.reads_images and request.images is None:
        raise ForetellError(
            f"--how {request.settings.how} measures the spectrum of images: name a folder of them with --images, or "
            "--images scenes."
        )


def unit_of(classifier: Classifier, request: UnitQuery) -> Unit:
    """Find the unit of a query, checking that it exists."""
    if request.category is not None:
        return Unit(find_class(classifier, request.category))
    unit = parse_unit(request.unit or "")
    find_layer_shape(classifier, unit)
    return unit


def parse_unit(text: str) -> Unit:
    """Parse ``"features.3.0:12"`` or ``"features.3.0:12:5,7"`` into a unit."""
    match = re.fullmatch(r"([^:]+):(\d+)(?::(\d+),(\d+))?", text.strip())
    if not match:
        raise ForetellError(f"--unit {text!r} is not of the form {FORM}.")
    layer, channel, row, column = match.groups()
    return Unit(int(channel), layer, *((int(row), int(column)) if row else ()))


def name_of(classifier: Classifier, unit: Unit) -> str:
    """Name a unit: ``"class fish (4)"``, ``"features.3.0, channel 12 at (5, 7)"``."""
    if not unit.layer:
        return f"class {classifier.names.short[unit.channel]} ({unit.channel})"
    place = "" if unit.row is None else f" at ({unit.row}, {unit.column})"
    return f"{unit.layer}, channel {unit.channel}{place}"


def stem(classifier: Classifier, made: MaximisedImages) -> str:
    """Name the files of a unit, without an ending."""
    return name_file(classifier, made.unit, made.parameterisation)


def name_file(classifier: Classifier, unit: Unit, how: str) -> str:
    """Name the files of a unit by how its images were made, without an ending."""
    words = re.sub(r"[^\w.]+", "-", name_of(classifier, unit)).strip("-")
    return f"{classifier.file_name}.{words}.{how}"


def render_files(
    classifier: Classifier, made: MaximisedImages, settings: VisualisationSettings, best_images: Exemplars | None = None
) -> dict[str, bytes]:
    """Render the files by their endings, the facts last."""
    sheets = {"png": encode_png(draw_maximised_sheet(classifier, made, settings))}
    if best_images is not None:
        sheets["top.png"] = encode_png(draw_exemplar_sheet(classifier, best_images))
    return {
        **sheets,
        "npz": npz(made, best_images),
        "json": facts_text(classifier, made, settings, best_images).encode(),
    }


def draw_maximised_sheet(classifier: Classifier, made: MaximisedImages, settings: VisualisationSettings) -> Image.Image:
    """Draw the images maximised for a unit, with their settings."""
    by = f"{settings.how}, {settings.steps} steps, seed {settings.seed}, network {classifier.fingerprint[:12]}"
    title = [
        f"{classifier.name}: {name_of(classifier, made.unit)}",
        f"{by}. {describe_activation(classifier, made.unit)}",
    ]
    title += [describe_opacity(made)] if made.importance is not None else []
    return unit_sheets.sheet([*title, *made.warnings], unit_sheets.tile_maximised(made), ACROSS)


def draw_exemplar_sheet(classifier: Classifier, best_images: Exemplars) -> Image.Image:
    """Draw the images found for a unit, with their source."""
    title = [f"{classifier.name}: {name_of(classifier, best_images.unit)}", describe_exemplars(best_images)]
    return unit_sheets.sheet([*title, *best_images.warnings], unit_sheets.tile_exemplars(best_images), STRIPS_ACROSS)


def describe_activation(classifier: Classifier, unit: Unit) -> str:
    """Describe the number under each maximised image."""
    mean = ", the mean over all places" if len(find_layer_shape(classifier, unit)) == 3 and unit.row is None else ""
    return f"Under each: the activation reached{mean}."


def describe_opacity(made: MaximisedImages) -> str:
    """Describe what transparency shows; empty where nothing is transparent."""
    if made.importance is None:
        return ""
    opaque = f"the top {100 - MOST_OPAQUE:.0f}% of each image are opaque"
    return f"The less a pixel mattered while the image was made, the more transparent it is; {opaque}."


def describe_exemplars(best_images: Exemplars) -> str:
    """Describe the images found for a unit, and the parts shown of each."""
    most = ", each by its strongest place" if best_images.unit.row is None and best_images.exemplars[0].place else ""
    shown = f"{len(best_images.exemplars)} of {best_images.n_searched:,} images of {best_images.set_name}"
    return f"The strongest {shown}{most}. Shown of each: {unit_sheets.parts(best_images)}."


def npz(made: MaximisedImages, best_images: Exemplars | None = None) -> bytes:
    """Pack ``inputs`` (S, C, H, W), ``activations`` (S,), ``trace`` (S, steps), and ``top_`` arrays of exemplars.

    Of MACO also ``importance`` (S, H, W) and ``magnitude`` (C, H, W // 2 + 1).
    """
    arrays: dict[str, Any] = {
        "inputs": made.images.numpy(),
        "activations": made.activations.numpy(),
        "trace": made.trace.numpy(),
    }
    measured = {"importance": made.importance, "magnitude": made.magnitude}
    arrays |= {name: values.numpy() for name, values in measured.items() if values is not None}
    if best_images is not None:
        arrays["top_indices"] = np.array([one.index for one in best_images.exemplars])
        arrays["top_activations"] = np.array([one.activation for one in best_images.exemplars], dtype=np.float32)
        arrays["top_boxes"] = np.array([one.box for one in best_images.exemplars])
        projections = [one.projection.numpy() for one in best_images.exemplars if one.projection is not None]
        if len(projections) == len(best_images.exemplars):
            arrays["top_projections"] = np.stack(projections)
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def facts_text(
    classifier: Classifier, made: MaximisedImages, settings: VisualisationSettings, best_images: Exemplars | None = None
) -> str:
    """Format `facts` as JSON."""
    return json.dumps(facts(classifier, made, settings, best_images), indent=1, ensure_ascii=False) + "\n"


def facts(
    classifier: Classifier, made: MaximisedImages, settings: VisualisationSettings, best_images: Exemplars | None = None
) -> Mapping[str, Any]:
    """Collect settings, results and provenance as plain values for JSON."""
    unit = asdict(made.unit)
    if not made.unit.layer:
        unit["category"] = classifier.categories[made.unit.channel]
    known_facts: dict[str, Any] = {
        "model": classifier.name,
        "fingerprint": classifier.fingerprint,
        "unit": unit,
        "parameters": asdict(settings),
        "activations": made.activations.tolist(),
        "warnings": list(made.warnings),
        "versions": versions(),
        "code": code_digest(),
    }
    return known_facts if best_images is None else known_facts | {"top": _list_exemplar_facts(best_images)}


def _list_exemplar_facts(best_images: Exemplars) -> dict[str, Any]:
    images = [
        {"index": one.index, "id": one.id, "activation": one.activation, "place": one.place, "field": one.box}
        for one in best_images.exemplars
    ]
    listed = {"set": best_images.set_name, "looked_through": best_images.n_searched, "images": images}
    return listed | {"warnings": list(best_images.warnings)}
