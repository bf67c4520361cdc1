"""One trial's images: heatmaps made, drawn and written under the SHA-256 of their bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from core.attribution.outside.external import ImageRecord
from core.drawing.rendering import PixelArray, overlay, scale_of
from core.drawing.views import View, view
from core.errors import ForetellError
from core.faithfulness.curves import deletion, insertion
from core.network.classifier import Classifier
from core.types import Explanation, Progress, silent
from data.types import ImageSet
from study.building.candidates import SetPredictions
from study.building.drawing import AssetFolder, find_size
from study.building.plan import PlannedTrial, explained_classes, names_of_trial
from study.bundle import ConditionAssets, Example, Trial, TrialAssets, significant
from study.conditions import CONDITIONS
from study.conditions.making import TrialMaterial
from study.facts import HeatmapFacts, RegionFacts, TeachingFacts
from study.network.heatmapcache import MapCache
from study.network.sources import Sources
from study.places.region import make_region
from study.plan.config import StudyConfig
from study.plan.texts import complete_texts
from study.workspace.seeds import seed_of

T = TypeVar("T")
STEPS = 100
"""Points of a deletion or insertion curve: those of `core.faithfulness.curves`, fewer only in tiny images."""
CENTRE = 0.5
"""Side of the central box, as a share of the image's, that replaces the object where no mask is known."""


class StimulusStudio:
    """Makes the stimuli of a study; every trial is a pure function of the study file, the images and the weights."""

    def __init__(self, sources: Sources, material: SetPredictions, assets: Path, cache: Path) -> None:
        self.config, self.classifier, self.sets = sources.config, sources.classifier, sources.sets
        self.material, self.assets = material, assets
        self.size, self._folder = find_size(sources), AssetFolder(assets)
        self.method = sources.method
        self.maps = MapCache(self.classifier, self.config.saliency, cache, self.method)
        self._made_once: dict[str, Any] = {}

    def make(self, planned: PlannedTrial, progress: Progress) -> Trial:
        """Explain and draw one trial; its assets are on disk when it returns."""
        candidate, teaching = planned.candidate, planned.teaching
        images = self._images(planned)
        inputs = torch.stack([self.classifier.preprocess(image) for image in images])
        target, *others = (view(self.classifier, p, x) for p, x in zip(images, inputs, strict=True))
        names = names_of_trial(self.sets, planned)
        records = [ImageRecord.of(one, *both) for one, both in zip((target, *others), names, strict=True)]
        classes = explained_classes(candidate)
        explanation = self.maps.explain(inputs, classes, map_seed(self.config, planned.id), progress, records)
        plain_assets = [self.write(one.draw(self.size)) for one in (target, *others)]
        mapped = [
            self.write(self.overlay(one, self._values(explanation, i))) for i, one in enumerate((target, *others))
        ]
        categories = [self._name(k) for k in classes]
        examples = tuple(
            Example(category=categories[k], source=self.sets["pool"].ids[i], image=plain_assets[k], map=mapped[k])
            for k, i in enumerate(teaching.indices, 1)
        )
        options = (categories[0], *map(self._name, (candidate.alternative, *candidate.others)))
        predictions = self.material.of(candidate.role)
        material = self._material(planned, options, target, inputs[:1], explanation)
        relevance, basis = self._relevance(material, explanation.evidence[0].numpy())
        return Trial(
            id=planned.id,
            trial_type=candidate.trial_type,
            target=categories[0],
            alternative=options[1],
            truth=self._name(candidate.truth),
            options=self._order_options(planned, options),
            ai_probability=significant(predictions.probability[candidate.index]),
            source=f"{self.sets[candidate.role].name}/{self.sets[candidate.role].ids[candidate.index]}",
            assets=TrialAssets(
                target=plain_assets[0], target_map=mapped[0], examples=examples, by_condition=self._own_assets(material)
            ),
            teaching=self._teaching_facts(planned),
            saliency=self._heatmap_facts(
                explanation,
                basis,
                {one.note for one in (target, *others)} - {""},
                self._areas(material.inputs, candidate.target, explanation, progress),
            ),
            relevance=relevance,
            stratum=planned.stratum,
            region=self._make_region(material, explanation.evidence[0].numpy()),
        )

    def _order_options(self, planned: PlannedTrial, options: tuple[str, ...]) -> tuple[str, ...]:
        """Order the options: two as planned, more at random by the study's seed."""
        if not planned.candidate.others:
            return options[::-1] if planned.flip else options
        rng = np.random.default_rng(self.seed_of("options", planned.id))
        return tuple(options[i] for i in rng.permutation(len(options)))

    def _material(
        self, planned: PlannedTrial, options: tuple[str, ...], target: View, inputs: Tensor, explanation: Explanation
    ) -> TrialMaterial:
        candidate = planned.candidate
        images, predictions = self.sets[candidate.role], self.material.of(candidate.role)
        return TrialMaterial(
            planned.id,
            (candidate.target, candidate.alternative, *candidate.others),
            options,
            candidate.truth,
            images,
            candidate.index,
            float(predictions.probability[candidate.index]),
            target,
            inputs,
            explanation,
            planned.own_examples,
        )

    def _images(self, planned: PlannedTrial) -> list[Image.Image]:
        candidate = planned.candidate
        pool = self.sets["pool"]
        return [self.sets[candidate.role].open(candidate.index), *map(pool.open, planned.teaching.indices)]

    def _own_assets(self, material: TrialMaterial) -> dict[str, ConditionAssets]:
        """Make what single conditions of the study show."""
        makers = {name: CONDITIONS[name].make for name in self.config.conditions}
        return {name: make(self, material) for name, make in makers.items() if make is not None}

    @property
    def pool(self) -> ImageSet:
        """The images that examples come from."""
        return self.sets["pool"]

    @property
    def texts(self) -> dict[str, str]:
        """The study's texts, in its language."""
        config = self.config
        return complete_texts(
            config.language, config.texts, config.saliency.method, config.saliency.parameters, config.task
        )

    def seed_of(self, *parts: str) -> int:
        """Return the random seed of a part of this study."""
        return seed_of(self.config.study.seed, *parts)

    def once(self, name: str, make: Callable[[], T]) -> T:
        """Return what ``make`` gives for the whole study; it is called for the first trial only."""
        if name not in self._made_once:
            self._made_once[name] = make()
        return cast(T, self._made_once[name])

    def draw_pool_image(self, index: int) -> Image.Image:
        """Draw an image of the pool as participants see it."""
        return view(self.classifier, self.pool.open(index)).draw(self.size)

    def explain_with(self, network: Classifier, material: TrialMaterial) -> Explanation:
        """Explain the target by the study's method for another network."""
        cache = self.once(f"heatmaps of {id(network)}", lambda: self._cache_of(network))
        record = ImageRecord.of(material.view, material.images.ids[material.index])
        return cache.explain(material.inputs, material.classes[:1], self.seed_of("map", material.id), silent, [record])

    def explain_class(self, material: TrialMaterial, k: int) -> Explanation:
        """Explain the target by the study's method for class ``k``, as the network's prediction is explained."""
        record = ImageRecord.of(material.view, material.images.ids[material.index])
        return self.maps.explain(material.inputs, [k], map_seed(self.config, material.id), silent, [record])

    def _cache_of(self, network: Classifier) -> MapCache:
        return MapCache(network, self.config.saliency, self.maps.folder.parent, self.method)

    def drawn_values(self, explanation: Explanation) -> PixelArray:
        """Return the values (H, W) in [-1, 1] that the first heatmap of an explanation is drawn from."""
        return self._values(explanation, 0)

    def relevance(self, material: TrialMaterial, evidence: PixelArray) -> float:
        """Return how much more evidence (H, W) supports the object than what surrounds it, in [0, 1]."""
        return self._relevance(material, evidence)[0]

    def _values(self, explanation: Explanation, i: int) -> PixelArray:
        return compute_drawn_values(explanation, i, self.config.saliency.drawing)

    def overlay(self, view: View, values: PixelArray) -> Image.Image:
        """Draw the values (H, W) of a heatmap, in [-1, 1], over an image."""
        return overlay(view.draw(self.size, "L"), values, self.size, self.config.saliency.opacity)

    @property
    def _grid(self) -> tuple[int, int]:
        return self.classifier.input_shape[1:]

    def write(self, image: Image.Image) -> str:
        """Write an asset and return its SHA-256."""
        return self._folder.write(image)

    def _name(self, k: int) -> str:
        return self.classifier.names.short[k]

    def _relevance(self, material: TrialMaterial, evidence: PixelArray) -> tuple[float, str]:
        """Measure how much more the target's heatmap supports the object than what is around it; name the object.

        Mean positive evidence per pixel on the object, divided by that plus the mean per pixel around it: .5 when
        the heatmap does not tell them apart, whatever the object's size.
        """
        inside, basis = _box(self._grid), "centre of the picture"
        if (covered := self._find_object(material)) is not None:
            inside, basis = covered, "object mask"
        evidence = evidence.clip(min=0)
        on, off = float(evidence[inside].mean()), float(evidence[~inside].mean())
        return (significant(on / (on + off)) if on + off > 0 else 0.5), basis

    def _find_object(self, material: TrialMaterial) -> NDArray[np.bool_] | None:
        """Find the object's pixels (H, W) in what the network sees; None where no mask is known."""
        images, seen = material.images, material.view
        if images.mask is None or seen.note:
            return None
        return seen.cut(np.asarray(images.mask(material.index), dtype=bool), self._grid[::-1])

    def _make_region(self, material: TrialMaterial, evidence: PixelArray) -> RegionFacts | None:
        """Make the region that participants are to find; None where they choose an option."""
        if self.config.task.place is None:
            return None
        width, height = self.size
        try:
            return make_region(evidence, self.config.place.share, height / width, self._find_object(material))
        except ForetellError as error:
            raise ForetellError(f"Trial {material.id} cannot be used: {error}") from None

    def _teaching_facts(self, planned: PlannedTrial) -> TeachingFacts:
        chosen, settings = planned.teaching, self.config.teaching
        return TeachingFacts(
            p_learner=significant(chosen.p_learner),
            p_prior=significant(chosen.p_prior),
            gain=significant(chosen.gain),
            policy=chosen.policy,
            sets_scored=chosen.scored,
            rank=significant(chosen.rank),
            curve=tuple((count, significant(best)) for count, best in chosen.curve),
            weight=settings.weight,
            copies=settings.copies,
        )

    def _areas(self, inputs: Tensor, target: int, explanation: Explanation, progress: Progress) -> dict[str, float]:
        """Compute the areas under the deletion and insertion curves of the target's heatmap, in probability."""
        steps = min(STEPS, inputs[0, 0].numel())
        curves = [
            draw(self.classifier, inputs, [target], explanation.evidence[:1], steps=steps, progress=progress)
            for draw in (deletion, insertion)
        ]
        return {curve.measure: significant(float(curve.area[0])) for curve in curves}

    @staticmethod
    def _heatmap_facts(explanation: Explanation, basis: str, notes: set[str], areas: dict[str, float]) -> HeatmapFacts:
        certificate = explanation.certificates[0]
        facts = {
            "method": certificate.method,
            "parameters": certificate.parameters,
            "samples": certificate.samples,
            "seed": certificate.seed,
            "warnings": certificate.warnings,
            "relevance_on": basis,
            "standard_error": _round(certificate.standard_error),
            "effective_samples": _round(certificate.effective_samples),
            "completeness": _round(certificate.completeness),
        }
        facts |= {"origin": certificate.origin} if certificate.origin else {}
        return HeatmapFacts.model_validate(facts | ({"drawing": " ".join(sorted(notes))} if notes else {}) | areas)


def _round(value: float | None) -> float | None:
    return None if value is None else significant(value)


def compute_drawn_values(explanation: Explanation, i: int, drawing: str) -> PixelArray:
    """Return the values (H, W) in [-1, 1] that heatmap ``i`` is drawn from.

    ``"evidence"``: minus the method's zero, faded within the standard error. ``"values"``: as they are.
    """
    if drawing == "values":
        explanation = replace(explanation, zero=0.0, error=None)
    error = None if explanation.error is None else explanation.error[i]
    return scale_of(explanation, i).normalise_map(explanation.map[i], error)


def map_seed(config: StudyConfig, trial: str) -> int:
    """Return the seed of everything random in a trial's heatmaps."""
    own = () if config.saliency.common_masks else (trial,)
    return seed_of(config.study.seed, "map", *own)


def _box(grid: tuple[int, int]) -> NDArray[np.bool_]:
    height, width = grid
    inside = np.zeros(grid, dtype=bool)
    h, w = round(height * CENTRE / 2), round(width * CENTRE / 2)
    inside[height // 2 - h : height // 2 + h, width // 2 - w : width // 2 + w] = True
    return inside
