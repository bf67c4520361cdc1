"""``visualise`` as a real process: its files, its sentences, and Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np

from data.scenes.generator import render
from study.workspace.workspace import ROOT
from tests.commands import run

DEAD = """
import torch
from torch import nn

def build():
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2))
    nn.init.constant_(network[0].bias, -1e4)
    return network

def transforms(picture):
    import numpy as np
    return torch.from_numpy(np.asarray(picture.resize((32, 32)), dtype=np.float32) / 255).permute(2, 0, 1).contiguous()
"""
QUICK = ("--starts", 2, "--steps", 4)


def test_the_readmes_command_but_quicker(tmp_path):
    render(1, category="fish", context="sea").image.save(tmp_path / "fish.png")
    done = run("units", "--unit", "features.3.1:12", *QUICK, "--images", tmp_path, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    stem = tmp_path / "out" / "scenes.features.3.1-channel-12.fourier"
    assert done.stdout.splitlines()[-4:] == [f"{stem}.{ending}" for ending in ("png", "top.png", "npz", "json")]
    assert "Steps: 8" in done.stderr.splitlines()
    assert len(json.loads(stem.with_name(f"{stem.name}.json").read_text())["activations"]) == 2


def test_what_must_be_known_before_believing_a_image_is_printed(tmp_path):
    (tmp_path / "dead.py").write_text(DEAD)
    done = run("units", "--model", "dead.py:build", "--unit", "1:0", *QUICK, "--out", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("No gradient was found from start 0, 1, and nothing drawn")
    with np.load(tmp_path / "out" / "dead.1-channel-0.fourier.npz") as arrays:
        assert arrays["activations"].tolist() == [0, 0]


def test_wrong_input_is_one_sentence(tmp_path):
    done = run("units", "--unit", "feature.3.1:0", "--out", tmp_path / "out")
    assert done.returncode == 2
    assert done.stderr.startswith("Error: scenes has no layer 'feature.3.1'. Did you mean 'features.3.1'")
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


def heeds_ctrl_c() -> None:
    """What a shell puts into the background without job control ignores Ctrl-C, and so do all its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_ctrl_c_ends_it_and_leaves_no_file(tmp_path):
    command = [sys.executable, "-P", "-m", "dashboard.cli", "units", "--class", "fish", "--steps", "1000000"]
    with (tmp_path / "said").open("wb") as said:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        command += ["--out", str(tmp_path / "out")]
        process = subprocess.Popen(command, env=environment, stderr=said, preexec_fn=heeds_ctrl_c)
        try:
            while b"Steps: 4,000,000" not in (tmp_path / "said").read_bytes():
                assert process.poll() is None
                time.sleep(0.02)
            process.send_signal(signal.SIGINT)
            assert process.wait(300) == 130
        finally:
            process.kill()
    assert not (tmp_path / "out").exists()
    assert b"Traceback" not in (tmp_path / "said").read_bytes()
