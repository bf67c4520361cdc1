"""What the values of a file mean where they are not ours: trial types, groups, and words for yes and no."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st

from core.errors import ForetellError
from dashboard.shared.keys import digest
from dashboard.shared.messages import escape_markdown
from study.analysis.responses import reading as responses
from study.bundle import TYPE_LABELS
from study.conditions import CONDITIONS, format_condition, list_separate_conditions

MOST = 12
"""Other values of a column, beyond which it must be another column."""
FACTORS = ("saliency", "examples")
CONDITION_LABELS = {
    name: format_condition(name) for name in (*responses.CONDITION_OF_FACTORS.values(), *list_separate_conditions())
}
ANSWERS = {"1": "Yes (1)", "0": "No (0)"}


def match_values(frame: pd.DataFrame, mapping: Mapping[str, str], place: str) -> pd.DataFrame | None:
    """Return a file's columns under our names, with values that we know; None until each other value has a meaning.

    The factors that the file has no column of are those of its column of conditions.

    Raises
    ------
    ForetellError
        There are too many other values in a column.
    """
    ours = pd.DataFrame({name: frame[theirs] for name, theirs in mapping.items()})
    kinds = _choose("trial_type", ours["trial_type"], TYPE_LABELS, place)
    absent = [name for name in FACTORS if name not in ours]
    groups = _choose("condition", ours["condition"], CONDITION_LABELS, place) if absent else {}
    words = {name: _choose_flags(name, ours[name], place) for name in responses.FLAGS if name in ours}
    if kinds is None or groups is None:
        return None
    ours["trial_type"] = ours["trial_type"].replace(kinds)
    for name, known in words.items():
        if known is None:
            return None
        ours[name] = ours[name].replace(known)
    if absent:
        ours = _fill_factors(ours.assign(condition=ours["condition"].replace(groups)), absent)
    return ours.join(frame.drop(columns=[*mapping.values(), *ours], errors="ignore"))


def _fill_factors(frame: pd.DataFrame, absent: Sequence[str]) -> pd.DataFrame:
    """Fill factors by what participants in each condition see; a missing condition leaves them missing."""
    for name in absent:
        shows = {code: str(int(getattr(CONDITIONS[code], f"shows_{name}"))) for code in CONDITION_LABELS}
        frame[name] = frame["condition"].map(shows)
    return frame


def _choose_flags(name: str, values: pd.Series[str], place: str) -> dict[str, str] | None:
    """Choose 1 or 0 for words; numbers other than these are faults of the file, which its check names."""
    unknown = values[responses.read_flags(values).isna()]
    is_number = pd.to_numeric(unknown, errors="coerce").notna()
    return _choose(name, unknown[~is_number], ANSWERS, place)


def _choose(name: str, values: pd.Series[str], labels: Mapping[str, str], place: str) -> dict[str, str] | None:
    """Choose the meaning of each value that is none of ours; None until each has one."""
    unknown = sorted(set(values.dropna().str.strip()) - set(labels) - {""})
    if len(unknown) > MOST:
        raise ForetellError(
            f"The column of {_NAMES.get(name, name)} has {len(unknown):,} other values, such as {unknown[0]!r}: choose "
            f"a column with at most {MOST} of them."
        )
    if not unknown:
        return {}
    said = st.container()
    with st.container(horizontal=True):
        chosen = {value: _select(name, value, labels, place) for value in unknown}
    missing = [value for value, code in chosen.items() if code is None]
    if missing:
        what = "No meaning" if name in responses.FLAGS else f"No {_NAMES[name].removesuffix('s')}"
        said.warning(escape_markdown(f"{what} for {', '.join(map(repr, missing))} yet. Choose each below."))
        return None
    codes = {value: code for value, code in chosen.items() if code is not None}
    return {raw: codes[raw.strip()] for raw in set(values.dropna()) if raw.strip() in codes}


_NAMES = {"trial_type": "trial types", "condition": "conditions"}


def _select(name: str, value: str, labels: Mapping[str, str], place: str) -> str | None:
    codes = list(labels)
    similar = [code for code, label in labels.items() if value.casefold() in (label.casefold(), code)]
    what = {"trial_type": "Trial type of", "condition": "Condition of"}.get(name, f"{name}:")
    return st.selectbox(
        f"{what} “{escape_markdown(value)}”",
        codes,
        index=codes.index(similar[0]) if similar else None,
        format_func=labels.__getitem__,
        placeholder="Choose",
        key=f"{place}_{name}_{digest(value)[:12]}",
        width=240,
    )
