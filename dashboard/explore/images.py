"""An image that was chosen to be explained, and the same as a network classifies it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from core.attribution.outside.external import ImageRecord
from core.drawing.views import View, view
from core.names import format_probability
from core.network.classifier import Classifier
from dashboard.explore.heatmap_jobs import HeatmapRequest
from dashboard.shared import cache


@dataclass(frozen=True)
class ChosenImage:
    """An image with its known facts; ``code`` is a Python expression that opens it, after ``imports``."""

    image: Image.Image
    name: str
    code: str
    imports: tuple[str, ...]
    truth: str | None = None
    context: str | None = None
    mask: NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class ClassifiedImage:
    """An image as a classifier sees it, with its prediction."""

    model: str
    chosen: ChosenImage

    @cached_property
    def classifier(self) -> Classifier:
        """Load the classifier."""
        return cache.load_classifier(self.model)

    @property
    def opened_from(self) -> tuple[str, Path]:
        """Return what `open_classifier` takes: the network's name and the folder that it is relative to."""
        return cache.find_model_spec(self.model)

    @cached_property
    def inputs(self) -> Tensor:
        """Return the preprocessed image (C, H, W)."""
        return self.classifier.preprocess(self.chosen.image)

    @cached_property
    def view(self) -> View:
        """Return the image as the classifier sees it."""
        return view(self.classifier, self.chosen.image, self.inputs)

    @property
    def object_pixels(self) -> NDArray[np.bool_] | None:
        """Return the pixels (H, W) of the input that show the object, if known."""
        if self.chosen.mask is None or self.view.note:
            return None
        return self.view.cut(self.chosen.mask, self.classifier.input_shape[:0:-1])

    @property
    def record(self) -> ImageRecord:
        """Return the identity of the image, by which finished heatmaps are found."""
        return ImageRecord.of(self.view, self.chosen.name)

    @cached_property
    def probabilities(self) -> Tensor:
        """Return the predicted probabilities (K,)."""
        return self.classifier.probabilities(self.inputs[None])[0]

    @cached_property
    def ranked_classes(self) -> list[int]:
        """Return the classes, the likeliest first."""
        order: list[int] = self.probabilities.argsort(descending=True).tolist()
        return order

    @property
    def predicted_class(self) -> int:
        """Return the predicted class."""
        return self.ranked_classes[0]

    @property
    def truth(self) -> int | None:
        """Return the true class, if it is known and the classifier has it."""
        matches = self.classifier.names.find(self.chosen.truth or "")
        return matches[0] if len(matches) == 1 else None

    @property
    def verdict(self) -> str:
        """Say whether the prediction is right; empty if the true class is unknown."""
        if self.chosen.truth is None:
            return ""
        if self.truth is None:
            return f"not scored: this network has no class {self.chosen.truth}"
        return "right" if self.truth == self.predicted_class else f"wrong, true class: {self.chosen.truth}"

    def format_confidence(self, k: int) -> str:
        """Format a class with its predicted probability."""
        return f"{self.classifier.names.short[k]} {format_probability(float(self.probabilities[k]))}"

    def request_heatmap(self, target: int, method: str, parameters: dict[str, Any], seed: int) -> HeatmapRequest:
        """Return the request for the heatmap of a class by a method."""
        return HeatmapRequest(self.classifier, method, self.inputs, target, seed, parameters, self.record)
