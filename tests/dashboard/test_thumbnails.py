"""The heatmap that a thumbnail of the Gallery shows: fetched apart from the page, from the pool of jobs."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import pytest
import torch
from PIL import Image
from starlette.applications import Starlette
from starlette.testclient import TestClient

from core.attribution import METHODS
from core.drawing.views import view
from dashboard.explore.figures import HeatmapDrawing
from dashboard.explore.find import route, thumbnails
from dashboard.shared import cache
from dashboard.shared.imagegrid import make_thumbnail
from tests.dashboard.conftest import PATIENCE_S, gallery_of


@pytest.fixture
def http(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    monkeypatch.setattr(cache, "SCENE_COUNT", 8)
    with TestClient(Starlette(routes=route.routes())) as client:
        yield client


def fetch(http: TestClient, **changed: str) -> tuple[int, bytes]:
    """What the page gets when it has asked often enough."""
    query = {"network": "scenes", "images": "adversarial", "method": "gradient", "image": "3", **changed}
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        reply = http.get(f"/heatmap?{urlencode(query)}")
        if reply.status_code != 202:
            return reply.status_code, reply.content
    raise AssertionError("no heatmap in time")


def decode(content: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(content)).convert("RGB"), dtype=float)


def test_it_is_the_heatmap_of_the_predicted_class(http: TestClient) -> None:
    """Catches the heatmap of another image, method or class than the thumbnail's."""
    code, content = fetch(http)
    assert code == 200
    gallery = gallery_of("scenes", "adversarial")
    network, photograph = cache.load_classifier("scenes"), gallery.images.open(3)
    inputs = network.preprocess(photograph)[None]
    ranked = network.probabilities(inputs)[0].argsort(descending=True)

    def draw(method: str, target: int) -> np.ndarray:
        found = METHODS[method](network, inputs, [target], generator=torch.Generator().manual_seed(0))
        drawn = HeatmapDrawing(view(network, photograph), found).draw(thumbnails.LOOK)
        return decode(make_thumbnail(drawn, thumbnails.SIDE))

    shown, first, second = decode(content), int(ranked[0]), int(ranked[1])
    assert np.abs(shown - draw("gradient", first)).mean() < 0.5
    for other in (draw("grad_cam", first), draw("gradient", second)):
        assert np.abs(shown - other).mean() > 2


def test_nothing_but_what_the_gallery_offers_is_computed(http: TestClient) -> None:
    """Catches a slow method, a path or a number in the address that starts work or ends in an error of the server."""
    for changed in ({"method": "rise"}, {"network": "../x"}, {"images": "../x"}, {"image": "-1"}, {"image": "8"}):
        code, content = fetch(http, **changed)
        assert (code, content.endswith(b".")) == (404, True), changed
