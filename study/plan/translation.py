"""The texts that a study still has from its template, in another language of the experiment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from study.locales import TEMPLATES
from study.plan.draft import MISSING, StudyDraft

PLACES = ("study.title", "check.questions", "questionnaire")
"""Where templates have texts of their own that a copy keeps."""


def translate_template(draft: StudyDraft, language: str) -> dict[str, Any]:
    """Return the new value of each place with texts of a template in another language; own texts stay."""
    values = {place: draft.get(place) for place in PLACES}
    translated = {place: _translate(value, language) for place, value in values.items() if value is not MISSING}
    return {place: value for place, value in translated.items() if value != values[place]}


def _translate(value: Any, language: str) -> Any:
    if isinstance(value, str):
        key = next((key for texts in TEMPLATES.values() for key, text in texts.items() if text == value), "")
        return TEMPLATES.get(language, {}).get(key, value)
    if isinstance(value, Mapping):
        return {name: _translate(one, language) for name, one in value.items()}
    return [_translate(one, language) for one in value] if isinstance(value, list) else value
