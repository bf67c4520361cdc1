"""The response of a model: two words as 0 and 1, as R reads a factor, and no value that its family does not know."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import pandas as pd

from core.errors import ForetellError

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
