"""Where networks look in photographs: the measured geometry against closed forms."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps

from core.drawing.views import view
from core.network.classifier import Classifier
from core.network.geometry import Geometry, measure_geometry
from core.sources import load
from tests.planted import MADE, RANDOM, SWIRL, network_file

SIZES = [(300, 200), (200, 300), (600, 200), (1000, 700), (50, 40)]


def network(folder: Path, made: str) -> Classifier:
    return load(f"{network_file(folder, made)}:build")


def expected(name: str, width: int, height: int) -> list[list[float]]:
    """The matrix by hand."""
    short = min(width, height)
    wide, high = round(80 * width / short), round(80 * height / short)
    x, y = width / wide, height / high  # photograph px for one px of the resized image
    longer = max(width, height)
    cos, sin = np.cos(np.pi / 6), np.sin(np.pi / 6)
    return {
        "crop": [[x, 0, x * ((wide - 64) // 2)], [0, y, y * ((high - 64) // 2)]],
        "corner": [[x, 0, 2 * x], [0, y, 2 * y]],
        "squash": [[width / 64, 0, 0], [0, height / 64, 0]],
        "pad": [[longer / 64, 0, -(longer - width) / 2], [0, longer / 64, -(longer - height) / 2]],
        "mirror": [[-width / 64, 0, width], [0, height / 64, 0]],
        # Turned by 30 degrees against the clock around the middle (32, 32): back by the same angle.
        "turn": (
            np.diag([width / 64, height / 64])
            @ np.array([[cos, -sin, 32 - 32 * cos + 32 * sin], [sin, cos, 32 - 32 * cos - 32 * sin]])
        ).tolist(),
    }[name]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", MADE)
def test_the_geometry_is_the_one_that_the_transforms_were_written_for(
    tmp_path: Path, name: str, size: tuple[int, int]
) -> None:
    """At the four corners, to half a percent of the photograph or half a pixel of a small one."""
    found = network(tmp_path, MADE[name]).geometry(size)
    assert found is not None
    corners = np.array([[0, 64, 0, 64], [0, 0, 64, 64], [1, 1, 1, 1]])
    off = np.array(found.matrix) @ corners - np.array(expected(name, *size)) @ corners
    assert (np.abs(off) < max(0.5, 0.005 * max(size))).all()


def test_what_is_not_resized_lies_exactly_where_it_lies() -> None:
    """Edges are taken for whole pixels and for the photograph's own where no measurement can tell them apart."""
    assert network_of(lambda image: image).box == (0.0, 0.0, 90.0, 60.0)
    assert network_of(lambda image: image.crop((7, 5, 39, 37))).box == (7.0, 5.0, 39.0, 37.0)


def network_of(change) -> Geometry:
    found = measure_geometry(lambda i: torch.from_numpy(np.array(change(i))).permute(2, 0, 1) / 255, (90, 60))
    assert found is not None
    return found


@pytest.mark.parametrize("made", [*RANDOM.values(), *SWIRL.values()], ids=[*RANDOM, *SWIRL])
def test_random_and_bent_transforms_have_no_geometry_and_say_why(tmp_path: Path, made: str) -> None:
    classifier = network(tmp_path, made)
    why = "change at random" if made in RANDOM.values() else "do more to a photograph than"
    assert why in view(classifier, Image.effect_noise((300, 200), 90).convert("RGB")).note


UNEVEN = {
    "gamma": "torch.sqrt(tensor(square(image, 64)))",
    "own mean and spread": "(lambda t: (t - t.mean()) / t.std())(tensor(square(image, 64)))",
    "trimmed": "tensor(square(image.crop(image.point(lambda v: 255 * (v > 60)).getbbox()), 64))",
}


@pytest.mark.parametrize("made", UNEVEN.values(), ids=UNEVEN)
def test_transforms_that_coordinates_cannot_be_read_from_show_the_networks_input(tmp_path: Path, made: str) -> None:
    """What goes by a photograph's own values does to it what it does not do to images of coordinates."""
    path = network_file(tmp_path, "image")
    path.write_text(path.read_text().replace("return tensor(image)", f"return {made}"))
    inner = Image.effect_noise((150, 150), 60).convert("RGB").point(lambda v: max(v, 70))
    seen = view(load(f"{path}:build"), ImageOps.expand(inner, (60, 20, 90, 30), fill=0))
    assert seen.geometry is None
    assert "the network's own input is shown instead" in seen.note
    assert seen.own.size == (64, 64)


def test_an_input_is_shown_in_the_colours_it_was_made_of() -> None:
    """ImageNet's mean and spread are undone: a crop without resizing is the photograph's own pixels."""

    def transforms(image: Image.Image) -> torch.Tensor:
        pixels = torch.from_numpy(np.array(image.crop((10, 5, 42, 37)))).permute(2, 0, 1) / 255
        mean, std = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
        return (pixels - mean[:, None, None]) / std[:, None, None]

    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 4))
    classifier = Classifier(network, transforms, name="cropping")
    image = Image.merge("RGB", [Image.effect_noise((64, 48), spread) for spread in (40, 80, 120)])
    seen = view(classifier, image)
    np.testing.assert_array_equal(np.asarray(seen.own), np.asarray(image.crop((10, 5, 42, 37))))
    np.testing.assert_array_equal(np.asarray(seen.draw((32, 32))), np.asarray(image.crop((10, 5, 42, 37))))
