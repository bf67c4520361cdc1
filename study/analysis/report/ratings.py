"""Sentences about differences between mean levels, where no response is right or wrong."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from core.names import lower_first
from study.analysis.models.sentences import LEVEL as ALPHA
from study.analysis.models.sentences import coverage_text, describe_p
from study.analysis.responses.outcome import LEVEL
from study.analysis.words.cells import write_rounded
from study.analysis.words.wording import write_contrast, write_whole_contrast
from study.conditions import format_condition


def write_difference(row: Mapping[str, Any], level: float = ALPHA) -> str:
    """Write a contrast: both mean levels, their difference with its interval, the odds ratio and p."""
    name = write_whole_contrast(str(row["contrast"]))
    if np.isnan(row[LEVEL.difference]):
        return f"{name}: cannot be estimated from these data."
    means = f"mean level {row[LEVEL.more]:.2f} vs {row[LEVEL.less]:.2f}"
    corrected = describe_p(None if np.isnan(row["p_holm"]) else float(row["p_holm"]))
    return (
        f"{name}: {means}, {write_rounded(row[LEVEL.difference], 2, '+')} levels ({write_interval(row, level)}; odds "
        f"ratio of a higher level {row['odds_ratio']:.2f}; Holm-corrected {corrected})."
    )


def write_interval(row: Mapping[str, Any], level: float) -> str:
    """Write the interval of a difference: ``"95% CI 0.21 to 0.98"``."""
    low, high = (write_rounded(row[name], 2) for name in (LEVEL.low, LEVEL.high))
    return f"{coverage_text(level)} CI {low} to {high}"


def claim(row: Mapping[str, Any], where: str, level: float) -> str:
    """Claim a difference: ``"With saliency maps participants rated 0.59 levels higher than with no explanation …"``."""
    pair, _, _ = str(row["contrast"]).partition(", ")
    more, less = (lower_first(format_condition(name)) for name in pair.split(" - "))
    way = "higher" if row[LEVEL.difference] > 0 else "lower"
    return (
        f"With {more} participants rated {abs(row[LEVEL.difference]):.2f} levels {way} than with {less}{where} (mean "
        f"level {row[LEVEL.more]:.2f} vs {row[LEVEL.less]:.2f}; {write_interval(row, level)} of the difference)"
    )


def describe_difference(row: Mapping[str, Any], level: float) -> str:
    """Describe a difference without a claim."""
    p = describe_p(None if np.isnan(row["p_holm"]) else float(row["p_holm"]))
    return (
        f"{lower_first(write_contrast(str(row['contrast'])))}, mean level {row[LEVEL.more]:.2f} vs "
        f"{row[LEVEL.less]:.2f}, {write_rounded(row[LEVEL.difference], 2, '+')} levels ({write_interval(row, level)}, "
        f"uncorrected; Holm-corrected {p})"
    )


def write_paragraph(row: Mapping[str, Any], level: float) -> str:
    """Write a contrast for a results section, with its test."""
    if np.isnan(row[LEVEL.difference]):
        return write_difference(row, level)
    df = row["df"]
    statistic = "z" if pd.isna(df) else f"t({df:,.{1 if df < 10 else 0}f})"
    return re.sub(
        r"; Holm-corrected ", f"), {statistic} = {write_rounded(row['z'], 2)}, ", write_difference(row, level)
    ).replace(").", ".")
