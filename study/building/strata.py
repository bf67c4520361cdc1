"""Targets spread over a measure of their images: `[trials.strata]` of the study file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from core.types import silent
from study.building.candidates import Candidate, shuffle_candidates
from study.building.measures.ground import CandidateMeasure, Ground
from study.building.measures.noise import draws_from_prior
from study.facts import StratumFacts
from study.plan.measures import IMAGE_MEASURES, UNDER_NOISE
from study.workspace.blocks import Blocks
from study.workspace.provenance import code_digest

BLOCK = 8
"""Images measured in one go: the most that a kill loses."""


@dataclass(frozen=True)
class RankedCandidate:
    """A candidate with the measure's value, its Monte Carlo error, and the stratum, 0 that of the lowest values."""

    candidate: Candidate
    value: float
    error: float
    stratum: int


class Stratifier:
    """Measures candidates and puts them in an order in which the strata take turns.

    Raises
    ------
    ForetellError
        The measure does not apply to the classifier or to the sets.
    """

    def __init__(self, ground: Ground) -> None:
        self.settings, self._ground, self._folder = ground.settings, ground, ground.cache / "strata"
        given = {} if self.settings.measure in UNDER_NOISE else self.settings.parsed_parameters
        self._measure: CandidateMeasure = IMAGE_MEASURES[self.settings.measure](ground, **given)

    def order_candidates(
        self, in_order: Sequence[Candidate], first: int, rng: np.random.Generator
    ) -> Iterator[RankedCandidate]:
        """Shuffle candidates of one category and type within each stratum; ``first`` is the stratum to begin with."""
        chosen, bins = list(shuffle_candidates(in_order, rng))[: self.settings.candidates], self.settings.bins
        values, errors = self._measure_candidates(chosen)
        strata = strata_of(values, bins, exact=self.settings.measure not in UNDER_NOISE).tolist()
        ranked = [RankedCandidate(*row) for row in zip(chosen, values.tolist(), errors.tolist(), strata, strict=True)]
        turns = [(first + k) % bins for k in range(bins)]
        for together in zip_longest(*([one for one in ranked if one.stratum == turn] for turn in turns)):
            yield from (one for one in together if one is not None)

    def facts(self, ranked: RankedCandidate) -> StratumFacts:
        """Return what a trial freezes of it."""
        settings = self.settings
        sampler = {"sampler": settings.sampler} if settings.sampler else {}
        return StratumFacts(
            measure=settings.measure,
            value=float(np.float32(ranked.value)) if np.isfinite(ranked.value) else None,
            error=float(np.float32(ranked.error)),
            stratum=ranked.stratum,
            strata=settings.bins,
            **sampler,
        )

    def _measure_candidates(self, chosen: Sequence[Candidate]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Measure each candidate, with the error, (n,) both; kept, as every build measures the same images."""

        def ask(block: range) -> dict[str, NDArray[Any]]:
            numbers = np.array([self._measure(chosen[i]) for i in block])
            return {"value": numbers[:, 0], "error": numbers[:, 1]}

        columns = Blocks(self._folder, self._key(chosen), len(chosen), BLOCK).join(ask, silent, "")
        return columns["value"], columns["error"]

    def _key(self, chosen: Sequence[Candidate]) -> str:
        ground = self._ground
        rows = [[one.role, ground.sets[one.role].digest, one.index, one.truth, one.target] for one in chosen]
        sets = [images.digest for images in ground.sets.values()]
        facts: list[Any] = [ground.classifier.fingerprint, code_digest(), self.settings.model_dump(), ground.seed]
        facts += [rows, sets, self.settings.digest_files(ground.base, ground.limits)]
        if draws_from_prior(self.settings):
            facts.append(hashlib.sha256(ground.prior.feature_covariance.numpy().tobytes()).hexdigest())
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]


def strata_of(values: NDArray[Any], bins: int, *, exact: bool) -> NDArray[np.int64]:
    """Return the stratum (n,) of each of the values (n,): equal parts of their order.

    Equal ``exact`` values are in one stratum, that of the middle one of them (the upper of two, unless they are the
    lowest), so that a rule that holds or not keeps them apart. Of those with a Monte Carlo error chance decides.
    """
    methods: tuple[Literal["min", "max", "ordinal"], ...] = ("min", "max") if exact else ("ordinal", "ordinal")
    lowest, highest = (rankdata(values, method).astype(np.int64) - 1 for method in methods)
    strata: NDArray[np.int64] = (lowest + highest + (lowest > 0)) // 2 * bins // max(len(values), 1)
    return strata
