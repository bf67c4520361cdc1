"""How participants arrive and type: ids under other names, links back, keyboards of other layouts, translators."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from study.service import Service
from tests.browser.participation import agree, newest, query, wait_for_trial
from tests.conftest import PATIENCE_S, write_bundle
from tests.server import Server, serving

pytestmark = pytest.mark.browser

SONA = "https://school.sona-systems.test/webstudy_credit.aspx?experiment_id=1&credit_token=2&survey_code={id}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("arrivals")
    config = {"recruiter": {"service": "sona", "url": SONA}, "pacing": {"confidence": True}}
    with Service(home) as service:
        folder = write_bundle(home / "bundle", name="demo", trials=2, practice=0, config=config)
        service.researcher.open_study(folder, 20)
    with serving(home) as running:
        yield running


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    with chromium.new_context() as context:
        yield context.new_page()


def begin_trials(page: Page) -> None:
    agree(page)
    page.click("#understood")
    page.wait_for_selector("#example:not([hidden])")
    page.click("#seen")
    page.click("#begin")


def press(page: Page, key: str, code: str) -> None:
    """Press a key as a keyboard of another layout does: what it types is not what is printed on it here."""
    session = page.context.new_cdp_session(page)
    for kind in ("keyDown", "keyUp"):
        session.send("Input.dispatchKeyEvent", {"type": kind, "key": key, "code": code})
    session.detach()


def flush(page: Page, server: Server, kind: str) -> list[tuple[object, ...]]:
    """What the page has noted of a kind, once it was sent."""
    page.evaluate("dispatchEvent(new Event('pagehide'))")
    sql = "SELECT payload_json FROM page_event WHERE session_id = ? AND kind = ?"
    rows: list[tuple[object, ...]] = []
    for _ in range(10 * PATIENCE_S):
        rows = query(server, sql, newest(server), kind)
        if rows:
            break
        page.wait_for_timeout(100)
    return rows


@pytest.mark.parametrize(
    ("left", "right"),
    [(("а", "KeyF"), ("о", "KeyJ")), (("כ", "KeyF"), ("ח", "KeyJ")), (("φ", "KeyF"), ("ξ", "KeyJ")),
     (("Process", "KeyF"), ("Process", "KeyJ"))],
    ids=["Cyrillic", "Hebrew", "Greek", "input method"],
)  # fmt: skip
def test_keys_of_other_layouts_answer_by_their_place(
    page: Page, server: Server, left: tuple[str, str], right: tuple[str, str]
) -> None:
    """Catches F and J that do nothing, without a word, on a keyboard that types other letters; and 1 to 5 on AZERTY."""
    page.goto(f"{server.url}/run/demo")
    begin_trials(page)
    for number, key in ((1, left), (2, right)):
        wait_for_trial(page, number)
        press(page, *key)
        page.wait_for_selector("#confidence:not([hidden])")
        press(page, "'", "Digit4")  # AZERTY
    page.wait_for_selector("#end:not([hidden])")
    sql = "SELECT side, input, confidence FROM response WHERE session_id = ? ORDER BY trial_index"
    assert query(server, sql, newest(server)) == [("left", "key", 0.75), ("right", "key", 0.75)]


def test_a_latin_layout_is_taken_at_its_word(page: Page, server: Server) -> None:
    """Catches a key that answers by its place where its letter is another one (Dvorak: U is where F is), in silence."""
    page.goto(f"{server.url}/run/demo")
    begin_trials(page)
    wait_for_trial(page, 1)
    press(page, "u", "KeyF")
    expect(page.locator("#slow")).to_contain_text("Press F for the name on the left and J for")
    expect(page.locator("#confidence")).to_be_hidden()
    assert flush(page, server, "other_key")
    press(page, "f", "KeyY")
    page.wait_for_selector("#confidence:not([hidden])")


def test_names_and_codes_are_not_translated_and_a_translation_is_noted(page: Page, server: Server) -> None:
    """Catches options that Chrome translates into one word, and data that do not tell."""
    page.goto(f"{server.url}/run/demo")
    begin_trials(page)
    wait_for_trial(page, 1)
    for place in ("#left", "#right", "#left-legend", "#right-legend", "#asked", "#code", "#private", "#receipt"):
        assert page.locator(place).evaluate("element => element.translate") is False, place
    page.evaluate("document.documentElement.className = 'translated-ltr'")  # as Chrome's translator does
    assert flush(page, server, "translated")
    with Service(server.home) as service:
        assert sum(service.researcher.load_participants("demo")["translated"]) == 1


@pytest.mark.parametrize("name", ["id", "survey_code", "workerId", "participantId", "PID", "sona-id"])
def test_an_id_arrives_under_any_usual_name_and_returns(page: Page, server: Server, name: str) -> None:
    """Catches participants who become anonymous, and SONA's link back without the id that gives them credit."""
    page.goto(f"{server.url}/run/demo?{name}=p-{name}&utm_source=mail")
    begin_trials(page)
    for number in (1, 2):
        wait_for_trial(page, number)
        page.keyboard.press("f")
        page.wait_for_selector("#confidence:not([hidden])")
        page.keyboard.press("4")
    page.wait_for_selector("#end:not([hidden])")
    expect(page.locator("#redirect")).to_have_attribute("href", SONA.replace("{id}", f"p-{name}"))


def test_a_link_that_says_completed_is_for_those_who_did(page: Page, server: Server) -> None:
    """Catches credit for participants who decline: a link without a code is the same for everyone."""
    page.goto(f"{server.url}/run/demo?id=declines")
    page.click("#decline")
    page.wait_for_selector("#end:not([hidden])")
    expect(page.locator("#redirect")).to_be_hidden()


def test_an_unknown_parameter_is_counted_for_the_researcher(page: Page, server: Server) -> None:
    """Catches a hundred paid participants without an id, which nothing said before."""
    page.goto(f"{server.url}/run/demo?panelist=7&utm_source=mail")
    begin_trials(page)
    [(payload,)] = flush(page, server, "unknown_parameters")
    assert payload == '{"names":"panelist"}'
    with Service(server.home) as service:
        incidents = service.researcher.monitor("demo").incidents.set_index("what")["count"]
    assert incidents["unknown_parameters"] == 1
