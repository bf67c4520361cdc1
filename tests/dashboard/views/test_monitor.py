"""The page Monitor, run as Streamlit runs it over a real workspace."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from dashboard import door
from tests.conftest import write_bundle


def script() -> None:
    from dashboard.views import monitor

    monitor.page()


@pytest.fixture
def opened(workspace: Path) -> AppTest:
    folder = write_bundle(workspace / "bundles" / "tiny-0123456789ab", name="tiny", trials=6, practice=0)
    door.service().open_study(folder, 2)
    door.service().consent(door.service().begin("tiny", participant="p"), True)
    return AppTest.from_function(script, default_timeout=60).run()


def test_an_empty_workspace_says_what_to_do(workspace: Path) -> None:
    app = AppTest.from_function(script, default_timeout=60).run()
    assert "Open one" in app.info[0].value


def test_numbers_places_and_people(opened: AppTest) -> None:
    assert not opened.exception
    numbers = {metric.label: metric.value for metric in opened.metric}
    assert (numbers["Reading"], numbers["Finished"]) == ("1", "0")
    assert opened.table[0].value["Places"].tolist() == [2, 2, 2, 2]
    assert opened.dataframe[0].value["where"].tolist() == ["waiting"]


def test_pausing_and_opening_again_keeps_the_places(opened: AppTest) -> None:
    opened.button(key="monitor_pause").click().run()
    assert door.service().studies()[0].state == "closed"
    opened.button(key="monitor_open").click().run()
    assert not opened.exception
    assert door.service().studies()[0].state == "open"
    assert opened.table[0].value["Places"].tolist() == [2, 2, 2, 2]


def test_outcomes_are_shown_only_for_a_reason(opened: AppTest) -> None:
    assert len(opened.dataframe) == 1
    look = next(button for button in opened.button if button.label == "Look and record it")
    look.click().run()
    assert "Say why" in opened.error[0].value
    opened.text_input(key="unblind_reason").set_value("the board asks")
    next(button for button in opened.button if button.label == "Look and record it").click().run()
    assert list(opened.dataframe[-1].value.columns)[:3] == ["condition", "begun", "done"]
