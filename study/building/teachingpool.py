"""The pool as teaching needs it: which images may be examples of a category, and the features of their copies."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from core.network.classifier import Classifier
from core.network.device import describe_arithmetic
from core.types import Progress, silent
from data.types import ImageSet
from study.building.augmentation import augment_image
from study.network.duplicates import SAME, repeats, sketches
from study.network.predictions import Predictions
from study.plan.config import StudyConfig
from study.workspace.files import gather_results, open_replacement
from study.workspace.seeds import seed_of

SAME_IMAGE = 1e-4
"""Relative distance of features below which a pool image counts as the target image itself."""


class TeachingPool:
    """Examples are images the AI itself calls by the name, as the participant is told, and no two of them alike.

    Attributes
    ----------
    repeats
        Near-duplicates that were left out so far, each with the image that it repeats, by their ids.
    """

    def __init__(
        self, config: StudyConfig, predictions: Predictions, images: ImageSet, classifier: Classifier, cache: Path
    ) -> None:
        self.config, self.predictions, self.images, self.classifier = config, predictions, images, classifier
        self.cache, self.copies = cache / "copies", config.teaching.copies
        self.repeats: dict[str, str] = {}
        self._of_category: dict[int, Tensor] = {}

    def usable(self, category: int, inputs: Tensor, features: Tensor) -> Tensor:
        """Return the pool indices of the possible examples of a category for a target image: never that image itself.

        ``inputs`` (1, C, H, W) and ``features`` (M,) are the target's.
        """
        own = self._distinct(category)
        distances = (self.predictions.features[own] - features).norm(dim=1) / (float(features.norm()) or 1.0)
        alike = self.predictions.sketches[own] @ sketches(inputs)[0]
        return own[(distances > SAME_IMAGE) & (alike < SAME)]

    def _distinct(self, category: int) -> Tensor:
        if category not in self._of_category:
            own = np.flatnonzero(self.predictions.correct & (self.predictions.truth == category))
            left_out = repeats(self.predictions.sketches[own])
            self.repeats |= {self.images.ids[own[k]]: self.images.ids[own[kept]] for k, kept in left_out.items()}
            self._of_category[category] = torch.from_numpy(np.delete(own, list(left_out)))
        return self._of_category[category]

    def features(self, indices: Tensor) -> Tensor:
        """Compute features (n, M) of pool images, or (n, copies, M) of their augmented copies if the study has any."""
        if self.copies == 1:
            return self.predictions.features[indices]
        features_of_copies = gather_results(
            indices.tolist(),
            self._file,
            self._load_features,
            self._compute_features,
            silent,
            "predicting augmented copies",
        )
        return torch.stack(features_of_copies)

    def _file(self, index: int) -> Path:
        text = f"{self.classifier.fingerprint}|{self.images.digest}|{index}|{self.copies}|{self._seed(index)}|"
        text += describe_arithmetic(self.classifier.device)
        return self.cache / f"{hashlib.sha256(text.encode()).hexdigest()}.npy"

    def _seed(self, index: int) -> int:
        return seed_of(self.config.study.seed, "copies", self.images.ids[index])

    def _load_features(self, index: int) -> Tensor | None:
        """Load (copies, M), where they are there whole."""
        with suppress(OSError, ValueError, EOFError):
            return torch.from_numpy(np.load(self._file(index)))
        return None

    def _compute_features(self, index: int, _: Progress = silent) -> Tensor:
        image = self.classifier.preprocess(self.images.open(index))
        features = self.classifier.features(augment_image(image, self.copies, self._seed(index)))
        with open_replacement(self._file(index)) as file:
            np.save(file, features.numpy())
        return features
