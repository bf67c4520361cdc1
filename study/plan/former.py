"""Names of study files of version 0.2; they work until the next release."""

from __future__ import annotations

import re
import warnings
from typing import Any

ROAD, FEWEST = "road", "fewest_answers"
FORMER_MEASURES = {"label_doubt": "label_error", "doubt": "least_confidence"}
FORMER_JUDGES = {"answers": "predictions"}
_PRESENT = {
    rf"(?<=^\[){ROAD}(?=\])|^{ROAD}(?=\s*[.=])": "pacing",
    rf"\b{FEWEST}(?=\s*=)": "fewest_responses",
    **{rf"(?<=\bmeasure = \"){former}(?=\")": present for former, present in FORMER_MEASURES.items()},
    **{rf"(?<=\bjudge = \"){former}(?=\")": present for former, present in FORMER_JUDGES.items()},
}
"""Patterns in the text of a study file, and the present names."""


def use_present_names(text: str, *, notice: bool = False) -> str:
    """Replace former names in the text of a study file; a ``notice`` (FutureWarning) names each."""
    for pattern, present in _PRESENT.items():
        former = re.search(pattern, text, re.MULTILINE)
        if former and notice:
            warnings.warn(
                f"{former[0]!r} is now called {present!r}; the old name will be removed.", FutureWarning, stacklevel=3
            )
        text = re.sub(pattern, present, text, flags=re.MULTILINE)
    return text


def use_present_strata(given: dict[str, Any]) -> dict[str, Any]:
    """Replace a former measure of ``[trials.strata]``, and a former value of its parameter ``judge``."""
    measure, parameters = given.get("measure"), given.get("parameters")
    if isinstance(measure, str):
        given = given | {"measure": FORMER_MEASURES.get(measure, measure)}
    if isinstance(parameters, dict) and parameters.get("judge") in FORMER_JUDGES:
        given = given | {"parameters": parameters | {"judge": FORMER_JUDGES[parameters["judge"]]}}
    return given
