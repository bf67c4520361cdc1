"""``[sittings]`` of the study file, checked against the rest of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from study.bundle import Manifest
from study.plan.covariates import SITTING
from study.plan.procedure import Procedure, procedure_of


def check_sittings(
    procedure: Procedure,
    conditions: Sequence[str],
    per_type: Mapping[str, int],
    covariates: Sequence[str],
    *,
    within: bool,
) -> None:
    """Refuse sittings among which the trials cannot be divided, and the covariate of a study that has none.

    Raises
    ------
    ValueError
        With the setting and the remedy.
    """
    sittings = procedure.sittings
    if sittings is None:
        if SITTING in covariates:
            raise ValueError(
                f"analysis.models: a model names {SITTING}, and the study has only one. Add the section [sittings], or "
                "leave it out of the models."
            )
        return
    if procedure.blocks is not None:
        raise ValueError(
            "sittings: blocks of training and test are not divided among sittings. Remove one of the two sections."
        )
    if within and len(conditions) % sittings.count:
        raise ValueError(
            f"sittings: {len(conditions)} conditions within participants cannot be divided among {sittings.count} "
            "sittings, as many in each. Give sittings.count a divisor of the number of conditions, or leave "
            "allocation.within out."
        )
    if not within and (shortage := sittings.find_shortage(per_type)):
        raise ValueError(shortage)


def count_sittings(manifest: Manifest) -> int:
    """Count the sittings of each participant of a study."""
    sittings = procedure_of(manifest).sittings
    return 1 if sittings is None else sittings.count


def describe_times(manifest: Manifest) -> str:
    """Say how many sittings each participant had, and when, for a reader of results; empty in a study of one."""
    sittings = procedure_of(manifest).sittings
    if sittings is None:
        return ""
    return f"{sittings.count}, each {sittings.gap_hours} to {sittings.within_hours} hours after the one before"
