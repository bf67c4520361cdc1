"""What a reader of results must know about their responses, in a sentence each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pandas as pd

from study.analysis.models.sentences import words
from study.analysis.responses.adaptive import warn_of_choices
from study.analysis.responses.periods import has_periods
from study.bundle import OF_ATTRIBUTES, OF_UNITS, TRIAL_TYPES
from study.conditions import list_separate_conditions
from study.workspace.tables import MISSING

NAMES = (
    "participant",
    "category",
    "trial_type",
    "condition",
    "trial",
    "mode",
    "item",
    "truth",
    "choice",
    "task",
    "block",
)
"""Columns of names and codes: spaces around them mean nothing."""
MODES = {"sim": "Simulated participants: not evidence", "preview": "Previews by the researchers: not evidence"}
"""The notice on responses whose mode is not ``"live"``."""
BADGES = {"sim": "Simulated: not evidence", "preview": "Previews: not evidence"}
"""The same in the few words of a badge."""


def strip_names(frame: pd.DataFrame) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Remove spaces around names, and report each column in which two names differed by them alone."""
    said, stripped = [], {}
    for name in (name for name in NAMES if name in frame and not pd.api.types.is_numeric_dtype(frame[name])):
        before = frame[name].astype("str")
        after = before.str.strip().mask(frame[name].isna() | before.str.strip().eq(""))
        stripped[name] = after
        levels = before.groupby(after).nunique()
        if (levels > 1).any():
            said.append(
                f"Column {name!r}: names that differ only by spaces around them, such as {levels.idxmax()!r}, were "
                f"taken as one ({int((levels > 1).sum()):,} in all)."
            )
    return frame.assign(**stripped), tuple(said)


def describe_missing_words(words: Mapping[str, int]) -> tuple[str, ...]:
    """Describe how many texts of each column were read as missing values."""
    if not words:
        return ()
    listed = ", ".join(f"{count:,} in column {name!r}" for name, count in words.items())
    return (f"The texts {MISSING[0]}, {' and '.join(MISSING[1:])} were read as missing values: {listed}.",)


def list_notices(frame: pd.DataFrame, complete: pd.DataFrame) -> Iterator[str]:
    """List what a reader of the results must know: of all rows, and of those without a missing value."""
    dropped = frame.index.difference(complete.index)
    if len(dropped):
        rows = ", ".join(str(row + 1) for row in dropped[:5]) + (", …" if len(dropped) > 5 else "")
        yield f"{len(dropped)} of {len(frame)} rows lack a required value and were left out (rows {rows})."
    yield from warn_of_choices(complete)
    yield from _describe_repeated_rows(complete)
    several = _count_crossed(complete)
    if several and not has_periods(complete):
        yield (
            f"{several:,} of {complete['participant'].nunique():,} participants have responses in several conditions: "
            "check that column 'participant' names participants. If each saw several conditions, number these in a "
            "column 'period', from 1: it adds a test of carry-over."
        )
    for mode, said in MODES.items():
        count = int((complete["mode"] == mode).sum()) if "mode" in complete else 0
        if count:
            yield f"{said} ({count:,} of {len(complete):,} responses)."
    misled = int(complete["condition"].isin(list_separate_conditions()).sum()) if "condition" in complete else 0
    if misled:
        yield (
            f"{misled} of {len(complete)} responses are from conditions outside the two factors (placebos, concepts, "
            "examples of another policy). The models of the two factors leave them out; contrasts compare them by "
            "condition."
        )
    kinds = set(complete["trial_type"].astype(str))
    expected = OF_ATTRIBUTES if kinds & {*OF_ATTRIBUTES} else TRIAL_TYPES
    absent = [t for t in expected if t not in kinds]
    if absent and not kinds & {*OF_UNITS}:
        yield f"No responses to trials of type {', '.join(words(f'trial_type{kind}') for kind in absent)}."


def _describe_repeated_rows(complete: pd.DataFrame) -> Iterator[str]:
    """Warn of rows that occur twice, where nothing numbers a participant's responses."""
    if {"trial", "item"} & set(complete):
        return
    repeated = int(complete.duplicated().sum())
    is_exact = "rt_ms" in complete and complete["rt_ms"].nunique() > len(complete) / 10
    if complete.duplicated(keep=False).all() or (is_exact and repeated > len(complete) / 50):
        yield (
            f"{repeated:,} of {len(complete):,} rows repeat another one: if the file was joined or pasted twice, its "
            "standard errors are too small and its tests reject too often. A column 'trial' distinguishes responses."
        )


def _count_crossed(complete: pd.DataFrame) -> int:
    """Count the participants with responses in more than one condition."""
    columns = [name for name in ("condition", "saliency", "examples") if name in complete]
    return int((complete.groupby("participant")[columns].nunique() > 1).any(axis=1).sum())


def find_dates(frame: pd.DataFrame) -> tuple[str, str] | None:
    """Find the days of the first and the last row; None unless every row has one."""
    days = sorted(set(frame["received_at"].astype(str).str[:10])) if "received_at" in frame else []
    if not days or pd.to_datetime(pd.Series(days), format="%Y-%m-%d", errors="coerce").isna().any():
        return None
    return days[0], days[-1]
