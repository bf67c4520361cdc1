"""``[trials.strata]`` of the study file: targets spread over an image measure."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, model_validator

from core.errors import ForetellError
from core.files import FileLimits
from core.parameters import parse_parameters
from core.uncertainty import SAMPLERS
from core.uncertainty.strength import refuse_strengths
from study.plan.former import use_present_strata
from study.plan.measures import IMAGE_MEASURES, UNDER_NOISE
from study.plan.procedure import Section, require


class Strata(Section):
    """``[trials.strata]``: spread the targets over an image measure, one of `study.building.measures`.

    For each category and type, up to ``candidates`` random images are measured and divided into ``bins`` strata of
    equal size, from the lowest values up (equal exact values share a stratum); trials come from the strata in turn.
    ``parameters`` are those of the measure; for a measure of uncertainty, which runs ``passes`` passes of ``sampler``,
    those of the sampler.
    """

    measure: str
    sampler: str | None = Field(default=None, exclude_if=lambda value: value is None)
    parameters: dict[str, Any] = Field(default_factory=dict)
    passes: Annotated[int, Field(ge=2)] | None = Field(default=None, exclude_if=lambda value: value is None)
    bins: Annotated[int, Field(ge=2, le=10)] = 2
    candidates: Annotated[int, Field(ge=2)] = 24

    @model_validator(mode="before")
    @classmethod
    def _set_noise_defaults(cls, given: Any) -> Any:
        """Set the defaults of settings that only measures of uncertainty have: no other study freezes them."""
        if not isinstance(given, dict):
            return given
        given = use_present_strata(given)
        noisy = given.get("measure") in UNDER_NOISE
        return {"sampler": "inserted_dropout", "passes": 50} | given if noisy else given

    @model_validator(mode="after")
    def _check_measure(self) -> Strata:
        if self.measure not in IMAGE_MEASURES:
            raise ValueError(f"Unknown measure {self.measure!r}: name one of {', '.join(IMAGE_MEASURES)}.")
        if self.measure in UNDER_NOISE:
            self._refuse_sampler()
        elif self.sampler is not None or self.passes is not None:
            raise ValueError(f"{self.measure} is not a measure of uncertainty: leave out sampler and passes.")
        try:
            given = self.parsed_parameters
            refuse_strengths(SAMPLERS[self.sampler], given) if self.sampler else None
        except ForetellError as error:
            raise ValueError(str(error)) from None
        return self

    def digest_files(self, base: Path, limits: FileLimits | None = None) -> str | None:
        """Hash (SHA-256) the files and folders that the parameters name relative to ``base``; None without any."""
        named = (base / Path(one).expanduser() for one in self.parameters.values() if isinstance(one, str) and one)
        paths = [path for path in named if limits is None or limits.allows(path)]
        files = [file for path in paths for file in ([path] if path.is_file() else sorted(path.rglob("*")))]
        total = b"".join(hashlib.sha256(file.read_bytes()).digest() for file in files if file.is_file())
        return hashlib.sha256(total).hexdigest() if total else None

    def _refuse_sampler(self) -> None:
        require(SAMPLERS, str(self.sampler))
        if "passes" in self.parameters:
            raise ValueError("passes belongs next to parameters, not in them.")

    @property
    def parsed_parameters(self) -> dict[str, Any]:
        """The parameters, as the measure or the sampler behind it declares them."""
        return parse_parameters(
            SAMPLERS[self.sampler] if self.sampler else IMAGE_MEASURES[self.measure], self.parameters
        )
