"""A study file with everything it names, opened: its classifier, image sets, prior, and predictions."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from core.classifier import Classifier
from core.types import Progress, silent
from data.types import ImageSet
from study.building.design import SetPredictions
from study.building.strata import files_digest
from study.network.predictions import predict, transforms_digest
from study.network.priors import StoredPrior, load_prior
from study.network.sources import open_classifier, open_sets
from study.plan.config import StudyConfig, read
from study.workspace.provenance import code_digest


@dataclass(frozen=True)
class Sources:
    """A study file with everything it names, opened."""

    config: StudyConfig
    base: Path
    classifier: Classifier
    sets: dict[str, ImageSet]
    prior: StoredPrior | None

    @property
    def key(self) -> str:
        """SHA-256 over settings, weights, images, files that these name, and the code: what the stimuli depend on."""
        parts = [self.config.digest, self.classifier.fingerprint, transforms_digest(self.classifier), code_digest()]
        parts += [images.digest for images in self.sets.values()]
        parts += [self.prior.digest] if self.prior else []
        strata = self.config.trials.strata
        files = files_digest(strata, self.base) if strata else None
        parts += [files] if files else []
        return hashlib.sha256("|".join(parts).encode()).hexdigest()


def open_sources(path: Path, device: str | None = None) -> Sources:
    """Read a study file and open its classifier and image sets."""
    return open_config_sources(read(path), path.resolve().parent, device)


def open_config_sources(config: StudyConfig, base: Path, device: str | None = None) -> Sources:
    """Open what a study file's content names, files relative to ``base``."""
    sets = open_sets(config, base)  # first: a missing folder is told before weights are fetched
    whole = config.classifier.resize == "whole"
    classifier = open_classifier(config.classifier.model, base, device, whole=whole)
    file = config.teaching.prior
    prior = None if file is None else load_prior(base / Path(file).expanduser(), classifier)
    return Sources(config, base, classifier, sets, prior)


def predict_sets(sources: Sources, cache: Path, progress: Progress = silent) -> SetPredictions:
    """Return the network's predictions for the sets of a study, from the cache or made now."""
    classifier, sets = sources.classifier, sources.sets
    predictions = {
        role: predict(classifier, sets[role], cache, progress, features=sets[role].digest == sets["pool"].digest)
        for role in ("pool", "standard", "adversarial")
    }
    one_way = sources.config.trials.confusion == "target"
    return SetPredictions(classifier.categories, **predictions, one_way=one_way)
