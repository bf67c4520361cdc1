"""The start page, run by the entry script with its navigation."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.shared import service
from study.simulate import simulate
from tests.conftest import ROOT, write_bundle


@pytest.fixture
def app(workspace: Path) -> AppTest:
    return AppTest.from_file(str(ROOT / "dashboard" / "pages.py"), default_timeout=60)


def numbers(app: AppTest) -> dict[str, str]:
    assert not app.exception
    return {metric.label: metric.value for metric in app.metric}


def test_an_empty_workspace(app: AppTest) -> None:
    assert set(numbers(app.run()).values()) == {"0"}
    assert [heading.value for heading in app.subheader][:-1] == [
        "Explain a classifier",
        "Run an experiment",
        "Inspect the teaching examples",
        "Plan your sample size",
        "See the results",
    ]
    assert len(app.get("page_link")) == 5


def test_simulated_people_are_not_participants(app: AppTest, workspace: Path) -> None:
    write_bundle(workspace / "bundles" / "closed-00", name="closed")
    service.get_service().researcher.open_study(write_bundle(workspace / "bundles" / "demo-00", name="demo"), 2)
    simulate(service.get_service(), "demo", 3, {"guesser": 1.0}, 0)
    assert numbers(app.run()) == {
        "Studies built": "2",
        "Open now": "1",
        "Participants": "0",
        "Simulated participants": "3",
    }
    assert any("not evidence" in caption.value for caption in app.caption)
