"""From candidates to a plan: which picture is which trial, with which examples and which foil. No rendering yet."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
from numpy.typing import NDArray

from core.classifier import Classifier
from core.teaching.examples import choose_examples
from core.teaching.prior import KroneckerPrior, fit_prior
from core.types import Progress, TeachingSet
from data.types import ImageSet
from study.bundle import TRIAL_TYPES, TrialType
from study.config import StudyConfig, Teaching
from study.design import Candidate, Material, candidates, chosen_categories, shuffled
from study.sources import plain

SAME_PICTURE = 1e-4
"""Relative distance of features below which a pool image counts as the target image itself."""


@dataclass(frozen=True)
class PlannedTrial:
    """A trial with its teaching set; ``flip`` says whether the AI's answer is option b."""

    id: str
    candidate: Candidate
    teaching: TeachingSet
    flip: bool


@dataclass(frozen=True)
class Plan:
    """The trials of a study, its practice trials, and what was dropped and why."""

    trials: tuple[PlannedTrial, ...]
    practice: tuple[PlannedTrial, ...]
    dropped: tuple[dict[str, str], ...]


def seed_of(seed: int, *parts: object) -> int:
    """A 62-bit seed for one named random choice of a study: independent of the order in which choices are made."""
    text = "|".join(map(str, (seed, *parts)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 2


class Planner:
    """Chooses trials and teaching sets for a study, with a prior learned before or that of the pool."""

    def __init__(
        self,
        config: StudyConfig,
        material: Material,
        sets: dict[str, ImageSet],
        classifier: Classifier,
        prior: KroneckerPrior | None = None,
    ) -> None:
        self.config, self.material, self.sets, self.classifier = config, material, sets, classifier
        self.seed = config.study.seed
        self.prior = prior or self._prior_of_the_pool()
        self.dropped: list[dict[str, str]] = []

    def plan(self, progress: Progress) -> Plan:
        """The whole plan, in the same order for the same study file and images."""
        settings = self.config.trials
        categories = chosen_categories(self.material, settings.categories, settings.per_type)
        found: list[tuple[Candidate, TeachingSet]] = []
        for done, category in enumerate(categories, 1):
            for trial_type in TRIAL_TYPES:
                found += self._trials(category, trial_type, settings.per_type)
            progress(done, len(categories), "choosing trials and examples")
        practice = self._practice(categories, {_key(c) for c, _ in found})
        return Plan(self._named("t", found), self._named("p", practice), tuple(self.dropped))

    def _prior_of_the_pool(self) -> KroneckerPrior:
        teaching = self.config.teaching
        known = torch.from_numpy(self.material.pool.truth >= 0)
        return fit_prior(
            self.classifier.head, [self.material.pool.features[known]], tau=teaching.tau, damping=teaching.damping
        )

    def _trials(self, category: int, trial_type: TrialType, wanted: int) -> list[tuple[Candidate, TeachingSet]]:
        rng = np.random.default_rng(seed_of(self.seed, "targets", category, trial_type))
        order = shuffled(candidates(self.material, category, trial_type), rng)
        found: list[tuple[Candidate, TeachingSet]] = []
        tried = 0
        for candidate in islice(order, wanted * self.config.teaching.tries):
            chosen = self._teach(candidate, self.config.teaching)
            tried += 1
            if chosen is not None:
                found.append((candidate, chosen))
            if len(found) == wanted:
                return found
        self._drop(category, trial_type, wanted - len(found), tried)
        return found

    def _drop(self, category: int, trial_type: TrialType, missing: int, tried: int) -> None:
        teaching = self.config.teaching
        reason = (
            f"{missing} trial(s) dropped: among {tried} target picture(s) tried too few had a teaching set, of "
            f"{teaching.sets} drawn, that made the learner's probability exceed {teaching.threshold}"
        )
        name = plain(self.classifier.categories[category])
        self.dropped.append({"category": name, "trial_type": trial_type, "reason": reason})

    def _teach(self, candidate: Candidate, teaching: Teaching) -> TeachingSet | None:
        pool = self.material.pool
        image = self._features(candidate)
        # Examples are pictures the AI itself calls by the name, as the participant is told.
        usable = pool.correct & (_distances(pool.features, image) > SAME_PICTURE)
        of_target, of_alternative = (
            torch.from_numpy(np.flatnonzero(usable & (pool.truth == k)))
            for k in (candidate.target, candidate.alternative)
        )
        generator = torch.Generator().manual_seed(seed_of(self.seed, "examples", *_key(candidate)))
        return choose_examples(
            self.prior,
            pool.features,
            of_target,
            of_alternative,
            image,
            (candidate.target, candidate.alternative),
            generator=generator,
            policy=teaching.policy,
            sets=teaching.sets,
            threshold=teaching.threshold,
            weight=teaching.weight,
        )

    def _features(self, candidate: Candidate) -> torch.Tensor:
        picture = self.sets[candidate.role].open(candidate.index)
        return self.classifier.features(self.classifier.preprocess(picture)[None])[0]

    def _practice(self, categories: Sequence[int], used: set[tuple[str, int]]) -> list[tuple[Candidate, TeachingSet]]:
        """Practice trials from pictures no trial uses; they are not analysed, so any teaching set will do."""
        rng = np.random.default_rng(seed_of(self.seed, "practice"))
        best = self.config.teaching.model_copy(update={"policy": "best"})
        found: list[tuple[Candidate, TeachingSet]] = []
        for k in range(self.config.trials.practice):
            trial_type = TRIAL_TYPES[-1 - k % len(TRIAL_TYPES)]  # an easy one first
            open_ones = [c for category in categories for c in candidates(self.material, category, trial_type)]
            for candidate in shuffled(open_ones, rng):
                chosen = None if _key(candidate) in used else self._teach(candidate, best)
                if chosen is not None:
                    used.add(_key(candidate))
                    found.append((candidate, chosen))
                    break
        return found

    def _named(self, letter: str, found: Sequence[tuple[Candidate, TeachingSet]]) -> tuple[PlannedTrial, ...]:
        """Ids in order; the AI's answer is option b in half of the trials, at random."""
        rng = np.random.default_rng(seed_of(self.seed, "options", letter))
        flips = rng.permutation(np.arange(len(found)) % 2 == 1)
        return tuple(
            PlannedTrial(f"{letter}{i:03d}", candidate, chosen, bool(flip))
            for i, ((candidate, chosen), flip) in enumerate(zip(found, flips, strict=True))
        )


def _key(candidate: Candidate) -> tuple[str, int]:
    return candidate.role, candidate.index


def _distances(features: torch.Tensor, image: torch.Tensor) -> NDArray[np.float32]:
    scale = float(image.norm()) or 1.0
    distances: NDArray[np.float32] = ((features - image).norm(dim=1) / scale).numpy()
    return distances
