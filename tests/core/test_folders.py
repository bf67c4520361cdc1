"""Finished heatmaps in a folder: found by name, read as written, laid where the network looks."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from core.attribution.outside.external import ImageRecord, records_for
from core.attribution.outside.folders import HeatmapFolder
from core.attribution.outside.opening import open_method
from core.class_names import ClassNames
from core.errors import ForetellError
from core.faithfulness.randomisation import cascading_randomisation
from core.loading import imagenet_transforms
from core.network.classifier import Classifier
from core.network.geometry import Geometry
from tests.core.networks import SIDE, awkward, pictures

WHOLE = Geometry((SIDE, SIDE), (SIDE, SIDE), ((1, 0, 0), (0, 1, 0)))
LARGE = Geometry((24, 36), (SIDE, SIDE), ((2, 0, 0), (0, 3, 0)))
CENTRE = Geometry((SIDE, SIDE), (SIDE, SIDE), ((0.5, 0, 3), (0, 0.5, 3)))


def record(*names, geometry=WHOLE):
    return ImageRecord(names, geometry.size, geometry)


def values(seed=0, shape=(SIDE, SIDE)):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def read(folder, records, targets=None, **parameters):
    targets = [0] * len(records) if targets is None else targets
    return HeatmapFolder(folder)(awkward(), pictures(len(records)), targets, records=records, **parameters)


def test_values_are_as_written(tmp_path):
    """Closed form: grey / 255, grey / 65535, and NPY as it is. Catches maps rescaled to their own range."""
    grey = np.random.default_rng(1).integers(0, 256, (SIDE, SIDE)).astype(np.uint8)
    Image.fromarray(grey).save(tmp_path / "a.png")
    Image.fromarray(grey.astype(np.uint16) * 200).save(tmp_path / "b.png")
    np.save(tmp_path / "c.npy", values().astype(np.float64) * 1e3)
    found = read(tmp_path, [record("a.jpg"), record("b"), record("c.JPEG")])
    expected = np.stack([grey / 255, grey.astype(float) * 200 / 65535, values() * 1e3])
    np.testing.assert_allclose(found.map.numpy(), expected, rtol=1e-6)
    assert found.zero == 0
    one = found.certificates[1]
    assert one.method == f"heatmaps:{tmp_path.name}"
    assert one.origin == {
        "folder": tmp_path.name,
        "file": "b.png",
        "sha256": hashlib.sha256((tmp_path / "b.png").read_bytes()).hexdigest(),
        "class": "not recorded",
    }
    assert one.parameters == {"layout": "images", "space": "input", "values": "grey / 65535"}
    assert "target class is not recorded" in one.warnings[0]


def test_the_most_specific_name_is_read(tmp_path):
    """Catches the heatmap of another image of the same name in another folder, or of another image set."""
    for k, name in enumerate(("pool/cat/x", "cat/x", "dog/x", "y", "deep/down/z")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        np.save(tmp_path / f"{name}.npy", np.full((SIDE, SIDE), float(k)))
    asked = [("pool/cat/x.png", "cat/x.png"), ("test/cat/x.png", "cat/x.png"), ("dog/x.jpg",), ("ant/y.jpg",), ("z",)]
    found = read(tmp_path, [record(*names) for names in asked])
    assert found.map[:, 0, 0].tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(ForetellError, match=r"has no heatmap of bee/x\.png, x \(2 of 2 images\)\. Add"):
        read(tmp_path, [record("bee/x.png"), record("x")])


def test_class_folders_name_the_explained_class(tmp_path):
    """Catches a heatmap for one class that is shown for another."""
    for name, value in (("bee", 1.0), ("2", 2.0)):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "x.npy", np.full((SIDE, SIDE), value))
    found = read(tmp_path, [record("x.png")] * 2, [1, 2], layout="classes")
    assert found.map[:, 0, 0].tolist() == [1, 2]
    assert [one.origin["class"] for one in found.certificates] == ["bee", "2"]
    assert found.certificates[0].warnings == ()
    with pytest.raises(
        ForetellError, match=r"has no heatmap for the class that is explained of x\.png \(1 of 1 images"
    ):
        read(tmp_path, [record("x.png")], [0], layout="classes")


def test_class_folders_have_whole_names_with_commas_and_numbers(tmp_path):
    """Catches one class's heatmap shown for another that begins alike or whose index is the other's name."""
    names = ("eye, mild", "eye, severe", "healthy")
    for top, value in (("eye, severe", 1.0), ("eye", 7.0), ("0", 2.0)):
        (tmp_path / top).mkdir()
        np.save(tmp_path / top / "x.npy", np.full((SIDE, SIDE), value))
    folder, numbers = HeatmapFolder(tmp_path), ("5", "0", "1")

    def read_for(categories, k):
        layers = nn.Sequential(nn.Flatten(), nn.Linear(3 * SIDE * SIDE, 3))
        network = Classifier(layers, lambda _: torch.zeros(3, SIDE, SIDE), categories, name="net")
        return HeatmapFolder(tmp_path)(network, pictures(1), [k], records=[record("x.png")], layout="classes")

    assert [read_for(names, k).map[0, 0, 0].item() for k in (0, 1)] == [2, 1]
    assert read_for(numbers, 1).map[0, 0, 0].item() == 2
    with pytest.raises(ForetellError, match="has no heatmap for the class that is explained"):
        read_for(numbers, 0)
    folder.refuse_missing([record("x.png")], "classes", [1], ClassNames(names))
    with pytest.raises(ForetellError, match=r"has no heatmap of x\.png \(healthy\)"):
        folder.refuse_missing([record("x.png")], "classes", [2], ClassNames(names))


def test_a_heatmap_of_the_photograph_is_cut_as_the_photograph_is(tmp_path):
    """Closed form: each input pixel shows 2 x 3 px of this photograph, and of a linear map the mean of its samples."""
    y, x = np.mgrid[:36, :24] + 0.5
    np.save(tmp_path / "x.npy", (2 * x + 3 * y).astype(np.float32))
    found = read(tmp_path, [record("x", geometry=LARGE)])
    rows, columns = np.mgrid[:SIDE, :SIDE] + 0.5
    inner = np.s_[1:-1, 1:-1]  # at the edges of the photograph nothing is known beyond the last pixel's middle
    np.testing.assert_allclose(found.map[0].numpy()[inner], (4 * columns + 9 * rows)[inner], rtol=1e-5)
    assert found.certificates[0].parameters["space"] == "photograph"


def test_a_map_of_the_photograph_lies_as_the_transforms_lay_the_photograph():
    """Independent implementation: torchvision's own resize and crop of the same grey values, not square."""
    y, x = np.mgrid[:300, :500]
    grey = (127 + 60 * np.sin(x / 30) + 60 * np.cos(y / 20)).astype(np.uint8)
    seen = imagenet_transforms(Image.fromarray(grey).convert("RGB"))[0].numpy() * 0.229 + 0.485
    step = 300 / 256
    left = round((round(500 * 256 / 300) - 224) / 2)
    geometry = Geometry((500, 300), (224, 224), ((step, 0, left * step), (0, step, 16 * step)))
    assert np.abs(geometry.resample(grey / 255) - seen).max() < 0.015
    shifted = Geometry((500, 300), (224, 224), ((step, 0, (left + 3) * step), (0, step, 16 * step)))
    assert np.abs(shifted.resample(grey / 255) - seen).max() > 0.03


def test_outside_of_the_photograph_there_is_no_evidence():
    """Closed form: an input twice as wide as the photograph, which lies in its middle; and one that is mirrored."""
    padded = Geometry((4, 4), (4, 8), ((1, 0, -2), (0, 1, 0)))
    np.testing.assert_allclose(padded.resample(np.ones((4, 4))), np.pad(np.ones((4, 4)), ((0, 0), (2, 2))))
    mirrored = Geometry((4, 4), (4, 4), ((-1, 0, 4), (0, 1, 0)))
    columns = np.tile(np.array([0.0, 0, 0, 1]), (4, 1))
    assert mirrored.resample(columns)[:, 0].min() > 0.7
    assert mirrored.resample(columns)[:, 2:].max() == 0


def test_two_meanings_of_one_size_are_told_apart(tmp_path):
    """Catches a heatmap of the whole photograph drawn over its centre, or the other way round."""
    np.save(tmp_path / "x.npy", values())
    one = [record("x", geometry=CENTRE)]
    with pytest.raises(ForetellError, match=r"size of both .* Set the parameter space"):
        read(tmp_path, one)
    np.testing.assert_array_equal(read(tmp_path, one, space="input").map[0].numpy(), values())
    cut = read(tmp_path, one, space="photograph").map[0].numpy()
    assert np.corrcoef(cut.ravel(), CENTRE.resample(values()).ravel())[0, 1] > 0.999


def spoil(folder, name):
    """Write a file of one fault."""
    path = folder / "x.npy"
    if name == "nan":
        np.save(path, np.where(np.eye(SIDE) > 0, np.nan, 1))
    elif name == "size":
        np.save(path, np.ones((7, 9)))
    elif name == "channels":
        np.save(path, np.ones((3, SIDE, SIDE)))
    elif name == "objects":
        np.save(path, np.array([[{}]], dtype=object), allow_pickle=True)
    elif name == "cut":
        path.write_bytes(b"\x93NUMPY\x01")
    elif name == "colour":
        Image.new("RGB", (SIDE, SIDE)).save(folder / "x.png")
    elif name == "no png":
        (folder / "x.png").write_bytes(b"GIF89a")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("nan", r"x\.npy has NaN or infinite values"),
        ("size", r"x\.npy is 9 x 7 px, not 12 x 12 px of the input or 24 x 36 px of the photograph"),
        ("channels", r"x\.npy has shape \(3, 12, 12\) of float64\. A heatmap is an array of numbers \(H, W\)"),
        ("objects", r"x\.npy cannot be read as a NumPy array"),
        ("cut", r"x\.npy cannot be read as a NumPy array"),
        ("colour", r"x\.png is a colour image, and colours have no order"),
        ("no png", r"x\.png cannot be read as a PNG"),
    ],
)
def test_a_file_that_is_no_heatmap_is_named(tmp_path, name, sentence):
    """Catches a broken, coloured or pickled file that becomes a heatmap, or a stack trace."""
    spoil(tmp_path, name)
    with pytest.raises(ForetellError, match=sentence) as refused:
        read(tmp_path, [record("x", geometry=LARGE)])
    assert "\n" not in str(refused.value)


def test_coverage_is_checked_before_anything_is_read(tmp_path):
    """Catches a run of hours that ends at a missing file, and one heatmap shown for two images."""
    for k in range(3):
        (tmp_path / f"{k}.npy").write_bytes(b"not read")
    folder = HeatmapFolder(tmp_path)
    folder.refuse_missing([record(f"{k}.png") for k in range(3)])
    with pytest.raises(ForetellError, match=r"no heatmap of 3, 4, 5 and 4 more \(7 of 10 images\)"):
        folder.refuse_missing([record(str(k)) for k in range(10)])
    with pytest.raises(ForetellError, match=r"has one heatmap, 1\.npy, for several images: a/1, b/1\. Put"):
        folder.refuse_missing([record("a/1"), record("b/1")])


def test_finished_heatmaps_explain_no_changed_network(tmp_path):
    """Catches a randomisation check that compares a file with itself and calls the method insensitive."""
    np.save(tmp_path / "x.npy", values())
    method = open_method(f"heatmaps:{tmp_path}")
    assert records_for(method, ["r"]) == {"records": ["r"]}
    with pytest.raises(ForetellError, match="cannot explain another network or a changed image"):
        cascading_randomisation(awkward(), pictures(1), [0], method)


def test_the_digest_covers_names_and_bytes(tmp_path):
    """Catches a study that keeps its identity while its heatmaps change."""
    np.save(tmp_path / "x.npy", values())
    first = HeatmapFolder(tmp_path).digest
    (tmp_path / "notes.txt").write_text("not a heatmap")
    assert HeatmapFolder(tmp_path).digest == first
    (tmp_path / "x.npy").rename(tmp_path / "y.npy")
    renamed = HeatmapFolder(tmp_path).digest
    np.save(tmp_path / "y.npy", values(1))
    assert len({first, renamed, HeatmapFolder(tmp_path).digest}) == 3


def test_npy_comes_before_its_drawing(tmp_path):
    """The drawing of a heatmap that lies next to its values is not read in their place."""
    np.save(tmp_path / "x.npy", values())
    Image.new("L", (SIDE, SIDE)).save(tmp_path / "x.png")
    assert torch.equal(read(tmp_path, [record("x")]).map[0], torch.from_numpy(values()))
