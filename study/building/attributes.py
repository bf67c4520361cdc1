"""Trials about attributes: grids of images of two classes, in columns by the AI's confidence, and their heatmaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from core.attribution.outside.external import ImageRecord
from core.drawing.rendering import overlay, tile_images
from core.drawing.views import View, view
from core.errors import ForetellError
from core.types import Explanation, Progress
from data.types import ImageSet
from study.building.drawing import AssetFolder, find_size
from study.building.plan import names_of_image
from study.building.stimuli import compute_drawn_values, map_seed
from study.bundle import GRID, Trial, TrialAssets, significant
from study.facts import AttributeFacts, HeatmapFacts, TeachingFacts
from study.network.heatmapcache import MapCache
from study.network.predictions import count_missing, probabilities_of
from study.network.sources import Sources, class_of_labels
from study.plan.attributes import COLUMNS
from study.workspace.seeds import seed_of

SHARE = 0.4
"""Side of an image of a grid, as a share of ``display.size``: a grid is twice as wide as the image of other tasks."""
LEAST = 48
"""The smallest side of an image of a grid, px."""


@dataclass(frozen=True)
class PlannedGrid:
    """A trial before it is drawn: the images of its grid by index, from the first class to the second."""

    id: str
    images: tuple[int, ...]


class AttributeMaker:
    """Draws and explains the grids of a study; each is a function of the study file, images and weights."""

    omissions: tuple[dict[str, str], ...] = ()

    def __init__(self, sources: Sources, assets: Path, cache: Path, progress: Progress) -> None:
        self.sources, self.settings = sources, sources.config.attributes
        self.images: ImageSet = sources.sets["standard"]
        self.folder = AssetFolder(assets)
        self.maps = MapCache(sources.classifier, sources.config.saliency, cache, sources.method)
        self.repeats: dict[str, str] = {}
        self.classes = find_classes(sources)
        own = probabilities_of(sources.classifier, self.images, cache, progress)[:, list(self.classes)]
        logs = np.log(own.astype(np.float64).clip(min=np.finfo(np.float32).tiny))
        self.odds: NDArray[np.float64] = logs[:, 1] - logs[:, 0]
        self.trials, self.practice = self._plan()

    @cached_property
    def names(self) -> tuple[str, str]:
        """The two classes, as participants read them."""
        first, second = (self.sources.classifier.names.short[k] for k in self.classes)
        return first, second

    def make(self, planned: PlannedGrid, progress: Progress) -> Trial:
        """Explain and draw one trial; its assets are on disk when it returns."""
        views, explanation = self._explain(planned, progress)
        drawn, size = self.sources.config.saliency, self._size
        plain = [one.draw(size) for one in views]
        mapped = [
            overlay(one.draw(size, "L"), compute_drawn_values(explanation, i, drawn.drawing), size, drawn.opacity)
            for i, one in enumerate(views)
        ]
        chances = 1.0 / (1.0 + np.exp(-self.odds[list(planned.images)]))
        return Trial(
            id=planned.id,
            trial_type=GRID,
            target=self.names[0],
            alternative=self.names[1],
            truth="",
            options=self.names,
            source=f"{len(views)} images of {self.images.name}",
            assets=TrialAssets(
                target=self.folder.write(_arrange(plain)), target_map=self.folder.write(_arrange(mapped)), examples=()
            ),
            teaching=TeachingFacts(),
            saliency=_describe_heatmaps(explanation),
            attributes=AttributeFacts(
                names=self.settings.names,
                used=self.settings.is_used,
                images=tuple(self.images.ids[index] for index in planned.images),
                confidences=tuple(significant(chance) for chance in chances),
            ),
        )

    def describe(self) -> dict[str, Any]:
        """Describe the two classes, for the manifest."""
        return {"classes": list(self.names)}

    def compare(self) -> dict[str, str]:
        """Say nothing about a learner: attributes are not taught."""
        return {}

    @property
    def _size(self) -> tuple[int, int]:
        width, height = (max(LEAST, round(SHARE * side)) for side in find_size(self.sources))
        return width, height

    def _explain(self, planned: PlannedGrid, progress: Progress) -> tuple[list[View], Explanation]:
        """Explain each image for the one of the two classes that the AI takes it for."""
        classifier = self.sources.classifier
        images = [self.images.open(index) for index in planned.images]
        inputs = torch.stack([classifier.preprocess(image) for image in images])
        views = [view(classifier, *both) for both in zip(images, inputs, strict=True)]
        classes = [self.classes[int(self.odds[index] > 0)] for index in planned.images]
        names = (names_of_image("standard", self.images, index) for index in planned.images)
        records = [ImageRecord.of(one, *both) for one, both in zip(views, names, strict=True)]
        return views, self.maps.explain(inputs, classes, map_seed(self.sources.config, planned.id), progress, records)

    def _plan(self) -> tuple[tuple[PlannedGrid, ...], tuple[PlannedGrid, ...]]:
        """Draw a grid for each trial and for practice; no image is in two of them."""
        count, practice = self.settings.trials, self.sources.config.trials.practice
        halves = self.settings.images // 2, self.settings.images - self.settings.images // 2
        truth = class_of_labels(self.images, self.sources.classifier)
        dealt = [self._deal(truth, k, halves, count + practice) for k in range(len(self.classes))]
        grids = [self._sort([*one, *other]) for one, other in zip(*dealt, strict=True)]
        made = [
            PlannedGrid(f"{'t' if k < count else 'p'}{k - count * (k >= count):03d}", grid)
            for k, grid in enumerate(grids)
        ]
        return tuple(made[:count]), tuple(made[count:])

    def _deal(self, truth: NDArray[np.int64], k: int, halves: tuple[int, int], grids: int) -> list[list[int]]:
        """Deal the images of a class to the grids; where their number is odd, classes take turns with one more."""
        own = np.flatnonzero(truth == self.classes[k])
        sizes = [halves[(k + number) % 2] for number in range(grids)]
        if len(own) < sum(sizes):
            raise ForetellError(
                f"attributes: {grids} grids of {self.settings.images} images need {sum(sizes)} of {self.names[k]!r}, "
                f"and {self.images.name} has {len(own)}. Lower attributes.images, attributes.trials or "
                "trials.practice, or give a larger standard set."
            )
        drawn = np.random.default_rng(seed_of(self.sources.config.study.seed, "grids", self.names[k])).permutation(own)
        edges = np.cumsum([0, *sizes])
        return [drawn[start:stop].tolist() for start, stop in pairwise(edges)]

    def _sort(self, images: Sequence[int]) -> tuple[int, ...]:
        """Sort images from the one that the AI takes most for the first class."""
        order = np.argsort(self.odds[list(images)], kind="stable")
        return tuple(images[i] for i in order)


def find_classes(sources: Sources) -> tuple[int, int]:
    """Find the two classes of the grids.

    Raises
    ------
    ForetellError
        One of them is no class of the network.
    """
    classifier = sources.classifier
    names = classifier.names
    matched = {name: names.find(name) for name in sources.config.attributes.classes}
    for name, matches in matched.items():
        if len(matches) > 1:
            raise ForetellError(f"attributes.classes: {names.describe_ambiguous(name, matches, classifier.name)}")
        if not matches:
            raise ForetellError(
                f"attributes.classes: {name!r} is no class of {classifier.name} ({', '.join(names.short[:4])}, ...). "
                "Name one of its classes."
            )
    (first,), (second,) = matched.values()
    if first == second:
        raise ForetellError(f"attributes.classes: {' and '.join(matched)} are one class of the network. Name two.")
    return first, second


def count_unpredicted(sources: Sources, cache: Path) -> int:
    """Count the images that the network would have to predict."""
    return count_missing(sources.classifier, sources.sets["standard"], cache)


def _arrange(tiles: Sequence[Image.Image]) -> Image.Image:
    """Put sorted images in columns, each from the top: the first column has those of the first class."""
    rows = len(tiles) // COLUMNS
    return tile_images([tiles[column * rows + row] for row in range(rows) for column in range(COLUMNS)], COLUMNS)


def _describe_heatmaps(explanation: Explanation) -> HeatmapFacts:
    """Describe how the heatmaps of a grid were made."""
    certificate = explanation.certificates[0]
    warnings = dict.fromkeys(warning for one in explanation.certificates for warning in one.warnings)
    return HeatmapFacts(
        method=certificate.method,
        parameters=certificate.parameters,
        samples=certificate.samples,
        seed=certificate.seed,
        warnings=tuple(warnings),
    )
