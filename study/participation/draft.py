"""The participant's pages of a study file that is not built yet: for the researcher who writes its texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from core.errors import ForetellError
from study.bundle import FORMAT, Manifest
from study.conditions import CONDITIONS
from study.conditions.condition import Condition
from study.locales import CATALOGUES
from study.participation.page import DraftStage, TrialPage, draft_state, draft_trial_state
from study.plan.config import Saliency, StudyConfig
from study.plan.procedure import procedure_of
from study.plan.texts import complete_texts, find_language_fault, list_default_texts
from study.plan.trials import Trials
from study.tasks import find_task

STAGES: tuple[DraftStage, ...] = get_args(DraftStage)
TRIAL_PAGES: tuple[TrialPage, ...] = get_args(TrialPage)
DraftPage = DraftStage | TrialPage
ORDER: tuple[DraftPage, ...] = (
    "consent", "instructions", "check", "example", "practice", "main", "questionnaire", "done",
)  # fmt: skip
NAMES = tuple("ABCDE")
"""Options of the trial of a draft whose file names no categories."""


def make_draft_manifest(content: Mapping[str, Any], language: str) -> Manifest:
    """Make the manifest of a study file in a language, without trials and images.

    Parameters
    ----------
    content
        The values of the study file; what participants read and do has to be right, the rest may be missing.
    language
        One of `study.locales.CATALOGUES`: the file's own texts stay, the others are of this language.

    Raises
    ------
    ForetellError
        An unknown language, or a part of the file that participants would meet is wrong.
    """
    if language not in CATALOGUES:
        raise ForetellError(f"There is no language {language!r}. Known: {', '.join(CATALOGUES)}.")
    task = find_task(content)
    fault = find_language_fault(language, task)
    if fault:
        raise ForetellError(f"The task {fault}")
    known = list_default_texts(language, task)
    own = {key: str(text) for key, text in _table(content, "texts").items() if key in known}
    title = str(_table(content, "study").get("title", ""))
    saliency = _table(content, "saliency")
    method = saliency.get("method", Saliency.model_fields["method"].default)
    manifest = Manifest(
        format=FORMAT,
        name="draft",
        seed=0,
        config={**content, "language": language},
        conditions=list_conditions(content),
        texts=complete_texts(language, {"title": title, **own}, str(method), _table(saliency, "parameters"), task),
        classifier={},
        sets={},
        environment={},
        trials=(),
        practice=(),
        dropped=(),
        assets={},
    )
    _refuse_faults(manifest)
    return manifest


def list_conditions(content: Mapping[str, Any]) -> tuple[str, ...]:
    """List the known conditions of a study file, or the default ones."""
    usual: tuple[str, ...] = StudyConfig.model_fields["conditions"].get_default(call_default_factory=True)
    return tuple(name for name in _list(content.get("conditions")) if name in CONDITIONS) or usual


def find_fullest(conditions: Sequence[str]) -> str:
    """Find the condition that shows most: a heatmap and examples."""
    return max(conditions, key=lambda name: CONDITIONS[name].shows_saliency + CONDITIONS[name].shows_examples)


def find_page(name: str) -> DraftPage:
    """Find the page of a name; raise `ForetellError` where there is none."""
    for page in (*STAGES, *TRIAL_PAGES):
        if page == name:
            return page
    raise ForetellError(f"There is no page {name!r}. Known: {', '.join((*STAGES, *TRIAL_PAGES))}.")


def make_state(manifest: Manifest, page: DraftPage, condition: str = "", step: int = 0) -> dict[str, Any]:
    """Make the state of a page as one condition shows it, JSON-ready; "" for the condition that shows most.

    Of a trial of two steps it is this ``step``, or the one that belongs to the page.

    Raises
    ------
    ForetellError
        The study has no such condition.
    """
    shown = _find_condition(manifest, condition)
    for stage in STAGES:
        if stage == page:
            return draft_state(manifest, stage, shown)
    (trial_page,) = (one for one in TRIAL_PAGES if one == page)
    return draft_trial_state(manifest, trial_page, shown, find_names(manifest), step)


def find_names(manifest: Manifest) -> Sequence[str]:
    """Return the names of the trial of a draft: the first categories of the file, or placeholders."""
    named = _list(_table(manifest.config, "trials").get("categories"))
    count = find_task(manifest.config).options
    return (named if len(named) >= count else NAMES)[:count]


def next_page(manifest: Manifest, page: str) -> DraftPage:
    """Return the page after another one; the last stays."""
    procedure = procedure_of(manifest)
    practice = _table(manifest.config, "trials").get("practice", Trials.model_fields["practice"].default)
    empty = {"check": not procedure.check.questions, "practice": not practice,
             "questionnaire": not procedure.questionnaire}  # fmt: skip
    order = [one for one in ORDER if one == page or not empty.get(one)]
    return order[min(order.index(find_page(page)) + 1, len(order) - 1)] if page in order else "done"


def _find_condition(manifest: Manifest, name: str) -> Condition:
    """Return the study's condition of a name, or the one that shows most."""
    if name and name not in manifest.conditions:
        raise ForetellError(f"The study has no condition {name!r}. It has: {', '.join(manifest.conditions)}.")
    condition: Condition = CONDITIONS[name or find_fullest(manifest.conditions)]
    return condition


def _refuse_faults(manifest: Manifest) -> None:
    try:
        procedure_of(manifest)
    except ValueError as error:
        raise ForetellError(
            f"The study file has an error in what participants do: {str(error).splitlines()[1]}. Correct it there."
        ) from None


def _table(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = content.get(name)
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list | tuple) else []
