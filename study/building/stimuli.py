"""One trial's pictures: maps made, drawn and written under the SHA-256 of their bytes."""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from core.classifier import Classifier
from core.faithfulness.curves import deletion, insertion
from core.faithfulness.randomisation import reinitialised
from core.rendering import Pixels, overlay, scale_of
from core.teaching.examples import PER_CATEGORY
from core.teaching.masks import elsewhere
from core.types import Explanation, Progress, silent
from core.views import View, view
from data.types import ImageSet
from study.building.conceptcharts import ConceptEffects, chart, concept_effects
from study.building.design import Candidate, Material
from study.building.gauge import gauge
from study.building.plan import WRONG, PlannedTrial
from study.bundle import Example, Placebo, Trial, TrialAssets
from study.conditions import CONDITIONS
from study.network.heatmapcache import MapCache
from study.network.sources import plain
from study.plan.config import StudyConfig
from study.workspace.files import write_whole
from study.workspace.seeds import seed_of

WEBP = {"quality": 90, "method": 4}
STEPS = 100
"""Points of a deletion or insertion curve: those of `core.faithfulness.curves`, fewer only in tiny pictures."""
CENTRE = 0.5
"""Side of the central box, as a share of the picture's, that stands for the object where no mask is known."""


@dataclass(frozen=True)
class Seen:
    """The target image of a trial: how it is drawn, and the network's input (1, C, H, W)."""

    view: View
    inputs: Tensor


class Studio:
    """Makes the stimuli of a study; every trial is a pure function of the study file, the images and the weights."""

    def __init__(
        self,
        config: StudyConfig,
        classifier: Classifier,
        sets: dict[str, ImageSet],
        material: Material,
        assets: Path,
        cache: Path,
    ) -> None:
        self.config, self.classifier, self.sets, self.material = config, classifier, sets, material
        self.assets, self.maps = assets, MapCache(classifier, config.saliency, cache)
        assets.mkdir(parents=True, exist_ok=True)

    def make(self, planned: PlannedTrial, progress: Progress) -> Trial:
        """Explain and draw one trial; its assets are on disk when it returns."""
        candidate, teaching = planned.candidate, planned.teaching
        pictures = self._pictures(planned)
        inputs = torch.stack([self.classifier.preprocess(picture) for picture in pictures])
        explanation = self.maps.explain(inputs, self._classes(candidate), map_seed(self.config, planned.id), progress)
        target, *others = (view(self.classifier, p, x) for p, x in zip(pictures, inputs, strict=True))
        seen = Seen(target, inputs[:1])
        plain_assets = [self._write(one.draw(self._size)) for one in (target, *others)]
        mapped = [
            self._write(self._mapped(one, self._values(explanation, i))) for i, one in enumerate((target, *others))
        ]
        names = [self._name(k) for k in self._classes(candidate)]
        examples = tuple(
            Example(category=names[k], source=self.sets["pool"].ids[i], image=plain_assets[k], map=mapped[k])
            for k, i in enumerate(teaching.indices, 1)
        )
        options = (names[0], self._name(candidate.alternative))
        answers = self.material.of(candidate.role)
        relevance, basis = self._relevance(candidate, seen.view, explanation.evidence[0].numpy())
        placebos = {name: self._placebo(name, planned, seen, explanation, options) for name in self._placebos}
        return Trial(
            id=planned.id,
            trial_type=candidate.trial_type,
            target=names[0],
            alternative=options[1],
            truth=self._name(candidate.truth),
            options=options[::-1] if planned.flip else options,
            ai_probability=_rounded(answers.probability[candidate.index]),
            source=f"{self.sets[candidate.role].name}/{self.sets[candidate.role].ids[candidate.index]}",
            assets=TrialAssets(target=plain_assets[0], target_map=mapped[0], examples=examples, placebos=placebos),
            teaching=self._teaching_facts(planned),
            saliency=self._saliency_facts(explanation, basis, {one.note for one in (target, *others)} - {""})
            | self._areas(seen.inputs, candidate.target, explanation, progress),
            relevance=relevance,
            doubt=planned.doubt,
        )

    def _classes(self, candidate: Candidate) -> list[int]:
        """The class each of the five maps explains: the AI's answer, then each example's own category."""
        return [candidate.target, *[candidate.target] * 2, *[candidate.alternative] * 2]

    def _pictures(self, planned: PlannedTrial) -> list[Image.Image]:
        candidate = planned.candidate
        pool = self.sets["pool"]
        return [self.sets[candidate.role].open(candidate.index), *map(pool.open, planned.teaching.indices)]

    @property
    def _placebos(self) -> list[str]:
        return [name for name in self.config.conditions if CONDITIONS[name].beside]

    @cached_property
    def _relied_on(self) -> ConceptEffects:
        """What the network goes by, over the pool."""
        return concept_effects(self.classifier, self.sets["pool"], seed_of(self.config.study.seed, "concepts"))

    @cached_property
    def _forgotten(self) -> MapCache:
        """Maps of the network that has learned nothing."""
        seed = seed_of(self.config.study.seed, "reinitialised")
        network = reinitialised(self.classifier, torch.Generator().manual_seed(seed))
        return MapCache(network, self.config.saliency, self.maps.folder.parent)

    def _placebo(
        self, name: str, planned: PlannedTrial, seen: Seen, true: Explanation, options: tuple[str, str]
    ) -> Placebo:
        if planned.wrong is not None and name == WRONG:
            found = [
                self._write(view(self.classifier, self.sets["pool"].open(i)).draw(self._size))
                for i in planned.wrong.indices
            ]
            return Placebo(
                examples={options[0]: tuple(found[:PER_CATEGORY]), options[1]: tuple(found[PER_CATEGORY:])},
                sources=tuple(self.sets["pool"].ids[i] for i in planned.wrong.indices),
                gain=_rounded(planned.wrong.gain),
            )
        if name == "concepts":
            return self._charts(planned.candidate, options)
        if name == "uncertainty":
            return self._gauge(planned.candidate)
        evidence, signed = self._placebo_map(name, planned, seen.inputs, true)
        relevance, _ = self._relevance(planned.candidate, seen.view, evidence)
        return Placebo(target_map=self._write(self._mapped(seen.view, signed)), relevance=relevance)

    def _charts(self, candidate: Candidate, options: tuple[str, str]) -> Placebo:
        """What makes the AI say each option, and how that speaks for its answer to this picture."""
        classes, effects = (candidate.target, candidate.alternative), self._relied_on
        found = [self._write(chart(effects.strongest(k), self._size)) for k in classes]
        own = {name: factor.known for name, factor in self.sets[candidate.role].factors.items()}
        seen = {name: known[candidate.index] for name, known in own.items() if known is not None}
        return Placebo(
            examples={name: (drawn,) for name, drawn in zip(options, found, strict=True)},
            gain=_rounded(effects.gain(seen, *classes)),
        )

    def _gauge(self, candidate: Candidate) -> Placebo:
        """How sure the AI is; a reader takes a sure AI to see what she sees, as if its map lay on the object."""
        sure = _rounded(self.material.of(candidate.role).probability[candidate.index])
        return Placebo(target_map=self._write(gauge(sure, self._size)), relevance=sure)

    def _placebo_map(
        self, name: str, planned: PlannedTrial, inputs: Tensor, true: Explanation
    ) -> tuple[Pixels, Pixels]:
        """Evidence and values to draw (H, W) of a map that says nothing of the answer."""
        if name == "random_maps":
            seed = seed_of(self.config.study.seed, name, planned.id)
            places = elsewhere(torch.from_numpy(self._values(true, 0)), torch.Generator().manual_seed(seed)).numpy()
            return true.evidence[0].numpy().flat[places], self._values(true, 0).flat[places]
        seed = seed_of(self.config.study.seed, "map", planned.id)
        found = self._forgotten.explain(inputs, [planned.candidate.target], seed, silent)
        return found.evidence[0].numpy(), self._values(found, 0)

    def _values(self, explanation: Explanation, i: int) -> Pixels:
        return drawn_values(explanation, i, self.config.saliency.drawing)

    def _mapped(self, seen: View, signed: Pixels) -> Image.Image:
        return overlay(seen.draw(self._size, "L"), signed, self._size, self.config.saliency.opacity)

    @property
    def _grid(self) -> tuple[int, int]:
        return self.classifier.input_shape[1:]

    @property
    def _size(self) -> tuple[int, int]:
        height, width = self._grid
        side = self.config.display.size
        return round(side * width / max(height, width)), round(side * height / max(height, width))

    def _write(self, picture: Image.Image) -> str:
        buffer = io.BytesIO()
        picture.save(buffer, "WEBP", **WEBP)
        content = buffer.getvalue()
        name = hashlib.sha256(content).hexdigest()
        path = self.assets / f"{name}.webp"
        if not path.is_file():
            write_whole(path, content)
        return name

    def _name(self, k: int) -> str:
        return plain(self.classifier.categories[k])

    def _relevance(self, candidate: Candidate, seen: View, evidence: Pixels) -> tuple[float, str]:
        """How much more the target's map supports the object than what surrounds it, and what counted as object.

        Mean positive evidence per pixel on the object, divided by that plus the mean per pixel around it: .5 when
        the map does not tell them apart, whatever the object's size.
        """
        images = self.sets[candidate.role]
        inside = _box(self._grid)
        basis = "centre of the picture"
        if images.mask is not None and not seen.note:
            inside = seen.cut(np.asarray(images.mask(candidate.index), dtype=bool), self._grid[::-1])
            basis = "object mask"
        evidence = evidence.clip(min=0)
        on, off = float(evidence[inside].mean()), float(evidence[~inside].mean())
        return (_rounded(on / (on + off)) if on + off > 0 else 0.5), basis

    def _teaching_facts(self, planned: PlannedTrial) -> dict[str, Any]:
        chosen, settings = planned.teaching, self.config.teaching
        return {
            "p_learner": _rounded(chosen.p_learner),
            "p_prior": _rounded(chosen.p_prior),
            "gain": _rounded(chosen.gain),
            "policy": chosen.policy,
            "sets_scored": chosen.scored,
            "rank": _rounded(chosen.rank),
            "curve": [[count, _rounded(best)] for count, best in chosen.curve],
            "weight": settings.weight,
            "copies": settings.copies,
        }

    def _areas(self, inputs: Tensor, target: int, explanation: Explanation, progress: Progress) -> dict[str, float]:
        """Areas under the deletion and insertion curves of the target's map, in probability."""
        steps = min(STEPS, inputs[0, 0].numel())
        curves = [
            draw(self.classifier, inputs, [target], explanation.evidence[:1], steps=steps, progress=progress)
            for draw in (deletion, insertion)
        ]
        return {curve.measure: _rounded(float(curve.area[0])) for curve in curves}

    def _saliency_facts(self, explanation: Explanation, basis: str, notes: set[str]) -> dict[str, Any]:
        certificate = explanation.certificates[0]
        optional = {
            "standard_error": certificate.standard_error,
            "effective_samples": certificate.effective_samples,
            "completeness": certificate.completeness,
        }
        return {
            "method": certificate.method,
            "parameters": certificate.parameters,
            "samples": certificate.samples,
            "seed": certificate.seed,
            "warnings": list(certificate.warnings),
            "relevance_on": basis,
            **{key: None if value is None else _rounded(value) for key, value in optional.items()},
            **({"drawing": " ".join(sorted(notes))} if notes else {}),
        }


def drawn_values(explanation: Explanation, i: int, drawing: str) -> Pixels:
    """Return the values (H, W) in [-1, 1] that heatmap ``i`` is drawn from.

    ``"evidence"``: minus the method's zero, faded within the standard error. ``"values"``: as they are.
    """
    if drawing == "values":
        explanation = replace(explanation, zero=0.0, error=None)
    error = None if explanation.error is None else explanation.error[i]
    return scale_of(explanation, i).signed(explanation.map[i], error)


def map_seed(config: StudyConfig, trial: str) -> int:
    """The seed of everything random in a trial's maps."""
    own = () if config.saliency.common_masks else (trial,)
    return seed_of(config.study.seed, "map", *own)


def _box(grid: tuple[int, int]) -> NDArray[np.bool_]:
    height, width = grid
    inside = np.zeros(grid, dtype=bool)
    h, w = round(height * CENTRE / 2), round(width * CENTRE / 2)
    inside[height // 2 - h : height // 2 + h, width // 2 - w : width // 2 + w] = True
    return inside


def _rounded(value: float) -> float:
    """Six significant digits: what is stored must not hang on the last bit of a sum."""
    return float(f"{float(value):.6g}")
