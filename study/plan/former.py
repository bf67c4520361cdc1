"""Names of study files of version 0.2; they work until the next release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ROAD, FEWEST = "road", "fewest_answers"
FORMER_KEYS = {ROAD: "pacing", FEWEST: "fewest_responses"}
FORMER_MEASURES = {"label_doubt": "label_error", "doubt": "least_confidence"}
FORMER_JUDGES = {"answers": "predictions"}
PRESENT_NAMES = {
    rf"(?<=^\[){ROAD}(?=\])|^{ROAD}(?=\s*[.=])": FORMER_KEYS[ROAD],
    rf"\b{FEWEST}(?=\s*=)": FORMER_KEYS[FEWEST],
    **{rf"(?<=\bmeasure = \"){former}(?=\")": present for former, present in FORMER_MEASURES.items()},
    **{rf"(?<=\bjudge = \"){former}(?=\")": present for former, present in FORMER_JUDGES.items()},
}
"""Patterns in the text of a study file, and the present names."""


def use_present_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Replace former names in the settings of a frozen study."""
    present = {
        FORMER_KEYS.get(key, key): use_present_settings(value) if isinstance(value, dict) else value
        for key, value in settings.items()
    }
    strata = present.get("strata")
    return present | {"strata": use_present_strata(strata)} if isinstance(strata, dict) else present


def use_present_strata(given: dict[str, Any]) -> dict[str, Any]:
    """Replace a former measure of ``[trials.strata]``, and a former value of its parameter ``judge``."""
    measure, parameters = given.get("measure"), given.get("parameters")
    if isinstance(measure, str):
        given = given | {"measure": FORMER_MEASURES.get(measure, measure)}
    if isinstance(parameters, dict) and parameters.get("judge") in FORMER_JUDGES:
        given = given | {"parameters": parameters | {"judge": FORMER_JUDGES[parameters["judge"]]}}
    return given
