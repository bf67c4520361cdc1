"""The measured facts of a trial, frozen with it, by whichever version of Foretell measured them."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer

Number = int | float
"""A number as it was frozen: 128 and 128.0 have different hashes."""


class Facts(BaseModel):
    """Measured values of a trial, by whichever version froze them.

    A fact that this version does not know is kept as it is, so that the study keeps its hash; one that was not
    measured when the study was frozen is not written either.
    """

    model_config = ConfigDict(frozen=True, extra="allow", serialize_by_alias=True)

    @model_serializer(mode="wrap")
    def _write_measured(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in write(self).items() if name in self.model_fields_set}


class TeachingFacts(Facts):
    """Facts about a trial's teaching set.

    ``p_prior`` and ``p_learner`` are the learner's probability of the AI's prediction before and after the examples,
    ``gain`` their difference in log-odds, ``rank`` the share of the random sets that do not teach better, ``curve``
    pairs of sets scored and the best probability so far; ``weight`` and ``copies`` are the study's settings.
    """

    p_learner: Number | None = None
    p_prior: Number | None = None
    gain: Number | None = None
    policy: str | None = None
    sets_scored: int | None = None
    rank: Number | None = None
    curve: tuple[tuple[int, Number], ...] = ()
    weight: Number | None = None
    copies: int | None = None


class HeatmapFacts(Facts):
    """Facts about the target's heatmap: its certificate, and the areas of its deletion and insertion curves.

    ``relevance_on`` says what counted as the object, ``drawing`` what does not lie where the network looked, ``origin``
    where a heatmap that Foretell did not make comes from.
    """

    method: str | None = None
    parameters: dict[str, Any] = {}
    samples: int | None = None
    seed: int | None = None
    warnings: tuple[str, ...] = ()
    relevance_on: str | None = None
    standard_error: Number | None = None
    effective_samples: Number | None = None
    completeness: Number | None = None
    drawing: str | None = None
    origin: dict[str, str] = {}
    deletion: Number | None = None
    insertion: Number | None = None


class StratumFacts(Facts):
    """The stratum of a trial, 0 with the lowest values of ``measure``; ``value`` is None where it is infinite.

    ``sampler`` names the noise of a measure that asks under noise, ``error`` is the value's Monte Carlo error.
    """

    measure: str
    sampler: str | None = None
    value: Number | None = None
    error: Number
    stratum: int
    strata: int


class DifficultyFacts(Facts):
    """The difficulty of a trial, of a study that chooses trials by responses (`study.adaptive.difficulty`).

    ``value`` is that of the ``measure``; ``score`` its normal score within the type of trial, higher where harder;
    ``level`` that of a staircase, from 1, the easiest.
    """

    measure: str
    value: Number
    score: float
    level: int | None = None


class RegionFacts(Facts):
    """The region of the target's heatmap, of a study whose responses are places (`study.places.region`).

    ``share`` is that of the positive evidence that it holds, ``area`` that of the image that it covers, ``aspect`` the
    image's height divided by its width; ``evidence`` and ``on_object`` are by cells of the grid (`study.places.grid`).
    """

    share: float
    aspect: float
    evidence: str
    area: float | None = None
    on_object: str | None = None


class UnitFacts(Facts):
    """The unit of a trial that asks about one: a channel of a layer, and what it makes of the images shown.

    ``activations`` are those of the left and of the right image, means over all places; of a unit to name the means of
    the references that activate it least and most. ``gap`` is their difference in standard deviations over the images
    that the references come from; ``least`` and ``most`` are the references.
    """

    layer: str
    channel: int
    activations: tuple[Number, Number]
    gap: Number
    least: tuple[str, ...]
    most: tuple[str, ...]

    @property
    def name(self) -> str:
        """The unit as commands name it: ``LAYER:CHANNEL``."""
        return f"{self.layer}:{self.channel}"


class AttributeFacts(Facts):
    """The attributes of a trial that asks which of them the AI uses, by name, and what of them is sealed.

    ``used`` says of each whether the AI uses it. ``images`` are those of the grid, from the one that the AI takes most
    for the first of the two classes to the one that it takes most for the second, and ``confidences`` its probability
    of the second, of the two.
    """

    names: tuple[str, ...]
    used: tuple[bool, ...]
    images: tuple[str, ...] = ()
    confidences: tuple[Number, ...] = ()
