"""The section of the study file that says how teaching sets are chosen."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from core.teaching.policies import POLICIES
from study.plan.procedure import Section, require

Proportion = Annotated[float, Field(ge=0, le=1)]


def _check_policy(name: str) -> str:
    require(POLICIES, name)
    return name


PolicyName = Annotated[str, AfterValidator(_check_policy)]
"""A name in `core.teaching.policies.POLICIES`."""


class Teaching(Section):
    """``[teaching]``: how teaching sets are drawn, scored and chosen (Folke et al. 2021, eq. 1).

    ``policy`` is one of the teaching policies in the catalogue. ``weight`` is how often an example enters the learner's
    likelihood (the paper trains for 128 epochs); ``damping`` strengthens the prior; ``tries`` is how many target images
    are tried for each trial before it is dropped.
    ``sets`` is a number or ``"all"``. ``draws`` are Monte Carlo draws of the learner (the paper's 100; 0 integrates).
    ``copies`` are augmented copies that share an example's weight: 128 with weight 128 is the paper's training.
    ``prior`` is a file made by the command ``prior``, relative to the study file; by default, the pool's own prior.
    """

    policy: PolicyName = "first"
    sets: Annotated[int, Field(ge=1)] | Literal["all"] = 200
    threshold: Proportion = 0.8
    weight: Annotated[float, Field(gt=0)] = 128.0
    damping: Annotated[float, Field(ge=0)] = 0.0
    tau: Annotated[float, Field(ge=0)] = 0.0
    tries: Annotated[int, Field(ge=1)] = 1
    draws: Annotated[int, Field(ge=0)] = 0
    copies: Annotated[int, Field(ge=1, le=1024)] = 1
    prior: str | None = None

    @model_validator(mode="after")
    def _one_prior(self) -> Teaching:
        if self.prior is not None and (self.damping or self.tau):
            raise ValueError("a prior file has its own damping and tau: set either prior, or damping and tau.")
        return self
