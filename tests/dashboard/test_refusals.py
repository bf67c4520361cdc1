"""Whatever the server refuses a participant, it says in her study's language: every refusal there is, in German."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import httpx
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from dashboard.server.api import MOST_BYTES, routes
from dashboard.shared import service as door
from study.locales import CATALOGUES
from study.participation.arrival import CODES
from study.participation.payloads import Recruit, SessionCredentials
from study.participation.refusals import Says
from study.service import Service
from tests.conftest import write_bundle
from tests.study.sitting_studies import end_first

MakeBundle = Callable[..., Path]
GERMAN, ENGLISH = CATALOGUES["de"], CATALOGUES["en"]
CONFIG: dict[str, Any] = {
    "language": "de",
    "check": {"questions": [{"text": "Ja?", "options": ["Ja", "Nein"], "answer": "Ja"}]},
    "questionnaire": [{"id": "how", "kind": "text", "text": "Wie?"}],
}
PROLIFIC = {"source": "prolific", "person": "5f3a", "study": "x", "session": None}
Reply = httpx.Response
Walk = Callable[[TestClient], Reply]


@pytest.fixture
def client(tmp_path: Path, bundle: MakeBundle, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    """A page of the study "deutsch", which everybody may enter, and of "next", closed to who took part in that."""
    monkeypatch.setenv("FORETELL_HOME", str(tmp_path / "home"))
    researcher = door.get_service().researcher
    researcher.open_study(bundle(name="deutsch", config=CONFIG), per_condition=1)
    excluding = CONFIG | {"recruiter": {"exclude": ["deutsch"]}}
    researcher.open_study(bundle(name="next", config=excluding), per_condition=1)
    headers = {"X-Study": "deutsch"}
    with TestClient(Starlette(routes=routes()), base_url="http://study.test", headers=headers) as opened:
        yield opened
    door.close()


def post(client: TestClient, path: str, body: Any, **headers: str) -> Reply:
    return client.post(f"/api/v1/{path}", json=body, headers=headers)


def begin(client: TestClient, **body: Any) -> Reply:
    return post(client, "begin", {"study": "deutsch", **body})


def entered(client: TestClient, *done: tuple[str, Any]) -> None:
    """Somebody begins, agrees and does more."""
    client.headers["X-Session-Token"] = begin(client).json()["token"]
    for path, body in (("consent", {"agreed": True}), *done):
        assert post(client, path, body).status_code == 200, path


def after(*done: tuple[str, Any], then: str, body: Any = None, **headers: str) -> Walk:
    """What is answered to `then` by somebody who began, agreed and did what is `done`."""

    def walk(client: TestClient) -> Reply:
        entered(client, *done)
        return post(client, then, body or {}, **headers)

    return walk


def managed(manage: Callable[[Service], Any]) -> Walk:
    """What a newcomer is told after the researcher did something."""

    def walk(client: TestClient) -> Reply:
        manage(door.get_service())
        return begin(client)

    return walk


def filled(client: TestClient) -> Reply:
    for _ in range(4):
        entered(client, ("ready", {"stage": "instructions"}), ("check", {"attempt": 1, "answers": [0]}))
    return begin(client)


def elsewhere(client: TestClient) -> Reply:
    entered(client)
    client.get("/api/v1/state", headers={"X-Tab": "one"})
    return client.get("/api/v1/state", headers={"X-Tab": "two"})


def without_tab(client: TestClient) -> Reply:
    entered(client)
    client.get("/api/v1/state", headers={"X-Tab": "one"})
    for path, body in (("ready", {"stage": "instructions"}), ("takeover", {})):
        assert post(client, path, body).status_code in (422, 423), path
    return client.get("/api/v1/state")


def known(client: TestClient) -> Reply:
    assert begin(client, recruit={"person": "7"}).status_code == 201
    return begin(client, recruit={"person": "7"})


def finished(client: TestClient) -> Reply:
    assert begin(client, recruit={"person": "7"}).status_code == 201
    store = door.get_service().workspace.store
    store.write(lambda db: db.exec_driver_sql("UPDATE session SET stage = 'done'"))
    return begin(client, recruit={"person": "7"})


def earlier(client: TestClient) -> Reply:
    client.headers["X-Session-Token"] = begin(client, recruit={"person": "7"}).json()["token"]
    assert post(client, "consent", {"agreed": True}).status_code == 200
    return post(client, "begin", {"study": "next", "recruit": {"person": "7"}}, **{"X-Study": "next"})


def not_open(client: TestClient) -> Reply:
    """The second sitting right after the first."""
    service, config = door.get_service(), {"language": "de", "sittings": {"count": 2}}
    folder = write_bundle(service.workspace.home / "two", name="two", trials=6, practice=0, seed=8, config=config)
    study = service.researcher.open_study(folder, 1)
    end_first(service, study, recruit=Recruit(person="7"), proof=SessionCredentials(browser="b" * 40))
    sent = {"study": study, "recruit": {"person": "7"}, "proof": {"browser": "b" * 40}}
    client.headers["X-Session-Token"] = post(client, "begin", sent).json()["token"]
    return post(client, "sitting", {"number": 2}, **{"X-Study": study})


def guessed(client: TestClient) -> Reply:
    for _ in range(CODES):
        assert post(client, *WITHDRAW).status_code == 404
    return post(client, *WITHDRAW)


WITHDRAW = ("withdraw", {"code": "ABC"})
WALKS: list[tuple[str, int, Says, Walk]] = [
    ("an id that is none", 422, "refused_link", lambda client: begin(client, recruit={"person": "a b"})),
    ("half of Prolific's ids", 422, "refused_link", lambda client: begin(client, recruit=PROLIFIC)),
    ("a preview", 401, "refused_preview", lambda client: begin(client, preview=True)),
    ("paused", 410, "paused", managed(lambda service: service.researcher.pause_study("deutsch"))),
    ("closed", 410, "closed", managed(lambda service: service.researcher.close_study("deutsch"))),
    ("full", 410, "full", filled),
    ("an old link", 401, "refused_stale", lambda client: client.get("/api/v1/state")),
    ("an old page", 401, "refused_stale", lambda client: client.get("/api/v1/preload")),
    ("another tab", 423, "refused_elsewhere", elsewhere),
    ("no tab while one holds it", 423, "refused_elsewhere", without_tab),
    ("an end before the time", 425, "refused_moved", after(then="finish")),
    ("a check that is not open", 425, "refused_moved", after(then="check", body={"attempt": 1, "answers": [0]})),
    ("a questionnaire too early", 425, "refused_moved", after(then="questionnaire", body={"answers": {}})),
    ("a decision that was taken", 425, "refused_moved", after(then="consent", body={"agreed": False})),
    ("a sitting that is not open", 425, "refused_early", not_open),
    ("no private code", 404, "refused_code", lambda client: post(client, *WITHDRAW)),
    ("another's id", 403, "refused_known", known),
    ("an id whose session is finished", 403, "refused_finished", finished),
    (
        "no invitation",
        403,
        "refused_invited",
        managed(lambda service: service.researcher.set_access("deutsch", "personal")),
    ),
    ("an earlier study", 403, "refused_earlier", earlier),
    ("too many codes", 429, "refused_busy", guessed),
    ("too long", 413, "ui.wrong", after(then="questionnaire", body={"answers": {"how": "x" * MOST_BYTES}})),
    ("too many events", 413, "ui.wrong", after(then="events", body=[{"event_id": "12345678", "kind": "a"}] * 201)),
    ("another site", 403, "ui.wrong", after(then="ready", body={"stage": "example"}, Origin="http://evil.test")),
    ("no JSON", 422, "ui.wrong", lambda client: post(client, "begin", [])),
]


@pytest.mark.parametrize(("code", "says", "walk"), [pytest.param(*rest, id=name) for name, *rest in WALKS])
def test_a_refusal_speaks_the_studys_language(client: TestClient, code: int, says: Says, walk: Walk) -> None:
    """Catches a refusal in English, or in words of its own, on a German participant's page."""
    reply = walk(client)
    assert (reply.status_code, reply.json()["error"]) == (code, GERMAN[says])
    assert reply.json()["error"] != ENGLISH[says]


def test_every_refusal_is_walked() -> None:
    """Catches a new refusal that nobody looked at in the second language."""
    assert {says for _, _, says, _ in WALKS} | {"refused_unknown"} == set(get_args(Says))


def test_a_studys_own_words_are_used(client: TestClient, bundle: MakeBundle) -> None:
    """Catches a refusal that passes over what the study file says instead."""
    door.get_service().researcher.open_study(bundle(name="own", texts={"refused_code": "Nein."}), per_condition=1)
    assert post(client, *WITHDRAW, **{"X-Study": "own"}).json()["error"] == "Nein."


def test_an_unknown_study_is_refused_in_the_default_language_and_lists_no_other(client: TestClient) -> None:
    """Catches a wrong link that tells a stranger which studies there are."""
    reply = post(client, "entry", {"study": "dutsch"}, **{"X-Study": "dutsch"})
    assert (reply.status_code, reply.json()["error"]) == (404, ENGLISH["refused_unknown"])
    assert "deutsch" not in reply.text


def test_what_is_wrong_at_the_server_is_logged_and_not_told(
    client: TestClient, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches a path of the server, or an English sentence for the researcher, on a participant's screen."""
    entered(client)
    folder = next((door.get_service().workspace.home.parent / "bundles").iterdir())
    (folder / "manifest.json").unlink()
    known = door.get_service().workspace.bundles.copy()
    monkeypatch.setattr(door.get_service().workspace, "bundles", {})
    assert (reply := client.get("/api/v1/state")).status_code == 500
    assert str(folder) not in reply.text
    assert str(folder) in caplog.text
    assert reply.json()["error"] == ENGLISH["ui.wrong"]  # which language cannot be known
    monkeypatch.setattr(door.get_service().workspace, "bundles", known)
    assert client.get("/api/v1/state").status_code == 200


def test_the_page_itself_speaks_the_studys_language_before_its_script_does(
    client: TestClient, bundle: MakeBundle
) -> None:
    """Catches "needs JavaScript" in English, and a title that is parsed as HTML."""
    page = client.get("/run/deutsch").text
    assert all(said in page for said in ('<html lang="de">', GERMAN["no_script"], GERMAN["ui.cannot"]))
    assert not re.findall(r"\{[\w.]+\}", page)
    unknown = client.get("/run/dutsch").text
    assert all(said in unknown for said in ('<html lang="en">', ENGLISH["no_script"], ENGLISH["ui.cannot"]))
    door.get_service().researcher.open_study(bundle(name="evil", texts={"title": "</title><script>"}), per_condition=1)
    assert "<title>&lt;/title&gt;&lt;script&gt;</title>" in client.get("/run/evil").text
