"""Ways in which a participation ends early, and what the page says then."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect

from study.locales import CATALOGUES
from study.service import Service
from tests.browser.participation import agree, at_main, newest, query, tab_to, wait_for_trial
from tests.browser.procedure.conftest import DESKTOP, answer_check
from tests.server import Server
from tests.study.participants import answer, to_trials

pytestmark = pytest.mark.browser


def test_a_server_that_is_away_at_the_end_leaves_a_receipt(page: Page, server: Server) -> None:
    """Two minutes of the page's clock without an answer to its last request; then the end comes all the same."""
    with Service(server.home) as service:
        token = service.participant.begin("slow")
        service.participant.consent(token, True)
        service.participant.ready(token)
        state = service.participant.ready(token, "example")
        while state["stage"] != "debrief":
            state = service.participant.record(token, answer(state["trial"]["index"])).state
    page.clock.install()
    page.route("**/api/v1/finish", lambda route: route.abort())
    with page.expect_event("requestfailed", lambda request: request.url.endswith("/finish")):  # its patience runs
        page.goto(f"{server.url}/run/slow#{token}")
    page.clock.fast_forward(119_000)
    assert state["receipt"] not in (page.text_content("#message .prose") or "")
    page.clock.fast_forward(2_000)
    expect(page.locator("#message .prose")).to_contain_text(state["receipt"])
    page.unroute("**/api/v1/finish")
    page.clock.fast_forward(60_000)
    expect(page.locator("#end .prose")).to_contain_text("Thank you for taking part")
    expect(page.locator("#receipt")).to_have_text(state["receipt"])


def test_failing_the_check_twice_ends_politely(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/run/whole")
    agree(page)
    for _ in range(2):
        page.click("#understood")
        answer_check(page, 0, 0)
    expect(page.locator("#end .prose")).to_contain_text("This says nothing about you")
    expect(page.locator("#code")).to_have_text("SCREEN7")


def test_a_device_that_does_not_fit_leaves_nothing(page: Page, server: Server) -> None:
    before = query(server, "SELECT count(*) FROM session")
    page.set_viewport_size({"width": 800, "height": 720})
    page.goto(f"{server.url}/run/large?pid=someone")
    expect(page.locator("#message .prose")).to_contain_text("at least 1000 × 700")
    expect(page.locator("#message .prose")).to_contain_text("please return your place")
    page.set_viewport_size(DESKTOP)  # type: ignore[arg-type]
    page.add_init_script("indexedDB.open = () => { throw new Error('private'); }")
    page.reload()
    expect(page.locator("#message .prose")).to_contain_text("does not let the page store anything")
    assert query(server, "SELECT count(*) FROM session") == before


def test_a_phone_is_refused_where_the_study_says_so(chromium: Browser, server: Server) -> None:
    context = chromium.new_context(viewport={"width": 1000, "height": 800}, has_touch=True, is_mobile=True)
    page = context.new_page()
    page.goto(f"{server.url}/run/large")
    expect(page.locator("#message .prose")).to_contain_text("a computer with a keyboard")
    context.close()


def test_a_link_that_lacks_something_is_said(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/run/whole?PROLIFIC_PID=5f3a&STUDY_ID=x")
    expect(page.locator("#message .prose")).to_have_text(CATALOGUES["en"]["refused_link"])


def test_a_refusal_is_shown_in_the_studys_language(page: Page, server: Server) -> None:
    """Catches English on a German page where the server refuses or the script breaks, or nothing for a wrong link."""
    heading, prose = page.locator("#message h1"), page.locator("#message .prose")
    words = CATALOGUES["de"]
    page.goto(f"{server.url}/run/deutsch#stale")
    expect(prose).to_have_text(words["refused_stale"])
    expect(heading).to_have_text(words["ui.cannot"])
    page.route("**/api/v1/state", lambda route: route.fulfill(json={}))
    page.goto(f"{server.url}/run/deutsch?again")
    expect(prose).to_have_text(words["ui.wrong"])
    page.goto(f"{server.url}/run/dutsch")
    expect(prose).to_have_text(CATALOGUES["en"]["refused_unknown"])
    expect(heading).to_have_text(CATALOGUES["en"]["ui.cannot"])


def test_withdrawing_in_the_middle_and_changing_ones_mind(page: Page, server: Server) -> None:
    """Typing the code with its F and J answers no trial; going back resumes at the same one."""
    page.goto(at_main(server, "slow", 1))
    page.click("#begin")
    wait_for_trial(page, 1)
    page.click("#leave")
    page.locator("#withdraw-code").press_sequentially("FJFJ")
    assert "FJFJ" in page.input_value("#withdraw-code")
    page.click("#stay")
    page.click("#begin")
    wait_for_trial(page, 1)
    assert query(server, "SELECT count(*) FROM response WHERE session_id = ?", newest(server)) == [(1,)]
    page.click("#leave")
    page.click("#erase")  # the code is there already
    expect(page.locator("#end .prose")).to_contain_text("Your answers have been deleted")
    assert query(server, "SELECT count(*) FROM response WHERE session_id = ?", newest(server)) == [(0,)]


def test_withdrawing_from_the_last_page_is_two_keys(page: Page, server: Server) -> None:
    """Catches a last page whose reader must copy her code and type an address to withdraw; one key would be too few."""
    with Service(server.home) as service:
        token = service.participant.begin("slow")
        state = to_trials(service, token)
        while state["stage"] != "debrief":
            state = service.participant.record(token, answer(state["trial"]["index"])).state
    me = newest(server)
    kept = "SELECT count(*) FROM response WHERE session_id = ?"
    page.goto(f"{server.url}/run/slow#{token}")
    page.wait_for_selector("#end:not([hidden])")
    tab_to(page, "#withdraw-now")
    page.keyboard.press("Enter")
    expect(page.locator("#withdraw-code")).to_have_value(page.text_content("#private") or "no code")
    page.click("#stay")
    expect(page.locator("#end .title")).to_have_text(CATALOGUES["en"]["ui.done"])
    assert query(server, kept, me) == [(4,)]
    tab_to(page, "#withdraw-now")
    page.keyboard.press("Enter")
    tab_to(page, "#erase")
    page.keyboard.press("Enter")
    expect(page.locator("#end .prose p").first).to_have_text(CATALOGUES["en"]["withdrawn"])
    expect(page.locator("#withdraw-now")).to_be_hidden()
    assert query(server, kept, me) == [(0,)]
