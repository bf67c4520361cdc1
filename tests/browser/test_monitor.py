"""Unblind a study, replay a session, and analyse a file of responses: mouse and keyboard, desktop and phone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from playwright.sync_api import Locator, expect

from study.bundle import Bundle
from study.collection.tables.frames import pseudonym
from study.service import Service
from study.store import audit
from tests.browser.hand import VISITORS, Hand
from tests.browser.participation import query
from tests.browser.stillness import wait_until_still
from tests.conftest import write_bundle
from tests.server import Server, serving
from tests.study.analysis.simulated import study
from tests.study.participants import take_part

pytestmark = pytest.mark.browser
TRIALS = """SELECT trial_index + 1, item_id, choice, side FROM response JOIN trial_plan USING (session_id, trial_index)
  WHERE session_id = ? ORDER BY trial_index"""
SESSIONS = "SELECT session_id, participant_id FROM session WHERE study = ? ORDER BY started_at"
REASON = "The server was down for a day."


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a study for each visitor, which collects, and in which four participants have responded."""
    home = tmp_path_factory.mktemp("monitor")
    with Service(home) as service:
        for visitor in VISITORS:
            folder = write_bundle(home / "bundles" / f"{visitor.name}-00", name=visitor.name, trials=6, practice=1)
            service.researcher.open_study(folder, per_condition=2)
            for k in range(4):
                take_part(service, service.participant.begin(visitor.name), ("left", "right")[k % 2])
    with serving(home) as running:
        yield running


def open_part(hand: Hand, name: str) -> Locator:
    """Open a part of the page that is folded away."""
    part = hand.page.get_by_test_id("stExpander").filter(has_text=name).last  # the innermost
    hand.click(part.locator("summary").first)
    expect(part.locator("details[open]").first).to_be_visible()
    wait_until_still(hand.page)
    return part


def press(hand: Hand, button: Locator, effect: Locator) -> None:
    """Press a button once, while the page refreshes itself, and wait for what it does."""
    hand.click(button)
    expect(effect).to_be_visible()


def test_a_study_is_unblinded_and_a_session_replayed(hand: Hand, server: Server) -> None:
    """Catches a replay before unblinding, one of another participant or trial, and a step that a keyboard or a phone
    lacks."""
    page, name = hand.page, hand.visitor.name
    page.goto(f"{server.url}/monitor?study={name}")
    expect(page.get_by_text("Problems and storage")).to_be_visible()
    hand.see("the monitor")
    replay = open_part(hand, "Replay a session")
    [chosen, person], *_ = query(server, SESSIONS, name)
    participant = pseudonym({"participant_id": person})
    hand.choose(replay.get_by_role("combobox", name="Participant"), participant)
    again = replay.get_by_role("button", name="Replay and log")
    press(hand, again, page.get_by_text("Close the study, or unblind it with a reason."))
    unblind = open_part(hand, "Unblind: view outcomes")
    hand.write(unblind.get_by_role("textbox", name="Reason"), REASON)
    logged = unblind.get_by_text(f"Logged: the outcomes of {name} were viewed.")
    press(hand, unblind.get_by_role("button", name="Unblind and log"), logged)
    hand.see("unblinded")
    press(hand, again, replay.get_by_text(f"{participant}, condition: "))
    expect(replay.locator(".js-plotly-plot .main-svg").first).to_be_visible()
    responses = read_responses(server, name, chosen)
    see_trial(replay, *responses[0])
    step_on(hand, replay.get_by_role("slider", name="Trial"))
    see_trial(replay, *responses[1])
    hand.see("the second trial")
    open_part(hand, "All events")
    with page.expect_download() as download:
        hand.click(replay.get_by_role("button", name=f"{participant}_events.csv"))
    events = pd.read_csv(download.value.path())
    assert (events["event"] == "A response was received").sum() == len(responses) == 7
    with Service(server.home) as service:
        told = [row["act"] for row in service.workspace.store.read(audit.acts) if row["act"] != "opened"]
    assert list(dict.fromkeys(told))[-2:] == ["unblinded", "replayed a session"]


def read_responses(server: Server, name: str, session: str) -> list[tuple[int, str, str]]:
    """Read the number of each trial of a session, the class that was chosen and its side, from the database."""
    manifest = Bundle(server.home / "bundles" / f"{name}-00").manifest
    options = {trial.id: trial.options for trial in (*manifest.practice, *manifest.trials)}
    rows = query(server, TRIALS, session)
    return [(number, options[item]["ab".index(choice)], side) for number, item, choice, side in rows]


def see_trial(replay: Locator, number: int, choice: str, side: str) -> None:
    """Look whether a trial is drawn with the stored response to it."""
    expect(replay.get_by_text(re.compile(rf"^Trial {number}, .*: {choice} \({side}\), 0.51 s, key$"))).to_be_visible()
    expect(replay.get_by_role("img", name="Image", exact=True)).to_have_js_property("complete", True)


def step_on(hand: Hand, slider: Locator) -> None:
    """Move a slider from its first value to the next: by a key, or by a click on its line."""
    if hand.visitor.by_keyboard:
        hand.reach(slider)
        hand.page.keyboard.press("ArrowRight")
        return
    line = slider.locator("xpath=ancestor::div[@data-orientation][last()]")
    line.scroll_into_view_if_needed()
    box = line.bounding_box()
    assert box is not None
    steps = int(slider.get_attribute("max") or 0)
    hand.page.mouse.click(box["x"] + box["width"] / steps, box["y"] + box["height"] / 2)


@pytest.mark.parametrize("visitor", VISITORS[1:], ids=["phone"])  # with the mouse: `test_pages`
def test_a_file_of_responses_is_mapped_and_its_report_downloaded(hand: Hand, server: Server, tmp_path: Path) -> None:
    """Catches a template that lacks a column, a preview that runs off a phone and that no key scrolls, and a report
    that cannot be reached by the keyboard."""
    page = hand.page
    page.goto(f"{server.url}/results?results_source=Upload+a+CSV+file")
    expect(page.get_by_text("Choose a CSV file with one row per response")).to_be_visible()
    with page.expect_download() as download:
        hand.click(page.get_by_role("button", name="Template (CSV)"))
    template = pd.read_csv(download.value.path())
    responses = study(24, 8, 6, seed=5)
    assert set(responses) <= set(template)
    responses.rename(columns={"correct": "as_the_ai"}).to_csv(tmp_path / "mine.csv", index=False)
    hand.attach(page.get_by_test_id("stFileUploaderDropzone").get_by_role("button").last, tmp_path / "mine.csv")
    expect(page.get_by_text("No column for correct yet")).to_be_visible()
    hand.see("a column is missing")
    hand.choose(page.get_by_role("combobox", name="correct", exact=True), "as_the_ai")
    expect(page.get_by_text("No column for correct yet")).to_have_count(0)
    expect(page.get_by_text("The first 5 of 432 rows, as they will be read:")).to_be_visible()
    expect(page.get_by_test_id("stDataFrame").first).to_be_visible()
    expect(page.locator(".js-plotly-plot").first).to_be_visible()
    hand.see("the results")
    hand.click(page.get_by_role("radio", name="Report", exact=True))
    button = page.get_by_role("button", name="Report, one page (HTML)")
    expect(button).to_be_visible()
    hand.see("the report")
    with page.expect_download() as download:
        hand.click(button)
    assert "exploratory" in Path(download.value.path()).read_text(encoding="utf-8")
