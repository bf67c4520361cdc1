"""Two sittings in real browsers: the first on a laptop, the personal link, and the second on a phone."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from study.collection.export import export
from study.participation.sittings.course import HOUR_NS
from study.service import Service
from tests.browser.participation import query, wait_for_trial
from tests.browser.runner.conftest import begin_trials, serve_task
from tests.server import Server

pytestmark = pytest.mark.browser

PHONE: Any = {"width": 390, "height": 844}
LAPTOP: Any = {"width": 1280, "height": 720}
TWO = {"sittings": {"count": 2, "codes": ["TEIL1"]}, "language": "de", "recruiter": {"complete": "TEIL2"}}
TIMES = {"sitting": ("started_at", "ended_at"), "session": ("agreed_at",)}


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Server]:
    """A server with a study in German whose three types of trial are twice in each of two sittings."""
    with serve_task(tmp_path, "predict", trials=12, practice=1, settings=TWO) as running:
        yield running


def pass_hours(server: Server, hours: float) -> None:
    """Let the server's clock be so much later than all that is recorded of sittings."""
    with sqlite3.connect(server.home / "foretell.db") as db:
        for table, columns in TIMES.items():
            for column in columns:
                db.execute(f"UPDATE {table} SET {column} = {column} - ?", (int(hours * HOUR_NS),))


def respond(page: Page, numbers: range) -> None:
    for number in numbers:
        wait_for_trial(page, number)
        page.keyboard.press("f")


def finish_first(page: Page, server: Server) -> str:
    """The first sitting up to the page between both; return the personal link."""
    begin_trials(page, server)
    page.keyboard.press("f")
    page.click("#next")
    page.click("#begin")
    respond(page, range(1, 7))
    page.wait_for_selector("#between:not([hidden])")
    return page.locator("#between-link").inner_text()


def find_grave(page: Page) -> list[str]:
    found = Axe().run(page).response["violations"]
    return [one["id"] for one in found if one["impact"] in ("serious", "critical")]


def test_from_the_laptop_to_the_phone(chromium: Browser, two: Server, tmp_path: Path) -> None:
    """By key and by touch, with a reload between, kill -9 right after the last response, and a browser's wrong clock.

    Catches a link that is lost, an id or the link in the address bar, a start that is offered too early or by the
    browser's clock, a page that is wider than a phone, a part of the study that is shown twice, another participant's
    condition on the phone, an old device that goes on, and a sitting that is not in the export.
    """
    laptop = chromium.new_context(viewport=LAPTOP)
    laptop.grant_permissions(["clipboard-read", "clipboard-write"])
    page = laptop.new_page()
    link = finish_first(page, two)
    two.kill()
    two.start()
    page.reload()
    expect(page.locator("#between h1")).to_have_text("Sitzung 1 von 2 ist beendet")
    expect(page.locator("#between-link")).to_have_text(link)
    assert re.fullmatch(rf"{two.url}/run/demo#back-[\w-]{{32}}", link)
    assert "back-" not in page.url
    expect(page.locator("#between-code")).to_have_text("TEIL1")
    expect(page.locator("#between .prose")).to_contain_text("Sitzung 2 öffnet am")
    expect(page.locator("#between .start button")).to_be_disabled()
    page.locator("#between .handin", has=page.locator("#between-link")).get_by_role("button").click()
    assert page.evaluate("navigator.clipboard.readText()") == link
    with page.expect_download() as taken:
        page.click("#between a[download]")
    calendar = Path(taken.value.path()).read_bytes().decode()
    assert link in calendar.replace("\r\n ", "")
    assert all(len(line) <= 75 for line in calendar.split("\r\n"))
    assert find_grave(page) == []

    phone = chromium.new_context(viewport=PHONE, has_touch=True)
    other = phone.new_page()
    other.clock.install(time="2040-01-01")  # fourteen years ahead
    other.goto(link)
    expect(other.locator("#between .start button")).to_be_disabled()
    assert "back-" not in other.url
    assert other.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert find_grave(other) == []
    page.reload()
    expect(page.locator("#message")).to_contain_text("nicht mehr aktuell")
    pass_hours(two, 24)
    other.reload()
    expect(other.locator("#between .prose")).to_contain_text("Sitzung 2 ist geöffnet")
    other.click("#between .start button")
    expect(other.locator("#ready h1")).to_have_text("Sitzung 2 von 2")
    expect(other.locator("#ready .prose")).to_contain_text("Ihre Aufgabe ist es")
    other.click("#begin")
    for number in range(1, 7):
        wait_for_trial(other, number)
        expect(other.locator("#progress")).to_have_text(f"{number} von 6")
        other.tap("#right")
    other.wait_for_selector("#end:not([hidden])")
    expect(other.locator("#code")).to_have_text("TEIL2")
    laptop.close()
    phone.close()
    two.stop()
    with Service(two.home) as service:
        frame = pd.read_csv(export(service.researcher, "demo", tmp_path / "out" / "responses.csv"))
        people = pd.read_csv(tmp_path / "out" / "responses.people.csv")
        assert service.researcher.verify() == []
    assert frame.groupby(["sitting", "trial_type"]).size().tolist() == [2] * 6
    assert set(frame[frame["sitting"] == 2]["input"]) == {"touch"}
    assert people["sittings_ended"].tolist() == [2]
    assert people["minutes"].iloc[0] < 30


def test_a_link_in_the_tab_that_waits_and_one_that_has_closed(chromium: Browser, two: Server) -> None:
    """Catches a pasted link that does nothing, one that nobody has, and a closed sitting that says nothing of pay."""
    context = chromium.new_context(viewport=LAPTOP)
    page = context.new_page()
    link = finish_first(page, two)
    before = query(two, "SELECT n_resumes FROM session")
    page.evaluate("link => { location.href = link; }", link)
    page.wait_for_url(re.compile(r"#(?!back-)"))
    expect(page.locator("#between-link")).to_have_text(link)
    assert query(two, "SELECT n_resumes FROM session") != before
    page.goto("about:blank")
    page.goto(f"{link[:-1]}-" if link[-1] != "-" else f"{link[:-1]}_")
    expect(page.locator("#message")).to_contain_text("Link ist unvollständig")
    pass_hours(two, 73)
    page.goto("about:blank")
    page.goto(link)
    expect(page.locator("#end .prose")).to_contain_text("werden für die Sitzungen bezahlt")
    expect(page.locator("#code")).not_to_be_empty()
    context.close()
