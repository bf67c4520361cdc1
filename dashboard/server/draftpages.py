"""What the participant's page of a draft is told: from the study file as it is now, for accounts that may design it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from core.errors import ForetellError
from dashboard.shared import service
from study.bundle import Manifest
from study.collection.access.door import name_of_file
from study.collection.access.permissions import Permission
from study.participation.draft import DraftPage, find_names, find_page, make_draft_manifest, make_state, next_page
from study.participation.page import PLACEHOLDERS, entry
from study.participation.refusals import Refusal
from study.plan.draft import StudyDraft
from study.plan.studyfiles import folder_of
from study.plan.texts import texts_of
from study.tasks import find_task
from study.workspace.workspace import home


class Click(BaseModel):
    """What of a click on the page decides which page follows."""

    agreed: bool = True
    stage: str = "instructions"
    trial_index: int = 0
    step: int = 1


def reply(asked: Mapping[str, str], token: str, body: bytes) -> tuple[int, Any]:
    """Reply to a request of the participant's page, as code and content.

    Parameters
    ----------
    asked
        The ``study`` file's name, the ``language``, the ``stage`` that the page began with, and the request's ``name``.
        A ``~`` and a condition may follow the stage.
    token
        Of the login.
    body
        Sent with it.
    """
    name = asked["name"]
    stage, _, condition = asked["stage"].partition("~")
    try:
        manifest = _read_draft(asked, token)
        if name == "entry":
            return 200, entry(manifest)
        if name == "state":
            return 200, make_state(manifest, find_page(stage), condition)
        if name in ("consent", "ready", "check", "questionnaire", "responses"):
            click = Click.model_validate_json(body)
            if name == "responses" and _has_more_steps(manifest, stage, click):
                state = make_state(manifest, "main" if click.trial_index else "practice", condition, click.step + 1)
            else:
                state = make_state(manifest, _follow(manifest, name, click), condition)
            return (201, _acknowledge(manifest, state)) if name == "responses" else (200, state)
        if name == "preload":
            return 200, list(PLACEHOLDERS)
        return 200, {"now_ms": service.get_service().participant.now_ms()}  # events are not kept
    except ValidationError:
        return 422, {"error": "The page sends this in another form. Load it again."}
    except Refusal as error:
        return error.code, {"error": str(error)}
    except ForetellError as error:
        return 422, {"error": str(error)}


def _has_more_steps(manifest: Manifest, stage: str, sent: Click) -> bool:
    """Say whether another response to the trial follows this one."""
    return stage != "catch" and sent.step < find_task(manifest.config).steps


def _follow(manifest: Manifest, name: str, sent: Click) -> DraftPage:
    """Return the page that follows a click on another one."""
    if name == "consent" and not sent.agreed:
        return "declined"
    if name == "responses":
        return next_page(manifest, "main" if sent.trial_index else "practice")
    return next_page(manifest, sent.stage if name == "ready" else name)


def _acknowledge(manifest: Manifest, state: dict[str, Any]) -> dict[str, Any]:
    """Reply to a response: the feedback, as after a practice trial, if there is any, and the page that follows."""
    scored = find_task(manifest.config).is_scored_at_once
    feedback = texts_of(manifest)["feedback"].replace("{name}", find_names(manifest)[0]) if scored else None
    return {"message": "Not saved.", "feedback": feedback, "state": state}


def _read_draft(asked: Mapping[str, str], token: str) -> Manifest:
    """Read the study file of a request, for an account that may design it."""
    study = asked["study"]
    files: dict[str, Path] = {path.stem: path for path in folder_of(home()).glob("*.toml")}
    researcher = service.get_researcher_of(token)
    if study not in files or not researcher.may(Permission.DESIGN, name_of_file(files[study])):
        raise Refusal(404, "There is no study file of this name that you may design.")
    return make_draft_manifest(StudyDraft.read(files[study]).content, asked["language"])
