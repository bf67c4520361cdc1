from __future__ import annotations

import json

import pytest
import torch
from torch import nn

from core.sources import load
from core.sources.local import list_fetched_models, list_local_models
from tests.core.sources.conftest import LABELS, save_clip, save_huggingface, save_timm


@pytest.fixture
def models(tmp_path):
    folder = tmp_path / "models"
    save_timm(folder / "a_timm", "test_vit")
    save_huggingface(folder / "b_hf")
    save_huggingface(folder / "c_headless", head="Model")
    save_clip(folder / "d_clip")
    save_clip(folder / "e_clip")
    (folder / "e_clip" / "names.txt").write_text("\n".join(LABELS))
    network = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 2))
    torch.jit.save(torch.jit.trace(network, torch.zeros(1, 3, 8, 8)), folder / "script.pt")
    torch.save(network.state_dict(), folder / "weights.pt")
    (folder / "broken.pt").write_text("nothing")
    (folder / "mine.py").write_text("raise SystemExit('executed')")
    (folder / "models.txt").write_text("# more\nclip:models/e_clip?names=models/e_clip/names.txt&prompt=the {}\n\n")
    return tmp_path


def test_what_a_folder_offers_can_be_loaded(models):
    """A folder, a script or a line that is not offered; files of weights and networks without a head that are."""
    offered = list_local_models(models, "models")
    assert offered == [
        "timm:models/a_timm",
        "hf:models/b_hf",
        "clip:models/e_clip?names=models/e_clip/names.txt",
        "models/mine.py",
        "models/script.pt",
        "clip:models/e_clip?names=models/e_clip/names.txt&prompt=the {}",
    ]
    for spec in offered:
        if not spec.endswith(".py"):
            assert len(load(spec, base=models).categories) in (2, 4)
    assert list_local_models(models, "nowhere") == []


def test_the_cache_offers_classifiers_only(tmp_path, monkeypatch):
    """A cached text model or feature extractor offered as a classifier; another cache than the client's own."""
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    assert list_fetched_models() == []
    for name, file, content in (
        ("models--google--vit", "config.json", json.dumps({"architectures": ["ViTForImageClassification"]})),
        ("models--google--bert", "config.json", json.dumps({"architectures": ["BertModel"]})),
        ("models--timm--resnet18.a1_in1k", "model.safetensors", ""),
        ("models--timm--clip_vit", "open_clip_model.safetensors", ""),
        ("datasets--google--vit", "config.json", "{"),
    ):
        snapshot = tmp_path / "hub" / name / "snapshots" / "0a1b"
        snapshot.mkdir(parents=True)
        (snapshot / file).write_text(content)
    assert list_fetched_models() == ["hf:google/vit", "timm:resnet18.a1_in1k"]
