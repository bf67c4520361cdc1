"""The Results page over a file of responses."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dashboard.results import responses as answers
from study.analysis.exploratory import slopes
from tests.dashboard.conftest import made, read_headings
from tests.study.analysis.simulated import study


def script() -> None:
    """The page over the real service."""
    from dashboard.results import page as results

    results.page()


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch, workspace: Path) -> AppTest:
    """The page with the studies collected."""
    studies = {
        "Pilot": lambda: study(16, 8, 6, seed=4).assign(mode="sim"),
        "Main": lambda: study(24, 8, 6, seed=5),
        "Broken": lambda: study(24, 8, 6, seed=5).drop(columns="correct"),
        "Two": lambda: study(2, 8, 6, seed=5),
        "Alone": lambda: study(1, 8, 6, seed=5),
    }
    monkeypatch.setattr(answers, "study_frames", lambda: studies)
    return made(AppTest.from_function(script).run())


@pytest.fixture
def no_slopes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the fits with random slopes next to those of the paper: they take seconds, and are not seen here."""
    monkeypatch.setattr(slopes, "can_compare", lambda *_: False)


def choose(app: AppTest, name: str) -> AppTest:
    return made(app.selectbox(key="results_source").select(name).run())


def section(app: AppTest, name: str) -> AppTest:
    return made(app.button_group(key="section").set_value(name).run())


def table(app: AppTest, name: str) -> pd.DataFrame:
    """A table of the page, by the name of its file, which stands under it."""
    return tables(app)[name]


def tables(app: AppTest) -> dict[str, pd.DataFrame]:
    names = [button.label.removesuffix(".csv") for button in app.download_button if button.label.endswith(".csv")]
    drawn = [element.value for element in app.dataframe]  # first the preview of an uploaded file, which has no file
    return dict(zip(names, drawn[len(drawn) - len(names) :], strict=True))


def upload(app: AppTest, content: pd.DataFrame | bytes) -> AppTest:
    content = content if isinstance(content, bytes) else content.to_csv(index=False).encode()
    return made(app.file_uploader(key="results_file").set_value(("mine.csv", content, "text/csv")).run())


def headings(app: AppTest) -> dict[str, list[str]]:
    """The headings of each table of the page as the browser shows them, by the name of its file."""
    names = list(tables(app))
    return dict(zip(names, map(read_headings, app.dataframe[len(app.dataframe) - len(names) :]), strict=True))
