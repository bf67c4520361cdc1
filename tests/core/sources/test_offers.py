"""The names that installed packages offer, against the packages' own lists."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from core.errors import ForetellError
from core.loading import import_torchvision
from core.sources.offers import describe_weights, list_offers


def test_torchvision_says_how_much_is_downloaded_and_whether_it_is_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches segmentation networks among classifiers, a size in another unit, and weights that are fetched again.

    The size of resnet18's file is that of the file at download.pytorch.org, 46,830,571 bytes.
    """
    import_torchvision()
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))
    names = list_offers("torchvision")
    assert {"resnet18", "vit_b_16"} <= set(names)
    assert "fcn_resnet50" not in names
    weights = describe_weights("torchvision", "resnet18")
    assert weights.size is not None
    assert abs(weights.size / 46_830_571 - 1) < 0.001
    assert weights.origin.startswith("https://download.pytorch.org/models/resnet18")
    assert not weights.is_local
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / Path(weights.origin).name).touch()
    assert describe_weights("torchvision", "resnet18").is_local


def test_timm_and_clip_offer_names_that_they_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches names that loading would not take, and weights on this machine that are called missing."""
    import_torchvision()
    pytest.importorskip("timm")
    pytest.importorskip("open_clip")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    assert "resnet18.a1_in1k" in list_offers("timm")
    weights = describe_weights("timm", "resnet18.a1_in1k")
    assert weights.origin == "https://huggingface.co/timm/resnet18.a1_in1k"
    assert not weights.is_local
    snapshot = tmp_path / "models--timm--resnet18.a1_in1k" / "snapshots" / "1"
    snapshot.mkdir(parents=True)
    (snapshot / "model.safetensors").touch()
    assert describe_weights("timm", "resnet18.a1_in1k").is_local
    assert "ViT-B-32:openai" in list_offers("clip")
    weights = describe_weights("clip", "ViT-B-32:laion2b_s34b_b79k")
    assert weights.origin == "https://huggingface.co/laion/CLIP-ViT-B-32-laion2B-s34B-b79K"
    assert not weights.is_local
    snapshot = tmp_path / "models--laion--CLIP-ViT-B-32-laion2B-s34B-b79K" / "snapshots" / "1"
    snapshot.mkdir(parents=True)
    (snapshot / "open_clip_config.json").touch()
    assert not describe_weights("clip", "ViT-B-32:laion2b_s34b_b79k").is_local
    (snapshot / "open_clip_model.safetensors").touch()
    assert describe_weights("clip", "ViT-B-32:laion2b_s34b_b79k").is_local


def test_a_missing_package_and_an_unknown_name_are_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a traceback where an optional package is not installed."""
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(ForetellError, match="pip install timm"):
        list_offers("timm")
    with pytest.raises(ForetellError, match="Did you mean resnet18"):
        describe_weights("torchvision", "resnet_18")
    with pytest.raises(ForetellError, match="no list"):
        list_offers("hf")
