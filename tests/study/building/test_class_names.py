"""Studies of a network with classes that begin alike, as ImageNet's maillot and maillot, tank suit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from core.errors import ForetellError
from study.building.build import build
from study.building.check import check
from study.bundle import Bundle
from study.network.priors import learn_prior
from study.network.sources import open_classifier, open_set
from study.plan.config import ImageSource

NETWORK = """
import numpy as np
import torch
from torch import nn

CATEGORIES = ["maillot", "maillot, tank suit", "boat"]

def transforms(image):
    return torch.from_numpy(np.asarray(image.resize((32, 32)), dtype=np.float32) / 255).permute(2, 0, 1).contiguous()

def build():
    network = nn.Sequential(nn.Conv2d(3, 3, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 3))
    with torch.no_grad():
        network[0].weight.copy_(torch.eye(3)[:, :, None, None])
        network[4].weight.copy_(8 * torch.eye(3))
        network[0].bias.zero_(), network[4].bias.zero_()
    return network
"""
STUDY = """
[study]
name = "same"
title = "Two classes that begin alike"
[classifier]
model = "network.py:build"
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
categories = ["maillot, tank suit", "maillot"]
practice = 0
[saliency]
method = "gradient"
[teaching]
sets = 20
[display]
size = 64
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Images that are red, green or blue, of which a third of the standard and all adversarial ones mislead."""
    rng = np.random.default_rng(0)
    for role, count in (("pool", 12), ("standard", 9), ("adversarial", 4)):
        for label, name in enumerate(("maillot", "maillot, tank suit", "boat")):
            (tmp_path / role / name).mkdir(parents=True)
            for i in range(count):
                is_wrong = role == "adversarial" or (role == "standard" and i % 3 == 0)
                pixels = rng.integers(0, 90, (32, 32, 3))
                pixels[..., (1 - label if label < 2 else 0) if is_wrong else label] += rng.integers(60, 150)
                Image.fromarray(pixels.astype(np.uint8)).save(tmp_path / role / name / f"{i}.png")
    (tmp_path / "network.py").write_text(NETWORK)
    (tmp_path / "study.toml").write_text(STUDY)
    return tmp_path


def test_two_options_of_a_trial_are_never_the_same_word(folder: Path) -> None:
    """Catches a study that is built and then refuses to open, as both options of its trials are "maillot"."""
    bundle = build(folder / "study.toml", folder / "home")
    options = {tuple(sorted(trial.options)) for trial in bundle.manifest.trials}
    assert options == {("maillot", "maillot, tank suit")}
    assert {trial.truth for trial in bundle.manifest.trials} == {"maillot", "maillot, tank suit"}
    assert Bundle(bundle.folder).manifest == bundle.manifest


def test_a_category_that_could_be_two_classes_is_refused_before_a_build(folder: Path) -> None:
    """Catches trials of the first of two classes, where the study file names what they have in common."""
    (folder / "network.py").write_text(NETWORK.replace('["maillot"', '["maillot, swimsuit"'))
    for role in ("pool", "standard", "adversarial"):
        (folder / role / "maillot").rename(folder / role / "maillot, swimsuit")
    checked = check(folder / "study.toml", folder / "home")
    assert checked.obstacles == (
        "trials.categories: 'maillot' could be 2 classes of the network: 'maillot, swimsuit', 'maillot, tank suit'. "
        "Give the whole name of one.",
    )
    assert [row["category"] for row in checked.supply.table()] == ["maillot, swimsuit", "maillot, tank suit", "boat"]


def test_two_equal_names_are_refused_by_the_check(folder: Path) -> None:
    (folder / "network.py").write_text(NETWORK.replace('"maillot, tank suit"', '"maillot"'))
    with pytest.raises(ForetellError, match="network has two classes named 'maillot'"):
        check(folder / "study.toml", folder / "home")


SURE = NETWORK.replace(
    "    return network\n",
    "    with torch.no_grad():\n"
    "        network[4].weight[2, 2], network[4].bias[2] = 4000.0, -4000 * 0.35\n"
    "    return network\n",
)
"""A network that is certain whether an image is a boat: its blue is .41 or more where it is one, else about .18."""
TRUST = (
    "The network's probability of 'boat' is almost 0 or 1 on every image of the learner's prior, which is therefore "
    "certain of the weights: examples teach the learner nothing about such a class. Give the prior images of which the "
    "network is less sure, or {}."
)


def test_a_class_of_which_the_prior_is_certain_is_named_with_a_remedy(folder: Path) -> None:
    """Catches a boat that is always predicted called improbable, an unnamed class, and a tau that may not be set."""
    (folder / "network.py").write_text(SURE)
    study = STUDY.replace('categories = ["maillot, tank suit", "maillot"]', 'categories = ["boat", "maillot"]')
    (folder / "study.toml").write_text(study)
    warning = f"Warning: {TRUST.format('set tau above 0 under [teaching]')}"
    assert warning in check(folder / "study.toml", folder / "home").lines
    (folder / "study.toml").write_text(study.replace("[teaching]", "[teaching]\ntau = 0.01"))
    assert "certain of the weights" not in "".join(check(folder / "study.toml", folder / "home").lines)
    images = open_set(ImageSource.model_validate({"set": "folder", "path": "pool"}), folder)
    learn_prior(open_classifier("network.py:build", folder), images, folder / "prior.safetensors")
    (folder / "study.toml").write_text(study.replace("[teaching]", '[teaching]\nprior = "prior.safetensors"'))
    warning = f"Warning: {TRUST.format('make its file again with `prior --tau` above 0')}"
    assert warning in check(folder / "study.toml", folder / "home").lines
