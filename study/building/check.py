"""A check before the build: what prevents the study, what its images allow, and how long the build takes.

Nothing is rendered or frozen. The network's predictions are kept in the workspace, so the build that follows does not
ask for them again.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from core.attribution.cost import Cost, pace
from core.attribution.outside.external import reads_heatmaps
from core.attribution.records import cost_of, record_of
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.network.device import one_thread
from core.types import Progress, silent
from data.types import ImageSet
from study.analysis.models import random_effects
from study.analysis.planned import means
from study.building import attributes
from study.building.attributes import AttributeMaker
from study.building.averaged import compare
from study.building.categories import CategoryShortage, Supply, choose_categories, count_of, describe
from study.building.names import make_unit_maker
from study.building.plan import Planner, TrialPlan, count_unpredicted, predict_sets, refuse_uncovered
from study.building.stimuli import STEPS
from study.building.units import count_unread
from study.bundle import OF_UNITS
from study.conditions import CONDITIONS
from study.network.sources import UNMATCHED, Sources, class_of_labels, open_sources
from study.plan import orders
from study.plan.config import StudyConfig

HEATMAPS = 5
"""Heatmaps of a trial: of the target and of its four examples."""
MOST_NAMES = 5
DRAWING_S = 0.01
"""Seconds in which an image is opened, drawn and written."""
PREVIEWS = "previews"
"""The folder of the workspace's cache for images that no study has."""
LONG = "There are images for every category. Whether examples can be found for every trial is not checked yet."


@dataclass(frozen=True)
class StudyCheck:
    """The result of a check before a build.

    Attributes
    ----------
    sets
        One line per image set: its images, and what in it cannot be used.
    notes
        What the researcher should know, one sentence each.
    warnings
        What makes the study worse than its file says, each with a remedy where there is one.
    obstacles
        What prevents the build, each with a remedy; empty where it can be built.
    supply
        What the images offer each category; None where a set matches no class of the network.
    trials
        Trials that the plan has.
    seconds
        Estimated duration of the build; None where it cannot be built.
    postponed
        What was not checked because it takes long, in a sentence; empty where everything was.
    chosen
        The categories that the study would have, by name.
    doubts
        Why the study could not show what it is made for, although it can be built, each with a remedy.
    """

    sets: tuple[str, ...]
    notes: tuple[str, ...]
    obstacles: tuple[str, ...]
    supply: Supply | None
    trials: int = 0
    seconds: float | None = None
    postponed: str = ""
    warnings: tuple[str, ...] = ()
    chosen: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()

    @property
    def lines(self) -> list[str]:
        """The whole check as text, obstacles last."""
        told = [*self.sets]
        if self.supply is not None:
            told += ["Usable images per category, as the network classifies them:", *describe(self.supply)]
        warned = (f"Warning: {text}" for text in (*self.doubts, *self.warnings))
        return [*told, *self.notes, *warned, *self.obstacles]


def check(
    path: Path,
    home: Path,
    progress: Progress = silent,
    *,
    device: str | None = None,
    workers: int = 1,
    patience_s: float = math.inf,
) -> StudyCheck:
    """Examine the study of a study file without building it.

    Parameters
    ----------
    workers
        Processes that the build would have; the estimate depends on them.
    patience_s
        Seconds that the network may take. What takes longer is left out, and the result says so. The duration of
        augmented copies and of strata is not known before, so they are left out whenever there is a limit.

    Raises
    ------
    ForetellError
        A study file, network or image set that cannot be opened: without them nothing can be said.
    """
    sources = open_sources(path, device)
    sets = tuple(_set_line(role, images, sources.classifier) for role, images in sources.sets.items())
    unmatched = tuple(_list_unmatched_sets(sources)) if sources.config.task.is_of_predictions else ()
    if unmatched:
        return StudyCheck(sets, (), unmatched, None)
    postponed = _postpone_predictions(sources, home / "cache", patience_s)
    if postponed:
        return StudyCheck(sets, (), (), None, postponed=postponed)
    if sources.config.task.of_attributes:
        return _check_attributes(sources, home / "cache", progress, sets)
    if sources.config.task.of_units:
        return _check_units(sources, home / "cache", progress, sets)
    return _check_plan(sources, home / "cache", progress, sets, workers, patience_s)


def _postpone_predictions(sources: Sources, cache: Path, patience_s: float) -> str:
    """Say how long the network takes to predict the images, if it is longer than ``patience_s``."""
    task = sources.config.task
    count = attributes.count_unpredicted if task.of_attributes else count_unread if task.of_units else count_unpredicted
    missing = count(sources, cache) if patience_s < math.inf else 0
    seconds = missing * pace(sources.classifier).forward_s if missing else 0.0
    if seconds <= patience_s:
        return ""
    return f"The network has not predicted {count_of(missing, 'image')} yet, which takes {_duration(seconds)}."


@one_thread()
def _check_plan(
    sources: Sources, cache: Path, progress: Progress, sets: tuple[str, ...], workers: int, patience_s: float
) -> StudyCheck:
    material = predict_sets(sources, cache, progress)
    settings = sources.config.trials
    supply = Supply(material, settings.per_type)
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    try:
        if patience_s < math.inf and (settings.strata is not None or sources.config.teaching.copies > 1):
            choose_categories(material, settings.categories, settings.per_type, settings.spread)
            return StudyCheck(sets, notes, (), supply, postponed=LONG)
        means.check(sources.config.analysis.means)
        planner = Planner(sources, material, cache)
        averaged = compare(planner.prior, material.pool.features, material.pool.truth, planner.seed)
        notes = (*_prior_notes(planner), *([averaged.facts] if averaged else []))
        warnings += (averaged.warning,) if averaged and averaged.warning else ()
        plan = planner.plan(progress)
        refuse_uncovered(sources, plan)
    except CategoryShortage as error:
        return StudyCheck(sets, notes, (error.summary,), supply, warnings=warnings)
    except ForetellError as error:
        return StudyCheck(sets, notes, (str(error),), supply, warnings=warnings)
    seconds = _seconds(sources, plan) / workers
    notes += (
        f"Planned: {count_of(len(plan.trials), 'trial')} and {len(plan.practice)} for practice.",
        f"Estimated duration of the build: {_duration(seconds)}.",
        *_method_notes(sources),
    )
    warnings += tuple(_plan_warnings(plan, sources))
    chosen = tuple(dict.fromkeys(supply.names.short[trial.candidate.truth] for trial in plan.trials))
    return StudyCheck(
        sets,
        notes,
        tuple(filter(None, [find_shortage(plan, sources.config)])),
        supply,
        len(plan.trials),
        seconds,
        warnings=warnings,
        chosen=chosen,
        doubts=tuple(_doubt_types(sources)),
    )


@one_thread()
def _check_units(sources: Sources, cache: Path, progress: Progress, sets: tuple[str, ...]) -> StudyCheck:
    """Examine a study about units: which of them tell enough images apart."""
    config = sources.config
    try:
        means.check(config.analysis.means)
        maker = make_unit_maker(sources, cache / PREVIEWS, cache, progress)
    except ForetellError as error:
        return StudyCheck(sets, (), (str(error),), None)
    made = [(str(one.channel), OF_UNITS[0]) for one in maker.trials]
    omission = random_effects.planned_omission(
        config.plan.models, config.conditions, made, within=config.allocation.within
    )
    missing = config.trials.practice - len(maker.practice)
    lost = f"{count_of(missing, 'practice trial')} cannot be made: no units are left for practice." if missing else ""
    planned = f"Planned: {count_of(len(maker.trials), 'trial')} and {len(maker.practice)} for practice."
    names = tuple(dict.fromkeys(f"{config.units.layer}:{one.channel}" for one in maker.trials))
    warnings = tuple(filter(None, (omission, lost)))
    drawn = (len(maker.trials) + len(maker.practice)) * 2 * (1 + config.units.references)
    return StudyCheck(sets, (planned,), (), None, len(maker.trials), DRAWING_S * drawn, warnings=warnings, chosen=names)


@one_thread()
def _check_attributes(sources: Sources, cache: Path, progress: Progress, sets: tuple[str, ...]) -> StudyCheck:
    """Examine a study about attributes: whether there are enough images of the two classes."""
    config = sources.config
    try:
        means.check(config.analysis.means)
        maker = AttributeMaker(sources, cache / PREVIEWS, cache, progress)
    except ForetellError as error:
        return StudyCheck(sets, (), (str(error),), None)
    drawn = (len(maker.trials) + len(maker.practice)) * config.attributes.images
    one = cost_of(config.saliency.method, config.saliency.parameters, sources.classifier) or Cost()
    seconds = drawn * (pace(sources.classifier).seconds(one) + DRAWING_S)
    notes = (
        f"Planned: {count_of(len(maker.trials), 'grid')} and {len(maker.practice)} for practice.",
        f"Estimated duration of the build: {_duration(seconds)}.",
        *_method_notes(sources),
    )
    return StudyCheck(sets, notes, (), None, len(maker.trials), seconds, chosen=maker.names)


def _set_line(role: str, images: ImageSet, classifier: Classifier) -> str:
    """Describe a set: its size, unreadable files and categories that are not classes of the network."""
    parts = [f"{role}: {images.name}, {count_of(len(images), 'image')} of {len(images.categories)} categories"]
    if images.skipped:
        first = images.skipped[0]
        parts.append(f"{count_of(len(images.skipped), 'file')} left out, such as {first.id} ({first.reason})")
    truth = class_of_labels(images, classifier, refuse=False)
    strangers = [images.categories[k] for k in np.unique(images.labels[truth == UNMATCHED])]
    if strangers and (truth != UNMATCHED).any():
        names = ", ".join(strangers[:MOST_NAMES]) + (", ..." if len(strangers) > MOST_NAMES else "")
        one, many = "category that is not a class", "categories that are not classes"
        parts.append(f"{count_of(len(strangers), one, many)} of the network: {names}")
    return "; ".join(parts)


def _list_unmatched_sets(sources: Sources) -> Iterator[str]:
    """Yield a sentence for each set of which no category is a class of the network."""
    for images in {images.digest: images for images in sources.sets.values()}.values():
        try:
            class_of_labels(images, sources.classifier)
        except ForetellError as error:
            yield str(error)


def _doubt_types(sources: Sources) -> Iterator[str]:
    """Yield that two types of trials have their images from one set, so that no difference is between them."""
    pool, standard, adversarial = (sources.sets[role] for role in ("pool", "standard", "adversarial"))
    if standard.digest == adversarial.digest:
        same = "Example pool, standard" if pool.digest == standard.digest else "Standard"
        yield (
            f"{same} and adversarial images are the same set ({standard.name}): “AI wrong (standard)” and “AI wrong "
            "(adversarial)” would not differ. Divide the set under Images in Design, or choose another set for one."
        )


def _prior_notes(planner: Planner) -> Iterator[str]:
    """Yield what the learner's prior needed."""
    prior, settings = planner.prior, planner.config.teaching
    if settings.prior is None and prior.damping != settings.damping:
        yield (
            f"The pool's {count_of(prior.images, 'image')} do not span the network's {prior.head.shape[1]:,} feature "
            f"directions: damping = {prior.damping:.3g} was chosen by the rule of Ledoit and Wolf (2004)."
        )


def _plan_warnings(plan: TrialPlan, sources: Sources) -> Iterator[str]:
    """Yield slopes that the planned models leave out, dropped trials and missing practice."""
    config, made = sources.config, [(str(one.candidate.target), one.candidate.trial_type) for one in plan.trials]
    within = config.allocation.within
    omission = random_effects.planned_omission(config.plan.models, config.conditions, made, within=within)
    if within and (division := orders.describe_division(_count_types(plan), config.conditions)):
        yield division
    if omission is not None:
        yield omission
    for dropped in plan.dropped:
        yield f"Dropped: {dropped['category']}, {dropped['trial_type']}: {dropped['reason']}"
    yield from _certain_classes(plan, sources)
    missing = sources.config.trials.practice - len(plan.practice)
    if missing > 0:
        yield f"{count_of(missing, 'practice trial')} cannot be made: no images are left for practice."


def _certain_classes(plan: TrialPlan, sources: Sources) -> Iterator[str]:
    """Yield the classes of trials about which the learner's prior is certain, so that no example teaches them."""
    shown = {k for one in plan.trials for k in (one.candidate.target, one.candidate.alternative)}
    names = [repr(sources.classifier.names.short[k]) for k in plan.certain if k in shown]
    # A prior of a file has its own tau, which a study file may not set.
    tau = "make its file again with `prior --tau` above 0" if sources.prior else "set tau above 0 under [teaching]"
    if names:
        yield (
            f"The network's probability of {', '.join(names)} is almost 0 or 1 on every image of the learner's prior, "
            "which is therefore certain of the weights: examples teach the learner nothing about such a class. Give "
            f"the prior images of which the network is less sure, or {tau}."
        )


def _method_notes(sources: Sources) -> Iterator[str]:
    """Yield that the duration of a method whose cost is unknown is not in the estimate."""
    if record_of(sources.config.saliency.method).cost is None and not reads_heatmaps(sources.method):
        yield f"The time that {sources.method.__name__} takes for its heatmaps is not in this estimate."


def find_shortage(plan: TrialPlan, config: StudyConfig) -> str:
    """Find why the trials that were made are too few for the study, and say it; empty where they suffice."""
    if not plan.trials:
        return plan.refusal
    if config.adaptive is not None:
        return config.adaptive.find_shortage(len(plan.trials)) or config.adaptive.find_few(_count_types(plan))
    if config.blocks is not None:
        return config.blocks.find_shortage(len(plan.trials))
    return orders.find_shortage(_count_types(plan), config.conditions) if config.allocation.within else ""


def _count_types(plan: TrialPlan) -> Counter[str]:
    return Counter(one.candidate.trial_type for one in plan.trials)


def _seconds(sources: Sources, plan: TrialPlan) -> float:
    """Estimate how long one process takes to make the heatmaps and their deletion and insertion curves."""
    config, classifier = sources.config, sources.classifier
    one = cost_of(config.saliency.method, config.saliency.parameters, classifier) or Cost()
    separate = [CONDITIONS[name] for name in config.conditions if CONDITIONS[name].is_separate]
    each_option = sum(condition.explains_each_option for condition in separate)
    maps = HEATMAPS + sum(condition.shows_saliency for condition in separate) + each_option * (config.task.options - 1)
    each = Cost(forwards=maps * one.forwards + 2 * (STEPS + 1), gradients=maps * one.gradients)
    return (len(plan.trials) + len(plan.practice)) * pace(classifier).seconds(each)


def _duration(seconds: float) -> str:
    """Return a duration in words, at two significant digits."""
    if seconds < 90:
        return f"about {max(1, round(seconds))} s"
    return f"about {seconds / 60:.0f} min" if seconds < 5400 else f"about {seconds / 3600:.1f} h"
