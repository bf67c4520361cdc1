"""The results section: tests and contrasts as APA style writes them (7th edition), from the report's own sentences."""

from __future__ import annotations

import re

import pandas as pd

from study.analysis.models.sentences import coverage_text, describe_p, keep_whole
from study.analysis.report import ratings
from study.analysis.report.finding import HeadlineResult
from study.analysis.responses.outcome import find_outcome
from study.analysis.words.cells import write_rounded
from study.analysis.words.wording import write_whole_contrast

_STATISTIC = re.compile(r"\b[Ftzp](?=\(\d|\s[=<>])")
_INTERVAL = re.compile(r"(\d% CI) (\S+) to ([−\d.]+)")


def write_results(finding: HeadlineResult) -> list[str]:
    """Write the paragraphs of the results section: the opening, the tests, each contrast, evidence for no difference.

    `*` surrounds italics.
    """
    opening = finding.opening
    tests = [verdict.text for verdict in finding.verdicts]
    contrasts = [_write_contrast(row, finding.level) for row in finding.contrasts.to_dict("records")]
    said = ([] if opening is None else [opening.sentence]) + [" ".join(tests)]
    return [*map(style, filter(None, said)), *contrasts, *map(style, (*finding.equivalence, *finding.omissions))]


def style(sentence: str) -> str:
    """Put statistics in italics and intervals in brackets: ``"*p* = .003"``, ``"95% CI [11, 30]"``."""
    bracketed = _INTERVAL.sub(r"\1 [\2, \3]", keep_whole(sentence))
    return _STATISTIC.sub(lambda match: f"*{match[0]}*", bracketed)


def _write_contrast(row: dict[str, object], level: float) -> str:
    """Write a contrast with accuracies, difference, interval and test."""
    values = pd.Series(row)
    if not find_outcome(row).is_scored:
        return style(ratings.write_paragraph(row, level))
    name = write_whole_contrast(str(row["contrast"]))
    if pd.isna(values["points"]):
        return f"{name}: cannot be estimated from these data."
    said = (
        f"{name}: {values['accuracy_more']:.1%} vs {values['accuracy_less']:.1%} correct, a difference of "
        f"{write_rounded(values['points'], 1)} percentage points"
    )
    if pd.isna(values["points_low"]):
        return f"{said} (no interval, because a cell has only correct or only incorrect responses)."
    low, high = (write_rounded(values[name], 1) for name in ("points_low", "points_high"))
    interval = f"{coverage_text(level)} CI [{low}, {high}]"
    df = values.get("df")
    statistic = "z" if pd.isna(df) else f"t({df:,.{1 if df < 10 else 0}f})"
    p = describe_p(None if pd.isna(values["p_holm"]) else values["p_holm"])
    return style(f"{said}, {interval}, {statistic} = {write_rounded(values['z'], 2)}, {p}.")
