"""A workspace of the test's own for the pages: the real service over a real database."""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from streamlit.components.v2 import manifest_scanner
from streamlit.components.v2.manifest_scanner import scan_component_manifests
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Dataframe

from dashboard.shared import cache, service
from dashboard.shared.cache import Gallery
from dashboard.shared.jobs import pool
from data.types import ImageSet
from study.network import sources
from study.plan.config import ImageSource
from study.workspace.workspace import ROOT, VARIABLE
from tests.study.conftest import shared_predictions  # noqa: F401 - a fixture, used below

PATIENCE_S = 400
"""A machine that does much else is slow; nothing here waits for the clock."""
WAITING = ("Computing …", "Waiting", "more waiting")


@pytest.fixture(scope="session", autouse=True)
def _components_once() -> Iterator[None]:
    """Look for Streamlit's components once: it reads the metadata of every installed package for each page."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", functools.cache(scan_component_manifests))
        yield


@pytest.fixture(scope="module", autouse=True)
def _predictions_once(shared_predictions: None) -> None:  # noqa: F811
    """Let every page find the predictions of images that a network has already predicted for another page."""


@functools.cache
def open_scenes(split: str, size: int) -> ImageSet:
    """Draw a split of the scenes once for all tests."""
    return sources.open_set(ImageSource.model_validate({"set": "scenes", "split": split, "size": size}), ROOT)


def open_set(source: ImageSource, base: Path) -> ImageSet:
    """Open an image set as the pages do; those scenes that they offer are drawn once."""
    options = source.model_dump(exclude_unset=True)
    if options.keys() == {"set", "split", "size"} and base == ROOT:
        return open_scenes(options["split"], options["size"])
    return sources.open_set(source, base)


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty workspace that the pages and the test share."""
    home = tmp_path / "workspace"
    home.mkdir()
    monkeypatch.setenv(VARIABLE, str(home))
    monkeypatch.setattr(cache, "open_set", open_set)
    torch.set_num_threads(1)
    service.close()
    before = set(pool()._jobs)
    yield home
    for key in set(pool()._jobs) - before:  # a page starts work that its test does not wait for
        pool().cancel(key)
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


def read_headings(element: Dataframe) -> list[str]:
    """What is written over the columns: their labels, or their names where they have none."""
    labels = json.loads(element.proto.columns or "{}")
    return [labels.get(name, {}).get("label") or name for name in element.value.columns]
