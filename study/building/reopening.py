"""A frozen study opened again: its planner, and of each trial what was weighed when it was made."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import cast

from PIL import Image

from core.attribution.method import HeatmapMethod
from core.attribution.outside.external import ImageRecord
from core.drawing.views import view
from core.errors import ForetellError
from core.types import Explanation, Progress, silent
from study.building.averaged import AveragedAccuracy, compare
from study.building.candidates import ROLE_OF_TYPE, Candidate, foil
from study.building.plan import Planner, make_planner, names_of_image
from study.building.stimuli import map_seed
from study.bundle import Bundle, Trial, TrialType
from study.network.heatmapcache import MapCache
from study.network.sources import Sources, open_config_sources
from study.plan.config import Saliency, read_frozen


@dataclass(frozen=True)
class ReopenedStudy:
    """A bundle with everything it was made from; ``cache`` is the workspace's."""

    bundle: Bundle
    sources: Sources
    planner: Planner
    cache: Path

    @cached_property
    def prior_accuracy(self) -> AveragedAccuracy | None:
        """How accurate the learner's prior is as a classifier, by today's code; bundles keep what their build said."""
        pool = self.planner.material.pool
        return compare(self.planner.prior, pool.features, pool.truth, self.planner.seed)

    def candidate(self, trial: Trial) -> Candidate:
        """Return the target image of a trial, and the classes involved."""
        material = self.planner.material
        role = ROLE_OF_TYPE[trial.trial_type]
        images, predictions = self.sources.sets[role], material.of(role)
        index = list(images.ids).index(trial.source.removeprefix(f"{images.name}/"))
        truth = int(predictions.truth[index])
        other = foil(material, truth) if trial.trial_type == "std_correct" else truth
        return Candidate(
            cast("TrialType", trial.trial_type), role, index, truth, int(predictions.predicted[index]), other
        )

    def open_image(self, trial: Trial) -> Image.Image:
        """Return the target image of a trial, as it is in its set."""
        candidate = self.candidate(trial)
        return self.sources.sets[candidate.role].open(candidate.index)

    def target_map(self, trial: Trial, progress: Progress = silent) -> Explanation:
        """Return the heatmap of a trial's target image with its standard error: the build's, or made again."""
        return self.explain_target(trial, self.sources.method, self.sources.config.saliency, progress)

    def explain_target(
        self, trial: Trial, method: HeatmapMethod, settings: Saliency, progress: Progress = silent
    ) -> Explanation:
        """Return the heatmap of a trial's target image by any method, whose name and parameters are in ``settings``."""
        classifier, config = self.sources.classifier, self.sources.config
        candidate, photograph = self.candidate(trial), self.open_image(trial)
        inputs = classifier.preprocess(photograph)
        names = names_of_image(candidate.role, self.sources.sets[candidate.role], candidate.index)
        record = ImageRecord.of(view(classifier, photograph, inputs), *names)
        maps = MapCache(classifier, settings, self.cache, method)
        return maps.explain(inputs[None], [candidate.target], map_seed(config, trial.id), progress, [record])


def reopen(bundle: Bundle, cache: Path, progress: Progress = silent) -> ReopenedStudy:
    """Open what a bundle was made from.

    Raises
    ------
    ForetellError
        The classifier or the images are not there, or not what they were.
    """
    manifest = bundle.manifest
    if not manifest.config:
        raise ForetellError(
            f"The study {manifest.name!r} does not record its classifier and image sets. Build it again."
        )
    sources = open_config_sources(read_frozen(manifest.config), Path(manifest.environment["base"]))
    if sources.classifier.fingerprint != manifest.classifier["fingerprint"]:
        raise ForetellError(
            f"The classifier {manifest.classifier['name']!r} has different weights than when the study was frozen. "
            "Build the study again."
        )
    changed = [role for role, images in sources.sets.items() if images.digest != manifest.sets[role]["digest"]]
    if changed:
        raise ForetellError(
            f"The image set {changed[0]!r} is not the one the study was built from. Build the study again."
        )
    return ReopenedStudy(bundle, sources, make_planner(sources, cache, progress), cache)
