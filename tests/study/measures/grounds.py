"""The built-in network on scenes, as measures of a study's pictures stand on them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import torch

from core.teaching.kfac import fit_prior
from study.building.candidates import Candidate
from study.building.measures.ground import Ground, MeasuredValue
from study.network.sources import class_of_labels, open_set
from study.plan.config import ImageSource
from study.plan.measures import IMAGE_MEASURES
from study.plan.strata import Strata
from tests.core.scenes import scene_net

SIZES = {"pool": 160, "standard": 40, "adversarial": 40}


@cache
def _scenes() -> Ground:
    classifier = scene_net()
    sets = {
        role: open_set(ImageSource.model_validate({"set": "scenes", "split": role, "size": size}), Path.cwd())
        for role, size in SIZES.items()
    }
    features = classifier.features(torch.stack([classifier.preprocess(sets["pool"].open(i)) for i in range(20)]))
    prior = fit_prior(classifier.head, [features], damping=0.01)
    return Ground(Strata(measure="margin"), classifier, sets, prior, Path.cwd(), Path.cwd(), 7)


def ground(folder: Path, measure: str, **parameters: object) -> Ground:
    """Strata of a study file in ``folder``."""
    return replace(_scenes(), settings=Strata(measure=measure, parameters=parameters), base=folder, cache=folder)


def asked(on: Ground, role: str, index: int) -> tuple[Candidate, MeasuredValue]:
    """A picture as a candidate whose AI's answer is its likeliest class, and its number."""
    truth = int(class_of_labels(on.sets[role], on.classifier)[index])
    found = Candidate("adversarial", role, index, truth, truth, truth)
    answer = int(on.classifier.logits(on.inputs(found)).argmax())
    found = replace(found, target=answer)
    return found, IMAGE_MEASURES[on.settings.measure](on, **on.settings.parsed_parameters)(found)
