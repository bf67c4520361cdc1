"""The rows and the formula of a model, checked and coded, before anything is fitted to them."""

from __future__ import annotations

import pandas as pd

from core.errors import ForetellError
from study.analysis.models import formula as formulas
from study.analysis.models import ordinal
from study.analysis.models.coding import check_response, code_levels, code_response
from study.workspace.tables import MISSING

MOST_LEVELS = 200
"""Most levels of a factor among the fixed effects: the work grows with their cube, and 1,000 would take hours."""


def prepare(
    frame: pd.DataFrame, formula: str, family: str, weights: str | None = None
) -> tuple[pd.DataFrame, str, tuple[str, ...]]:
    """Return the rows and the formula as every fit reads them, and sentences on how words were coded.

    Raises
    ------
    ForetellError
        The formula cannot be read, a column is missing or has missing values, or the family does not know a response.
    """
    _check_formula(frame, formula)
    data, text = formulas.prepare_formula(frame, formula)
    _check(data, text, weights)
    data, coded = _code(data, text, family)
    data = formulas.drop_unused_levels(data, text)
    check_response(data, text, family)
    return data, text, coded


def _check_formula(frame: pd.DataFrame, formula: str) -> None:
    if "~" not in formula:
        raise ForetellError(
            f"The formula {formula!r} has no '~': write it like 'correct ~ trial_type + (1|participant)'."
        )
    if frame.empty:
        raise ForetellError(f"There are no rows to fit {formula!r} to.")


def _check(frame: pd.DataFrame, formula: str, weights: str | None) -> None:
    """Refuse what `glmm` would drop in silence or explain in its own words."""
    if weights is not None and (weights not in frame or not pd.api.types.is_numeric_dtype(frame[weights])):
        raise ForetellError(f"The weights must be a column of numbers; {weights!r} is none.")
    for name in (name for term in formulas.terms(formula) for name in term.group.split(":")):
        if name not in frame:
            raise ForetellError(f"The formula {formula!r} groups by {name!r}, which is no column of the data.")
    for name in [*formulas.columns(frame, formula), *([weights] if weights else [])]:
        missing = int(frame[name].isna().sum())
        if missing:
            raise ForetellError(
                f"Column {name!r} has {missing} missing values: drop or fill those rows before fitting. In "
                f"a file, empty cells and {', '.join(MISSING)} are missing values."
            )
    for name in formulas.columns(frame, formulas.extract_fixed_effects(formula)):
        levels = 0 if pd.api.types.is_numeric_dtype(frame[name]) else frame[name].nunique()
        if levels > MOST_LEVELS:
            raise ForetellError(
                f"Column {name!r} has {levels:,} levels, too many for fixed effects (at most {MOST_LEVELS}): write it "
                f"as a random term, (1|{name}), or mark a column of numbers as such."
            )


def _code(frame: pd.DataFrame, formula: str, family: str) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Code words as the values that the family knows, with sentences on it."""
    if family == ordinal.FAMILY:
        return code_levels(frame, formula)
    return code_response(frame, formula) if family == "binomial" else (frame, ())
