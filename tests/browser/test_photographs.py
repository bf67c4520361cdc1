"""One person's worth of trials of the real-photographs study, taken in a real Chromium."""

from __future__ import annotations

from collections import Counter

import pytest
from playwright.sync_api import Browser

from study.service import Service
from tests.browser.road import agree
from tests.photographs import Photographs
from tests.server import serving

pytestmark = [pytest.mark.browser, pytest.mark.real, pytest.mark.slow]
PRACTICE, MAIN = 2, 12
THINKING_MS = 350


def test_a_person_takes_the_whole_study_and_reloads_in_the_middle(
    chromium: Browser, photographs: Photographs, tmp_path
) -> None:
    with Service(tmp_path) as service:
        service.researcher.open_study(photographs.bundle.folder, per_condition=1)
    with serving(tmp_path) as server:
        page = chromium.new_page(viewport={"width": 1280, "height": 720})
        page.goto(f"{server.url}/run/photographs")
        agree(page)
        page.click("#understood")
        page.click("#seen")
        page.click("#begin")
        for number in range(1, PRACTICE + 1):
            answer(page, number, "f")
            page.click("#next")
        page.click("#begin")
        for number in range(1, MAIN + 1):
            if number == 6:
                wait(page, number)
                page.reload()
                page.click("#begin")
            answer(page, number, "fj"[number % 2])
        page.wait_for_selector("#end:not([hidden])")
        assert page.text_content("#code")
        page.close()
    with Service(tmp_path) as service:
        frame = service.researcher.responses("photographs", ("live",))
        assert service.researcher.verify() == []
    assert len(frame) == MAIN
    assert set(Counter(frame["item"]).values()) == {1}
    assert set(frame["item"]) == {trial.id for trial in photographs.bundle.manifest.trials}
    assert frame["trial"].tolist() == list(range(1, MAIN + 1))
    assert frame.loc[frame["resumed"] == 1, "trial"].tolist() == [6]
    assert frame["rt_ms"].between(THINKING_MS - 40, 5000).all()


def wait(page, number: int) -> None:
    page.wait_for_selector(f'#trial[data-phase="shown"][data-number="{number}"]')


def answer(page, number: int, key: str) -> None:
    wait(page, number)
    page.wait_for_timeout(THINKING_MS)  # how long a person looks; the response time must show it
    page.keyboard.press(key)
