"""The procedure around the trials in a real browser: device, consent, check, breaks, attention checks, ends."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from study.bundle import Bundle
from study.locales import CATALOGUES
from study.participation.payloads import CheckResponses
from study.service import Service
from tests.browser.participation import agree, at_main, newest, query, wait_for_trial
from tests.browser.procedure.conftest import CONTACT, DESKTOP, STUDIES, answer_check
from tests.server import Server

pytestmark = pytest.mark.browser

PHONE = {"width": 390, "height": 844}

PID, STUDY_ID, SESSION_ID = "5f3a9c0d1e2b5f3a9c0d1e2b", "a" * 24, "b" * 24

MAIN = 4
"""Three trials and a catch trial, a break in the middle."""


def trials(page: Page, count: int, total: int) -> list[str]:
    """Answer `count` trials with their confidence; what catch trials asked for is chosen. The texts that were asked."""
    asked = []
    for number in range(1, count + 1):
        if number == 3:
            page.wait_for_selector("#ready:not([hidden])")
            page.click("#begin")
        wait_for_trial(page, number)
        said = page.text_content("#asked") or ""
        names = [page.text_content(f"#{side} span") for side in ("left", "right")]
        page.keyboard.press("j" if said and f"{names[1]}" in said else "f")
        asked += [said] if said else []
        page.wait_for_selector("#confidence:not([hidden])")
        page.keyboard.press("4")
        if total == 1:
            page.click("#next")
    return asked


@pytest.mark.parametrize("study", ["whole", "deutsch"])
def test_the_whole_procedure(page: Page, server: Server, study: str) -> None:
    """From Prolific's link to the code, failing the check once; what is stored, and in which words all was said."""
    language = STUDIES[study].get("language", "en")
    words = CATALOGUES[language]
    page.goto(f"{server.url}/run/{study}?PROLIFIC_PID={PID}&STUDY_ID={STUDY_ID}&SESSION_ID={SESSION_ID}")
    agree(page)
    assert PID not in page.url
    expect(page.locator("#instructions h1")).to_have_text(words["ui.task"])
    assert page.get_attribute("html", "lang") == language
    page.click("#understood")  # waits for the reading time
    answer_check(page, 0, 1)
    expect(page.locator("#notice")).to_have_text(words["check_again"])
    page.click("#understood")
    answer_check(page, 1, 1)
    expect(page.locator("#example h1")).to_have_text(words["ui.look"])
    annotated(page, server, study)
    page.click("#seen")
    page.click("#begin")
    trials(page, 1, 1)
    page.click("#begin")
    [asked] = trials(page, MAIN, MAIN)
    assert asked.startswith(words["catch"].split("{")[0])
    page.wait_for_selector("#questionnaire:not([hidden])")
    page.click("#answer-items")
    expect(page.locator("#questionnaire .hint")).to_have_text(words["ui.required"])
    page.check('#questionnaire input[name="hard"][value="6"]')
    page.check('#questionnaire input[value="by the map"]')
    page.fill("#questionnaire textarea", "<b>&")
    page.click("#answer-items")
    expect(page.locator("#end .prose")).to_contain_text(words["debrief"].split(".")[0])
    expect(page.locator("#code")).to_have_text("DONE42")
    expect(page.locator("#redirect")).to_have_attribute("href", "https://recruiter.test/complete?cc=DONE42")
    stored(server)
    with Service(server.home) as service:
        proved = service.researcher.receipt(page.text_content("#receipt") or "")
    assert (proved.study, proved.responses, proved.stage) == (study, MAIN + 1, "done")
    private = page.text_content("#private") or ""
    page.goto(f"{server.url}/run/{study}?#withdraw")
    page.fill("#withdraw-code", "WRONG")
    page.click("#erase")
    expect(page.locator("#withdraw-hint")).to_have_text(words["refused_code"])
    page.fill("#withdraw-code", private)
    page.click("#erase")
    kept = words["withdrawn_id"].replace("{days}", "180")
    expect(page.locator("#end .prose p")).to_have_text([words["withdrawn"], kept])
    assert query(server, "SELECT count(*) FROM response WHERE session_id = ?", newest(server)) == [(0,)]
    with Service(server.home) as service:
        assert service.researcher.verify() == []


def annotated(page: Page, server: Server, study: str) -> None:
    """The example shows the practice trial's own pictures, painted, and those of its condition only."""
    page.wait_for_selector("#example:not([hidden])")
    assets = Bundle(server.home / study).manifest.practice[-1].assets
    sources = page.eval_on_selector_all("#mini img", "images => images.map(i => [i.src, i.naturalWidth])")
    assert {source.rpartition("/")[2] for source, _ in sources} <= {*assets.every}
    assert sources[0][0].endswith(assets.target)
    assert all(width > 0 for _, width in sources)
    [(condition,)] = query(server, "SELECT condition FROM session WHERE session_id = ?", newest(server))
    assert len(sources) == {"none": 1, "saliency": 2, "examples": 5, "both": 6}[condition]


def stored(server: Server) -> None:
    """What one whole participation leaves in the database, and what it does not."""
    me = newest(server)
    rows = query(
        server,
        "SELECT phase, confidence, frame_hz > 10, clock_ms < 5, dropped_frames >= 0, rt_ms >= 200 FROM response "
        "JOIN trial_plan USING (session_id, trial_index) WHERE session_id = ? ORDER BY trial_index", me,
    )  # fmt: skip
    assert sorted(row[0] for row in rows) == ["catch", *["main"] * 3, "practice"]
    assert {row[1:] for row in rows} == {(0.75, 1, 1, 1, 1)}
    chosen = "SELECT phase, choice FROM response JOIN trial_plan USING (session_id, trial_index) WHERE session_id = ?"
    assert ("catch", "a") in query(server, chosen, me)
    tries = query(server, "SELECT received_at FROM comprehension WHERE session_id = ? ORDER BY attempt", me)
    [(agreed,)] = query(server, "SELECT agreed_at FROM session WHERE session_id = ?", me)
    assert [at - agreed > n * 2e9 for n, (at,) in enumerate(tries, 1)] == [True, True]  # each reading takes 2 s
    answers = dict(query(server, "SELECT item, answer_json FROM questionnaire WHERE session_id = ?", me))
    assert {key: json.loads(value) for key, value in answers.items()} == {
        "hard": 6,
        "which": "by the map",
        "how": "<b>&",
    }
    [(env,)] = query(server, "SELECT env_json FROM session WHERE session_id = ?", me)
    assert json.loads(env)["browser"] == "Chrome"
    assert query(server, "SELECT count(*) FROM event WHERE kind = 'break' AND session_id = ?", me) == [(1,)]
    [(clock,)] = query(server, "SELECT payload_json FROM event WHERE kind = 'clock' AND session_id = ?", me)
    apart = json.loads(clock)
    assert abs(apart["offset_ms"]) <= apart["round_trip_ms"] / 2 + 1  # one machine, one clock
    files = [path for path in server.home.iterdir() if path.is_file()]
    secrets = (PID.encode(), STUDY_ID.encode(), b"Secret Device", b"133.7.7", b"127.0.0.1")
    own = server.url.encode()  # the address it announces at its start
    content = [(path.name.split(".db")[0], path.read_bytes().replace(own, b"")) for path in files]
    found = {(name, secret) for name, text in content for secret in secrets if secret in text}
    assert found == {("identity", PID.encode()), ("identity", STUDY_ID.encode())}


def test_a_phone_is_told_to_tap_and_a_keyboard_which_keys(chromium: Browser, server: Server) -> None:
    """The example page; what floats lies below the text, however long the page is."""
    for touch, words in ((True, "Tap the name"), (False, "Press F for the name on the left")):
        context = chromium.new_context(viewport=PHONE, has_touch=touch, is_mobile=touch)  # type: ignore[arg-type]
        page = context.new_page()
        server.let_in(context)
        page.goto(f"{server.url}/run/slow?preview=both")
        agree(page)
        page.click("#understood")
        page.wait_for_selector("#example:not([hidden])")
        expect(page.locator("#keys")).to_contain_text(words)
        bottom, top = page.evaluate(
            "() => ['#example .card', '#leave'].map(q => document.querySelector(q).getBoundingClientRect())"
            ".map((box, i) => i ? box.top : box.bottom)"
        )
        assert bottom <= top
        context.close()


def told(page: Page, section: str) -> str:
    """Whom a page says one may write to; the address is a link, and what looks like HTML is text."""
    page.wait_for_selector(f"#{section}:not([hidden])")
    said = page.locator(f"#{section} #contact")
    expect(said).to_be_visible()
    expect(said.locator("a")).to_have_attribute("href", f"mailto:{CONTACT['email']}")
    assert page.evaluate("() => document.querySelector('#contact').querySelectorAll('script, b').length") == 0
    return said.inner_text()


def test_whom_to_write_to_stands_where_somebody_needs_it(page: Page, server: Server) -> None:
    """Catches a contact that is missing, in the wrong language or read as HTML on the consent page, on the page that
    withdraws, at an end, or where nobody can begin."""
    wanted = (
        f"Verantwortlich für diese Studie: {CONTACT['researcher']}.",
        f"Ethikvotum: {CONTACT['board']}, {CONTACT['approval']}.",
        f"Fragen oder Bedenken? Schreiben Sie an {CONTACT['email']}",
    )
    page.goto(f"{server.url}/run/deutsch")
    found = {"consent": told(page, "consent")}
    page.click("#decline")
    found["end"] = told(page, "end")
    page.goto(f"{server.url}/run/deutsch?again#withdraw")
    found["withdraw"] = told(page, "withdraw")
    page.goto(f"{server.url}/run/deutsch?PROLIFIC_PID=5f3a&STUDY_ID=x")
    found["message"] = told(page, "message")
    assert {name: tuple(filter(None, said.split("\n"))) for name, said in found.items()} == dict.fromkeys(found, wanted)


def test_who_names_nobody_shows_no_empty_place(page: Page, server: Server) -> None:
    """Catches a box or a half sentence where the study file has no contact."""
    page.goto(f"{server.url}/run/whole")
    page.wait_for_selector("#consent:not([hidden])")
    expect(page.locator("#consent #contact")).to_be_hidden()


def test_a_slow_answer_is_reminded_and_noted(page: Page, server: Server) -> None:
    page.goto(at_main(server, "slow", 1))
    page.click("#begin")
    expect(page.locator("#slow")).to_have_text(CATALOGUES["en"]["ui.slow"])
    page.keyboard.press("f")
    wait_for_trial(page, 2)
    page.keyboard.press("f")
    wait_for_trial(page, 3)
    assert query(server, "SELECT count(*) FROM event WHERE kind = 'slow' AND session_id = ?", newest(server)) == [(1,)]


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_nothing_scrolls_and_no_box_moves_for_attention_checks_and_confidence(
    page: Page, server: Server, size: Any
) -> None:
    page.set_viewport_size(size)
    with Service(server.home) as service:
        token = service.participant.begin("deutsch", mode="preview", condition="both")
        service.participant.consent(token, True)
        service.participant.ready(token)
        service.participant.check(token, CheckResponses(attempt=1, answers=[1, 1]))
        state = service.participant.ready(token, "example")
    assert state["stage"] == "practice"
    page.goto(f"{server.url}/run/deutsch#{token}")
    page.click("#begin")
    trials(page, 1, 1)
    page.click("#begin")
    places = set()
    for number in range(1, MAIN + 1):
        if number == 3:
            page.click("#begin")
        wait_for_trial(page, number)
        boxes = page.evaluate(
            "() => ['.target', '.option.left', '.option.right'].map(q => document.querySelector(q))"
            ".map(e => e.getBoundingClientRect())"
            ".map(b => [b.x, b.y, b.width, b.height].map(Math.round).join())"
        )
        page.keyboard.press("f")
        page.wait_for_selector("#confidence:not([hidden])")
        high, wide = page.evaluate(
            "() => [document.documentElement.scrollHeight, document.documentElement.scrollWidth]"
        )
        assert (high, wide) == (size["height"], size["width"])
        small = page.eval_on_selector_all(
            "#sure button", "bs => bs.filter(b => b.getBoundingClientRect().width < 44).length"
        )
        assert small == 0
        page.keyboard.press("1")
        places.add(tuple(boxes))
    assert len(places) == 1
