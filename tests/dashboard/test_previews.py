"""Previews of studies that are not open: for accounts that may preview them, and never for participants."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from dashboard.server import api
from dashboard.shared import service
from dashboard.shared.service import COOKIE
from study.collection.access.permissions import Role
from study.participation.refusals import Refusal
from tests.conftest import write_bundle
from tests.study.participants import take_part

PASSWORD = "correct horse battery"


@pytest.fixture
def http(workspace: Path) -> Iterator[TestClient]:
    """A client of the participant's routes, in a workspace with the study ``beta``, built and never opened."""
    write_bundle(workspace / "bundles" / "beta-0123456789ab", name="beta", trials=2, practice=0)
    with TestClient(Starlette(routes=api.routes())) as client:
        yield client


def log_in(http: TestClient, role: Role) -> None:
    opened = service.get_service()
    opened.researcher.set_member("beta", "root@example.org", "owner")
    opened.researcher.set_member("beta", f"{role}@example.org", role)
    secret = opened.access.make_account_link(f"{role}@example.org").partition("=")[2]
    http.cookies.set(COOKIE, opened.access.choose_password(secret, PASSWORD))


def ask(http: TestClient, path: str, **sent: object) -> int:
    return http.post(f"/api/v1/{path}", json={"study": "beta", **sent}).status_code


def preview(http: TestClient, condition: str = "both") -> tuple[int, int]:
    """Open the page of a preview as the browser does: the codes of its two requests."""
    entered = ask(http, "entry", preview=True)
    return entered, ask(http, "begin", preview=True, condition=condition)


def see_as_participant(http: TestClient) -> tuple[int, int]:
    """Open the participant's link in a browser without a login."""
    kept = dict(http.cookies)
    http.cookies.clear()
    seen = ask(http, "entry"), ask(http, "begin")
    http.cookies.update(kept)
    return seen


def test_a_built_study_is_previewed_before_it_is_open(http: TestClient) -> None:
    """Catches a preview that needs an open study, and one that tells participants of a study that is none yet."""
    log_in(http, "editor")
    assert preview(http) == (200, 201)
    token = http.post("/api/v1/begin", json={"study": "beta", "preview": True, "condition": "none"}).json()["token"]
    http.cookies.clear()
    http.headers["X-Session-Token"] = token
    assert ask(http, "entry") == 200  # after a reload, which has the token only
    assert http.get("/api/v1/state").json()["preview"]
    del http.headers["X-Session-Token"]
    assert see_as_participant(http) == (404, 404)


@pytest.mark.parametrize("state", ["built", "closed", "previewed", "simulated"])
def test_a_stranger_previews_nothing(http: TestClient, workspace: Path, state: str) -> None:
    """Catches a preview for whoever knows the name, and a study whose existence a preview or simulation gives away."""
    researcher, folder = service.get_service().researcher, workspace / "bundles" / "beta-0123456789ab"
    if state == "closed":
        researcher.open_study(folder, 1)
        researcher.close_study("beta")
    if state == "previewed":
        researcher.begin_preview("beta", None)
    if state == "simulated":
        researcher.add_study(folder)
    for cookie in ("", "made up"):
        http.cookies.set(COOKIE, cookie)
        assert preview(http) == (401, 401)
    assert see_as_participant(http) == ((200, 410) if state == "closed" else (404, 404))
    if state == "built":
        assert researcher.studies() == []


@pytest.mark.parametrize(("role", "codes"), [("viewer", (403, 403)), ("manager", (200, 201)), ("owner", (200, 201))])
def test_a_preview_is_for_the_roles_that_may(http: TestClient, role: Role, codes: tuple[int, int]) -> None:
    """Catches a preview for every login."""
    log_in(http, role)
    assert preview(http) == codes


def test_a_member_of_another_study_previews_nothing(http: TestClient, workspace: Path) -> None:
    """Catches a permission that is checked for one study and used for another, also by the path of a bundle."""
    log_in(http, "owner")
    secret = write_bundle(workspace / "bundles" / "secret-0123456789ab", name="secret", trials=2, practice=0)
    service.get_service().researcher.set_member("secret", "other@example.org", "owner")
    for name in ("secret", str(secret), "beta/../secret"):
        sent = {"study": name, "preview": True}
        assert [http.post(f"/api/v1/{path}", json=sent).status_code for path in ("entry", "begin")] == [403, 403], name
    with pytest.raises(Refusal, match="not open"):
        service.get_service().researcher.begin_preview(str(secret), None)
    secret.rename(workspace / "bundles" / "beta-ffffffffffff")  # the newest folder of this name
    assert http.post("/api/v1/begin", json={"study": "beta", "preview": True}).status_code == 500


def test_a_preview_is_of_the_newest_build_and_changes_nothing(http: TestClient, workspace: Path) -> None:
    """Catches a preview of what was built before, and one that ends blinding, the quota or the open version."""
    opened = service.get_service()
    researcher = opened.researcher
    researcher.open_study(workspace / "bundles" / "beta-0123456789ab", 1)
    write_bundle(workspace / "bundles" / "beta-1123456789ab", name="beta", trials=4, practice=0)
    token = researcher.begin_preview("beta", "none")
    take_part(opened, token)
    assert len(researcher.responses("beta", ("preview",))) == 4
    assert researcher.responses("beta").empty
    assert [(version.state, bool(version.slots)) for version in researcher.studies()] == [
        ("open", True), ("closed", False)
    ]  # fmt: skip
    assert researcher.is_blinded("beta")
    assert researcher.monitor("beta").participants.empty
    live = opened.participant.begin("beta")
    take_part(opened, live)
    assert len(researcher.responses("beta")) == 2


def test_interim_analyses_stay_those_of_the_open_version(http: TestClient, workspace: Path) -> None:
    """Catches a build that is only registered and whose plan, or lack of one, decides when the open one stops."""
    researcher = service.get_service().researcher
    stopping = {"looks": [3, 6], "contrast": {"more": "saliency"}}
    plan = {"analysis": {"participants": 6, "stopping": stopping}}
    folder = write_bundle(workspace / "bundles" / "t-0123456789ab", name="t", trials=6, practice=0, config=plan)
    researcher.open_study(folder, 6)
    researcher.add_study(write_bundle(workspace / "bundles" / "t-1123456789ab", name="t", trials=4, practice=0))
    assert researcher.load_interim_status("t") is not None
    assert researcher.is_blinded("t")
