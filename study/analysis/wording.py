"""How the codes in the tables of results are written in words, on the pages and in the report."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from study.analysis.detection import DETECTION_MEASURES
from study.analysis.headings import format_heading
from study.analysis.sentences import words
from study.bundle import TYPE_LABELS

TYPES = re.compile("|".join(TYPE_LABELS))


def _write_contrast(text: str) -> str:
    return TYPES.sub(lambda kind: TYPE_LABELS[kind[0]], text.replace(" - ", " vs "))


IN_WORDS: Mapping[str, Callable[[str], str]] = {
    "contrast": _write_contrast,
    "result": _write_contrast,
    "trial_type": lambda kind: str(TYPE_LABELS.get(kind, kind)),
    "term": words,
    "measure": lambda name: format_heading(name) if name in DETECTION_MEASURES else name,
}
"""The columns whose codes are written in words; conditions keep their short names."""
