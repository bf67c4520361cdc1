"""Counterfactuals of a generator by the command: what its files say and show, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from core.errors import ForetellError
from core.robustness.manifold import GeneratedCounterfactual
from inquiry.counterfactuals.generated import GeneratedQuery, describe_generated, write_generated
from tests.commands import run

SIDE = 12
NETWORK = '''
import numpy as np
import torch

CATEGORIES = ["dark", "bright"]

class Brightness(torch.nn.Module):
    """The class is the mean of the red channel: a reconstruction that keeps it keeps the prediction."""

    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor(30.0))

    def forward(self, x):
        said = self.scale * (x[:, 0].mean((1, 2)) - LEVEL)
        return torch.stack([-said, said], 1)

def build():
    return Brightness()

def transforms(image):
    return torch.from_numpy(np.array(image.resize((12, 12)))).permute(2, 0, 1).float() / 255
'''


def write_world(folder: Path, network: str = NETWORK.replace("LEVEL", "0.5")) -> tuple[str, Path]:
    """Write plain images of known brightness, and the network that reads it."""
    draws = np.random.default_rng(0)
    (folder / "images").mkdir(parents=True)
    for i in range(150):
        colour = (int(draws.integers(40, 216)), 100, int(draws.integers(60, 196)))
        Image.new("RGB", (SIDE, SIDE), colour).save(folder / "images" / f"{i:03}.png")
    (folder / "network.py").write_text(network, encoding="utf-8")
    return f"{folder / 'network.py'}:build", folder / "images"


def test_the_drawn_image_crosses_the_boundary_and_keeps_the_rest(tmp_path: Path) -> None:
    """Planted: only red decides, so the nearest image has red at the boundary and the same blue.

    Catches a generator of other images, a drawing of the reconstruction, and a file about another image.
    """
    model, images = write_world(tmp_path)
    Image.new("RGB", (SIDE, SIDE), (100, 100, 120)).save(tmp_path / "dark.png")
    query = GeneratedQuery(model, [tmp_path / "dark.png"], [images], epochs=40, latent=2)
    (written,) = write_generated(query, tmp_path / "out")
    facts = json.loads(written.file.with_suffix(".json").read_text())
    assert (facts["predicted"], facts["predicted_after"]) == ("dark", "bright")
    assert facts["probability_after"]["bright"] == pytest.approx(0.525, abs=0.02)  # a margin of 0.1 logits
    assert facts["kept"][0] >= 0.8
    assert facts["sentence"] == written.sentence
    panels = np.split(np.asarray(Image.open(written.file).convert("RGB"), dtype=float), 3, axis=1)
    red, _, blue = panels[2].mean((0, 1))
    assert red == pytest.approx(127.5, abs=3)
    assert blue == pytest.approx(120, abs=12)
    assert panels[0].mean((0, 1)) == pytest.approx([100, 100, 120], abs=1)
    assert panels[1].mean((0, 1))[0] < 120


def test_reconstructions_that_change_the_prediction_are_refused_with_the_share(tmp_path: Path) -> None:
    """Planted: a network that reads one pixel's parity, which no smooth reconstruction keeps.

    The error is one sentence, the exit code 2, and nothing is written.
    """
    parity = NETWORK.replace("x[:, 0].mean((1, 2)) - LEVEL", "torch.cos(torch.pi * 255 * x[:, 0, 5, 5])")
    model, images = write_world(tmp_path, parity)
    given = ["--model", model, "--image", images / "000.png", "--other", images, "--how", "generated", "--epochs", "1"]
    ran = run("counterfactual", *given, "--out", tmp_path / "out", home=tmp_path)
    assert ran.returncode == 2
    assert "The reconstructions of the generator keep the prediction of" in ran.stderr
    assert "of 50 held-out images, and 80% are needed" in " ".join(ran.stderr.split())
    assert "Traceback" not in ran.stderr
    assert not (tmp_path / "out").exists()


def test_too_few_images_and_settings_that_do_not_apply_are_refused(tmp_path: Path) -> None:
    from dashboard.cli.options import choose_settings

    model, images = write_world(tmp_path)
    image = images / "000.png"
    with pytest.raises(ForetellError, match="learned from 60 images or more, and 1 were given"):
        write_generated(GeneratedQuery(model, [image], [image]), tmp_path / "out")
    with pytest.raises(ForetellError, match="epochs=0, latent=16: give at least 1 epoch"):
        write_generated(GeneratedQuery(model, [image], [images], epochs=0), tmp_path / "out")
    with pytest.raises(ForetellError, match="--grid does not apply to --how generated"):
        choose_settings("--how generated", {"epochs": None}, {"grid": 5})
    with pytest.raises(ForetellError, match="--latent does not apply to --how cells"):
        choose_settings("--how cells", {"grid": None}, {"epochs": None, "latent": 3})
    assert choose_settings("--how cells", {"grid": 5}, {"epochs": None}) == {"grid": 5}


def test_the_sentence_is_of_these_numbers_and_warns_of_an_unusual_code() -> None:
    """Catches exchanged classes, the reconstruction's probability for the image's, and a missing warning."""
    image = torch.zeros(3, 4, 4)
    shares = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.475, 0.525]])
    found = GeneratedCounterfactual(0, 1, *shares, image, image, 0.1, 0.05, moved=1.234, farther=0.3)
    said = describe_generated(found, ["fish", "boat"])
    assert said == (
        "Of the images that the generator can draw, this is the nearest found that the AI predicts to be boat (52%) "
        "and no longer fish, which it predicts of the image (90%) and of its reconstruction (80%). The code moved by "
        "1.2 standard deviations."
    )
    far = GeneratedCounterfactual(0, 1, *shares, image, image, 0.1, 0.05, moved=1.234, farther=0.004)
    assert describe_generated(far, ["fish", "boat"]).startswith(f"{said} Caution: 0.4% of the generator's codes")
