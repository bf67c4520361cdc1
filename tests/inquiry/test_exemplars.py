"""The pictures found for a unit: which, where in them, what is said of them, and how they are drawn."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from core.errors import ForetellError
from core.network.classifier import Classifier
from core.units.unit import Unit
from data.scenes.generator import render
from inquiry.units import unit_sheets
from inquiry.units.exemplars import ImageCollection, exemplars, open_images
from inquiry.units.unit_sheets import CELL, GAP, Tile, drop_projections
from study.network.sources import open_classifier
from study.workspace.workspace import ROOT

LAYER = "features.3.1"


def tensor_of(image):
    return torch.from_numpy(np.asarray(image.resize((16, 16)), dtype=np.float32) / 255).permute(2, 0, 1).contiguous()


def small(*layers, channels=4):
    """Layers, then the mean over all places and a linear layer; the weights are drawn."""
    network = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 2))
    draws = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=draws))
    return Classifier(network, tensor_of, name="small")


def noise(count=12):
    rng = np.random.default_rng(4)
    images = [Image.fromarray(rng.integers(0, 256, (16, 16, 3), dtype=np.uint8)) for _ in range(count)]
    return ImageCollection("noise", tuple(map(str, range(count))), images.__getitem__)


@pytest.fixture(scope="module")
def scenes():
    return open_classifier("scenes", ROOT)


@pytest.fixture(scope="module")
def pictures():
    names = ("fish", "boat", "bird", "house")
    images = [render(k, category=names[k % 4], context="sea").image for k in range(40)]
    return ImageCollection("forty", tuple(map(str, range(40))), images.__getitem__)


def maps(classifier, layer, image):
    """The layer's output for one picture, by a hook of the test's own."""
    kept = []
    with classifier.exclusive() as module, torch.no_grad():
        handle = module.get_submodule(layer).register_forward_hook(lambda _, __, out: kept.append(out[0].clone()))
        module(classifier.preprocess(image)[None])
        handle.remove()
    return kept[0]


@pytest.mark.parametrize("unit", [Unit(4), Unit(12, LAYER), Unit(12, LAYER, 5, 7), Unit(9, "flatten")], ids=str)
def test_the_nine_are_those_of_a_search_one_by_one(scenes, pictures, unit):
    """Against every picture alone and sorted: more pictures than are opened at a time."""

    def answer(i):
        if not unit.layer:
            return float(scenes.logits(scenes.preprocess(pictures.open(i))[None])[0, unit.channel])
        found = maps(scenes, unit.layer, pictures.open(i))[unit.channel]
        return float(found.max() if unit.row is None else found[unit.row, unit.column])

    answers = [answer(i) for i in range(40)]
    expected = sorted(range(40), key=lambda i: -answers[i])[:9]
    found = exemplars(scenes, unit, pictures)
    assert [one.index for one in found.exemplars] == expected
    np.testing.assert_allclose([one.activation for one in found.exemplars], [answers[i] for i in expected], rtol=1e-4)
    assert [one.id for one in found.exemplars] == [str(i) for i in expected]


def test_the_part_shown_is_all_that_the_unit_looks_at(scenes, pictures):
    """What lies outside the box can be anything, what lies inside cannot."""
    one = exemplars(scenes, Unit(12, LAYER), pictures, count=1).exemplars[0]
    assert one.place is not None
    (row, column), (top, left, bottom, right) = one.place, one.box
    pixels = np.asarray(pictures.open(one.index))
    assert bottom - top < 96 or right - left < 96
    outside, inside = np.zeros_like(pixels), pixels.copy()
    outside[top:bottom, left:right] = pixels[top:bottom, left:right]
    inside[top:bottom, left:right] = 0
    answers = [float(maps(scenes, LAYER, Image.fromarray(p))[12, row, column]) for p in (pixels, outside, inside)]
    assert answers[0] == pytest.approx(one.activation, rel=1e-4)
    assert answers[1] == pytest.approx(answers[0], rel=1e-4)
    assert abs(answers[2] - answers[0]) > 0.1


def test_a_unit_that_answers_nothing_is_said_to(pictures):
    classifier = small(nn.Conv2d(3, 4, 3), nn.ReLU())
    with torch.no_grad(), classifier.exclusive() as module:
        module[0].bias[2] = -1e4
    found = exemplars(classifier, Unit(2, "1"), noise())
    assert found.warnings[0].startswith("The unit's activation is 0 for all of these images alike")
    assert not any("alike" in said for said in exemplars(classifier, Unit(2, "0"), noise()).warnings)


@pytest.mark.parametrize(("pooling", "blind"), [(nn.AvgPool2d(2), True), (nn.MaxPool2d(2), False)])
def test_a_projection_that_knows_nothing_of_the_image_is_said_to_be_one(pooling, blind):
    """Without max pooling all projections are the weights' own (Springenberg et al. 2014, section 3.4)."""
    classifier = small(nn.Conv2d(3, 4, 3), nn.ReLU(), pooling, nn.Conv2d(4, 4, 3))
    found = exemplars(classifier, Unit(1, "3", 2, 2), noise(), count=3)
    first, second = (one.projection for one in found.exemplars[:2])
    assert torch.equal(first, second) == blind
    assert any(said.startswith("The projection is the same") for said in found.warnings) == blind


def test_where_there_can_be_no_projection_the_images_are_found_all_the_same():
    """A compiled part hides its ReLUs from a deconvnet."""
    inner = torch.jit.script(nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()))
    found = exemplars(small(inner, nn.Conv2d(4, 4, 3)), Unit(1, "1"), noise(), count=2)
    assert [one.projection for one in found.exemplars] == [None, None]
    assert len(found.warnings) == 1
    assert "a deconvnet cannot change the ReLUs" in found.warnings[0]
    assert len(unit_sheets.tile_exemplars(found)) == 2


def test_transforms_that_leave_the_size_as_it_is_are_refused_before_the_search(pictures):
    """A search of all images that ended in an unexpected error of torch."""
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2))
    whole = lambda image: torch.tensor(np.asarray(image)).permute(2, 0, 1).float()  # noqa: E731
    classifier = Classifier(network, whole, name="unsized")
    with pytest.raises(ForetellError, match=r"unsized takes images \(B, 3, 256, 256\), not \(1, 3, 96, 96\)"):
        exemplars(classifier, Unit(1, "0"), pictures)


def test_progress_only_goes_forward_in_each_of_two_rounds(scenes, pictures):
    seen = []
    exemplars(scenes, Unit(12, LAYER), pictures, progress=lambda *report: seen.append(report))
    for what, total in (("reading images", 40), ("projections", 9)):
        done = [d for d, t, w in seen if w == what and t == total]
        assert done == sorted(done)
        assert done[-1] == total


def test_a_folder_is_all_its_images_and_an_unreadable_one_is_named(tmp_path):
    for name in ("a/one.png", "b/two.png", "three.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        noise().open(0).save(tmp_path / name)
    assert sorted(open_images(str(tmp_path)).ids) == ["a/one", "b/two", "three"]
    (tmp_path / "three.png").write_bytes(b"not a picture")
    with pytest.raises(ForetellError, match=r"three\.png cannot be read as an image"):
        exemplars(small(nn.Conv2d(3, 4, 3)), Unit(0), open_images(str(tmp_path)))


def test_the_box_is_drawn_around_the_part_and_a_projection_of_nothing_is_grey(scenes, pictures):
    """Places on the tile worked out by hand: 96 px of the network's input on a cell."""
    found = exemplars(scenes, Unit(12, LAYER), pictures, count=1)
    (one,) = found.exemplars
    (tile,) = unit_sheets.tile_exemplars(found)
    cell, gap = unit_sheets.CELL, unit_sheets.GAP
    assert tile.image.size == (3 * cell + 2 * gap, cell)
    top, left, _, _ = one.box
    drawn = np.asarray(tile.image.convert("RGB"))
    assert tuple(drawn[round(top * cell / 96) + 1, round(left * cell / 96) + 1]) == unit_sheets.FIELD
    assert np.asarray(tile.image)[:, cell : cell + gap, 3].max() == 0
    assert one.projection is not None
    one.projection.zero_()
    (blank,) = unit_sheets.tile_exemplars(found)
    assert (np.asarray(blank.image.convert("RGB"))[:, -cell:] == 128).all()


def test_words_stay_under_their_own_image():
    """A path that is longer than the tile loses its middle; nothing is drawn beside it."""
    tile = unit_sheets.Tile(Image.new("RGB", (120, 60), (1, 2, 3)), "a/very/long/path/" * 9 + "end.png")
    drawn = np.asarray(unit_sheets.sheet(["title"], [tile, unit_sheets.Tile(tile.image, "")], 2))
    margin = unit_sheets.MARGIN
    under = drawn[-margin - unit_sheets.SIZE :, margin + 120 + 1 :]
    assert (drawn[-margin - unit_sheets.SIZE :, margin : margin + 120] < 200).any()
    assert (under == 255).all()


def test_a_projection_that_is_the_same_for_all_is_kept_once() -> None:
    """Catches a cell of an image that is cut off with the projection, and the first tile without it."""
    strips = [Tile(Image.new("RGBA", (CELL + GAP + CELL, CELL), colour), colour) for colour in ("red", "blue")]
    first, second = drop_projections(strips)
    assert first == strips[0]
    assert second.image.size == (CELL, CELL)
    assert second.words == "blue"
