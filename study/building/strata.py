"""Targets spread over how far the AI doubts them: `[trials.strata]` of the study file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from inspect import signature
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from core.classifier import Classifier
from core.parameters import parsed
from core.teaching.prior import KroneckerPrior
from core.types import silent
from core.uncertainty import MEASURES, SAMPLERS
from data.types import ImageSet
from study.blocks import Blocks
from study.building.design import Candidate, shuffled
from study.config import Strata
from study.provenance import code_digest
from study.seeds import seed_of

BLOCK = 8
"""Pictures asked in one go: the most that a kill loses."""


@dataclass(frozen=True)
class Doubted:
    """A candidate with its doubt: the measure's value, its Monte Carlo error, and the stratum, 0 the least doubted."""

    candidate: Candidate
    value: float
    error: float
    stratum: int


class Stratifier:
    """Asks about candidates under noise and puts them in an order in which the strata take turns."""

    def __init__(
        self,
        settings: Strata,
        classifier: Classifier,
        sets: dict[str, ImageSet],
        prior: KroneckerPrior,
        cache: Path,
        seed: int,
    ) -> None:
        self.settings, self.classifier, self.sets, self.seed = settings, classifier, sets, seed
        self._prior, self._cache = prior, cache / "doubts"

    def ordered(self, found: Sequence[Candidate], first: int, rng: np.random.Generator) -> Iterator[Doubted]:
        """Candidates of one category and type, at random within each stratum; ``first`` is the one to begin with."""
        chosen = list(shuffled(found, rng))[: self.settings.candidates]
        values, errors = self._doubts(chosen)
        rank = np.lexsort((np.arange(len(chosen)), values)).argsort()
        strata = rank * self.settings.bins // max(len(chosen), 1)
        doubted = [Doubted(*row) for row in zip(chosen, values.tolist(), errors.tolist(), strata.tolist(), strict=True)]
        turns = [(first + k) % self.settings.bins for k in range(self.settings.bins)]
        members = [[one for one in doubted if one.stratum == turn] for turn in turns]
        for together in zip_longest(*members):
            yield from (one for one in together if one is not None)

    def facts(self, doubted: Doubted) -> dict[str, Any]:
        """What a trial freezes of it."""
        settings = self.settings
        return {
            "measure": settings.measure,
            "sampler": settings.sampler,
            "value": float(np.float32(doubted.value)),
            "error": float(np.float32(doubted.error)),
            "stratum": doubted.stratum,
            "strata": settings.bins,
        }

    def _doubts(self, chosen: Sequence[Candidate]) -> tuple[NDArray[Any], NDArray[Any]]:
        """The measure of each candidate and its error, (n,) both; kept, as every build asks the same pictures."""
        sampler, measure = SAMPLERS[self.settings.sampler], MEASURES[self.settings.measure]
        given = parsed(sampler, self.settings.parameters) | {"passes": self.settings.passes}
        if self._draws_from_prior:
            given["prior"] = self._prior

        def ask(block: range) -> dict[str, NDArray[Any]]:
            pictures = [chosen[i] for i in block]
            inputs = [self.classifier.preprocess(self.sets[one.role].open(one.index)) for one in pictures]
            # Each picture has noise of its own: what is asked of it does not depend on the others.
            answers = [
                sampler(self.classifier, one[None], generator=self._generator(picture), **given).softmax(-1)
                for one, picture in zip(inputs, pictures, strict=True)
            ]
            estimate = measure(torch.cat(answers))
            return {"value": estimate.value.numpy(), "error": estimate.error.numpy()}

        columns = Blocks(self._cache, self._key(chosen), len(chosen), BLOCK).joined(ask, silent, "")
        return columns["value"], columns["error"]

    def _generator(self, picture: Candidate) -> torch.Generator:
        return torch.Generator().manual_seed(seed_of(self.seed, "doubt", picture.role, picture.index))

    def _key(self, chosen: Sequence[Candidate]) -> str:
        pictures = [[one.role, self.sets[one.role].digest, one.index] for one in chosen]
        facts: list[Any] = [self.classifier.fingerprint, code_digest(), self.settings.model_dump(), self.seed, pictures]
        if self._draws_from_prior:
            facts.append(hashlib.sha256(self._prior.feature_covariance.numpy().tobytes()).hexdigest())
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]

    @property
    def _draws_from_prior(self) -> bool:
        return "prior" in signature(SAMPLERS[self.settings.sampler]).parameters
