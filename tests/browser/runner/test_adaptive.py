"""A participation whose trials are chosen by its responses, in a real browser: waits, reloads, and what it carries."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from study.bundle import Bundle
from study.service import Service
from tests.browser.participation import keep_traffic, newest, query, wait_for_trial
from tests.browser.runner.conftest import DESKTOP, begin_trials
from tests.conftest import write_bundle
from tests.server import Server, serving
from tests.study.adaptive_studies import STAIRCASE, write_adaptive

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def adaptive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a study of 12 trials from 48, chosen by a staircase, in the condition that shows nothing."""
    home = tmp_path_factory.mktemp("adaptive")

    def write(**options: Any) -> Path:
        return write_bundle(home / "bundle", name="demo", **options)

    folder = write_adaptive(write, STAIRCASE, conditions=("none",), config={"pacing": {"break_every": 5, "catch": 1}})
    with Service(home) as service:
        service.researcher.open_study(folder, per_condition=2)
    with serving(home) as running:
        yield running


def test_the_next_trial_comes_after_the_response(chromium: Browser, adaptive: Server) -> None:
    """By key, with a reload, a second tab, and a server that is killed (SIGKILL) right after a response.

    Catches a page that waits for a trial that nobody chose, another trial after a reload, a response without the trial
    after it, images of trials that come later or never among those before a response, images that only some conditions
    load, and a level, the difficulty or the reason of a choice in anything that the network carried.
    """
    manifest = Bundle(adaptive.home / "bundle").manifest
    context = chromium.new_context(viewport=DESKTOP)  # type: ignore[arg-type]
    carried = keep_traffic(context)
    page = context.new_page()
    begin_trials(page, adaptive)
    page.keyboard.press("f")
    page.click("#next")
    page.click("#begin")
    shown = []
    for number in range(1, 14):
        if number in (6, 11):
            page.click("#begin")
        wait_for_trial(page, number)
        shown.append((page.locator("#target").get_attribute("src") or "").rpartition("/")[2])
        if number in (3, 8):
            page.reload() if number == 3 else page.close()
            page = page if number == 3 else context.new_page()
            if number == 8:
                page.goto(f"{adaptive.url}/run/demo?pid=5f3a9c0d1e2b")
            page.click("#begin")
            wait_for_trial(page, number)
            assert (page.locator("#target").get_attribute("src") or "").endswith(shown[-1])
        so_far = "\n".join(carried)
        later = [trial for trial in manifest.trials if trial.assets.target not in shown]
        if shown[-1]:  # after an attention check comes a trial that is chosen already
            assert not [trial.id for trial in later if trial.assets.target in so_far]
        page.keyboard.press("f" if number % 3 else "j")
        if number in (4, 9, 12):
            adaptive.kill()
            adaptive.start()
    page.wait_for_selector("#end:not([hidden])")
    rows = query(
        adaptive, "SELECT item_id, phase FROM trial_plan WHERE session_id = ? ORDER BY trial_index", newest(adaptive)
    )
    trials = {trial.id: trial for trial in manifest.trials}
    assert [trials[name].assets.target for name, phase in rows if phase == "main"] == [one for one in shown if one]
    text = "\n".join(carried)
    for name, phase in rows:
        if phase == "main":
            assert all(sha256 in text for sha256 in trials[name].assets.every)
    assert not [word for word in ('"adaptive"', "difficulty", "chosen_by", "aimed", "staircase") if word in text]
    with Service(adaptive.home) as service:
        assert service.researcher.verify() == []
    context.close()
