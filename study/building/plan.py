"""From candidates to a plan: which image is which trial, with which examples and which foil. No rendering yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import torch

from core.attribution.outside.external import ImageRecord
from core.attribution.outside.folders import HeatmapFolder
from core.errors import ForetellError
from core.teaching.examples import Search, choose_examples
from core.teaching.kfac import KroneckerPrior, fit_prior
from core.teaching.policies import POLICIES
from core.teaching.policies.policy import PER_CATEGORY
from core.types import Progress, TeachingSet, silent
from data.types import ImageSet
from study.building.candidates import Candidate, SetPredictions, candidates, shuffle_candidates
from study.building.categories import choose_categories
from study.building.measures.ground import Ground
from study.building.strata import Stratifier
from study.building.teachingpool import TeachingPool
from study.bundle import TRIAL_TYPES, TrialType
from study.conditions import CONDITIONS
from study.facts import StratumFacts
from study.network.predictions import count_missing, predict
from study.network.sources import Sources
from study.plan.teaching import Teaching
from study.workspace.seeds import seed_of

WRONG = "wrong_examples"
"""The condition whose examples are of other categories."""


@dataclass(frozen=True)
class TeachingProblem:
    """A target's features (M,) and the pool indices (N,) of its possible examples, ``targets`` of the target first."""

    candidate: Candidate
    pool: torch.Tensor
    targets: int
    image: torch.Tensor


@dataclass(frozen=True)
class PlannedTrial:
    """A trial with its teaching set, of pool indices; ``flip`` says whether the AI's prediction is option b.

    ``own_examples`` are teaching sets in the place of that one, by the condition that shows them; ``stratum`` says
    where the trial comes from, where the study has strata.
    """

    id: str
    candidate: Candidate
    teaching: TeachingSet
    flip: bool
    own_examples: Mapping[str, TeachingSet] = field(default_factory=dict)
    stratum: StratumFacts | None = None


@dataclass(frozen=True)
class TrialPlan:
    """The trials of a study, its practice trials, and what was dropped and why.

    ``repeats`` are the pool's near-duplicates that were left out, each with the image that it repeats, by their ids;
    ``certain`` are the classes of which the learner's prior is certain.
    """

    trials: tuple[PlannedTrial, ...]
    practice: tuple[PlannedTrial, ...]
    dropped: tuple[dict[str, str], ...]
    repeats: dict[str, str]
    certain: tuple[int, ...] = ()

    @property
    def refusal(self) -> str:
        """Why there is no study without a trial, and what helps."""
        reasons = "; ".join(f"{one['category']}, {one['trial_type']}: {one['reason']}" for one in self.dropped)
        return (
            f'Every trial was dropped ({reasons}): lower the threshold under [teaching], set policy = "best", which '
            "has none, or give a larger example pool."
        )


class Planner:
    """Chooses trials and teaching sets for a study, with a prior learned before or that of the pool."""

    def __init__(self, sources: Sources, material: SetPredictions, cache: Path) -> None:
        config, classifier, sets = sources.config, sources.classifier, sources.sets
        self.config, self.material, self.sets, self.classifier = config, material, sets, classifier
        self.seed = config.study.seed
        self.prior = sources.prior.prior if sources.prior else self._prior_of_the_pool()
        self.pool = TeachingPool(config, material.pool, sets["pool"], classifier, cache)
        self.dropped: list[dict[str, str]] = []
        self._stratum_of: dict[tuple[str, int], StratumFacts] = {}
        self._strata: Stratifier | None = None
        if config.trials.strata is not None:
            ground = Ground(
                config.trials.strata, classifier, sets, self.prior, sources.base, cache, self.seed, sources.limits
            )
            self._strata = Stratifier(ground)

    def plan(self, progress: Progress) -> TrialPlan:
        """Return the whole plan, in the same order for the same study file and images."""
        settings = self.config.trials
        categories = choose_categories(self.material, settings.categories, settings.per_type, settings.spread)
        picks: list[tuple[Candidate, TeachingSet]] = []
        for done, category in enumerate(categories, 1):
            for kind, trial_type in enumerate(TRIAL_TYPES):
                picks += self._trials(category, trial_type, settings.per_type, done + kind)
            progress(done, len(categories), "choosing trials and examples")
        practice = self._practice(categories, {_key(c) for c, _ in picks})
        trials, practised = self._name_trials("t", picks), self._name_trials("p", practice)
        return TrialPlan(trials, practised, tuple(self.dropped), self.pool.repeats, tuple(self.prior.certain))

    def _prior_of_the_pool(self) -> KroneckerPrior:
        teaching = self.config.teaching
        known = torch.from_numpy(self.material.pool.truth >= 0)
        return fit_prior(
            self.classifier.head, [self.material.pool.features[known]], tau=teaching.tau, damping=teaching.damping
        )

    def _in_order(self, category: int, trial_type: TrialType, turn: int) -> Iterator[Candidate]:
        """Return the candidates at random; with strata by turns, ``turn`` saying which stratum begins."""
        rng = np.random.default_rng(seed_of(self.seed, "targets", category, trial_type))
        in_order = candidates(self.material, category, trial_type)
        if self._strata is None:
            yield from shuffle_candidates(in_order, rng)
            return
        for ranked in self._strata.order_candidates(in_order, turn, rng):
            self._stratum_of[_key(ranked.candidate)] = self._strata.facts(ranked)
            yield ranked.candidate

    def _trials(
        self, category: int, trial_type: TrialType, wanted: int, turn: int
    ) -> list[tuple[Candidate, TeachingSet]]:
        order = self._in_order(category, trial_type, turn)
        picks: list[tuple[Candidate, TeachingSet]] = []
        failed: list[str] = []
        for candidate in islice(order, wanted * self.config.teaching.tries):
            chosen = self._teach(candidate, self.config.teaching)
            if isinstance(chosen, str):
                failed.append(chosen)
            else:
                picks.append((candidate, chosen))
            if len(picks) == wanted:
                return picks
        reason = (
            f"{wanted - len(picks)} trial(s) dropped: of {len(picks) + len(failed)} target image(s) tried "
            f"{len(picks)} could be taught; of the last, {failed[-1]}"
        )
        name = self.classifier.names.short[category]
        self.dropped.append({"category": name, "trial_type": trial_type, "reason": reason})
        return picks

    def question(self, candidate: Candidate, shown: tuple[int, int] | None = None) -> TeachingProblem | str:
        """Pose a target image's question to the pool, or say why the pool cannot teach it.

        ``shown`` are the categories of the possible examples, where they are not those of the two options.
        """
        inputs = self.classifier.preprocess(self.sets[candidate.role].open(candidate.index))[None]
        image = self.classifier.features(inputs)[0]
        classes = shown or (candidate.target, candidate.alternative)
        sides = [self.pool.usable(k, inputs, image) for k in classes]
        for side, category in zip(sides, classes, strict=True):
            if len(side) < PER_CATEGORY:
                name, count = self.classifier.names.short[category], len(side)
                return f"the pool has {count} usable image(s) of {name!r}, and a teaching set needs {PER_CATEGORY}"
        return TeachingProblem(candidate, torch.cat(sides), len(sides[0]), image)

    def search(self, question: TeachingProblem, teaching: Teaching) -> Search:
        """Score and choose teaching sets, of indices into the question's pool, as the settings say."""
        everyone = torch.arange(len(question.pool))
        return choose_examples(
            self.prior,
            self.pool.features(question.pool),
            everyone[: question.targets],
            everyone[question.targets :],
            question.image,
            (question.candidate.target, question.candidate.alternative),
            generator=torch.Generator().manual_seed(seed_of(self.seed, "examples", *_key(question.candidate))),
            policy=teaching.policy,
            sets=None if teaching.sets == "all" else teaching.sets,
            threshold=teaching.threshold,
            weight=teaching.weight,
            draws=teaching.draws,
        )

    def _teach(self, candidate: Candidate, teaching: Teaching) -> TeachingSet | str:
        """Return the teaching set of a target image, or why there is none."""
        question = self.question(candidate)
        if isinstance(question, str):
            return question
        search = self.search(question, teaching)
        if search.chosen is None:
            return (
                f"none of {search.scored} teaching sets made the learner's probability exceed {teaching.threshold} "
                f"(the best: {search.best:.3f})"
            )
        return _in_pool(question, search.chosen)

    def _own_examples(self, candidate: Candidate) -> dict[str, TeachingSet]:
        """Choose the examples of the conditions that show others than the study's policy chooses."""
        teaching_sets = {WRONG: self._wrong(candidate)} if WRONG in self.config.conditions else {}
        for name in self.config.conditions:
            policy = CONDITIONS[name].policy
            if policy is None:
                continue
            # Only the gain is frozen with these examples: random sets are scored where the policy chooses among them.
            sets = self.config.teaching.sets if POLICIES[policy].of_drawn else 1
            chosen = self._teach(candidate, self.config.teaching.model_copy(update={"policy": policy, "sets": sets}))
            if isinstance(chosen, str):
                raise ForetellError(f"The condition {name!r} has no examples for a trial: {chosen}. Leave it out.")
            teaching_sets[name] = chosen
        return teaching_sets

    def _wrong(self, candidate: Candidate) -> TeachingSet:
        """Draw images of two categories that are neither option, and compute what a learner would make of them.

        The first two that the pool has enough images of, in an order drawn for each trial.
        """
        options = (candidate.target, candidate.alternative)
        others = [int(k) for k in np.flatnonzero(self.material.teachable) if k not in options]
        rng = np.random.default_rng(seed_of(self.seed, WRONG, *_key(candidate)))
        at_random = self.config.teaching.model_copy(update={"policy": "random"})
        for one, other in pairwise(rng.permutation(others).tolist()):
            question = self.question(candidate, (one, other))
            if not isinstance(question, str) and (chosen := self.search(question, at_random).chosen) is not None:
                return _in_pool(question, chosen)
        raise ForetellError(
            f"The condition {WRONG!r} needs two categories besides the options, each with {PER_CATEGORY} usable "
            "images in the example pool. Give a larger pool, or leave the condition out."
        )

    def _practice(self, categories: Sequence[int], used: set[tuple[str, int]]) -> list[tuple[Candidate, TeachingSet]]:
        """Return practice trials from images no trial uses; they are not analysed, so any teaching set will do."""
        rng = np.random.default_rng(seed_of(self.seed, "practice"))
        best = self.config.teaching.model_copy(update={"policy": "best"})
        picks: list[tuple[Candidate, TeachingSet]] = []
        for k in range(self.config.trials.practice):
            trial_type = TRIAL_TYPES[-1 - k % len(TRIAL_TYPES)]  # an easy one first
            open_ones = [c for category in categories for c in candidates(self.material, category, trial_type)]
            for candidate in shuffle_candidates(open_ones, rng):
                chosen = "used" if _key(candidate) in used else self._teach(candidate, best)
                if not isinstance(chosen, str):
                    used.add(_key(candidate))
                    picks.append((candidate, chosen))
                    break
        return picks

    def _name_trials(self, letter: str, picks: Sequence[tuple[Candidate, TeachingSet]]) -> tuple[PlannedTrial, ...]:
        """Give the trials ids in order; the AI's prediction is option b in half of them, at random."""
        rng = np.random.default_rng(seed_of(self.seed, "options", letter))
        flips = rng.permutation(np.arange(len(picks)) % 2 == 1)
        return tuple(
            PlannedTrial(
                f"{letter}{i:03d}",
                candidate,
                chosen,
                bool(flip),
                self._own_examples(candidate),
                self._stratum_of.get(_key(candidate)),
            )
            for i, ((candidate, chosen), flip) in enumerate(zip(picks, flips, strict=True))
        )


def predict_sets(sources: Sources, cache: Path, progress: Progress = silent) -> SetPredictions:
    """Return the network's predictions for the sets of a study, from the cache or made now."""
    classifier, sets = sources.classifier, sources.sets
    predictions = {
        role: predict(classifier, images, cache, progress, features=_is_pool(sources, images))
        for role, images in sets.items()
    }
    trials = sources.config.trials
    one_way = trials.confusion == "target"
    return SetPredictions(classifier.categories, **predictions, one_way=one_way, options=trials.options)


def count_unpredicted(sources: Sources, cache: Path) -> int:
    """Count the images that `predict_sets` would have to pass through the network."""
    different = {images.digest: images for images in sources.sets.values()}.values()
    return sum(
        count_missing(sources.classifier, images, cache, features=_is_pool(sources, images)) for images in different
    )


def _is_pool(sources: Sources, images: ImageSet) -> bool:
    """Tell whether these are the images of the example pool, whose features teaching needs."""
    return images.digest == sources.sets["pool"].digest


def make_planner(sources: Sources, cache: Path, progress: Progress = silent) -> Planner:
    """Make the planner of a study, with the network's predictions from the cache or made now."""
    return Planner(sources, predict_sets(sources, cache, progress), cache)


def _in_pool(question: TeachingProblem, chosen: TeachingSet) -> TeachingSet:
    """Return a teaching set of the question's indices, by those of the pool."""
    return replace(chosen, indices=tuple(question.pool[list(chosen.indices)].tolist()))


def _key(candidate: Candidate) -> tuple[str, int]:
    return candidate.role, candidate.index


def names_of_image(role: str, images: ImageSet, index: int) -> tuple[str, str]:
    """Return the names of an image: with its set's role in the study (``pool/...``), and its own."""
    return f"{role}/{images.ids[index]}", images.ids[index]


def names_of_trial(sets: dict[str, ImageSet], planned: PlannedTrial) -> list[tuple[str, str]]:
    """Return the names of a trial's five images: the target's, then those of its examples."""
    candidate = planned.candidate
    target = names_of_image(candidate.role, sets[candidate.role], candidate.index)
    return [target, *(names_of_image("pool", sets["pool"], i) for i in planned.teaching.indices)]


def explained_classes(candidate: Candidate) -> list[int]:
    """Return the class each of the five heatmaps explains: the prediction, then each example's own category."""
    return [candidate.target, *[candidate.target] * 2, *[candidate.alternative] * 2]


def refuse_uncovered(sources: Sources, plan: TrialPlan) -> None:
    """Refuse a plan with images for which the study's folder of heatmaps has none.

    Raises
    ------
    ForetellError
        Names the first of them and counts the others.
    """
    method = sources.method
    if isinstance(method, HeatmapFolder):
        records, classes = zip(*_list_needed(sources, plan), strict=True) if plan.trials else ((), ())
        layout = sources.config.saliency.parameters.get("layout", "images")
        method.refuse_missing(records, layout, classes, sources.classifier.names)


def _list_needed(sources: Sources, plan: TrialPlan) -> Iterator[tuple[ImageRecord, int]]:
    for planned in (*plan.trials, *plan.practice):
        pairs = zip(names_of_trial(sources.sets, planned), explained_classes(planned.candidate), strict=True)
        yield from ((ImageRecord(names, (0, 0), None), k) for names, k in pairs)
