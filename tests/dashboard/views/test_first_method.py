"""The method with which the page Explore begins."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest

from dashboard.shared import live
from tests.dashboard.views.conftest import Open, settled

WIDE = """
import numpy as np
import torch
from data.scenes.classifier import CATEGORIES

def build():
    torch.manual_seed(0)
    return torch.nn.Sequential({layers})

def transforms(image):
    return torch.from_numpy(np.asarray(image.resize((160, 160)), dtype=np.float32) / 255).permute(2, 0, 1)
"""
CONVOLUTION = "torch.nn.Conv2d(3, 8, 5, 4), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), "


@pytest.mark.parametrize(
    ("layers", "first"),
    [
        (CONVOLUTION + "torch.nn.Linear(8, 16)", "grad_cam"),
        ("torch.nn.Flatten(), torch.nn.Linear(3 * 160 * 160, 16)", "gradient"),
    ],
)
def test_large_images_begin_with_a_heatmap_of_one_pass(
    opened: Open, workspace: Path, monkeypatch: pytest.MonkeyPatch, layers: str, first: str
) -> None:
    """Catches a page that begins with a button for minutes of work, and a refinement that needs a second click."""
    monkeypatch.setattr(live, "HESITATE_S", 0.01)  # what is not started by a click waits for one
    (workspace / "models").mkdir()
    (workspace / "models" / "wide.py").write_text(WIDE.format(layers=layers))
    for category in ("fish", "boat"):
        (workspace / "images" / "mine" / category).mkdir(parents=True)
        Image.effect_noise((160, 160), 60).convert("RGB").save(workspace / "images" / "mine" / category / "noise.png")
    app = opened()
    app.selectbox(key="classifier").set_value("models/wide.py")
    settled(app.run())
    assert app.selectbox(key="method").value == first
    assert "Heatmap alone, with its scale" in captions(app)
    settled(app.button(key="refine").click().run())
    assert app.selectbox(key="method").value == "bayesian_teaching"
    assert "Heatmap alone, with its scale" in captions(app)
    app.selectbox(key="classifier").set_value("scenes")
    settled(app.run())
    assert app.selectbox(key="method").value == "bayesian_teaching"


def captions(app: AppTest) -> list[str]:
    """The captions of all images on the page."""
    return [image.caption for one in app.get("image") for image in one.proto.imgs]
