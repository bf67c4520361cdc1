"""The page Explore over few scenes, and the pages Design and Studies, opened by a link."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.shared import cache
from study.plan import studyfiles
from study.workspace.workspace import ROOT
from tests.dashboard.conftest import PATIENCE_S, gallery_of

FEW = 48
DEMO = ROOT / "data" / "studies" / "demo.toml"
Open = Callable[..., AppTest]

OTHER = """
import torch
from data.scenes import classifier
from data.scenes.classifier import CATEGORIES, MEAN_COLOUR, transforms

def build():
    network = classifier.build()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(1.05)
    return network
"""


def script() -> None:
    from dashboard.explore import page as explore

    explore.page()


@pytest.fixture
def opened(workspace: Path, monkeypatch: pytest.MonkeyPatch):
    """Opens the page by a link: ``opened(method="LIME", **{"lime.grid": "4"})``."""
    monkeypatch.setattr(cache, "SCENE_COUNT", FEW)
    gallery_of("scenes", "adversarial")

    def by(**query: str) -> AppTest:
        app = AppTest.from_function(script)
        for key, value in query.items():
            app.query_params[key] = value
        return settled(app.run())

    return by


@pytest.fixture
def app(opened) -> AppTest:
    return opened(method="Gradient")


def settled(app: AppTest) -> AppTest:
    """The page when everything it asked for is made; the browser asks again by itself."""
    deadline = time.monotonic() + PATIENCE_S
    while any(button.label == "Stop all" or button.key.startswith("stop_") for button in app.button if button.key):
        assert time.monotonic() < deadline
        time.sleep(0.05)
        app.run()
    if any("Computing …" in said.value or "Waiting" in said.value for said in [*app.info, *app.caption]):
        time.sleep(0.05)
        return settled(app.run())
    assert not app.exception
    return app


def open_by_link(script: Callable[[], None], **query: str) -> AppTest:
    """A page as a link opens it."""
    app = AppTest.from_function(script)
    for name, value in query.items():
        app.query_params[name] = value
    return app.run()


def design_script() -> None:
    from dashboard.design import page as design

    design.page()


@pytest.fixture
def open_page(workspace: Path) -> Open:
    """``open_page(study="mine", part="Trials")``: the page Design as a link opens it."""

    def run(**query: str) -> AppTest:
        app = open_by_link(design_script, **query)
        assert not app.exception
        return app

    return run


@pytest.fixture
def mine(workspace: Path) -> Path:
    """A copy of the demo's study file for Design."""
    return studyfiles.copy_study(DEMO, workspace, "mine", "My study")


def studies_script() -> None:
    from dashboard.studies import page as studies

    studies.page()


@pytest.fixture
def open_studies(workspace: Path) -> Open:
    """``open_studies(study="tiny", section="Trials")``: the page Studies as a link opens it."""
    return functools.partial(open_by_link, studies_script)


def press(app: AppTest, label: str) -> AppTest:
    """Press the button of this label."""
    app = next(button for button in app.button if button.label == label).click().run()
    assert not app.exception
    return app


def checked(app: AppTest) -> AppTest:
    """The page Design once its check has ended; a browser asks again by itself."""
    deadline = time.monotonic() + PATIENCE_S
    while any("Checking whether" in one.value for one in app.markdown):
        assert time.monotonic() < deadline
        time.sleep(0.1)
        app.run()
    assert not app.exception
    return app
