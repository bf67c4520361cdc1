"""``explain`` over many pictures as a real process: killed, resumed, and given networks that do not fit."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time

import numpy as np
import pytest

from data.scenes.generator import render
from study.workspace.workspace import ROOT
from tests.commands import run

PICTURES, KILLS = 40, 2
NETWORKS = """
import torch
from torch import nn

class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.network = flat()
    def forward(self, x):
        return x, x

def flat():
    return nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 2))

def unlearnt():
    network = flat()
    nn.init.constant_(network[1].weight, float("nan"))
    return network

def pair():
    return Pair()

def labels():
    return nn.Sequential(flat(), nn.Sigmoid())

def convolutional():
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Conv2d(4, 2, 1), nn.Flatten())

def transforms(picture):
    import numpy as np
    return torch.from_numpy(np.asarray(picture.resize((32, 32)), dtype=np.float32) / 255).permute(2, 0, 1).contiguous()
"""


def scenes(folder, count):
    """A folder of scenes in two folders."""
    for k in range(count):
        path = folder / ("odd" if k % 2 else "even") / f"{k:02d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        render(k, category="fish", context="sea").image.save(path)
    return folder


def finished(out):
    return sorted(out.rglob("*.json"))


def test_kill_9_loses_little_and_the_same_command_finishes(tmp_path):
    """Every certificate there after a kill -9 has its map whole beside it, and is not made again."""
    folder = scenes(tmp_path / "pictures", PICTURES)
    out, again = tmp_path / "out", tmp_path / "again"
    arguments = ["explain", "--image", folder, "--method", "gradient,rise", "--param", "samples=96", "--out"]
    command = [sys.executable, "-m", "dashboard.cli", *map(str, arguments)]  # the worker, not the one who starts it
    rng = random.Random(5)
    for _ in range(KILLS):
        before = len(finished(out))
        process = subprocess.Popen([*command, out], stderr=subprocess.DEVNULL, cwd=ROOT)
        while len(finished(out)) < before + 8 and process.poll() is None:
            time.sleep(0.002)  # the blow falls while maps are written
        time.sleep(rng.uniform(0, 0.1))
        process.kill()
        process.wait()
        for path in finished(out):
            assert json.loads(path.read_text())["key"]
            assert np.load(path.with_suffix(".npy")).shape == (96, 96)
            assert path.with_suffix(".png").is_file()
    times = {path: path.stat().st_mtime_ns for path in finished(out)}
    assert 8 * KILLS <= len(times) < 2 * PICTURES
    done = run(*arguments, out)
    assert done.returncode == 0, done.stderr
    assert f"{2 * PICTURES - len(times)} heatmaps written to {out}, {len(times)} existed." in done.stdout
    assert all(path.stat().st_mtime_ns == made for path, made in times.items())
    run(*arguments, again)
    assert len(finished(out)) == 2 * PICTURES
    for path in finished(out):
        expected = np.load((again / path.relative_to(out)).with_suffix(".npy"))
        tolerance = 1e-5 * float(np.abs(expected).max())
        np.testing.assert_allclose(np.load(path.with_suffix(".npy")), expected, rtol=1e-4, atol=tolerance)


def test_images_come_as_files_folders_and_patterns(tmp_path):
    """Also where the shell has replaced the pattern: then all but the first come after the option."""
    folder = scenes(tmp_path / "pictures", 4)
    for k, given in enumerate(([folder], [f"{folder}/**/*.png"], sorted(folder.rglob("*.png")))):
        out = tmp_path / str(k)
        done = run("explain", "--image", *given, "--method", "gradient", "--out", out)
        assert done.returncode == 0, done.stderr
        assert "4 heatmaps written" in done.stdout
        assert (out / ("even/00.gradient.json" if k < 2 else "00.gradient.json")).is_file()


@pytest.mark.parametrize(
    ("network", "options", "sentence"),
    [
        ("unlearnt", (), "networks has NaN or infinite values in '1.weight'. Load another checkpoint."),
        ("pair", (), "networks returned tuple; wrap it so that it returns one tensor of logits (B, K)."),
        ("convolutional", ("--method", "cam"), "which cam needs. Use grad_cam"),
        ("flat", ("--method", "grad_cam"), "networks has no layer with feature maps (B, K, h, w)"),
        ("flat", ("--method", "deconvnet"), "networks has no ReLU"),
        ("convolutional", ("--method", "grad_cam", "--param", "layer=10"), "networks has no layer '10'."),
        ("flat", ("--target", "2"), "Target 2 is not a class of networks: it has classes 0 to 1."),
        ("missing", (), "has no function 'missing'. It defines: "),
    ],
)
def test_a_network_that_does_not_fit_is_one_sentence(network, options, sentence, tmp_path):
    (tmp_path / "networks.py").write_text(NETWORKS)
    render(1, category="fish", context="sea").image.save(tmp_path / "fish.png")
    model = ("--model", f"networks.py:{network}")
    method = () if "--method" in options else ("--method", "gradient")
    done = run("explain", "--image", "fish.png", *model, *method, *options, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert sentence in done.stderr
    assert done.stderr.strip().splitlines()[-1].startswith("Error: ")
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "heatmaps").exists()


def test_warnings_are_printed_also_where_another_method_does_not_apply(tmp_path):
    """Catches a network of sigmoids whose warning stays in the files because `cam` is refused in the same run."""
    (tmp_path / "networks.py").write_text(NETWORKS)
    render(1, category="fish", context="sea").image.save(tmp_path / "fish.png")
    done = run(
        "explain", "--image", "fish.png", "--model", "networks.py:labels", "--method", "gradient,cam", cwd=tmp_path
    )
    assert done.returncode == 2
    assert "1 heatmap of gradient has a warning" in done.stdout
    assert "If they are probabilities of separate labels (a sigmoid)" in done.stdout
    assert "1 of 2 heatmaps could not be made" in done.stderr
