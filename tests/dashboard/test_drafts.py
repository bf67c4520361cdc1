"""The participants' pages of a study file that is being written, next to those of the same study once it is built."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from dashboard.server import api, drafts
from dashboard.shared import service
from dashboard.shared.service import COOKIE
from study.bundle import Bundle
from study.conditions import CONDITIONS
from study.participation.page import entry
from study.plan import studyfiles
from study.plan.draft import StudyDraft
from study.plan.texts import complete_texts, example
from study.workspace.workspace import ROOT
from tests.conftest import write_bundle
from tests.study.participants import answer, to_trials

OWN = {"consent": "Do you agree?\n\nPlease read on.", "debrief": "Das war es."}
QUESTION = {"text": "What do you predict?", "options": ["The AI", "Myself"], "answer": "The AI"}
PASSWORD = "correct horse battery"


@pytest.fixture
def mine(workspace: Path) -> Path:
    path = studyfiles.copy_study(ROOT / "data" / "studies" / "demo.toml", workspace, "mine", "My study")
    draft = StudyDraft.read(path)
    changes = {"texts": OWN, "consent.boxes": ["I am an adult."], "check.questions": [QUESTION], "questionnaire": []}
    for place, value in changes.items():
        draft.set(place, value)
    draft.save(path)
    return path


@pytest.fixture
def http(mine: Path) -> Iterator[TestClient]:
    """A browser that is logged in as nobody's account: an administrator."""
    access = service.get_service().access
    token = access.login_by_link(access.login_link().partition("=")[2])
    with TestClient(Starlette(routes=[*drafts.routes(), *api.routes()]), cookies={COOKIE: token}) as client:
        yield client


def state_of(http: TestClient, stage: str, language: str = "en") -> Any:
    reply = http.get(f"/draft/mine/{language}/{stage}/state")
    assert reply.status_code == 200, reply.text
    return reply.json()


@pytest.mark.parametrize("language", ["en", "de"])
def test_a_draft_reads_like_the_study_that_it_becomes(
    http: TestClient, mine: Path, workspace: Path, language: str
) -> None:
    """Catches a draft that shows other words, boxes or questions than participants then get, in either language."""
    content = StudyDraft.read(mine).content | {"language": language}
    texts = {**OWN, "title": "My study"}
    folder = write_bundle(workspace / "bundle", name="mine", trials=2, practice=0, config=content, texts=texts)
    opened = service.get_service()
    opened.researcher.open_study(folder, per_condition=4)
    manifest = Bundle(folder).manifest
    assert http.post(f"/draft/mine/{language}/consent/entry", json={}).json() == json.loads(json.dumps(entry(manifest)))

    participant = opened.participant
    token = participant.begin("mine")
    read = [participant.state(token), participant.consent(token, agreed=True), participant.ready(token)]
    for state in read:
        known = {key: value for key, value in state.items() if key not in ("withdrawal_code", "receipt")}
        drafted = state_of(http, state["stage"], language)
        assert {**drafted, "study": "mine", "preview": False} == json.loads(json.dumps(known))
    assert [state["stage"] for state in read] == ["consent", "instructions", "check"]


@pytest.mark.parametrize("condition", ["none", "saliency", "examples", "both"])
def test_trials_of_a_draft_read_like_those_of_the_study(
    http: TestClient, mine: Path, workspace: Path, condition: str
) -> None:
    """Catches other texts, keys or places than participants of a condition get, before and in practice and after."""
    draft = StudyDraft.read(mine)
    own = {"question": "Which name?", "feedback": "It said {name}.", "examples_legend": "Like {name}"}
    for place, value in {"texts": {**OWN, **own}, "check.questions": [], "pacing.confidence": True}.items():
        draft.set(place, value)
    draft.save(mine)
    folder = write_bundle(
        workspace / "b", name="mine", trials=2, practice=1, config=draft.content, texts={**OWN, **own}
    )
    opened = service.get_service()
    opened.researcher.open_study(folder, per_condition=4)
    token = opened.researcher.begin_preview("mine", condition)
    to_trials(opened, token)
    real = opened.participant.state(token)
    for page, stage in (("practice", "practice"), ("trial", "practice"), ("main", "main")):
        drafted = state_of(http, f"{page}~{condition}")
        assert real["stage"] == drafted["stage"] == stage
        assert drafted.keys() == real.keys() - {"withdrawal_code", "receipt"}
        for part in ("texts", "keys", "slow_ms", "confidence", "preview"):
            assert drafted[part] == json.loads(json.dumps(real[part])), part
        assert describe_places(drafted["trial"]) == describe_places(real["trial"])
        if page == "trial":
            sent = opened.participant.record(token, answer(0, confidence=0.5))
            said = http.post(f"/draft/mine/en/trial~{condition}/responses", json={"trial_index": 0})
            assert said.status_code == 201
            name = real["trial"]["left"]["name"], real["trial"]["right"]["name"]
            assert said.json()["feedback"] == "It said A."
            assert sent.feedback in [f"It said {one}." for one in name]
            assert said.json()["state"]["stage"] == "main"
            real = sent.state


def describe_places(trial: dict[str, Any]) -> tuple[bool, ...]:
    """What a trial shows: image, heatmap, and examples on each side."""
    return (bool(trial["target"]), bool(trial["map"]), bool(trial["left"]["samples"]), bool(trial["right"]["samples"]))


def test_each_text_of_a_trial_can_be_seen_before_the_study_is_built(http: TestClient, mine: Path) -> None:
    """Catches an attention check with images, a confidence that is not asked for, and drawings that are not there."""
    check = state_of(http, "catch")["trial"]
    assert describe_places(check) == (False, False, False, False)
    assert (check["asked"], check["left"]["name"]) == ("A", "A")
    assert [state_of(http, page)["confidence"] for page in ("trial", "confidence", "feedback")] == [False, True, False]
    drawings = http.get("/draft/mine/en/trial/preload").json()
    shown = state_of(http, "trial")["trial"]
    assert {shown["target"], shown["map"], *shown["left"]["samples"]} == set(drawings)
    assert all(http.get(f"/runner/{name}.svg").headers["content-type"] == "image/svg+xml" for name in drawings)
    draft = StudyDraft.read(mine)
    draft.set("trials.categories", ["<b>fish</b>", "bird", "boat"])
    draft.set("conditions", ["none", "uncertainty"])
    draft.save(mine)
    other = state_of(http, "trial~uncertainty")
    assert [other["trial"][side]["name"] for side in ("left", "right")] == ["<b>fish</b>", "bird"]
    assert other["texts"]["map_legend"] == complete_texts("en", {})["gauge_legend"]
    for wrong in ("trial~both", "trial~nothing", "example~../x"):
        assert http.get(f"/draft/mine/en/{wrong}/state").status_code in (404, 422)


def test_only_a_draft_has_the_script_that_clicks_for_its_author(http: TestClient) -> None:
    """Catches participants' pages that press their own buttons."""
    assert "/runner/draft.js" in http.get("/draft/mine").text
    assert "draft.js" not in http.get("/run/mine").text


@pytest.mark.parametrize("body", ["{", "[]", '{"agreed": "perhaps"}', '{"stage": 7}'])
def test_a_body_of_another_form_is_refused(http: TestClient, body: str) -> None:
    """Catches an error of the server, and a traceback in its log, for what no page sends."""
    for name in ("consent", "ready", "check"):
        reply = http.post(f"/draft/mine/en/consent/{name}", content=body)
        assert (reply.status_code, reply.json()) == (
            422,
            {"error": "The page sends this in another form. Load it again."},
        )


def test_its_buttons_lead_to_the_next_page_with_a_text(http: TestClient) -> None:
    """Catches a page of the study that is skipped, and one shown that it does not have: this one asks nothing after."""
    sent: list[tuple[str, dict[str, Any]]] = [
        ("consent", {"agreed": True}),
        ("ready", {"stage": "instructions"}),
        ("check", {}),
        ("ready", {"stage": "example"}),
    ]
    met = [http.post(f"/draft/mine/en/consent/{name}", json=body).json()["stage"] for name, body in sent]
    assert met == ["instructions", "check", "example", "practice"]
    for index, after in ((0, "main"), (1, "done")):
        reply = http.post("/draft/mine/en/consent/responses", json={"trial_index": index, "side": "left"})
        assert reply.json()["state"]["stage"] == after
    refused = http.post("/draft/mine/en/consent/consent", json={"agreed": False}).json()
    assert refused["stage"] == "declined"


def test_the_example_is_described_for_the_condition_that_shows_most(http: TestClient, mine: Path) -> None:
    """Catches a study file that leaves the default conditions and method out, and is read as one without any."""
    assert "conditions" not in StudyDraft.read(mine).content
    settings, faults = StudyDraft.read(mine).check()
    assert settings is not None, faults
    texts = complete_texts("en", OWN, settings.saliency.method)
    described = state_of(http, "example")["example"]
    assert described == example(texts, CONDITIONS["both"])
    assert texts["example_map"] in described


def test_only_a_draft_may_be_framed_and_only_by_its_own_site(http: TestClient) -> None:
    """Catches another site that shows participants' pages in a frame, and a draft that Design cannot show."""
    policies = {path: http.get(path).headers["content-security-policy"] for path in ("/draft/mine", "/run/mine")}
    assert policies["/draft/mine"].endswith("frame-ancestors 'self'")
    assert policies["/run/mine"].endswith("frame-ancestors 'none'")
    assert "unsafe" not in policies["/draft/mine"]


def test_a_draft_is_for_those_who_may_design_it(http: TestClient) -> None:
    """Catches texts of a study that a viewer may not edit, and a path that leads to other files."""
    opened = service.get_service()
    opened.researcher.set_member("mine", "owner@example.org", "owner")
    opened.researcher.set_member("mine", "viewer@example.org", "viewer")
    link = opened.researcher.make_member_link("mine", "viewer@example.org")
    viewer = opened.access.choose_password(link.partition("=")[2], PASSWORD)
    assert http.get("/draft/mine/en/consent/state").status_code == 200
    for cookie, code in ((viewer, 404), ("", 401)):
        http.cookies.set(COOKIE, cookie)
        reply = http.get("/draft/mine/en/consent/state")
        assert (reply.status_code, "boxes" in reply.text) == (code, False)
    assert http.get("/draft/..%2Fmine/en/consent/state").status_code in (401, 404)


def test_what_is_wrong_in_the_file_is_said_on_the_page(http: TestClient, mine: Path) -> None:
    """Catches an error of the server while a file is being written: a wrong check, a stage and a language unknown."""
    for path in ("en/nowhere/state", "xx/consent/state"):
        assert http.get(f"/draft/mine/{path}").status_code == 422
    draft = StudyDraft.read(mine)
    draft.set("check.tries", 99)
    draft.save(mine)
    reply = http.get("/draft/mine/en/consent/state")
    assert (reply.status_code, "check" in reply.json()["error"]) == (422, True)
