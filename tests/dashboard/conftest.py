"""A workspace of the test's own for the pages: the real service over a real database."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from streamlit.testing.v1 import AppTest

from dashboard.shared import cache, service
from dashboard.shared.cache import Gallery
from study.workspace.workspace import VARIABLE

PATIENCE_S = 400
"""A machine that does much else is slow; nothing here waits for the clock."""
WAITING = ("Computing …", "Waiting", "more waiting")


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty workspace that the pages and the test share."""
    home = tmp_path / "workspace"
    home.mkdir()
    monkeypatch.setenv(VARIABLE, str(home))
    torch.set_num_threads(1)
    service.close()
    yield home
    service.close()


def gallery_of(model: str, name: str) -> Gallery:
    """A picture set with a classifier's answers, as the page gets it."""
    job = cache.start_gallery_job(model, name)
    assert job.wait(PATIENCE_S)
    assert job.state == "done", job.error
    found: Gallery = job.result
    return found


def made(app: AppTest) -> AppTest:
    """The page when all that it waits for is there; a browser asks again by itself."""
    deadline = time.monotonic() + PATIENCE_S
    while app.get("progress") or any(word in caption.value for word in WAITING for caption in app.caption):
        assert time.monotonic() < deadline
        time.sleep(0.05)
        app.run()
    assert not app.exception
    return app
