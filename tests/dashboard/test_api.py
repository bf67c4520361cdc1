"""The participant's routes over HTTP: codes, headers, limits, and who may call."""

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from dashboard.server.api import MOST_BYTES, routes
from dashboard.shared import service

MakeBundle = Callable[..., Path]


@pytest.fixture
def client(tmp_path: Path, bundle: MakeBundle, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    monkeypatch.setenv("FORETELL_HOME", str(tmp_path / "home"))
    service.get_service().researcher.open_study(bundle(), per_condition=1)
    with TestClient(Starlette(routes=routes()), base_url="http://study.test") as opened:
        yield opened
    service.close()


def begin(client: TestClient, **body: Any) -> dict[str, str]:
    reply = client.post("/api/v1/begin", json={"study": "demo", **body})
    assert reply.status_code == 201
    return {"X-Session-Token": reply.json()["token"]}


def to_trials(client: TestClient, me: dict[str, str]) -> Any:
    client.post("/api/v1/consent", json={"agreed": True}, headers=me)
    client.post("/api/v1/ready", json={"stage": "instructions"}, headers=me)
    return client.post("/api/v1/ready", json={"stage": "example"}, headers=me).json()


def answer(index: int, **values: Any) -> dict[str, Any]:
    return {
        "trial_index": index,
        "attempt_id": str(uuid.uuid4()),
        "side": "left",
        "input": "key",
        "rt_ms": 600,
        **values,
    }


def test_one_participation(client: TestClient) -> None:
    me = begin(client)
    assert client.get("/api/v1/state", headers=me).json()["stage"] == "consent"
    state = to_trials(client, me)
    assert len(client.get("/api/v1/preload", headers=me).json()) >= 15
    codes = []
    while state["stage"] in ("practice", "main"):
        reply = client.post("/api/v1/responses", json=answer(state["trial"]["index"]), headers=me)
        codes.append(reply.status_code)
        assert (reply.json()["feedback"] is not None) == (state["stage"] == "practice")
        state = reply.json()["state"]
    assert codes == [201] * 15
    assert client.post("/api/v1/finish", json={}, headers=me).json()["code"]


def test_codes_of_retries_conflicts_and_wrong_turns(client: TestClient) -> None:
    me = begin(client)
    send = lambda body: client.post("/api/v1/responses", json=body, headers=me).status_code  # noqa: E731
    assert send(answer(0)) == 425
    to_trials(client, me)
    first = answer(0)
    assert [send(first), send(first), send(answer(0)), send(answer(7))] == [201, 200, 409, 425]
    assert [send({**answer(1), "rt_ms": -5}), send({**answer(1), "truth": "fish"}), send({})] == [422, 422, 422]


def test_declining_ends_it(client: TestClient) -> None:
    me = begin(client)
    assert client.post("/api/v1/consent", json={"agreed": False}, headers=me).json()["stage"] == "declined"
    assert client.post("/api/v1/responses", json=answer(0), headers=me).status_code == 410


def test_an_unknown_token_or_study_is_refused(client: TestClient) -> None:
    assert client.get("/api/v1/state").status_code == 401
    assert client.get("/api/v1/state", headers={"X-Session-Token": "guess"}).status_code == 401
    reply = client.post("/api/v1/begin", json={"study": "dmo"})
    assert reply.status_code == 404
    assert "There is no study" in reply.json()["error"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.test"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
    ],
)
def test_requests_from_elsewhere_are_refused(client: TestClient, headers: dict[str, str]) -> None:
    sent = {"Content-Type": "application/json", **headers}
    assert client.post("/api/v1/begin", content=b'{"study": "demo"}', headers=sent).status_code == 403


@pytest.mark.parametrize("headers", [{"Origin": "http://study.test"}, {"Sec-Fetch-Site": "same-origin"}, {}])
def test_requests_from_the_page_are_welcome(client: TestClient, headers: dict[str, str]) -> None:
    assert client.post("/api/v1/begin", json={"study": "demo"}, headers=headers).status_code == 201


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"study": 1}', b'{"study": "demo", "mode": "sim"}'])
def test_bodies_that_are_none_are_refused(client: TestClient, body: bytes) -> None:
    reply = client.post("/api/v1/begin", content=body, headers={"Content-Type": "application/json"})
    assert reply.status_code == 422
    assert reply.json()["error"]


def test_long_bodies_are_refused(client: TestClient) -> None:
    body = b'{"study": "' + b"x" * MOST_BYTES + b'"}'
    reply = client.post("/api/v1/begin", content=body, headers={"Content-Type": "application/json"})
    assert reply.status_code == 413


@pytest.mark.parametrize("path", ["/run/demo", "/runner/runner.js", "/runner/runner.css", "/runner/icon.svg"])
def test_participant_pages_may_load_nothing_from_elsewhere(client: TestClient, path: str) -> None:
    reply = client.get(path)
    assert reply.status_code == 200
    assert reply.headers["content-security-policy"].startswith("default-src 'self';")
    assert "unsafe" not in reply.headers["content-security-policy"]
    assert reply.headers["referrer-policy"] == "no-referrer"
    assert "http://" not in reply.text.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in reply.text
    assert "set-cookie" not in reply.headers


@pytest.mark.parametrize(
    "path", ["/runner/api.py", "/runner/..%2Fapi.py", "/runner/run.html", "/runner/%2e%2e%2fapp.py"]
)
def test_no_other_file_is_served(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 404


@pytest.mark.parametrize("path", ["/run/demo", "/runner/runner.js", "/runner/runner.css"])
def test_the_page_and_its_files_are_sent_compressed(client: TestClient, path: str) -> None:
    """Defect: what compresses Streamlit's replies does not reach them: phones load three times as much."""
    reply = client.get(path)
    assert reply.headers["content-encoding"] == "gzip"
    assert int(reply.headers["content-length"]) < len(reply.content) / 2


def test_images_are_immutable_and_tell_nothing(client: TestClient) -> None:
    me = begin(client)
    to_trials(client, me)
    sha256 = client.get("/api/v1/preload", headers=me).json()[0]
    reply = client.get(f"/assets/demo/{sha256}")
    assert reply.headers["content-type"] == "image/webp"
    assert reply.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert "last-modified" not in reply.headers  # files are written example by example: times would tell
    for path in (f"/assets/other/{sha256}", f"/assets/demo/{'0' * 64}", "/assets/demo/..%2Fmanifest.json"):
        assert client.get(path).status_code == 404


def test_a_changed_image_is_not_shown(client: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    """Catches participants who judge another image than the study's: a flipped byte was sent as it was."""
    me = begin(client)
    to_trials(client, me)
    sha256 = client.get("/api/v1/preload", headers=me).json()[0]
    [folder] = {status.folder for status in service.get_service().researcher.studies()}
    path = folder / "assets" / f"{sha256}.webp"
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    assert client.get(f"/assets/demo/{sha256}").status_code == 404
    assert "was changed since the study was frozen" in caplog.text


def test_states_are_never_cached(client: TestClient) -> None:
    assert client.get("/api/v1/state", headers=begin(client)).headers["cache-control"] == "no-store"


def test_the_same_person_comes_back_to_the_same_session(client: TestClient) -> None:
    sent = {"recruit": {"person": "5f3a"}, "proof": {"browser": "b" * 36}}
    first = begin(client, **sent)
    client.post("/api/v1/consent", json={"agreed": True}, headers=first)
    assert client.post("/api/v1/begin", json={"study": "demo", "recruit": {"person": "5f3a"}}).status_code == 403
    assert client.get("/api/v1/state", headers=first).status_code == 200
    second = begin(client, **sent)
    assert client.get("/api/v1/state", headers=second).json()["stage"] == "instructions"
    assert client.get("/api/v1/state", headers=first).status_code == 401


def test_events_are_counted_once(client: TestClient) -> None:
    me = begin(client)
    client.post("/api/v1/consent", json={"agreed": True}, headers=me)
    events = [{"event_id": str(uuid.uuid4()), "kind": "blur", "t_client_ms": 3.5, "payload": {"a": 1}}]
    assert [client.post("/api/v1/events", json=events, headers=me).json() for _ in range(2)] == [{"new": 1}, {"new": 0}]
    assert client.post("/api/v1/events", json=events * 201, headers=me).status_code == 413


def test_a_full_study_says_so(client: TestClient) -> None:
    for _ in range(4):
        to_trials(client, begin(client))
    reply = client.post("/api/v1/begin", json={"study": "demo"})
    assert reply.status_code == 410
    assert "All places" in reply.json()["error"]


def test_a_broken_database_asks_for_another_try(client: TestClient) -> None:
    me = begin(client)
    service.get_service().close()
    reply = client.post("/api/v1/consent", json={"agreed": True}, headers=me)
    assert reply.status_code == 503
    assert reply.headers["retry-after"] == "1"


@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        ("responses", answer(10**30), 422),
        ("events", [{"event_id": "12345678", "kind": "blur", "trial_index": 2**63}], 422),
        ("check", {"attempt": 10**30, "answers": [0]}, 422),
        ("check", {"attempt": 1, "answers": [10**30]}, 422),
        ("begin", {"study": "de\x00mo"}, 422),
        ("entry", {"study": "de\x00mo"}, 422),
        ("begin", {"study": "'; DROP TABLE response; --"}, 404),
        ("withdraw", {"code": "ÄÖÜ鱼"}, 404),
        ("withdraw", {"code": "\x00"}, 404),
    ],
)
def test_what_no_page_sends_is_refused_and_breaks_nothing(
    database: str, client: TestClient, path: str, body: Any, code: int
) -> None:
    """Numbers no database has, texts PostgreSQL cannot hold, letters no code has: a refusal, not an error to retry."""
    me = begin(client)
    to_trials(client, me)
    assert client.post(f"/api/v1/{path}", json=body, headers=me).status_code == code
    assert client.get("/api/v1/state", headers=me).json()["stage"] == "practice"
