"""A study of a CLIP network and folders of images, from the study file to a verified bundle."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from core.network.classifier import Classifier
from core.sources import load
from dashboard.cli import main as cli
from data.sets import scenes
from tests.core.sources.conftest import LABELS, offline, save_clip

__all__ = ["offline"]  # the fixture: nothing is fetched
SIZES = {"pool": 48, "standard": 48, "adversarial": 24}
SPEC = "clip:net?names=names.txt&prompt=a photo of a {}"
STUDY = f"""
conditions = ["none", "saliency", "examples", "both"]

[study]
name = "zero-shot"
title = "Zero-shot"

[classifier]
model = "{SPEC}"

[sets.pool]
set = "folder"
path = "pool"

[sets.standard]
set = "folder"
path = "standard"

[sets.adversarial]
set = "folder"
path = "adversarial"

[trials]
categories = 1
practice = 0

[saliency]
parameters.samples = 64

[teaching]
sets = 5
"""


def save_balanced_clip(folder: Path) -> None:
    """Save a CLIP network of random weights whose predictions of scenes differ: its mean embedding is moved to 0."""
    network = save_clip(folder / "net")
    images = scenes.load(split="standard", size=48)
    classifier = load(SPEC, base=folder)
    inputs = torch.stack([classifier.preprocess(images.open(i)) for i in range(48)])
    seen: list[torch.Tensor] = []
    handle = network.visual.ln_post.register_forward_hook(lambda _, __, out: seen.append(out))
    with torch.no_grad():
        network.encode_image(inputs)
        network.visual.ln_post.bias -= seen[0][:, 0].mean(0)  # of the class token, which is read
    handle.remove()
    torch.save(network.state_dict(), folder / "net" / "open_clip_pytorch_model.bin")


def save_images(folder: Path) -> Classifier:
    """Save scenes as files under the class that the network predicts; misclassified ones under the next class."""
    classifier = load(SPEC, base=folder)
    for role, size in SIZES.items():
        images = scenes.load(split=role, size=size)
        shown = [images.open(i) for i in range(size)]
        predicted = classifier.logits(torch.stack([classifier.preprocess(one) for one in shown])).argmax(1).tolist()
        for i, (image, k) in enumerate(zip(shown, predicted, strict=True)):
            wrong = role == "adversarial" or (role == "standard" and i % 2)
            path = folder / role / LABELS[(k + wrong) % len(LABELS)] / f"{i:03d}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            image.save(path)
    return classifier


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    """Run a command in this process, which has open_clip imported, and return its exit code and output."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORETELL_HOME", str(tmp_path / "home"))

    def run(*words: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["foretell.py", *words])
        try:
            cli.main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        else:
            code = 0
        said = capsys.readouterr()
        return code, said.out + said.err

    return run


def test_a_zero_shot_study_is_built_and_verified(tmp_path: Path, command) -> None:
    """Catches a build that cannot teach on a zero-shot head, and an identity that misses the class names or prompts.

    By hand: the network of the manifest is the one that is opened, and what the trials say of it is what it predicts.
    """
    pytest.importorskip("open_clip")
    (tmp_path / "names.txt").write_text("\n".join(LABELS), encoding="utf-8")
    save_balanced_clip(tmp_path)
    classifier = save_images(tmp_path)
    (tmp_path / "study.toml").write_text(STUDY, encoding="utf-8")
    code, said = command("build", "study.toml")
    assert code == 0, said
    code, said = command("verify", "zero-shot")
    assert code == 0, said
    manifest = json.loads(next((tmp_path / "home" / "bundles").glob("zero-shot-*/manifest.json")).read_text())
    assert manifest["classifier"]["fingerprint"] == classifier.fingerprint
    assert len(manifest["trials"]) == 3
    for trial in manifest["trials"]:
        predicted = trial["target"] if "target" in trial else trial["prediction"]
        assert (predicted == trial["truth"]) == trial["trial_type"].endswith("_correct")
        assert np.isfinite(trial["teaching"]["p_learner"])
