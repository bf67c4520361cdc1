"""State of a participant's page. It never includes what the study's task seals for a trial still to come."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

from study.bundle import Manifest
from study.conditions.condition import Condition
from study.participation.adapting import hide_choice
from study.participation.attributes import draft_attributes
from study.participation.blocks import describe_block, draft_opening
from study.participation.breaks import list_breaks
from study.participation.parts import name_keys, name_part
from study.participation.periods import (
    describe_period,
    find_condition,
    hide_period,
    is_later_opening,
)
from study.participation.screens import PLACE, choose_left, count_steps, hide_explanation, lay_out_trial, place_options
from study.participation.session import ENDED
from study.participation.sittings import course
from study.participation.sittings.division import describe_opening, hide_sitting, is_return
from study.plan.procedure import Procedure, procedure_of
from study.plan.texts import (
    apply_condition_words,
    boxes,
    contact,
    debrief,
    describe_condition,
    describe_id,
    describe_sittings,
    example,
    page_words,
    texts_of,
    word_task,
)
from study.store import Connection, repository, responses
from study.store.rows import PlannedRow, SessionRow
from study.tasks import find_task
from study.tasks.task import FINAL, FIRST

AHEAD = 4
"""The current trial, and three that may be shown before its response is acknowledged."""

DraftStage = Literal["consent", "instructions", "check", "example", "questionnaire", "done", "declined"]
"""Pages of text, which need no trials."""
TrialPage = Literal["practice", "trial", "feedback", "main", "confidence", "catch"]
"""What participants see of trials: the page before those of practice and before the others, a trial, the feedback
after one of practice, the question about confidence, and an attention check."""
NO_FEEDBACK = {"reveals": False}
"""Of a trial after which nothing is told, in practice too."""
PLACEHOLDERS = ("picture", "heatmap")
"""Names of the drawings that take the place of a trial's images before there are any."""
_TRIAL_TEXTS = (
    "question", "map_legend", "target_legend", "examples_legend", "catch", "confidence",
    "end_first", "end_second", "none_of_these",
)  # fmt: skip
_TEXTS_OF_STAGE: dict[str, tuple[str, ...]] = {
    "consent": ("consent",),
    "instructions": ("instructions",),
    "check": ("check", "instructions"),
    "practice": ("practice", *_TRIAL_TEXTS),
    "main": ("main", *_TRIAL_TEXTS),
    "questionnaire": ("questionnaire",),
    "done": ("debrief",),
}


def entry(manifest: Manifest) -> dict[str, Any]:
    """Return what the page needs before the participant starts: its texts, and the study's demands on a device."""
    procedure, texts = procedure_of(manifest), texts_of(manifest)
    words = page_words(texts)
    return {
        "title": texts["title"],
        "language": procedure.language,
        "words": {**words, "withdraw_text": f"{words['withdraw_text']} {describe_id(manifest)}"},
        "device": procedure.device.model_dump(),
        "contact": contact(manifest),
        "colours": manifest.config.get("study", {}).get("colours", "light"),
    }


def page_state(db: Connection, session: SessionRow, manifest: Manifest) -> dict[str, Any]:
    """Return the whole state of the page, JSON-ready."""
    stage, texts = session["stage"], texts_of(manifest)
    if stage == "expired" and course.find_wait(db, session, manifest) is not None:
        texts["expired"] = texts["sitting_closed"]
    if session["condition"] and find_task(manifest.config).steps == 1:
        texts = apply_condition_words(texts, find_condition(session["condition"], {}))
    state = _frame(stage, session["study"], manifest, texts) | {"preview": session["mode"] == "preview"}
    if stage in ENDED:
        return state | _end(session, manifest, texts)
    return state | _particulars(db, session, manifest, texts)


def draft_state(manifest: Manifest, stage: DraftStage, condition: Condition) -> dict[str, Any]:
    """Return the state of a page of text of a study that has no trials and no participants yet, JSON-ready.

    The example is described for a condition, and has no images.
    """
    procedure, texts = procedure_of(manifest), texts_of(manifest)
    ended, keys = {"code": None, "redirect": None}, name_keys(manifest)
    parts: dict[str, dict[str, Any]] = {
        "consent": {"boxes": boxes(manifest)},
        "example": {"screen": None, "example": _describe_example(manifest, texts, condition), "keys": keys},
        "questionnaire": _ask(procedure),
        "done": {"text": debrief(manifest), **ended},
        "declined": {"text": texts["declined"], **ended},
    }
    part = parts[stage] if stage in parts else _read(stage, procedure, texts, 0)
    return _frame(stage, manifest.name, manifest, texts) | {"preview": True} | part


def draft_trial_state(
    manifest: Manifest, page: TrialPage, condition: Condition, names: Sequence[str], step: int = 0
) -> dict[str, Any]:
    """Return the state of a page of trials before the study has any trials, JSON-ready.

    It has one trial in the layout of a condition, whose images are `PLACEHOLDERS`, with these ``names``; its index
    is 0 in practice and 1 among the other trials. Of a trial of two steps it is this ``step``: by default the first on
    the page before trials, else the second.
    """
    stage: Literal["practice", "main"] = "practice" if page in ("practice", "trial", "feedback") else "main"
    index = int(stage == "main")
    worded = word_task(manifest)
    samples = [PLACEHOLDERS[1]] if condition.explains_each_option else [PLACEHOLDERS[0]] * 2
    samples = samples if condition.shows_examples and page != "catch" else []
    options, texts = worded.buttons or names, texts_of(manifest)
    has_own = worded.task.of_units is not None and page != "catch" and not worded.task.is_written
    own = [PLACEHOLDERS[0]] * has_own if worded.buttons else samples
    placed = place_options([{"name": name, "samples": own} for name in options])
    shown: dict[str, Any] = {"target": PLACEHOLDERS[0], "map": PLACEHOLDERS[1] if condition.shows_saliency else None}
    if worded.task.of_units:
        shown = dict.fromkeys(("target", "map"), PLACEHOLDERS[0] if condition.shows_examples else None)
        shown |= {"map": PLACEHOLDERS[0]} if worded.task.is_written else {}
    label = worded.write_label(names[0])
    if label is not None:
        shown["label"] = {"name": names[0], "text": label, "samples": samples if worded.task.hides_foil else []}
    asked = {"target": None, "map": None, "asked": options[0]}
    placed |= {} if worded.task.place is None else {PLACE: worded.task.place}
    placed |= draft_attributes(manifest.config, names) if worded.task.of_attributes else {}
    placed |= name_part(placed, manifest)
    trial = {"index": index, **(asked if page == "catch" else shown), **placed}
    if page == "main":
        trial |= draft_opening(manifest, texts)
    if not worded.task.tells:
        trial |= NO_FEEDBACK
    if worded.task.steps > 1 and page != "catch":
        step = step or (1 if page == stage else 2)
        hidden = hide_explanation(trial) if step == 1 else describe_second_step(texts, condition, trial, "right")
        trial = {**hidden, "index": index, "step": step, "steps": worded.task.steps}
    elif worded.task.steps == 1:
        texts = apply_condition_words(texts, condition)
    procedure = procedure_of(manifest)
    asks_confidence = page == "confidence" or (procedure.pacing.confidence and page != "feedback")
    return {
        **_frame(stage, manifest.name, manifest, texts),
        "preview": True,
        **{"trials": [trial], "trial": trial, "first": index, "total": 1, "breaks": []},
        **{"confidence": asks_confidence, "slow_ms": 1000 * procedure.pacing.slow_seconds},
        "keys": name_keys(manifest),
    }


def _frame(stage: str, study: str, manifest: Manifest, texts: dict[str, str]) -> dict[str, Any]:
    """Return what every page has; the consent says how many sittings there are."""
    texts = {**texts, "consent": "\n\n".join(filter(None, [texts["consent"], describe_sittings(manifest)]))}
    return {
        "stage": stage,
        "study": study,
        "title": texts["title"],
        "texts": {key: texts[key] for key in _TEXTS_OF_STAGE.get(stage, ()) if key in texts},
        "contact": contact(manifest),
    }


def _particulars(db: Connection, session: SessionRow, manifest: Manifest, texts: dict[str, str]) -> dict[str, Any]:
    stage, procedure = session["stage"], procedure_of(manifest)
    if stage == "consent":
        return {"boxes": boxes(manifest)}
    if stage in ("instructions", "check"):
        return _read(stage, procedure, texts, repository.attempts(db, session["session_id"]))
    if stage == "example" and session["condition"] is not None:
        condition = find_condition(session["condition"], {})
        text = _describe_example(manifest, texts, condition)
        shown = {"screen": _build_example(session, manifest, condition), "example": text}
        return {**shown, "keys": name_keys(manifest)}
    if stage in ("practice", "main"):
        rows = repository.list_planned_trials(db, session["session_id"], session["position"], AHEAD)
        pacing = procedure.pacing
        rules = {
            "breaks": list_breaks(db, session, manifest),
            "confidence": pacing.confidence,
            "slow_ms": 1000 * pacing.slow_seconds,
        }
        trials = [_describe_step(db, session, row, manifest, texts) for row in rows]
        stretch = course.find_stretch(db, session, manifest)
        return {**_trials(session, trials, stretch), **rules, "keys": name_keys(manifest)}
    return _ask(procedure) if stage == "questionnaire" else {}


def _read(stage: str, procedure: Procedure, texts: dict[str, str], tried: int) -> dict[str, Any]:
    """Return what is read before the trials, and at the check the questions about it, after so many tries."""
    asked = [{"text": q.text, "options": q.options} for q in procedure.check.questions] if stage == "check" else []
    return {"attempt": tried + 1, "questions": asked, "notice": texts["check_again"] if tried else None}


def _ask(procedure: Procedure) -> dict[str, Any]:
    return {"items": [item.model_dump() for item in procedure.questionnaire]}


def _describe_example(manifest: Manifest, texts: dict[str, str], condition: Condition) -> str:
    """Describe a trial before the first one; what the condition shows only where it is not sealed until a response."""
    return example(texts, condition) if find_task(manifest.config).steps == 1 else texts["example"]


def _build_example(session: SessionRow, manifest: Manifest, condition: Condition) -> dict[str, Any] | None:
    """Build the last practice trial as this participant will see it; without practice there is no image to spare."""
    if not manifest.practice:
        return None
    worded = word_task(manifest)
    left_is = choose_left(worded.task, session["side_flip"])
    screen = lay_out_trial("practice", manifest.practice[-1], condition, left_is, worded).screen
    return screen if worded.task.steps == 1 else hide_explanation(screen)


def _describe_step(
    db: Connection, session: SessionRow, row: PlannedRow, manifest: Manifest, texts: dict[str, str]
) -> dict[str, Any]:
    """Return what the page may know of a planned trial now: before the first response, no explanation."""
    task, screen, index = find_task(manifest.config), json.loads(row["screen_json"]), row["trial_index"]
    known = hide_choice(hide_sitting(hide_period(screen)))
    if count_steps(task, row["phase"]) == 1:
        unrevealed = {} if task.tells else NO_FEEDBACK
        described = {**describe_block(screen, manifest, texts), **describe_period(screen, manifest, texts)}
        described |= _describe_return(session, screen, manifest, texts, described)
        return {"index": index, **known, **unrevealed, **described, **name_part(screen, manifest)}
    is_current = index == session["position"]
    earlier = responses.list_earlier_of_trial(db, session["session_id"], index) if is_current else []
    if not earlier or session["condition"] is None:
        opened = describe_period(screen, manifest, texts, is_sealed=True)
        opened |= describe_opening(screen, manifest, texts, [])
        return {"index": index, "step": 1, "steps": task.steps, **hide_explanation(screen), **opened}
    condition = find_condition(session["condition"], screen)
    explain = index == 0 or is_later_opening(screen) or is_return(screen)
    later = describe_second_step(texts, condition, known, earlier[0]["side"], explain=explain)
    return {"index": index, "step": 2, "steps": task.steps, **later}


def _describe_return(
    session: SessionRow, screen: dict[str, Any], manifest: Manifest, texts: dict[str, str], described: dict[str, Any]
) -> dict[str, Any]:
    """Describe the page before a later sitting: the instructions again, and what is shown from there."""
    if not is_return(screen) or session["condition"] is None:
        return {}
    period = described.get("opening", {}).get("text")
    condition = find_condition(session["condition"], screen)
    return describe_opening(screen, manifest, texts, [period or describe_condition(texts, condition)])


def describe_second_step(
    texts: dict[str, str], condition: Condition, screen: dict[str, Any], first: str, *, explain: bool = False
) -> dict[str, Any]:
    """Describe the second step of a trial: its screen, its words, and the first response, which was on side ``first``.

    With ``explain``, also what the condition shows, for the first trial.
    """
    texts = apply_condition_words(texts, condition)
    words = {
        "question": texts[FINAL],
        FIRST: texts[FIRST].replace("{name}", screen[first]["name"]),
        **{key: texts[key] for key in ("map_legend", "examples_legend")},
    }
    return {**screen, "texts": words, "about": describe_condition(texts, condition) if explain else ""}


def _trials(session: SessionRow, trials: Sequence[dict[str, Any]], main: course.Stretch) -> dict[str, Any]:
    """Return the current trial, those after it of the same stretch (to be ready on time), and the progress."""
    stretch = course.Stretch(0, session["practice"]) if session["stage"] == "practice" else main
    return {
        "trials": [trial for trial in trials if trial["index"] < stretch.first + stretch.total],
        "trial": trials[0],
        "first": stretch.first,
        "total": stretch.total,
    }


def _end(session: SessionRow, manifest: Manifest, texts: dict[str, str]) -> dict[str, Any]:
    """Return the last page: its text, the code to hand in, and the way back to the recruiter."""
    recruiter = procedure_of(manifest).recruiter
    named = {"done": recruiter.complete, "screened": recruiter.screened, "full": recruiter.screened,
             "declined": recruiter.declined}.get(session["stage"], recruiter.partial)  # fmt: skip
    completed = session["completed_at"] is not None
    if session["stage"] == "withdrawn" and completed:
        named = recruiter.complete
    text = debrief(manifest) if session["stage"] == "done" else texts[session["stage"]]
    if session["stage"] == "withdrawn":
        text += "\n\n" + describe_id(manifest)
    code = named or session["completion_code"] or ""
    # A link without a code says that the study was completed: others are shown their code only.
    is_offered = code and recruiter.link_back and ("{code}" in recruiter.link_back or completed)
    redirect = recruiter.link_back.replace("{code}", code) if is_offered else None
    return {"text": text, "code": code or None, "redirect": redirect}
