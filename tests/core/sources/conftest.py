"""Tiny networks of every source, with random weights, in folders as their libraries write them. Nothing is fetched."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from core.loading import import_torchvision

LABELS = ("cat", "dog", "bird", "fish")


@pytest.fixture(scope="package", autouse=True)
def offline():
    """A test that fetches something: every request fails. The networks are too small for a second thread."""
    import_torchvision()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    patch = pytest.MonkeyPatch()
    patch.setattr(importlib.import_module("huggingface_hub.constants"), "HF_HUB_OFFLINE", True)
    yield
    patch.undo()
    torch.set_num_threads(threads)


@pytest.fixture(scope="package")
def picture() -> Image.Image:
    """An image that is not square: a wrong resize or crop shows in it."""
    rng = np.random.default_rng(5)
    return Image.fromarray(rng.integers(0, 256, (70, 110, 3), dtype=np.uint8)).resize((220, 140))


@pytest.fixture
def names(tmp_path: Path) -> Path:
    """A file of class names."""
    path = tmp_path / "names.txt"
    path.write_text("\n".join(LABELS) + "\n\n", encoding="utf-8")
    return path


def save_timm(folder: Path, name: str, classes: int = 4, **config: Any) -> Any:
    """Save a network of timm as its own function writes it, and return it."""
    timm = importlib.import_module("timm")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = timm.create_model(name, num_classes=classes).eval()
    importlib.import_module("timm.models").save_for_hf(network, folder, model_config={"num_classes": classes} | config)
    return network


def save_huggingface(folder: Path, kind: str = "ViT", head: str = "ForImageClassification", **changes: Any) -> Any:
    """Save a network of transformers with its image processor as its own functions write them, and return it."""
    transformers = importlib.import_module("transformers")
    settings: dict[str, Any] = {
        "ViT": {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32,
                "image_size": 32, "patch_size": 8},
        "ResNet": {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1], "layer_type": "basic"},
        "Swin": {"embed_dim": 8, "depths": [1, 1], "num_heads": [1, 2], "window_size": 4, "image_size": 32,
                 "patch_size": 4},
    }[kind]  # fmt: skip
    labels = {"id2label": dict(enumerate(LABELS)), "label2id": {name: k for k, name in enumerate(LABELS)}}
    config = getattr(transformers, f"{kind}Config")(**settings | labels | changes)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = getattr(transformers, f"{kind}{head}")(config).eval()
    network.save_pretrained(folder)
    processor = importlib.import_module("transformers").ViTImageProcessor(
        size={"height": 32, "width": 32}, image_mean=[0.2, 0.4, 0.6], image_std=[0.3, 0.3, 0.3]
    )
    processor.save_pretrained(folder)
    return network


def save_program(path: Path, network: nn.Module, shape: tuple[int, ...] = (2, 3, 40, 48), dynamic: bool = True) -> Path:
    """Export a network for any number of images, or for exactly as many as the shape says."""
    batch = ({0: torch.export.Dim("batch")},) if dynamic else None
    torch.export.save(torch.export.export(network, (torch.zeros(shape),), dynamic_shapes=batch), path)
    return path


def build_small_network() -> nn.Module:
    """Build a network with layers that act otherwise in training, for three classes."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        body = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.5))
        return nn.Sequential(*body, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3)).eval()


def save_clip(folder: Path, **changes: Any) -> Any:
    """Save a network of open_clip with its configuration, and return it."""
    open_clip = importlib.import_module("open_clip")
    model = {
        "embed_dim": 12,
        "vision_cfg": {"image_size": 32, "layers": 1, "width": 16, "patch_size": 8, "head_width": 8},
        "text_cfg": {"context_length": 16, "vocab_size": 49408, "width": 8, "heads": 1, "layers": 1},
    } | changes
    preprocess = {"mean": [0.1, 0.2, 0.3], "std": [0.5, 0.5, 0.5]}
    folder.mkdir(exist_ok=True)
    (folder / "open_clip_config.json").write_text(json.dumps({"model_cfg": model, "preprocess_cfg": preprocess}))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = open_clip.model.CLIP(**model).eval()
    torch.save(network.state_dict(), folder / "open_clip_pytorch_model.bin")
    return network
