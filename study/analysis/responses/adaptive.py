"""Columns of studies that choose trials by responses, in tables of responses that have them."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

ABILITY, ABILITY_SD, CHOSEN_BY = "ability", "ability_sd", "chosen_by"
LEVEL, AIMED, TARGET = "difficulty_level", "aimed_level", "target_share"
NUMBERS = (ABILITY, ABILITY_SD, LEVEL, AIMED, TARGET)
NOT_COMPARED = (
    "Trials were chosen by each participant's responses, harder after correct ones. This drives accuracy towards the "
    "same value in all conditions, so plain accuracy does not compare them."
)
REMEDY = (
    " The planned models compare conditions at the same difficulty of trials; thresholds and abilities of participants "
    "are among the exploratory analyses."
)


def has_choices(frame: pd.DataFrame) -> bool:
    """Say whether trials were chosen by responses, by the columns of Foretell's export."""
    return {CHOSEN_BY, ABILITY} <= set(frame) and bool(frame[CHOSEN_BY].notna().any())


def list_choice_columns(frame: pd.DataFrame) -> dict[str, pd.Series[object]]:
    """List the columns of chosen trials by name; none of other studies, whose rows keep the hash they had."""
    if not has_choices(frame):
        return {}
    numbers = {name: pd.to_numeric(frame[name], errors="coerce") for name in NUMBERS if name in frame}
    return {name: one for name, one in numbers.items() if one.notna().any()} | {CHOSEN_BY: frame[CHOSEN_BY]}


def warn_of_choices(frame: pd.DataFrame) -> Iterator[str]:
    """Warn that accuracies do not compare conditions where trials were chosen by responses."""
    if has_choices(frame):
        yield NOT_COMPARED + REMEDY
