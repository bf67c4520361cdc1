"""The guide for authors of a new method, from a folder of PNG files to the responses of a study."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from data.sets import scenes
from study.workspace.workspace import ROOT
from tests.commands import run

GUIDES = ("test-your-own-explanation", "test-a-function-that-explains")
GUIDE = "\n".join((ROOT / "docs" / "how-to" / f"{name}.md").read_text(encoding="utf-8") for name in GUIDES)
SIZES = {"pool": 96, "standard": 160, "adversarial": 96}


def example(file: str, kind: str) -> str:
    """What the guide shows under the name of a file."""
    found = re.search(rf"`{re.escape(file)}`:\n\n```{kind}\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
    assert found, file
    return found[1]


def blocks() -> list[list[str]]:
    """The commands of the guide, in their order."""
    found = re.findall(r"^```bash\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
    return [shlex.split(line) for block in found for line in block.splitlines()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Images as the guide says, and its three files."""
    for role, size in SIZES.items():
        images = scenes.load(split=role, size=size)
        for i, label in enumerate(images.labels):
            path = tmp_path / role / images.categories[label] / f"{i:03d}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            images.open(i).save(path)
    for file, kind in (("make_heatmaps.py", "python"), ("mine.py", "python"), ("mine.toml", "toml")):
        (tmp_path / file).write_text(example(file, kind), encoding="utf-8")
    return tmp_path


@pytest.mark.slow
def test_every_command_of_the_guide_runs(folder: Path) -> None:
    """Catches a guide whose commands, study file or contract have changed under it."""
    lines = blocks()
    assert [line[2] for line in lines if len(line) > 2] == [
        *("explain", "build", "build", "verify", "simulate", "export", "explain"),
    ]
    for line in lines:
        if line[1] == "foretell.py":
            quick = ["--quick"] if line[2] == "verify" else []  # tests/study/building/test_external.py renders again
            done = run(*line[2:], *quick, home=folder / "home", cwd=folder)
        else:
            environment = {**os.environ, "PYTHONPATH": str(ROOT)}
            command = [sys.executable, *line[1:]]
            done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    responses = pd.read_csv(folder / "mine.csv")
    assert set(responses["condition"]) == {"none", "saliency", "random_maps"}
    manifest = json.loads(next((folder / "home" / "bundles").glob("mine-*/manifest.json")).read_text())
    assert {trial["saliency"]["origin"]["folder"] for trial in manifest["trials"]} == {"gradients"}
    assert len(list((folder / "seen").glob("*.mine.explain.json"))) == len(list((folder / "standard/fish").iterdir()))
