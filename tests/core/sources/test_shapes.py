"""Networks outside the usual shape: of one channel, for one image at a time, and compiled."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from core.attribution import METHODS
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.sources import load
from tests.core.sources.conftest import save_huggingface, save_program


class OneImage(nn.Module):
    """A network whose forward forgets the axis of images, as is often written."""

    def __init__(self, images: int = 1) -> None:
        super().__init__()
        self.images, self.conv, self.head = images, nn.Conv2d(3, 4, 3), nn.Linear(16, 5)

    def forward(self, inputs):
        return self.head(nn.functional.adaptive_avg_pool2d(self.conv(inputs).relu(), 2).view(self.images, -1))


def trace(path: Path, images: int) -> nn.Module:
    network = OneImage(images).eval()
    torch.jit.save(torch.jit.trace(network, torch.rand(images, 3, 32, 32)), path)
    path.with_suffix(".json").write_text(json.dumps({"size": [32, 32]}))
    return network


def test_a_script_of_one_image_runs_image_by_image(tmp_path: Path, picture: Image.Image) -> None:
    """Against the network that was traced. Catches a traceback, where a program of one image runs."""
    network = trace(tmp_path / "net.pt", 1)
    classifier = load(str(tmp_path / "net.pt"))
    inputs = torch.stack([classifier.preprocess(one) for one in (picture, picture.rotate(180), picture.rotate(90))])
    with torch.no_grad():
        torch.testing.assert_close(classifier.logits(inputs), torch.cat([network(one[None]) for one in inputs]))
    assert METHODS["occlusion"](classifier, inputs, [0, 1, 2]).map.flatten(1).any(1).all()


def test_a_script_of_eight_images_is_refused_as_such_a_program_is(tmp_path: Path) -> None:
    trace(tmp_path / "net.pt", 8)
    with pytest.raises(
        ForetellError, match=r"net\.pt was exported for batches of exactly 8 images\. Export it for any"
    ):
        load(str(tmp_path / "net.pt"))


FILE = """
import torch
from torch import nn
from tests.core.sources.test_shapes import OneImage, build_plain

def one():
    return OneImage()

def pooled():
    return nn.Sequential(nn.Conv2d(3, 2, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), Mean())

class Mean(nn.Module):
    def forward(self, inputs):
        return inputs.mean(0, keepdim=True)

def plain():
    return build_plain()

def compiled():
    return torch.compile(build_plain(), backend="eager")

def part():
    network = build_plain()
    network[0] = torch.compile(network[0], backend="eager")
    return network

def within():
    network = build_plain()
    network.compile(backend="eager")
    return network
"""


def build_plain() -> nn.Sequential:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        body = nn.Sequential(nn.Conv2d(3, 8, 3, stride=4), nn.ReLU(), nn.Conv2d(8, 8, 3, stride=2))
        return nn.Sequential(body, nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 2)).eval()


@pytest.mark.parametrize("build", ["one", "pooled"])
def test_a_network_of_one_image_is_refused_with_what_to_change(tmp_path: Path, build: str) -> None:
    """Catches 25 lines of traceback, and a mean over images taken for the logits of each."""
    (tmp_path / "net.py").write_text(FILE)
    with pytest.raises(ForetellError, match=r"^net takes one image at a time \(.*\)\. Make its forward keep the first"):
        load(f"{tmp_path / 'net.py'}:{build}")


@pytest.mark.parametrize("build", ["compiled", "part", "within"])
def test_a_compiled_network_is_explained_as_the_same_without(tmp_path: Path, picture: Image.Image, build: str) -> None:
    """Catches "numpy, quantised or detached" said of a network that is none of these, and layers that are hidden."""
    (tmp_path / "net.py").write_text(FILE)
    plain, compiled = (load(f"{tmp_path / 'net.py'}:{name}") for name in ("plain", build))
    assert (compiled.layers, compiled.fingerprint) == (plain.layers, plain.fingerprint)
    inputs = plain.preprocess(picture)[None]
    for method in ("gradient", "grad_cam", "lrp_0"):
        torch.testing.assert_close(*(METHODS[method](one, inputs, [1]).map for one in (plain, compiled)))


def test_a_compiled_network_stays_compiled_where_it_came_from() -> None:
    network = build_plain()
    compiled = torch.compile(network[0], backend="eager")
    network[0] = compiled
    classifier = Classifier(network, lambda _: torch.zeros(3, 32, 32), name="net")
    assert network[0] is compiled
    with classifier.exclusive() as module:
        assert type(module[0]) is nn.Sequential
        assert all(one is other for one, other in zip(module.parameters(), network.parameters(), strict=True))


class Grey(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3))


def save_grey_hf(folder: Path) -> nn.Module:
    network = save_huggingface(folder, num_channels=1)
    processor = importlib.import_module("transformers").ViTImageProcessor
    processor(size={"height": 32, "width": 32}, image_mean=[0.5], image_std=[0.25]).save_pretrained(folder)
    return network


def save_grey_script(path: Path) -> nn.Module:
    network = Grey().eval()
    torch.jit.save(torch.jit.script(network), path)
    path.with_suffix(".json").write_text(json.dumps({"size": [32, 32], "mean": [0.5], "std": [0.25], "resize": 32}))
    return network


def save_grey_program(path: Path) -> nn.Module:
    network = Grey().eval()
    save_program(path, network, shape=(2, 1, 32, 32))
    path.with_suffix(".json").write_text(json.dumps({"mean": [0.4, 0.5, 0.6], "std": [0.25] * 3, "resize": 32}))
    return network


def save_grey_timm(folder: Path) -> nn.Module:
    config = {"in_chans": 1}
    pretrained = {"mean": [0.5] * 3, "std": [0.25] * 3, "input_size": [1, 32, 32], "crop_pct": 1.0}
    timm = importlib.import_module("timm")
    network = timm.create_model("test_resnet", num_classes=4, in_chans=1).eval()
    network.pretrained_cfg |= pretrained
    importlib.import_module("timm.models").save_for_hf(network, folder, model_args=config)
    return network


GREY = {"hf": save_grey_hf, "timm": save_grey_timm, "net.pt": save_grey_script, "net.pt2": save_grey_program}


@pytest.mark.parametrize("source", GREY)
def test_a_network_of_one_channel_gets_grey_images(tmp_path: Path, picture: Image.Image, source: str) -> None:
    """Closed form: (L - .5) / .25 of a square photograph of the input's size, and the network's own logits.

    Catches a network of one channel refused with transforms that are not the user's.
    """
    path = tmp_path / source
    network = GREY[source](path)
    classifier = load(str(path) if source.startswith("net") else f"{source}:{path}")
    photograph = picture.resize((32, 32))
    expected = torch.from_numpy((np.asarray(photograph.convert("L"), dtype=np.float32)[None] / 255 - 0.5) / 0.25)
    inputs = classifier.preprocess(photograph)
    torch.testing.assert_close(inputs, expected, rtol=0, atol=1e-5)
    with torch.no_grad():
        given = network(expected[None])
    torch.testing.assert_close(classifier.logits(inputs[None]), getattr(given, "logits", given), rtol=1e-4, atol=1e-5)
    assert classifier.mean_colour == (128, 128, 128)
    assert classifier.render_input(inputs).mode == "RGB"
    for method in ("gradient", "occlusion"):
        assert METHODS[method](classifier, inputs[None], [1]).map.shape == (1, 32, 32)


def test_a_processor_of_three_channels_serves_a_network_of_one(tmp_path: Path, picture: Image.Image) -> None:
    """A processor as it comes, with the mean of each colour: grey gets their mean."""
    save_huggingface(tmp_path, num_channels=1)
    photograph = picture.resize((32, 32))
    grey = np.asarray(photograph.convert("L"), dtype=np.float32)[None] / 255
    torch.testing.assert_close(
        load(f"hf:{tmp_path}").preprocess(photograph), torch.from_numpy((grey - 0.4) / 0.3), rtol=0, atol=1e-5
    )
