"""Trials about units of the network: which units, which images, and how they are drawn."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from core.drawing.views import view
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.network.decoding import read_batches
from core.network.device import describe_arithmetic
from core.types import Progress
from core.units.unit import Unit, find_layer_shape, outputs_of
from data.types import ImageSet
from study.building.drawing import AssetFolder, find_size
from study.building.occlusions import PLACES, Place, draw_occlusion, measure_occlusions
from study.bundle import Example, Trial, TrialAssets, significant
from study.facts import HeatmapFacts, TeachingFacts, UnitFacts
from study.network.sources import Sources
from study.workspace.blocks import Blocks
from study.workspace.seeds import seed_of

Activations = NDArray[np.float32]
BLOCK = 256
"""Images between two savings of their activations."""
GAP = 4
"""Pixels between two references."""
SIDES = ("left", "right")


@dataclass(frozen=True)
class ShownImage:
    """An image of the standard set as a trial shows it: the place of a square over it, and the unit's activation."""

    index: int
    activation: float
    place: Place | None = None


@dataclass(frozen=True)
class PlannedUnitTrial:
    """A trial before it is drawn.

    ``pair`` are the images on the left and on the right, ``least`` and ``most`` the references, images of the pool by
    their index, the most extreme first.
    """

    id: str
    channel: int
    pair: tuple[ShownImage, ShownImage]
    least: tuple[int, ...]
    most: tuple[int, ...]


class UnitMaker:
    """Chooses and draws the trials of a study about units; each is a function of the study file, images and weights."""

    omissions: tuple[dict[str, str], ...] = ()

    def __init__(self, sources: Sources, assets: Path, cache: Path, progress: Progress) -> None:
        self.sources, self.settings, self.seed = sources, sources.config.units, sources.config.study.seed
        self.folder, self._cache, self._progress = AssetFolder(assets), cache, progress
        channels = find_layer_shape(sources.classifier, Unit(0, self.settings.layer))[0]
        self.pool = self._measure("pool")
        self.repeats: dict[str, str] = {}
        self._pairs: dict[int, list[tuple[ShownImage, ShownImage]]] = {}
        self.trials, self.practice = self._plan(channels)

    @cached_property
    def standard(self) -> Activations:
        """Activations for the standard images, which participants choose from."""
        return self._measure("standard")

    def _measure(self, role: str) -> Activations:
        images, layer = self.sources.sets[role], self.settings.layer
        return measure_activations(self.sources.classifier, images, layer, self._cache, self._progress)

    def make(self, planned: PlannedUnitTrial, progress: Progress) -> Trial:
        """Draw one trial; its assets are on disk when it returns."""
        del progress
        standard = self.sources.sets["standard"]
        left, right = (shown.activation for shown in planned.pair)
        target, other = SIDES if left > right else SIDES[::-1]
        drawn = [self.folder.write(self._draw_shown(shown)) for shown in planned.pair]
        names = [standard.ids[shown.index] for shown in planned.pair]
        return Trial(
            id=planned.id,
            trial_type="unit",
            target=target,
            alternative=other,
            truth="",
            options=SIDES,
            source=" and ".join(f"{standard.name}/{name}" for name in dict.fromkeys(names)),
            assets=TrialAssets(
                target=self.folder.write(self._draw_grid(planned.least)),
                target_map=self.folder.write(self._draw_grid(planned.most)),
                examples=tuple(
                    Example(category=side, source=name, image=image, map=image)
                    for side, name, image in zip(SIDES, names, drawn, strict=True)
                ),
            ),
            teaching=TeachingFacts(),
            saliency=HeatmapFacts(),
            unit=self._describe_unit(planned.channel, (left, right), planned.least, planned.most),
        )

    def _describe_unit(
        self, channel: int, activations: tuple[float, float], least: Sequence[int], most: Sequence[int]
    ) -> UnitFacts:
        """Describe a unit with two activations, their difference in standard deviations, and its references."""
        pool, (one, other) = self.sources.sets["pool"], activations
        return UnitFacts(
            layer=self.settings.layer,
            channel=channel,
            activations=(significant(one), significant(other)),
            gap=significant(abs(one - other) / float(self.pool[:, channel].std())),
            least=tuple(pool.ids[index] for index in least),
            most=tuple(pool.ids[index] for index in most),
        )

    def describe(self) -> dict[str, Any]:
        """Describe what the study asks about, for the manifest."""
        return {"layer": self.settings.layer, "channels": int(self.pool.shape[1])}

    def compare(self) -> dict[str, str]:
        """Say nothing about a learner: units are not taught."""
        return {}

    def _plan(self, channels: int) -> tuple[tuple[PlannedUnitTrial, ...], tuple[PlannedUnitTrial, ...]]:
        asked, others = self._choose_channels(channels)
        rng = np.random.default_rng(seed_of(self.seed, "sides", self.settings.layer))
        picks = [(channel, rank) for channel in asked for rank in range(self.settings.per_unit)]
        return self._name_trials("t", picks, rng), self._name_trials("p", [(one, 0) for one in others], rng)

    def _choose_channels(self, channels: int) -> tuple[list[int], list[int]]:
        """Choose the units that participants are asked about, and others for practice, in random order."""
        drawn = np.random.default_rng(seed_of(self.seed, "units", self.settings.layer)).permutation(channels)
        usable = (channel for channel in drawn.tolist() if self._is_usable(channel))
        wanted, practice = self.settings.channels, self.sources.config.trials.practice
        if isinstance(wanted, int):
            asked = list(islice(usable, wanted))
            if len(asked) < wanted:
                raise ForetellError(
                    f"units.channels is {wanted}, but {len(asked)} of the {channels} units of layer "
                    f"{self.settings.layer!r} tell enough images apart: a unit needs {self._needed}. Lower "
                    "units.channels or units.per_unit, give larger image sets, or choose another layer."
                )
            return asked, list(islice(usable, practice))
        for channel in wanted:
            find_layer_shape(self.sources.classifier, Unit(channel, self.settings.layer))
            if not self._is_usable(channel):
                raise ForetellError(
                    f"units.channels: unit {channel} of layer {self.settings.layer!r} does not tell enough images "
                    f"apart: it needs {self._needed}. Leave it out."
                )
        return list(wanted), list(islice((channel for channel in usable if channel not in wanted), practice))

    @property
    def _needed(self) -> str:
        """What a unit must tell apart."""
        references, per_unit = self.settings.references, self.settings.per_unit
        of_standard = f"{2 * per_unit} standard images, half of which activate it more than the other half"
        if self.sources.config.task.of_units == "occlusions":
            of_standard = f"{per_unit} standard images that activate it less with a square over one place than another"
        return f"{2 * references} images of the pool and {of_standard}"

    def _is_usable(self, channel: int) -> bool:
        """Tell whether a unit tells its references apart, and the images of each pair."""
        return (
            self._has_references(channel)
            and len(pairs := self._find_pairs(channel)) == self.settings.per_unit
            and all(low.activation < high.activation for low, high in pairs)
        )

    def _has_references(self, channel: int) -> bool:
        """Tell whether each image that activates the unit most does so more than those that activate it least."""
        least, most = self._find_references(channel)
        own = self.pool[:, channel]
        return len({*least, *most}) == 2 * self.settings.references and bool(
            own[list(least)].max() < own[list(most)].min()
        )

    def _find_references(self, channel: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        ranked, count = self._rank("pool", self.pool[:, channel]), self.settings.references
        return tuple(ranked[:count]), tuple(ranked[::-1][:count])

    def _find_pairs(self, channel: int) -> list[tuple[ShownImage, ShownImage]]:
        """Return the images of each trial, the one that activates the unit less first; none is a reference."""
        if channel not in self._pairs:
            own = self.standard[:, channel]
            ranked, sets = self._rank("standard", own), self.sources.sets
            if sets["pool"].digest == sets["standard"].digest:
                references = {index for side in self._find_references(channel) for index in side}
                ranked = [index for index in ranked if index not in references]
            if self.sources.config.task.of_units == "occlusions":
                made = [self._occlude(channel, index) for index in ranked[::-1][: self.settings.per_unit]]
            else:
                count = min(self.settings.per_unit, len(ranked) // 2)
                least, most = ([ShownImage(i, float(own[i])) for i in side] for side in (ranked, ranked[::-1]))
                made = list(zip(least[:count], most[:count], strict=True))
            self._pairs[channel] = made
        return self._pairs[channel]

    def _occlude(self, channel: int, index: int) -> tuple[ShownImage, ShownImage]:
        """Return an image with the square where it lowers the activation of a unit most, and where it does so least."""
        classifier = self.sources.classifier
        inputs = classifier.preprocess(self.sources.sets["standard"].open(index))
        measured = measure_occlusions(classifier, Unit(channel, self.settings.layer), inputs)
        low, high = (
            ShownImage(index, float(measured[place]), PLACES[place])
            for place in (int(measured.argmin()), int(measured.argmax()))
        )
        return low, high

    def _rank(self, role: str, activations: Activations) -> list[int]:
        """Rank images by activation, the lowest first; those of equal activation, as after a ReLU, in random order."""
        drawn = np.random.default_rng(seed_of(self.seed, "ties", role)).permutation(len(activations))
        ranked: list[int] = drawn[np.argsort(activations[drawn], kind="stable")].tolist()
        return ranked

    def _name_trials(
        self, letter: str, picks: Sequence[tuple[int, int]], rng: np.random.Generator
    ) -> tuple[PlannedUnitTrial, ...]:
        """Give the trials ids in order; the image that activates the unit more is on the right in half of them."""
        flips = rng.permutation(np.arange(len(picks)) % 2 == 1)
        made = []
        for number, ((channel, rank), flip) in enumerate(zip(picks, flips, strict=True)):
            low, high = self._find_pairs(channel)[rank]
            pair = (low, high) if flip else (high, low)
            made.append(PlannedUnitTrial(f"{letter}{number:03d}", channel, pair, *self._find_references(channel)))
        return tuple(made)

    def _draw_shown(self, shown: ShownImage) -> Image.Image:
        drawn = self._draw(self.sources.sets["standard"], shown.index, find_size(self.sources))
        return drawn if shown.place is None else draw_occlusion(drawn, shown.place, self.sources.classifier.mean_colour)

    def _draw(self, images: ImageSet, index: int, size: tuple[int, int]) -> Image.Image:
        return view(self.sources.classifier, images.open(index)).draw(size)

    def _draw_grid(self, references: Sequence[int]) -> Image.Image:
        """Draw references in a square, the most extreme at the top left."""
        width, height = find_size(self.sources)
        across = isqrt(len(references))
        tile = (width - (across - 1) * GAP) // across, (height - (across - 1) * GAP) // across
        whole = across * tile[0] + (across - 1) * GAP, across * tile[1] + (across - 1) * GAP
        grid = Image.new("RGB", whole, "white")
        for place, index in enumerate(references):
            row, column = divmod(place, across)
            drawn = self._draw(self.sources.sets["pool"], index, tile)
            grid.paste(drawn, (column * (tile[0] + GAP), row * (tile[1] + GAP)))
        return grid


def measure_activations(
    classifier: Classifier, images: ImageSet, layer: str, cache: Path, progress: Progress
) -> Activations:
    """Measure the activation (N, K) of each unit of a layer for each image of a set: its mean over all places."""

    def measure(rows: range) -> dict[str, NDArray[Any]]:
        made = []
        for inputs in read_batches(classifier, images.open, rows.start, rows.stop):
            with torch.no_grad(), outputs_of(classifier, layer) as (module, kept):
                module(inputs.to(classifier.device))
            made.append(kept[0].flatten(2).mean(2) if kept[0].ndim > 2 else kept[0])
        return {"activations": torch.cat(made).float().cpu().numpy()}

    blocks = _open_blocks(classifier, images, layer, cache)
    return blocks.join(measure, progress, f"reading the layer {layer} for {images.name}")["activations"]


def count_unread(sources: Sources, cache: Path) -> int:
    """Count the images that `measure_activations` would have to pass through the network."""
    layer, is_named = sources.config.units.layer, sources.config.task.of_units == "names"
    different = {one.digest: one for role, one in sources.sets.items() if role == "pool" or not is_named}
    return sum(_open_blocks(sources.classifier, one, layer, cache).count_missing() for one in different.values())


def _open_blocks(classifier: Classifier, images: ImageSet, layer: str, cache: Path) -> Blocks:
    """Open the saved activations of a set, so that a killed build resumes: by network, images, layer and arithmetic."""
    parts = (classifier.fingerprint, classifier.transforms_digest, images.digest, layer)
    text = "|".join((*parts, describe_arithmetic(classifier.device)))
    return Blocks(cache / "activations", hashlib.sha256(text.encode()).hexdigest(), len(images), BLOCK)
