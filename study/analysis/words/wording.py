"""How the codes in the tables of results are written in words, on the pages and in the report."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from core.names import lower_first, upper_first
from study.analysis.models.sentences import words
from study.analysis.words.headings import MEASURES, format_heading
from study.bundle import TYPE_LABELS
from study.conditions import CONDITIONS, format_condition

TYPES = re.compile("|".join(TYPE_LABELS))


def write_contrast(name: str) -> str:
    """Write a contrast, or two nested models, in words: ``"Saliency maps vs no explanation, AI right"``."""
    pair, comma, kinds = name.partition(", ")
    first, *others = (format_condition(side) if side in CONDITIONS else side for side in pair.split(" - "))
    sides = " vs ".join([upper_first(first), *map(lower_first, others)])
    return f"{sides}{comma}{TYPES.sub(lambda kind: TYPE_LABELS[kind[0]], kinds)}"


def write_whole_contrast(contrast: str) -> str:
    """Write a contrast in words: ``"Saliency maps vs no explanation, all trials"``."""
    return write_contrast(contrast) + ("" if ", " in contrast else ", all trials")


IN_WORDS: Mapping[str, Callable[[str], str]] = {
    "contrast": write_contrast,
    "result": write_contrast,
    "condition": format_condition,
    "trial_type": lambda kind: str(TYPE_LABELS.get(kind, kind)),
    "term": words,
    "measure": lambda name: format_heading(name) if name in MEASURES else name,
}
"""The columns whose codes are written in words."""
