"""Questions about a network's representations and decision boundaries, over a labelled set: a table and a report."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn

from core.errors import ForetellError
from core.network.classifier import Classifier
from core.network.decoding import read_batches
from core.parameters import parse_parameters
from core.registry import Registry
from core.types import Progress, silent
from core.units.unit import Unit, find_layer_shape
from data.types import ImageSet
from study.inquiry.facts import facts_of, key_of
from study.network.sources import class_of_labels, open_classifier, set_named
from study.workspace.blocks import table_files

QUESTIONS = Registry(
    "question",
    {
        "probes": "study.inquiry.layer_questions:probes",
        "information": "study.inquiry.layer_questions:information",
        "similarity": "study.inquiry.layer_questions:similarity",
        "consistency": "study.inquiry.consistency:consistency",
        "refinement": "study.inquiry.refinement:refinement",
        "dissection": "study.inquiry.layer_questions:dissection",
        "deletion": "study.inquiry.layer_questions:deletion",
        "attacks": "study.inquiry.robustness:attacks",
        "margins": "study.inquiry.robustness:margins",
        "frequencies": "study.inquiry.robustness:frequencies",
        "bands": "study.inquiry.robustness:bands",
        "importance": "study.inquiry.erasing:importance",
        "evidence": "study.inquiry.erasing:evidence",
        "modes": "study.inquiry.decision_modes:modes",
        "x_features": "study.inquiry.x_features:x_features",
        "parts": "study.inquiry.part_graph:parts",
        "explainer": "study.inquiry.explainer:explainer",
        "rules": "study.inquiry.distilled_rules:rules",
        "memorisation": "study.inquiry.memorisation:memorisation",
        "attributes": "study.inquiry.attributes:attributes",
        "decomposition": "study.inquiry.decomposition:decomposition",
        "recognition": "study.inquiry.recognition:recognition",
    },
)
"""Every question: ``question(inspected, progress, **parameters)`` returns a table."""
DRAWINGS = Registry(
    "drawing",
    {
        "consistency": "study.inquiry.consistency:draw_blind_spots",
        "modes": "study.inquiry.decision_modes:draw_modes",
        "x_features": "study.inquiry.x_features:draw_x_features",
        "parts": "study.inquiry.part_graph:draw_parts",
        "explainer": "study.inquiry.explainer:draw_explainer",
        "attributes": "study.inquiry.attributes:draw_queries",
        "decomposition": "study.inquiry.decomposition:draw_decomposition",
    },
)
"""What is drawn of a question's result: ``drawing(inspected)``, after the question, returns images by name."""
COMPARING = frozenset({"similarity", "consistency", "refinement"})
"""Questions that compare the layers of two networks, or of one with itself."""
LAYERED = COMPARING | {
    "probes",
    "information",
    "dissection",
    "deletion",
    "importance",
    "rules",
    "modes",
    "x_features",
    "parts",
    "explainer",
}
"""Questions about layers; the others are about the whole network."""
OWN_IMAGES = frozenset({"attributes"})
"""Questions with images of their own, which leave those of the set aside."""


PRINTED = {
    "attributes": ("output", "attribute", "predicted", "probability", "accuracy", "low", "high", "chance", "by_images"),
    "recognition": ("features", "accuracy", "low", "high", "chance", "random", "without_pyramid"),
}
"""Columns of the short tables that the command prints, unless they are empty."""


@dataclass(frozen=True)
class LayerQuery:
    """A question, the layers and networks it is about, and the images.

    Empty ``layers``: the question chooses. ``other`` is a second network for the questions that compare two, the same
    one by default; ``other_layers`` are its layers, by default the same names, or the question's choice.
    ``parameters`` are texts, checked against the question's declaration.
    """

    question: str
    model: str = "scenes"
    image_set: str = "scenes"
    settings: Mapping[str, Any] = field(default_factory=dict)
    layers: tuple[str, ...] = ()
    other: str | None = None
    other_layers: tuple[str, ...] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)
    seed: int = 0


@dataclass(frozen=True)
class LayerInspection:
    """The context of a question: networks, images, and a folder for blocks of long runs.

    ``kept`` holds what a question leaves for its drawing.
    """

    classifier: Classifier
    images: ImageSet
    request: LayerQuery
    compared: Classifier
    parts: Path | None = None
    kept: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def inputs(self) -> Tensor:
        """Inputs (N, C, H, W) of `classifier`."""
        return self._read(self.classifier)

    @cached_property
    def inputs_compared(self) -> Tensor:
        """Inputs (N, C, H, W) of `compared`."""
        return self.inputs if self.compared is self.classifier else self._read(self.compared)

    def _read(self, classifier: Classifier) -> Tensor:
        return torch.cat(list(read_batches(classifier, self.images.open, 0, len(self.images))))

    @cached_property
    def classes(self) -> NDArray[np.int64]:
        """Class index (N,) of each image's label; -1 if the network has no such class."""
        return class_of_labels(self.images, self.classifier)

    @property
    def layers(self) -> tuple[str, ...]:
        """The requested layers, or every block."""
        return self.request.layers or blocks(self.classifier)

    @property
    def layers_compared(self) -> tuple[str, ...]:
        """The layers of `compared`."""
        if self.request.other_layers:
            return self.request.other_layers
        return self.layers if self.compared is self.classifier else self.request.layers or blocks(self.compared)

    @property
    def facts(self) -> dict[str, Any]:
        """Settings and provenance."""
        own = {
            "question": self.request.question,
            "compared_with": self.compared.name,
            "compared_fingerprint": self.compared.fingerprint,
            "layers": list(self.request.layers),
            "other_layers": list(self.request.other_layers),
            "images": self.images.name,
            "digest": self.images.digest,
            "count": len(self.images),
            "parameters": dict(self.request.parameters),
            "seed": self.request.seed,
        }
        return facts_of(self.classifier, own)

    @property
    def key(self) -> str:
        """Hash `facts`, shortened (SHA-256)."""
        return key_of(self.facts)

    def generator(self) -> torch.Generator:
        """Make a random generator from the query's seed."""
        return torch.Generator().manual_seed(self.request.seed)


def blocks(classifier: Classifier) -> tuple[str, ...]:
    """List the network's children in order, with sequences expanded once, that have channels."""
    names: list[str] = []
    with classifier.exclusive() as module:
        for name, child in module.named_children():
            inner = [f"{name}.{part}" for part, _ in child.named_children()] if isinstance(child, nn.Sequential) else []
            names += inner or [name]
    return tuple(name for name in names if _has_channels(classifier, name))


def _has_channels(classifier: Classifier, name: str) -> bool:
    with suppress(ForetellError):
        find_layer_shape(classifier, Unit(0, name))
        return True
    return False


def inspect_files(request: LayerQuery, out: Path, progress: Progress = silent) -> tuple[Path, Path]:
    """Write ``<model>.<question>.csv`` and ``.json`` into ``out``; a killed run resumes with the same request.

    Questions of `DRAWINGS` also write ``<model>.<question>.<name>.png``.
    """
    question = QUESTIONS[request.question]
    given = parse_parameters(question, request.parameters)
    classifier = open_classifier(request.model, Path.cwd())
    images = set_named(request.image_set, request.settings)
    same = request.other in (None, request.model)
    compared = classifier if same else open_classifier(str(request.other), Path.cwd())
    inspected = LayerInspection(classifier, images, request, compared, out / "parts")
    table: pd.DataFrame = question(inspected, progress, **given)
    name = f"{classifier.file_name}.{request.question}"
    for caption, image in draw_result(inspected).items():
        out.mkdir(parents=True, exist_ok=True)
        image.save(out / f"{name}.{caption.replace(' ', '_')}.png")
    return table_files(out, name, table, inspected.facts, out / "parts")


def shorten_table(question: str, table: pd.DataFrame) -> pd.DataFrame:
    """Return the columns that the command prints of a question's table, without those that are empty texts."""
    short = table[list(PRINTED[question])]
    return short.loc[:, (short != "").any()]


def draw_result(inspected: LayerInspection) -> dict[str, Image.Image]:
    """Draw what a question found, by name; nothing for questions whose result is a table alone."""
    drawing = inspected.request.question
    return dict(DRAWINGS[drawing](inspected)) if drawing in DRAWINGS else {}
