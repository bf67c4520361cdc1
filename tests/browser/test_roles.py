"""Every role but the editor's tries what it may not do: by its pages, by what these ask for, and by a page kept open.

`tests/browser/test_intruders.py` does the same for an editor.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, WebSocketRoute, expect
from streamlit.proto.BackMsg_pb2 import BackMsg

from study.collection.access.permissions import Role
from study.collection.library import MOST_BYTES
from study.collection.tables.frames import pseudonym
from study.plan.studyfiles import folder_of
from study.service import Service
from tests.browser.participation import query
from tests.browser.stillness import wait_until_still
from tests.conftest import write_bundle
from tests.dashboard.views.library import image, zipped
from tests.server import Server, serving
from tests.study.participants import take_part
from tests.study.studies import TINY

pytestmark = pytest.mark.browser
PASSWORD = "correct horse battery"
MEMBERS: dict[str, Role] = {"owner": "owner", "viewer": "viewer", "manager": "manager", "former": "owner"}
"""Members of the study tiny, by the name in their address."""
INTRUDERS = ("viewer", "manager", "other", "stranger")
"""Those two; the owner of the study other; and an account without a role."""
UNKNOWN, NOTHING = "There is no study tiny.", "No study has been opened yet"
ROLE = "Your role in tiny is {}: you may not"
NO_SECTION = "The link names the section “Export”, which does not exist here."
PAGES = {
    "monitor?study=tiny": {
        "viewer": ROLE.format("viewer"), "manager": ROLE.format("participant manager"), "stranger": NOTHING,
        "other": "Unblind: view outcomes before the end",
    },
    "studies?study=tiny&section=Export": {
        "viewer": NO_SECTION, "manager": NO_SECTION, "other": UNKNOWN, "stranger": UNKNOWN,
    },
    "studies?study=tiny&section=Members": {
        "viewer": ROLE.format("viewer"), "manager": ROLE.format("participant manager"), "other": UNKNOWN,
        "stranger": UNKNOWN,
    },
    "results?results_source=tiny": {
        "viewer": "Choose a CSV file", "manager": "Choose a CSV file", "stranger": "Choose a CSV file",
        "other": "This study still collects responses, so its results are blinded.",
    },
    "accounts": dict.fromkeys(INTRUDERS, "Only an administrator may do this."),
    "design?study=tiny": dict.fromkeys(INTRUDERS, "There is no study file “tiny” here."),
}  # fmt: skip
"""What each is told at an address of the study tiny, or of what only administrators see."""
FOLLOWERS = ("viewer", "manager")
"""They see the participants' names on Monitor, and members with their roles."""
GUARDING = {
    "Release from the quota", "Exclude this participant", "Withdraw and erase", "Collect and log", "Send and log",
}  # fmt: skip
"""What a participant manager has on Monitor."""
ACTS = GUARDING | {
    "Pause", "Close", "Unblind and log", "Replay and log", "Raise the quota", "Set access", "Add", "Remove",
    "Login link", "Make a login link", "End login",
}  # fmt: skip
PREVIEW = json.dumps({"study": "tiny", "preview": True})
REQUESTS: dict[str, tuple[str, str, str | None]] = {
    "a preview": ("POST", "/api/v1/begin", PREVIEW),
    "a preview's first page": ("POST", "/api/v1/entry", PREVIEW),
    "a draft": ("GET", "/draft/tiny/en/consent/entry", None),
    "a heatmap by a file": ("GET", "/heatmap?network={home}/evil.py&images=full&method=grad_cam&image=0", None),
    "a password by a used link": ("POST", "/login/password", None),
}
FILES = ("/foretell.db", "/app/static/..%2f..%2fforetell.db", "/media/..%2fforetell.db", "/docs/..%2f..%2fforetell.db")
ALLOWED = {("manager", "a preview"): 201, ("manager", "a preview's first page"): 200}
FETCH = """async ([method, path, body]) => {
  const headers = body === null ? {} : {"Content-Type": "application/json"};
  const reply = await fetch(path, {method, body, headers});
  return [reply.status, await reply.text()];
}"""
CONNECT = """() => new Promise((resolve) => {
  const socket = new WebSocket(`ws://${location.host}/_stcore/stream`, ["streamlit"]);
  socket.onclose = () => resolve("closed");
  socket.onopen = () => resolve("open");
})"""
CODE = "from pathlib import Path\nPath({mark!r}).write_text('it ran')\nfrom data.scenes.classifier import *\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with two open studies; tiny has members of each role and a participant who responded."""
    home = tmp_path_factory.mktemp("roles")
    (home / "evil.py").write_text(CODE.format(mark=str(home / "mark")))
    folder_of(home).mkdir()
    (folder_of(home) / "tiny.toml").write_text(TINY)
    with Service(home) as service:
        for k, name in enumerate(("tiny", "other")):
            folder = home / "bundles" / f"{name}-0123456789ab"
            service.researcher.open_study(write_bundle(folder, name=name, trials=2, practice=0, side=8, seed=k), 3)
            take_part(service, service.participant.begin(name))
        for name, role in MEMBERS.items():
            service.researcher.set_member("tiny", address_of(name), role)
        service.researcher.set_member("other", address_of("other"), "owner")
        for name in {*MEMBERS, *INTRUDERS}:
            link = service.researcher.make_account_link(address_of(name))
            service.access.choose_password(link.partition("=")[2], PASSWORD)
        service.workspace.note(address_of("other"), "added an image set", {"name": "full", "bytes": MOST_BYTES})
    with serving(home) as running:
        yield running


def address_of(name: str) -> str:
    return f"{name}@example.org"


def log_in(context: BrowserContext, server: Server, name: str) -> Page:
    page = context.new_page()
    assert page.request.post(f"{server.url}/login", form={"person": address_of(name), "password": PASSWORD}).ok
    return page


@pytest.fixture(scope="module", params=INTRUDERS)
def intruder(chromium: Browser, server: Server, request: pytest.FixtureRequest) -> Iterator[tuple[str, Page]]:
    """A name, and a page that is logged in under it: one browser for all attempts of an account."""
    with chromium.new_context(viewport={"width": 1280, "height": 900}) as context:
        yield request.param, log_in(context, server, request.param)


def read_page(page: Page, address: str, words: str) -> tuple[str, set[str]]:
    """Open a page; return its text, and the labels of its buttons, also in parts that are folded."""
    page.goto(address)
    main = page.get_by_test_id("stMain")
    expect(main.get_by_text(words).first).to_be_visible()
    wait_until_still(page)
    labels = main.locator("button").evaluate_all("all => all.map((one) => one.textContent.trim())")
    return main.inner_text(), set(labels)


def find_participant(server: Server, study: str) -> str:
    """Return the name of the participant who responded."""
    sql = "SELECT participant_id FROM session WHERE study = ? AND mode = 'live'"
    [(person,)] = query(server, sql, study)
    return pseudonym({"participant_id": person})


@pytest.mark.parametrize("path", PAGES)
def test_a_page_of_anothers_study_stays_closed(intruder: tuple[str, Page], server: Server, path: str) -> None:
    """Catches a control, a participant or a member that an address shows to a role that it is not for."""
    name, page = intruder
    words, labels = read_page(page, f"{server.url}/{path}", PAGES[path][name])
    is_manager = name == "manager" and path.startswith("monitor")
    if name != "other" or not path.startswith(("monitor", "results")):  # where theirs is shown instead
        assert labels & ACTS == (GUARDING if is_manager else set())
    hidden = [find_participant(server, "tiny"), address_of("owner"), address_of("manager")]
    assert not [one for one in hidden if one in words] or name in FOLLOWERS
    assert "Responses (CSV)" not in labels


def test_what_pages_ask_for_is_refused(intruder: tuple[str, Page], server: Server) -> None:
    """Catches a route that believes whoever knows its address."""
    name, page = intruder
    page.goto(f"{server.url}/login")
    for what, (method, path, body) in REQUESTS.items():
        code, words = page.evaluate(FETCH, (method, path.format(home=server.home), body))
        expected = ALLOWED.get((name, what))
        assert code == expected if expected else code in (401, 403, 404), (what, code, words[:200])
    for path in FILES:
        assert "SQLite format" not in page.evaluate(FETCH, ("GET", path, None))[1], path
    assert not (server.home / "mark").exists()


def test_a_visitor_without_a_login_gets_the_login_page_alone(chromium: Browser, server: Server) -> None:
    """Catches a page, a request or a websocket without a login, and a login link that works twice."""
    link = server.url + Service(server.home).access.login_link()
    with chromium.new_context() as first, chromium.new_context() as second:
        first.new_page().goto(link)
        page = second.new_page()
        page.goto(link)
        expect(page.get_by_role("alert")).to_contain_text("This login link is unknown, used or expired.")
        for path in PAGES:
            page.goto(f"{server.url}/{path}")
            expect(page).to_have_url(f"{server.url}/login")
        requests = {**REQUESTS, **{path: ("GET", path, None) for path in FILES}}
        for what, (method, path, body) in requests.items():
            code, _ = page.evaluate(FETCH, (method, path.format(home=server.home), body))
            assert code == 401, what
        assert page.evaluate(FETCH, ("PUT", "/_stcore/upload_file/a/b", "{}"))[0] == 401
        assert page.evaluate(CONNECT) == "closed"


def test_a_page_kept_open_does_nothing_once_its_role_is_gone(chromium: Browser, server: Server) -> None:
    """Catches a form that was drawn for an owner and still acts for the viewer whom they have become."""
    before = count_stored(server)
    with chromium.new_context(viewport={"width": 1280, "height": 900}) as context:
        monitor = log_in(context, server, "former")
        monitor.goto(f"{server.url}/monitor?study=tiny")
        fill_withdrawal(monitor, find_participant(server, "tiny"))
        collection, members = context.new_page(), context.new_page()
        collection.goto(f"{server.url}/studies?study=tiny")
        quota = collection.get_by_label("New quota per condition")
        quota.fill("90")
        quota.press("Tab")
        members.goto(f"{server.url}/studies?study=tiny&section=Members")
        members.get_by_label("E-mail address").fill("friend@example.org")
        with Service(server.home) as service:
            service.researcher.set_member("tiny", address_of("former"), "viewer")
        collection.get_by_role("button", name="Raise the quota").click()
        members.get_by_role("button", name="Add", exact=True).click()
        monitor.get_by_role("button", name="Withdraw and erase").click()
        for page in (collection, members, monitor):
            expect(page.get_by_test_id("stMain").get_by_text(ROLE.format("viewer")).first).to_be_visible()
    assert count_stored(server) == before


def test_the_owner_of_another_study_reaches_no_participant_stimuli_code_or_room(
    chromium: Browser, server: Server
) -> None:
    """Catches a form of one's own study that acts on another's, and paths, code and bytes beyond what is allowed."""
    before = count_stored(server)
    with chromium.new_context(viewport={"width": 1280, "height": 900}) as context:
        page = log_in(context, server, "other")
        page.goto(f"{server.url}/monitor?study=other")
        fill_withdrawal(page, find_participant(server, "tiny"))
        page.get_by_role("button", name="Withdraw and erase").click()
        expect_refusal(page, "No participant of 'other' has this name, private code or id.")
        page.goto(f"{server.url}/library")
        page.locator("input[type=file]").set_input_files(
            [{"name": "more.zip", "mimeType": "application/zip", "buffer": zipped({"red/1.png": image(1)})}]
        )
        expect(page.get_by_label("Name of the set")).to_have_value("more")
        page.get_by_role("button", name="Add", exact=True).click()
        expect_refusal(page, "Your image sets have 20.0 GB, the most that one account may add.")
        page.get_by_role("radio", name="Path on this machine").click()
        path = page.get_by_label("Folder or zip")
        for place in (server.home / "bundles" / "tiny-0123456789ab", server.home / "gone"):
            path.fill(str(place))
            path.press("Tab")
            page.get_by_label("Name of the set").fill("taken")
            page.get_by_label("Name of the set").press("Tab")
            page.get_by_role("button", name="Add", exact=True).click()
            expect_refusal(page, f"{place}' is outside the folders whose files you may name")
        page.goto(f"{server.url}/library?part=Networks")
        page.get_by_role("radio", name="File").click()
        expect(page.get_by_text("A file is run on this machine. Only an administrator may do this.")).to_be_visible()
        expect(page.get_by_label("Or a file or folder on this machine")).to_have_count(0)
    assert count_stored(server) == before
    assert not (server.home / "images").exists()


def test_a_choice_that_no_page_offers_opens_no_file(chromium: Browser, server: Server) -> None:
    """Catches a page that takes whatever name the browser sends, and runs the Python file of that name."""
    sent: list[str] = []

    def forge(socket: WebSocketRoute) -> None:
        there = socket.connect_to_server()

        def pass_on(message: str | bytes) -> None:
            assert isinstance(message, bytes)
            asked = BackMsg.FromString(message)
            for one in asked.rerun_script.widget_states.widgets:
                if one.string_value == "bars":
                    one.string_value = str(server.home / "evil.py")
                    sent.append(one.string_value)
            there.send(asked.SerializeToString())

        socket.on_message(pass_on)

    with chromium.new_context(viewport={"width": 1280, "height": 900}) as context:
        page = log_in(context, server, "stranger")
        page.route_web_socket("**/_stcore/stream", forge)
        page.goto(f"{server.url}/explore?method=Gradient")
        expect(page.get_by_text("The AI predicts").first).to_be_visible()
        choice = page.get_by_role("combobox", name="Classifier")
        choice.fill("bars")
        page.get_by_role("option", name="bars", exact=True).click()
        expect(choice).to_have_value("scenes")
        wait_until_still(page)
    assert sent
    assert not (server.home / "mark").exists()


def fill_withdrawal(page: Page, participant: str) -> None:
    """Fill the form that withdraws a participant, but for its button."""
    part = page.get_by_test_id("stExpander").filter(has_text="Withdraw a participant")
    part.locator("summary").click()
    chosen = part.get_by_role("combobox")
    chosen.fill(participant)
    chosen.press("Enter")
    part.get_by_label("How and when they asked").fill("By mail")
    part.get_by_text("The participant asked to withdraw.").click()


def expect_refusal(page: Page, sentence: str) -> None:
    expect(page.get_by_test_id("stAlertContentError").filter(has_text=sentence)).to_be_visible()


def count_stored(server: Server) -> list[tuple[int]]:
    """Count responses, places and members: what an act of these tests would change."""
    counts = [query(server, f"SELECT count(*) FROM {name}") for name in ("response", "allocation_slot", "study_member")]
    return [count for (count,) in counts]
