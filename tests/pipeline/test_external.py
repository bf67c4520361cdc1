"""``explain`` with explanations that Foretell did not make, as real processes."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest
from PIL import Image

from core.errors import ForetellError
from data.scenes.generator import render
from inquiry.files.explain import ExplanationQuery, explain_files
from tests.commands import run

MINE = """
def explain(model, images, targets, *, times: float = 1.0):
    images.requires_grad_()
    model(images.clone()).gather(1, targets[:, None]).sum().backward()
    return (images.grad * images).sum(1) * times

def holes(model, images, targets):
    return images.sum(1) / 0
"""


@pytest.fixture
def folder(tmp_path):
    """Three scenes in two folders, a method, and a heatmap of each scene."""
    for k, name in enumerate(("a/0", "a/1", "b/0")):
        for where in ("photos", "maps"):
            (tmp_path / where / name).parent.mkdir(parents=True, exist_ok=True)
        render(k, category="fish", context="sea").image.save(tmp_path / "photos" / f"{name}.png")
        Image.fromarray(np.full((96, 96), 10 * k, np.uint8)).save(tmp_path / "maps" / f"{name}.png")
    (tmp_path / "mine.py").write_text(MINE)
    return tmp_path


def test_heatmaps_of_a_file_and_of_a_folder(folder):
    """Oracle: the registered method that the file repeats. Catches another image's map, and a path in a certificate."""
    methods = "mine.py:explain,heatmaps:maps,input_x_gradient"
    command = ("explain", "--image", "photos", "--method", methods, "--param", "times=2", "--out", "out")
    done = run(*command, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "9 heatmaps written" in done.stdout
    for k, name in enumerate(("a/0", "a/1", "b/0")):
        mine, theirs = (np.load(folder / "out" / f"{name}.{one}.npy") for one in ("mine.explain", "input_x_gradient"))
        np.testing.assert_allclose(mine, 2 * theirs, rtol=1e-3, atol=1e-6)
        assert (np.load(folder / "out" / f"{name}.heatmaps.maps.npy") == np.float32(10 * k / 255)).all()
    certificate = json.loads((folder / "out" / "a/0.mine.explain.json").read_text())
    sha256 = hashlib.sha256(MINE.encode()).hexdigest()
    assert (certificate["method"], certificate["origin"]) == ("mine.py:explain", {"file": "mine.py", "sha256": sha256})
    assert str(folder) not in json.dumps({**certificate, "image": ""})
    (folder / "mine.py").write_text(MINE + "# changed\n")
    Image.fromarray(np.full((96, 96), 99, np.uint8)).save(folder / "maps" / "a" / "0.png")
    (folder / "maps" / "b" / "0.png").rename(folder / "maps" / "b" / "1.png")
    refused = run(*command, cwd=folder)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.splitlines()[-1].startswith("Error: heatmaps:maps has no heatmap of b/0 (1 of 3 images).")
    (folder / "maps" / "b" / "1.png").rename(folder / "maps" / "b" / "0.png")
    again = run(*command, cwd=folder)
    assert "6 heatmaps written to out, 3 existed." in again.stdout
    assert np.load(folder / "out" / "a/0.heatmaps.maps.npy")[0, 0] == np.float32(99 / 255)


@pytest.mark.parametrize(
    ("method", "change", "sentence"),
    [
        ("heatmaps:maps", "missing", "heatmaps:maps has no heatmap of a/1 (1 of 3 images). Add one PNG or NPY file"),
        ("heatmaps:maps", "nan", "1 of 3 heatmaps could not be made; the others are there."),
        ("heatmaps:maps", "size", "1.npy is 5 x 5 px, not 96 x 96 px of the input or"),
        ("mine.py:holes", "", "mine.py:holes returned NaN or infinite values"),
        ("gone.py:explain", "", "There is no file "),
    ],
)
def test_what_is_wrong_is_one_sentence_and_nothing_is_lost(folder, method, change, sentence, monkeypatch):
    """Catches a run that ends in a stack trace, or takes the good heatmaps of other images with it."""
    (folder / "out").mkdir()
    (folder / "out" / "kept.txt").write_text("kept")
    if change:
        (folder / "maps" / "a" / "1.png").unlink()
    if change in ("nan", "size"):
        np.save(folder / "maps/a/1.npy", np.full((96, 96), np.nan) if change == "nan" else np.ones((5, 5)))
    monkeypatch.chdir(folder)
    with pytest.raises(ForetellError) as refused:
        explain_files(ExplanationQuery("scenes", (method,)), [folder / "photos"], folder / "out", workers=1).complain()
    assert sentence in str(refused.value)
    assert (folder / "out" / "kept.txt").is_file()
    assert len(list((folder / "out").rglob("*.json"))) == (2 if change in ("nan", "size") else 0)
