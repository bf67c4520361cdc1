"""The texts that participants read, frozen with a study, which may replace any of them by its key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from core.attribution.records import sign_of
from core.attribution.signs import EVIDENCE, SUPPORT
from study.bundle import Manifest
from study.conditions import CONDITIONS
from study.conditions.condition import Condition
from study.locales import CATALOGUES, FORMER
from study.plan.procedure import procedure_of
from study.tasks import TASKS, find_task
from study.tasks.predict import TASK as PREDICT
from study.tasks.task import Task, WordedTask
from study.workspace.same import FEW_STUDIES, Same

DEFAULT_LANGUAGE = "en"
DEFAULTS = CATALOGUES[DEFAULT_LANGUAGE]
_OWN = "ui."
_NOTHING: Mapping[str, Any] = MappingProxyType({})
DAY_H, TWO_DAYS_H = 24, 48
_PLACEHOLDER = re.compile(r"\{\w+\}")


def list_default_texts(language: str, task: Task) -> dict[str, str]:
    """List the texts of a task in a language."""
    return {**CATALOGUES[language], **task.texts.get(language, {})}


def find_language_fault(language: str, task: Task) -> str:
    """Say that a task cannot be asked in a language, with the remedy; empty where it can."""
    if not task.texts or task.texts.get(language):
        return ""
    known = " or ".join(repr(one) for one, texts in task.texts.items() if texts)
    return f"{task.name!r} has no texts in the language {language!r}. Set language to {known}, or translate them."


def complete_texts(
    language: str,
    own: Mapping[str, str],
    method: str = "",
    parameters: Mapping[str, Any] = _NOTHING,
    task: Task = PREDICT,
) -> dict[str, str]:
    """Complete a study's own texts with those of its language, of its task and of its heatmap method's colours."""
    texts = {**list_default_texts(language, task), **own}
    if task.of_units:
        return texts
    sign = sign_of(method, parameters)
    of_classes = SUPPORT.kind if sign.below is None else EVIDENCE.kind
    kinds = dict.fromkeys(("example_map", "map_legend"), sign.kind)
    kinds |= dict.fromkeys(("example_class_maps", "class_maps_legend"), of_classes)
    return texts | {key: own.get(key, texts[key + kind]) for key, kind in kinds.items()}


def explain_placeholders(key: str, text: str) -> str:
    """Explain placeholders that a text does not have: participants would read them as they are; empty without any."""
    every = [*CATALOGUES.values(), *(texts for _, task in TASKS.usable() for texts in task.texts.values())]
    known = {name for texts in every for name in _PLACEHOLDER.findall(texts.get(key, ""))}
    unknown = sorted(set(_PLACEHOLDER.findall(text)) - known)
    if not unknown:
        return ""
    offered = f"its placeholders are {', '.join(sorted(known))}" if known else "this text has no placeholders"
    return f"participants would read {', '.join(unknown)} as it is written: {offered}."


def fill_placeholders(text: str, values: Mapping[str, object]) -> str:
    """Fill the placeholders of a text, such as ``{number}``, with values by their names."""
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", str(value))
    return text


def warn_of_placeholders(own: Mapping[str, str]) -> list[str]:
    """Return a sentence for each of a study's own texts with placeholders that it does not have."""
    explained = {key: explain_placeholders(key, text) for key, text in own.items()}
    return [f"Text {key}: {sentence}" for key, sentence in explained.items() if sentence]


def texts_of(manifest: Manifest) -> dict[str, str]:
    """Return the texts frozen with a study, completed with those of the older versions that did not freeze all."""
    return dict(_complete_frozen(Same(manifest)))


@lru_cache(FEW_STUDIES)
def _complete_frozen(manifest: Same[Manifest]) -> dict[str, str]:
    language = procedure_of(manifest.value).language
    task = find_task(manifest.value.config)
    return complete_texts(language, {**FORMER.get(language, {}), **manifest.value.texts}, task=task)


def word_task(manifest: Manifest) -> WordedTask:
    """Return the task of a study, in the study's texts."""
    return WordedTask(find_task(manifest.config), texts_of(manifest))


def page_words(texts: dict[str, str]) -> dict[str, str]:
    """Select the page's own words, which do not depend on the study; keys without their prefix."""
    return {key.removeprefix(_OWN): text for key, text in texts.items() if key.startswith(_OWN)}


def boxes(manifest: Manifest) -> list[str]:
    """List the boxes that a participant ticks to agree: the study's own, or the two of the catalogue."""
    return list(procedure_of(manifest).consent.boxes) or list_default_boxes(texts_of(manifest))


def list_default_boxes(texts: Mapping[str, str]) -> list[str]:
    """List the boxes that a participant ticks where a study names none."""
    return [texts["agree_age"], texts["agree"]]


def contact(manifest: Manifest) -> dict[str, Any]:
    """Format the contact for participants: `lines` of text, and their e-mail address; empty without a contact."""
    named, texts = procedure_of(manifest).contact, texts_of(manifest)
    approved = ", ".join(part for part in (named.board, named.approval) if part)
    said = {"contact_researcher": named.researcher, "contact_board": approved}
    lines = [texts[key].replace("{name}", value) for key, value in said.items() if value]
    return {"lines": lines + ([texts["contact_email"]] if named.email else []), "email": named.email}


def compose_consent(manifest: Manifest) -> str:
    """Compose the whole text that a participant agrees to, as it is hashed."""
    texts = [texts_of(manifest)["consent"], describe_sittings(manifest)]
    return "\n\n".join([*filter(None, texts), *_format_contact(contact(manifest)), *boxes(manifest)])


def describe_sittings(manifest: Manifest) -> str:
    """Tell participants how many sittings there are, when, and when they are paid; empty in a study of one."""
    sittings, texts = procedure_of(manifest).sittings, texts_of(manifest)
    if sittings is None:
        return ""
    times = {"gap": sittings.gap_hours, "within": sittings.within_hours}
    values = {"total": sittings.count, **{name: _write_hours(hours, texts) for name, hours in times.items()}}
    paid = texts["sittings_paid_each" if sittings.codes else "sittings_paid_once"]
    return fill_placeholders(f"{texts['sittings']} {paid}", values)


def _write_hours(hours: int, texts: Mapping[str, str]) -> str:
    """Write a number of hours in words, whole days from two on as days."""
    if hours >= TWO_DAYS_H and hours % DAY_H == 0:
        return texts["sittings_days"].replace("{number}", str(hours // DAY_H))
    return texts["sittings_hour" if hours == 1 else "sittings_hours"].replace("{number}", str(hours))


def debrief(manifest: Manifest) -> str:
    """Compose the debriefing, which discloses placebos if there were any."""
    texts = texts_of(manifest)
    misled = any(CONDITIONS[name].placebo for name in manifest.conditions)
    return "\n\n".join([texts["debrief"], *([texts["debrief_placebo"]] if misled else [])])


def describe_id(manifest: Manifest) -> str:
    """Explain what is retained of a participant who withdraws: a recruiter's id, for as long as the study says."""
    return texts_of(manifest)["withdrawn_id"].replace("{days}", str(procedure_of(manifest).recruiter.retention_days))


def _format_contact(details: dict[str, Any]) -> list[str]:
    address = [details["email"]] if details["email"] else []
    return [" ".join([*details["lines"], *address])] if details["lines"] else []


def apply_condition_words(texts: dict[str, str], condition: Condition) -> dict[str, str]:
    """Adapt the words to a condition."""
    return {**texts, **{key: texts[own] for key, own in condition.words.items()}}


def example(texts: dict[str, str], condition: Condition) -> str:
    """Describe a condition's screen to its participants."""
    parts = (texts["example"], describe_condition(apply_condition_words(texts, condition), condition))
    return "\n\n".join(filter(None, parts))


def describe_condition(texts: Mapping[str, str], condition: Condition) -> str:
    """Describe what a condition shows next to the image, in its words; empty where it shows nothing."""
    parts = []
    if condition.shows_saliency:
        parts.append(texts["example_map"])
    if condition.shows_examples:
        parts.append(texts["example_examples"])
    if condition.shows_saliency and condition.shows_examples:
        parts.append(texts["example_both"])
    return "\n\n".join(parts)
