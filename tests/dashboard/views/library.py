"""The page Models & images for its tests: run by AppTest, with small images and a network to add."""

from __future__ import annotations

import io
import time
import zipfile

import numpy as np
from PIL import Image
from streamlit.testing.v1 import AppTest

from tests.dashboard.conftest import PATIENCE_S, made

NETWORK = b"""
import torch

CATEGORIES = ["dark", "bright"]


def build():
    network = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(3, 2))
    return network
"""


def image(seed: int) -> bytes:
    rough = np.random.default_rng(seed).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    content = io.BytesIO()
    Image.fromarray(rough).resize((64, 64)).save(content, "PNG")
    return content.getvalue()


def zipped(files: dict[str, bytes]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return content.getvalue()


def open_library() -> AppTest:
    """Return the page, not yet run."""

    def page() -> None:
        from dashboard.library import page

        page.page()

    return AppTest.from_function(page)


def settled(app: AppTest) -> AppTest:
    """The page when nothing is going on any more."""
    deadline = time.monotonic() + PATIENCE_S
    while app.get("progress") or not any(str(button.key).startswith("library_add") for button in app.button):
        assert time.monotonic() < deadline
        time.sleep(0.05)
        app.run()
    return made(app)
