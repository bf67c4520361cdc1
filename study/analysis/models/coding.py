"""The response of a model: words as 0 and 1 or as levels in order, and no value that its family does not know."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.errors import ForetellError

_NAME = re.compile(r"[A-Za-z_.][\w.]*")
_FUNCTION = re.compile(r"[A-Za-z_.][\w.]*\s*\(")
_RESPONSE = re.compile(r"^\s*([A-Za-z_.][\w.]*)\s*~")

ValueTest = Callable[["pd.Series[float]"], "pd.Series[bool]"]
_COUNTS: tuple[str, ValueTest] = ("0 or more", lambda values: values >= 0)
_RANGES: Mapping[str, tuple[str, ValueTest]] = {
    "binomial": ("0 or 1", lambda values: values.between(0, 1)),  # shares between them are fitted, with a message
    "poisson": _COUNTS,
    "negativebinomial": _COUNTS,
    "gamma": ("above 0", lambda values: values > 0),
}
"""Values that a response can have in each family. Outside of them `glmm` panics, and prints its stack first."""
OUTCOMES: Mapping[str, float] = {
    **dict.fromkeys(("true", "yes", "correct", "right", "hit", "success", "ja", "richtig", "wahr"), 1.0),
    **dict.fromkeys(("false", "no", "incorrect", "wrong", "miss", "failure", "nein", "falsch", "unwahr"), 0.0),
}
"""Words for 1 and 0, in small letters."""
MOST_LEVELS = 50
"""Most levels of an ordinal response: each but the last has a threshold to estimate."""


def code_response(frame: pd.DataFrame, formula: str) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Code a two-valued text response as 0/1, and describe the code in a sentence.

    Known words mean what they say; of any two others the first in the alphabet is 0, as in R. Any other response
    is left as it is.
    """
    name = _single(frame, formula)
    if name is None or _is_number(frame[name]):
        return frame, ()
    values = sorted(frame[name].dropna().unique(), key=_rank_outcome)
    if len(values) != 2:
        return frame, ()
    coded = frame[name].map({values[0]: 0, values[1]: 1})
    return frame.assign(**{name: coded}), (f"{name}: {values[0]!r} counts as 0 and {values[1]!r} as 1.",)


def code_levels(frame: pd.DataFrame, formula: str) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Code an ordinal response as a categorical of the levels that occur, and name those that do not in a sentence.

    The likelihood of the other levels is the same without a level that never occurs: its thresholds fall together.

    Raises
    ------
    ForetellError
        The response is no single column, has no order, a level that is no whole number, one level, or too many.
    """
    name = _single(frame, formula)
    if name is None:
        raise ForetellError(
            f"The response of {formula!r} is no column of the data: an ordinal model needs the levels in one column, "
            "as in 'level ~ condition + (1|participant)'."
        )
    coded, absent = _order_levels(frame[name], name)
    count = len(coded.categories)
    if count < 2:
        raise ForetellError(
            f"Column {name!r} has one level only, {coded.categories[0]}: an ordinal model compares at least two."
        )
    if count > MOST_LEVELS:
        raise ForetellError(
            f"Column {name!r} has {count:,} levels, too many for an ordinal model (at most {MOST_LEVELS}): join "
            "neighbouring levels, or take the gaussian family."
        )
    said = f"Levels of {name} that never occur have no threshold of their own: {', '.join(absent)}."
    return frame.assign(**{name: coded}), (said,) if absent else ()


def _order_levels(column: pd.Series[float], name: str) -> tuple[pd.Categorical, list[str]]:
    """Return a column as a categorical of the levels that occur, the lowest first; and the levels that do not."""
    if isinstance(column.dtype, pd.CategoricalDtype) and column.cat.ordered:
        used = column.cat.remove_unused_categories()
        every = [str(level) for level in column.cat.categories]
        return used.array, [level for level in every if level not in {*map(str, used.cat.categories)}]
    if not _is_number(column):
        raise ForetellError(
            f"Column {name!r} has words, such as {str(column.iloc[0])!r}, whose order an ordinal model cannot know: "
            "number the levels from the lowest, 1, 2, 3, or make the column an ordered categorical."
        )
    values = column.to_numpy(dtype=np.float64)
    broken = np.flatnonzero(values != np.round(values))
    if len(broken):
        raise ForetellError(
            f"Column {name!r} must have whole numbers as the levels of an ordinal model, but row {broken[0] + 1} has "
            f"{values[broken[0]]:g}: number the levels from the lowest, 1, 2, 3."
        )
    whole = values.astype(np.int64)
    used_levels = sorted({*whole.tolist()})
    span = used_levels[-1] - used_levels[0]
    absent = [str(level) for level in range(used_levels[0], used_levels[-1]) if level not in used_levels]
    return pd.Categorical(whole, categories=used_levels, ordered=True), absent if span < 2 * MOST_LEVELS else []


def read_levels(frame: pd.DataFrame, formula: str) -> list[str]:
    """List the levels of an ordinal response that occur, the lowest first."""
    name = _single(frame, formula)
    return [str(level) for level in code_levels(frame, formula)[0][name].cat.categories]


def read_response(
    frame: pd.DataFrame, formula: str, weights: str | None = None, family: str = "binomial"
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return (n,) successes and (n,) trials of each row of a binomial response, single or ``cbind(hits, misses)``.

    With `weights` the response is the share of successes among so many. Of an ordinal response: the level, from 1, and
    the weight. Of another family: y times weight, and weight.
    """
    names = _NAME.findall(_FUNCTION.sub("", formula.split("~", 1)[0]))
    responses = np.ones(len(frame)) if weights is None else frame[weights].to_numpy(dtype=np.float64)
    if family == "ordinal":
        levels = code_levels(frame, formula)[0][names[0]].cat.codes
        return levels.to_numpy(dtype=np.float64) + 1.0, responses
    if family != "binomial":
        return frame[names[0]].to_numpy(dtype=np.float64) * responses, responses
    hits = code_response(frame, formula)[0][names[0]].to_numpy(dtype=np.float64)
    misses = frame[names[1]].to_numpy(dtype=np.float64) if len(names) > 1 else 1.0 - hits
    return hits * responses, (hits + misses) * responses


def _rank_outcome(value: object) -> tuple[float, str]:
    """Rank what means 0 before what means 1, and other words between them by the alphabet."""
    word = str(value).strip().casefold()  # "no" before "Yes"
    return OUTCOMES.get(word, 0.5), word


def check_response(frame: pd.DataFrame, formula: str, family: str) -> None:
    """Refuse a response of numbers that the family does not know.

    Raises
    ------
    ForetellError
        With how many there are, and the first of them.
    """
    name = _single(frame, formula)
    if name is None or family not in _RANGES or not _is_number(frame[name]):
        return
    values, (words, known) = frame[name].astype(float), _RANGES[family]
    outside = ~known(values)
    wrong = values[outside]
    if len(wrong):
        row = int(outside.to_numpy().argmax()) + 1
        raise ForetellError(
            f"Column {name!r} must be {words} in a {family} model, but {len(wrong):,} of its values are not "
            f"(row {row}: {wrong.iloc[0]:g}): recode them, or choose another family."
        )


def with_reference(frame: pd.DataFrame, reference: Mapping[str, str]) -> pd.DataFrame:
    """Make each named column a categorical whose first level is the one given.

    Raises
    ------
    ForetellError
        No such column, or no such level in it.
    """
    for name, level in reference.items():
        levels = sorted(frame[name].dropna().astype(str).unique()) if name in frame else []
        if level not in levels:
            raise ForetellError(f"There is no level {level!r} of {name!r} to refer to; it has {', '.join(levels)}.")
        order = [level, *(other for other in levels if other != level)]
        frame = frame.assign(**{name: pd.Categorical(frame[name].astype(str), categories=order)})
    return frame


def _single(frame: pd.DataFrame, formula: str) -> str | None:
    """Return the column that is the response; None where it is made of several."""
    match = _RESPONSE.match(formula)
    return match.group(1) if match is not None and match.group(1) in frame.columns else None


def _is_number(column: pd.Series[float]) -> bool:
    return bool(pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column))
