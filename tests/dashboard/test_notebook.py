"""Foretell from Python: what a cell gets, and what it draws."""

from __future__ import annotations

import base64
import io
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from torch import nn

import foretell
from core.attribution import METHODS
from core.drawing.rendering import AGAINST, FOR
from core.errors import ForetellError
from dashboard.notebook import PUBLIC
from data.scenes.generator import render
from study.analysis.models import mixed
from study.plan import config
from study.workspace.workspace import ROOT
from tests.study.analysis import simulated

SETS = {name: {"set": "scenes", "split": name} for name in ("pool", "standard", "adversarial")}


class Corner(nn.Module):
    """Two classes: the brightness of the upper left quarter is evidence for the first and against the second."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        bright = self.scale * x[:, :, : x.shape[2] // 2, : x.shape[3] // 2].mean((1, 2, 3))
        return torch.stack([bright, -bright], 1)


def to_input(image: Image.Image) -> torch.Tensor:
    return torch.from_numpy(np.asarray(image.convert("RGB").resize((32, 32)), dtype=np.float32) / 255).permute(2, 0, 1)


@pytest.fixture
def photograph() -> Image.Image:
    return Image.fromarray(np.random.default_rng(0).integers(60, 200, (64, 64, 3), dtype=np.uint8))


def test_import_offers_every_name_and_loads_none() -> None:
    """Catches a name of the table that is not where it says, and an import of torch that a notebook waits for."""
    assert set(PUBLIC) <= set(dir(sys.modules["dashboard.notebook"]))
    assert all(getattr(foretell, name) is not None for name in PUBLIC)
    with pytest.raises(AttributeError, match=r"The package has no 'explane'\. It has: ForetellError"):
        foretell.explane  # noqa: B018
    code = "import foretell, sys; print(*{'torch', 'pandas', 'streamlit'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_a_module_of_ones_own_is_explained_where_its_evidence_lies(photograph: Image.Image) -> None:
    """Catches a picture drawn of another class, in another place or with the colours exchanged: planted evidence."""
    network = foretell.load(Corner(), transforms=to_input, categories=["corner", "rest"])
    for target, colour in (("corner", FOR), ("rest", AGAINST)):
        (found,) = foretell.explain(network, photograph, "input_x_gradient", target=target, baseline="black")
        drawn = np.asarray(found.draw(), dtype=float)
        half = drawn.shape[1] // 2
        heat = drawn[: half // 2, half : half + half // 2]  # the upper left quarter of the right picture
        rest = drawn[half // 2 + 8 : half - 8, half + 8 : -8]
        assert np.abs(np.median(heat, (0, 1)) - colour).max() < 90
        assert np.ptp(np.median(rest, (0, 1))) < 3, "grey: no evidence there"
        assert found.category == target


def test_heatmaps_are_those_of_the_methods_and_draw_themselves(photograph: Image.Image) -> None:
    """Catches a table whose cells are exchanged, and a picture that the notebook cannot show."""
    network = foretell.load("scenes")
    images = [photograph, np.asarray(photograph.transpose(Image.Transpose.FLIP_LEFT_RIGHT))]
    found = foretell.explain(network, images, ["gradient", "rise"], target=2, samples=64, seed=5)
    inputs = torch.stack([network.preprocess(Image.fromarray(np.asarray(image))) for image in images])
    expected = METHODS["gradient"](network, inputs, [2, 2]).map.numpy()
    seeded = torch.Generator().manual_seed(5)
    drawn = METHODS["rise"](network, inputs, [2, 2], generator=seeded, samples=64).map.numpy()
    np.testing.assert_array_equal(found.to_numpy(), np.stack([expected, drawn], 1))
    assert list(found.to_frame()["method"]) == ["gradient", "rise"] * 2
    page = found._repr_html_()
    shown = [Image.open(io.BytesIO(base64.b64decode(code))) for code in re.findall(r"base64,([^\"]+)", page)]
    assert len(shown) == 4
    assert [np.asarray(image).tobytes() for image in shown] == [np.asarray(one.draw()).tobytes() for one in found]


def test_names_cannot_write_into_the_notebook(photograph: Image.Image, tmp_path) -> None:
    """Catches a file's name that becomes a script in a shared notebook."""
    photograph.save(tmp_path / "<img src=x onerror=alert(1)>.png")
    network = foretell.load(Corner(), transforms=to_input, categories=["<script>", "rest"])
    found = foretell.explain(network, tmp_path, "gradient", target=0)
    assert "<script" not in found._repr_html_()
    assert "<img src=x" not in found._repr_html_()


def test_files_are_written_as_the_command_writes_them(photograph: Image.Image, tmp_path) -> None:
    network = foretell.load(Corner(), transforms=to_input)
    found = foretell.explain(network, photograph, "gradient")
    (picture,) = found.save(tmp_path)
    assert picture == tmp_path / "image1.gradient.png"
    np.testing.assert_array_equal(np.load(tmp_path / "image1.gradient.npy"), found[0].map)


def test_a_study_file_has_the_network_method_and_settings_of_the_notebook(tmp_path, photograph, monkeypatch) -> None:
    """Catches a study that shows participants other heatmaps than the notebook did."""
    monkeypatch.chdir(tmp_path)
    found = foretell.explain("scenes", photograph, ["gradient", "rise"], samples=77, seed=3)
    file = foretell.write_study("mine.toml", found, method="rise", **SETS)
    made = config.read(file)
    assert (made.classifier.model, made.saliency.method, made.study.seed) == ("scenes", "rise", 3)
    assert made.saliency.parameters["samples"] == 77
    assert made.sets.pool.settings == {"split": "pool"}
    with pytest.raises(ForetellError, match=r"mine\.toml exists already"):
        foretell.write_study("mine.toml", found, **SETS)
    with pytest.raises(ForetellError, match="no method 'lime'"):
        foretell.write_study("other.toml", found, method="lime", **SETS)
    own = foretell.explain(foretell.load(Corner(), transforms=to_input), photograph, "gradient")
    with pytest.raises(ForetellError, match="cannot name Corner"):
        foretell.write_study("other.toml", own, **SETS)
    with pytest.raises(ForetellError):
        foretell.write_study("other.toml", found, **SETS | {"pool": {"set": "nowhere"}})
    assert not (tmp_path / "other.toml").exists()


def test_a_model_is_fitted_as_by_the_command() -> None:
    """Expected: the fit that `glmm` makes of the same rows, which other tests compare with lme4 and glmmTMB."""
    frame = simulated.study(12, 4, 4, seed=1)
    ours = foretell.glmm(frame, "correct ~ saliency + (1|participant)")
    same = mixed.fit(frame, "correct ~ saliency + (1|participant)")
    assert ours.coefficients.loc["saliency", "estimate"] == pytest.approx(same.coefficients[1].estimate)
    assert "SD participant (Intercept)" in str(ours)
    assert ours._repr_html_().startswith("<pre>term")
    means = ours.means("saliency", scale="population")
    assert means.table["estimate"].diff().iloc[1] == pytest.approx(-means.contrasts["estimate"].iloc[0])
    assert "saliency0 - saliency1" in str(means)
    effect = ours.effects("saliency")["effect"].iloc[0]
    assert effect == pytest.approx(-means.contrasts["estimate"].iloc[0])


def test_networks_are_compared_where_they_differ_first(photograph: Image.Image) -> None:
    bright, dark = Corner(), Corner()
    with torch.no_grad():
        dark.scale.neg_()
    networks = [foretell.load(one, transforms=to_input, categories=["a", "b"]) for one in (bright, dark)]
    black = np.zeros((32, 32, 3), dtype=np.uint8)
    table = foretell.compare(networks, [black, photograph])
    assert list(table["agree"]) == [False, True]
    assert list(table.iloc[0][["image", "Corner", "Corner (2)"]]) == ["image2", "a", "b"]
    assert "2" in str(foretell.inspect(networks[0])["classes"])


@pytest.mark.parametrize(
    ("images", "said"),
    [
        ([], "No image given"),
        (np.zeros((4, 4)), r"Image 1 is ndarray float64 \(4, 4\)"),
        ([3], "Image 1 is int"),
        ("none.png", "There is no image none.png"),
    ],
)
def test_what_is_no_image_is_said(images, said) -> None:
    with pytest.raises(ForetellError, match=said):
        foretell.explain("scenes", images, "gradient")


def test_methods_are_listed_with_their_parameters() -> None:
    table = foretell.methods()
    assert isinstance(table, pd.DataFrame)
    assert table.loc["rise", "parameters"].count("=") >= 2
    assert set(table.index) == set(METHODS)


def test_the_guide_runs_from_its_first_cell_to_its_last(tmp_path, monkeypatch) -> None:
    """Catches a guide whose cells no longer run."""
    render(3, category="fish", context="meadow").image.save(tmp_path / "fish.png")
    simulated.study(12, 4, 4, seed=1).to_csv(tmp_path / "responses.csv", index=False)
    monkeypatch.chdir(tmp_path)
    cells = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "how-to" / "python.md").read_text("utf-8"), re.DOTALL)
    assert len(cells) == 6
    names: dict[str, object] = {}
    for cell in cells:
        exec(compile(cell, "python.md", "exec"), names)
    assert (tmp_path / "heatmaps" / "fish.grad_cam.png").is_file()
    assert (tmp_path / "mine.toml").is_file()
