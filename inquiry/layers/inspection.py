"""A question about a network, and the networks and images that it is asked of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from core.errors import ForetellError
from core.network.classifier import Classifier
from core.network.decoding import read_batches
from core.types import Progress
from core.units.unit import Unit, find_layer_shape
from data.types import ImageSet
from inquiry.files.facts import facts_of, key_of
from inquiry.layers import QUESTIONS
from study.network.sources import class_of_labels
from study.workspace.blocks import Blocks, Columns


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
        plugin = QUESTIONS.plugins.get(self.request.question)
        if plugin is not None:
            own |= {"package": plugin.package, "package_digest": plugin.digest}
        return facts_of(self.classifier, own)

    @property
    def key(self) -> str:
        """Hash `facts`, shortened (SHA-256)."""
        return key_of(self.facts)

    def compute_blocks(
        self, compute: Callable[[range], Columns], count: int, size: int, progress: Progress, what: str, part: str = ""
    ) -> dict[str, NDArray[Any]]:
        """Compute rows in blocks of ``size``, from which a killed run resumes; ``part`` names one of several runs."""
        kept = Blocks(self.parts, f"{self.key}.{part}" if part else self.key, count, size)
        columns = kept.join(compute, progress, what)
        kept.forget()
        return columns

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
