"""The sentence that opens the results: whether there is evidence, and the largest difference with its direction.

Evidence and difference are those of one analysis, the verdict's (`study.analysis.report.verdicts`): the models with
random slopes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from core.names import lower_first, upper_first
from study.analysis.exploratory import slopes
from study.analysis.models.sentences import LEVEL, alpha_text, coverage_text, describe_hypothesis, describe_p
from study.analysis.planned.contrasts import FACTORS
from study.analysis.planned.nested import NestedAnalysis, RatioTest
from study.analysis.report import ratings
from study.analysis.responses.outcome import find_outcome
from study.analysis.responses.reading import Responses
from study.analysis.words.cells import write_rounded
from study.analysis.words.wording import write_contrast
from study.bundle import OF_ATTRIBUTES, TRIAL_TYPES
from study.conditions import format_condition
from study.tasks.task import Task

_WHERE: dict[str, str] = dict(
    zip(
        (*TRIAL_TYPES, *OF_ATTRIBUTES),
        (
            "was wrong on adversarial images",
            "was wrong on standard images",
            "was right",
            "uses them",
            "does not use them",
        ),
        strict=True,
    )
)
"""What the AI did on trials of each type, or does with the attributes."""


@dataclass(frozen=True)
class Opening:
    """What the results open with.

    Attributes
    ----------
    verdict
        Whether there is evidence, and where there is, of which difference.
    size
        The size of the largest difference where none is claimed, and among how many it is the largest.
    contrasts
        All of them, of the verdict's model: contrast, p_holm and those of its outcome among the columns.
    """

    verdict: str
    size: str
    contrasts: pd.DataFrame

    @property
    def sentence(self) -> str:
        """Both in one line."""
        return " ".join(filter(None, [self.verdict, self.size]))


def write_opening(
    analysis: NestedAnalysis,
    data: Responses,
    contrasts: pd.DataFrame,
    compared: pd.DataFrame | None,
    level: float = LEVEL,
    *,
    planned: bool = False,
) -> Opening | None:
    """Write the opening; None where the verdict's models are not fitted.

    A difference is claimed only if a test of explanations and, corrected for their number, the difference itself are
    below `level`. The tests are of the two factors: for a difference from a condition outside them, the correction
    decides alone.

    Parameters
    ----------
    contrasts
        Those of `analysis`, as of `study.analysis.planned.contrasts.table`.
    compared
        As of `study.analysis.exploratory.slopes.compare`, where it was made: `analysis` may have been planned without
        slopes, and is not the verdict's then.
    planned
        Whether a plan named the contrasts.
    """
    tests: Sequence[RatioTest] = analysis.tests
    if slopes.are_left_out(data, analysis):
        if compared is None:
            return None
        tests, contrasts = slopes.list_tests(compared, with_slopes=True), slopes.list_contrasts(compared)
    evident = next((test for test in tests if test.decisive_p is not None and test.decisive_p < level), None)
    sizes = contrasts[contrasts[find_outcome(contrasts).low].notna()] if len(contrasts) else contrasts
    is_open = evident is not None or not tests
    clear = sizes[(sizes["p_holm"] < level) & (_lie_outside_factors(sizes) | is_open)] if len(sizes) else sizes
    row = _find_largest(clear if len(clear) else sizes)
    kind = "planned difference" if planned else "difference"
    verdict, size = _state_tests(tests, evident, data.task), ""
    if row is not None and len(clear):
        verdict, size = (
            _claim(row, data.task, level),
            _state_choice(len(sizes), len(clear), kind, level, is_open=is_open),
        )
    elif row is not None:
        verdict = f"{verdict}, but no single difference is clear" if evident else verdict
        size = f"{_name_largest(len(sizes), kind)}: {_describe_difference(row, level)}."
    marked = f"Simulated participants: {lower_first(verdict)}" if data.has_simulated else verdict
    return Opening(f"{marked}.", size, contrasts)


def _lie_outside_factors(contrasts: pd.DataFrame) -> pd.Series:
    """Tell for each contrast whether one of its conditions is in no model of the two factors."""
    pairs = contrasts["contrast"].astype(str).str.split(", ").str[0].str.split(" - ")
    return pairs.map(lambda pair: not {*pair} <= {*FACTORS}).astype(bool)


def _find_largest(contrasts: pd.DataFrame) -> pd.Series | None:
    return contrasts.loc[contrasts[find_outcome(contrasts).difference].abs().idxmax()] if len(contrasts) else None


def _claim(row: pd.Series, task: Task, level: float) -> str:
    """Claim a difference: ``"Saliency maps raised correct predictions of the AI from 14% to 34% …"``."""
    pair, _, kinds = str(row["contrast"]).partition(", ")
    where = f" where the AI {' or '.join(_WHERE[kind] for kind in kinds.split(' and '))}" if kinds else ""
    if not task.is_scored:
        return ratings.claim(row, where, level)
    more, less = map(format_condition, pair.split(" - "))
    compared = "" if pair.endswith(" - none") else f", compared with {lower_first(less)},"
    verb = "raised" if row["points"] > 0 else "lowered"
    before, after, points, interval = _write_numbers(row, level)
    return (
        f"{upper_first(more)}{compared} {verb} {lower_first(task.outcome)} from {before} to {after}{where}: "
        f"{points} percentage points ({interval})"
    )


def _state_tests(tests: Sequence[RatioTest], evident: RatioTest | None, task: Task) -> str:
    if not tests:
        return "No clear evidence of a difference"
    test = evident or tests[0]
    added = describe_hypothesis(test.smaller, test.larger, act=task.act)
    if all(one.decisive_p is None for one in tests):
        return f"These data cannot say whether {added}"
    return f"{'Evidence' if evident else 'No clear evidence'} that {added}"


def _describe_difference(row: pd.Series, level: float) -> str:
    """Describe a difference without a claim."""
    if not find_outcome(row.index).is_scored:
        return ratings.describe_difference(row, level)
    before, after, points, interval = _write_numbers(row, level)
    p = describe_p(None if np.isnan(row["p_holm"]) else float(row["p_holm"]))
    return (
        f"{lower_first(write_contrast(str(row['contrast'])))}, {after} vs {before}, {points} percentage points "
        f"({interval}, uncorrected; Holm-corrected {p})"
    )


def _write_numbers(row: pd.Series, level: float) -> tuple[str, str, str, str]:
    """Write both accuracies, their difference and its interval, in whole numbers where these add up."""
    less, more = 100 * float(row["accuracy_less"]), 100 * float(row["accuracy_more"])
    points, low, high = (float(row[name]) for name in ("points", "points_low", "points_high"))
    digits = 0 if round(more) - round(less) == round(points) != 0 else 1
    interval = f"{coverage_text(level)} CI {write_rounded(low, digits)} to {write_rounded(high, digits)}"
    return f"{less:.{digits}f}%", f"{more:.{digits}f}%", write_rounded(points, digits, "+"), interval


def _name_largest(count: int, kind: str) -> str:
    return f"The largest of {count} {kind}s" if count > 1 else f"The only {kind}"


def _state_choice(count: int, clear: int, kind: str, level: float, *, is_open: bool) -> str:
    """Say from among how many differences the one that is claimed was chosen.

    Unless ``is_open``, only those from a condition outside the two factors could be.
    """
    if count == 1:
        return f"It is the only {kind}."
    chosen = f"the largest of the {clear}" if clear > 1 else "the only one"
    p = f"Holm-corrected p < {alpha_text(level)}"
    p += "" if is_open else " and a condition outside the two factors"
    return f"It is {chosen} of {count} {kind}s with {p}; the interval is not corrected for their number."
