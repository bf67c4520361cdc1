"""The participant's pages of a study file that is not built yet: for the researcher who writes its texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from core.errors import ForetellError
from study.bundle import FORMAT, Manifest
from study.conditions import CONDITIONS
from study.locales import CATALOGUES
from study.participation.page import DraftStage
from study.plan.config import Saliency, StudyConfig
from study.plan.procedure import procedure_of
from study.plan.texts import DEFAULTS, complete_texts

STAGES: tuple[DraftStage, ...] = get_args(DraftStage)


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
    own = {key: str(text) for key, text in _table(content, "texts").items() if key in DEFAULTS}
    title = str(_table(content, "study").get("title", ""))
    usual: tuple[str, ...] = StudyConfig.model_fields["conditions"].get_default(call_default_factory=True)
    named = [name for name in _list(content.get("conditions")) if name in CONDITIONS]
    method = _table(content, "saliency").get("method", Saliency.model_fields["method"].default)
    manifest = Manifest(
        format=FORMAT,
        name="draft",
        seed=0,
        config={**content, "language": language},
        conditions=tuple(named) or usual,
        texts=complete_texts(language, {"title": title, **own}, str(method)),
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


def find_stage(name: str) -> DraftStage:
    """Find the page of text of a name; raise `ForetellError` where there is none."""
    for stage in STAGES:
        if stage == name:
            return stage
    raise ForetellError(f"There is no page {name!r}. Known: {', '.join(STAGES)}.")


def next_stage(manifest: Manifest, stage: str) -> DraftStage:
    """Return the page of text after another one; the last stays."""
    procedure = procedure_of(manifest)
    empty = {"check": not procedure.check.questions, "questionnaire": not procedure.questionnaire}
    order = [one for one in STAGES if one != "declined" and not empty.get(one)]
    return order[min(order.index(stage) + 1, len(order) - 1)] if stage in order else "done"


def _refuse_faults(manifest: Manifest) -> None:
    try:
        procedure_of(manifest)
    except ValueError as error:
        raise ForetellError(
            f"The study file has an error in what participants do: {str(error).splitlines()[1]}. Correct it there."
        ) from None


def _table(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = content.get(name)
    return found if isinstance(found, Mapping) else {}


def _list(found: Any) -> list[str]:
    return [str(one) for one in found] if isinstance(found, list | tuple) else []
