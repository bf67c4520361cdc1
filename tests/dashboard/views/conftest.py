"""The page Explore over few scenes, opened by a link."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.shared import cache
from tests.dashboard.conftest import PATIENCE_S, gallery_of

FEW = 48

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
        app = AppTest.from_function(script, default_timeout=60)
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
