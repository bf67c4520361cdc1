"""The committed network: loads like a user's file, and is as good and as bad as published."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file
from torch import nn

from data.errors import DataError
from data.scenes import classifier, train
from data.scenes.generator import USUAL_SHARE
from data.scenes.shapes import CATEGORIES
from data.scenes.splits import label_of, picture

FRESH_SEED = 2_000_003
"""Set seed of pictures neither training nor the published figures used."""
FRESH = 800


@pytest.fixture(scope="module")
def user_file() -> ModuleType:
    """The classifier loaded by its path, as a user's own model file is."""
    path = Path(classifier.__file__)
    spec = importlib.util.spec_from_file_location("users_model", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def published() -> dict[str, Any]:
    figures: dict[str, Any] = json.loads(train.ACCURACY.read_text())
    return figures


@pytest.fixture(scope="module")
def fresh(user_file: ModuleType) -> dict[str, dict[str, Any]]:
    """The figures on freshly drawn pictures, each passed through the file's own `transforms` one by one."""
    torch.set_num_threads(1)
    net, figures = user_file.build(), {}
    for split in ("standard", "adversarial"):
        x = torch.stack([user_file.transforms(picture(split, FRESH_SEED, i).image) for i in range(FRESH)])
        with torch.inference_mode():
            probability = torch.cat([net(part).softmax(1) for part in x.split(100)]).numpy()
        truth = np.array([label_of(i) for i in range(FRESH)])
        wrong = probability.argmax(axis=1) != truth
        figures[split] = {
            "accuracy": 1 - wrong.mean(),
            "confidently_wrong": (wrong & (probability.max(axis=1) > 0.8)).mean(),
        }
    return figures


def test_loads_as_a_users_file(user_file: ModuleType) -> None:
    net = user_file.build()
    assert isinstance(net, nn.Module)
    assert not net.training
    assert not any(p.requires_grad for p in net.parameters())
    assert isinstance(list(net.modules())[-1], nn.Linear)
    assert list(CATEGORIES) == user_file.CATEGORIES
    assert sum(p.numel() for p in net.parameters()) < 400_000
    assert net(torch.zeros(2, 3, 96, 96)).shape == (2, len(CATEGORIES))


def test_weights_are_small_and_need_no_pickle() -> None:
    assert classifier.WEIGHTS.stat().st_size < 2_000_000
    stored = load_file(classifier.WEIGHTS)
    assert {v.dtype for v in stored.values() if v.is_floating_point()} == {torch.float16}


def test_transforms_normalise_as_mean_and_std_say(user_file: ModuleType) -> None:
    """The closed form (x / 255 - mean) / std: black and mean fills are found by it."""
    colour = (255, 0, 51)
    x = user_file.transforms(Image.new("RGB", (96, 96), colour))
    expected = [(c / 255 - m) / s for c, m, s in zip(colour, user_file.MEAN, user_file.STD, strict=True)]
    assert x.shape == (3, 96, 96)
    assert x.dtype == torch.float32
    assert x[:, 40, 60].tolist() == pytest.approx(expected, abs=1e-5)
    assert user_file.transforms(Image.new("L", (200, 120))).shape == (3, 96, 96)


def test_mean_and_std_are_those_of_the_training_scenes() -> None:
    drawn = np.stack([np.asarray(picture("training", 0, i).image) for i in range(320)]) / 255
    assert drawn.mean(axis=(0, 1, 2)) == pytest.approx(classifier.MEAN, abs=0.02)
    assert drawn.std(axis=(0, 1, 2)) == pytest.approx(classifier.STD, abs=0.01)


def test_published_figures_meet_what_the_demo_needs(published: dict[str, Any]) -> None:
    standard, adversarial = published["standard"], published["adversarial"]
    assert standard["accuracy"] > 0.93
    assert 0.20 < adversarial["accuracy"] < 0.60
    assert adversarial["confidently_wrong"] >= 0.20


def test_per_category_accuracy_has_spread(published: dict[str, Any]) -> None:
    """A study needs easy and hard categories, and standard errors in at least ten of them."""
    shifted = list(published["adversarial"]["per_category"].values())
    usual = list(published["standard"]["per_category"].values())
    assert set(published["standard"]["per_category"]) == set(CATEGORIES)
    assert max(shifted) - min(shifted) > 0.3
    assert sum(0.8 < accuracy < 0.995 for accuracy in usual) >= 10


def test_published_settings_are_those_of_the_code(published: dict[str, Any]) -> None:
    """Catches weights of an older generator or other settings."""
    assert published["training"]["usual_share"] == USUAL_SHARE
    assert published["training"]["images"] == train.IMAGES
    assert published["training"]["epochs"] == train.EPOCHS
    assert published["held_out"] == {
        "images_per_split": train.HELD_OUT, "seed": train.HELD_OUT_SEED, "confident": train.CONFIDENT,
    }  # fmt: skip


@pytest.mark.parametrize("split", ["standard", "adversarial"])
@pytest.mark.parametrize("figure", ["accuracy", "confidently_wrong"])
def test_committed_weights_reach_the_published_figures(
    published: dict[str, Any], fresh: dict[str, dict[str, Any]], split: str, figure: str
) -> None:
    """On 800 fresh pictures within four binomial standard errors of the difference from the published 4,000."""
    said = published[split][figure]
    error = np.sqrt(said * (1 - said) * (1 / FRESH + 1 / train.HELD_OUT))
    assert abs(fresh[split][figure] - said) < 4 * error


def test_it_has_seen_masked_images(user_file: ModuleType) -> None:
    """Only the object left, the rest mean colour: the answers must not be arbitrary (chance is 1/16)."""
    net, size = user_file.build(), 160
    scenes = [picture("standard", FRESH_SEED, i) for i in range(size)]
    masks = torch.from_numpy(np.stack([s.mask for s in scenes]))[:, None].float()
    x = torch.stack([user_file.transforms(s.image) for s in scenes]) * masks
    with torch.inference_mode():
        answer = net(x).argmax(1)
    assert (answer == torch.tensor([label_of(i) for i in range(size)])).float().mean() > 0.5


def test_missing_weights_are_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(classifier, "WEIGHTS", tmp_path / "weights.safetensors")
    with pytest.raises(
        DataError, match=r"weights\.safetensors are missing\. Create them again: python -m data\.scenes\.train"
    ):
        classifier.build()
