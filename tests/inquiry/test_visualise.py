"""A unit's pictures as files: what they hold is true, the same request gives the same, a cut leaves no half."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from PIL import Image

from core.errors import ForetellError
from core.units.display import convert_to_colours
from core.units.maco import measure_spectrum, opacity
from core.units.unit import Unit
from data.scenes.generator import render
from inquiry.units import units
from inquiry.units.units import UnitQuery, VisualisationSettings, parse_unit, visualise_files
from study.network.sources import open_classifier
from study.workspace.workspace import ROOT

LAYER = "features.3.1"
QUICK = VisualisationSettings(starts=2, steps=6)
STEM = "scenes.features.3.1-channel-12.fourier"
CHANNEL = UnitQuery("scenes", f"{LAYER}:12", settings=QUICK)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "pictures").mkdir()
    for k in range(4):
        render(k, category="house", context="snow").image.save(tmp_path / "pictures" / f"{k}.png")
    return tmp_path / "pictures"


def answers(inputs, channel=12):
    """The channel's mean over all places, by a hook of the test's own."""
    kept = []
    with open_classifier("scenes", ROOT).exclusive() as module, torch.no_grad():
        handle = module.get_submodule(LAYER).register_forward_hook(lambda _, __, out: kept.append(out.clone()))
        module(torch.from_numpy(inputs))
        handle.remove()
    return kept[0][:, channel].mean((1, 2)).numpy()


def test_the_files_hold_the_inputs_that_reach_what_the_facts_say(folder, tmp_path):
    written = visualise_files(UnitQuery("scenes", f"{LAYER}:12", None, QUICK, str(folder)), tmp_path / "out")
    assert [path.name for path in written.files] == [f"{STEM}.{e}" for e in ("png", "top.png", "npz", "json")]
    facts = json.loads((tmp_path / "out" / f"{STEM}.json").read_text())
    with np.load(tmp_path / "out" / f"{STEM}.npz") as arrays:
        assert arrays["inputs"].shape == (2, 3, 96, 96)
        assert arrays["trace"].shape == (2, 6)
        np.testing.assert_allclose(facts["activations"], answers(arrays["inputs"]), rtol=1e-4)
        assert arrays["top_projections"].shape == (4, 3, 96, 96)
        assert arrays["top_boxes"].tolist() == [one["field"] for one in facts["top"]["images"]]
    assert facts["fingerprint"] == open_classifier("scenes", ROOT).fingerprint
    assert facts["unit"] == {"channel": 12, "layer": LAYER, "row": None, "column": None}
    assert facts["parameters"] == {"how": "fourier", "starts": 2, "steps": 6, "seed": 0}
    assert {"torch", "numpy"} <= facts["versions"].keys()
    assert sorted(one["id"] for one in facts["top"]["images"]) == ["0", "1", "2", "3"]
    assert facts["top"]["warnings"] == list(written.warnings)


def test_the_sheet_shows_every_start(tmp_path):
    """Each picture is found again on the sheet where it belongs, to the pixel."""
    visualise_files(CHANNEL, tmp_path)
    classifier = open_classifier("scenes", ROOT)
    made = QUICK.make(classifier, Unit(12, LAYER))
    sheet = np.asarray(Image.open(tmp_path / f"{STEM}.png"))
    for k, pixels in enumerate(made.shown.numpy()):
        expected = np.asarray(Image.fromarray(pixels).resize((224, 224), Image.Resampling.LANCZOS))
        x = 16 + k * (224 + 16)
        at = [y for y in range(sheet.shape[0] - 224) if np.array_equal(sheet[y : y + 224, x : x + 224], expected)]
        assert len(at) == 1, k


def test_maco_measures_the_named_folder_and_its_sheet_is_transparent_where_little_mattered(folder, tmp_path):
    """Catches the spectrum of other images, and an opacity that is measured but not drawn."""
    settings = VisualisationSettings("maco", starts=1, steps=4)
    seen = []
    written = visualise_files(
        UnitQuery("scenes", f"{LAYER}:12", None, settings, str(folder)), tmp_path, lambda *report: seen.append(report)
    )
    assert written.files[0].name == "scenes.features.3.1-channel-12.maco.png"
    assert (4, 4, "reading images") in seen
    classifier = open_classifier("scenes", ROOT)
    opened = [classifier.preprocess(Image.open(path).convert("RGB")) for path in sorted(folder.iterdir())]
    with np.load(written.files[2]) as arrays:
        measured = measure_spectrum(classifier, [torch.stack(opened)]).abs().numpy()
        np.testing.assert_allclose(arrays["magnitude"], measured, rtol=1e-5, atol=1e-5)
        assert arrays["importance"].shape == (1, 96, 96)
        opaque = (255 * opacity(torch.from_numpy(arrays["importance"]))[0]).round().to(torch.uint8).numpy()
        colours = convert_to_colours(classifier, torch.from_numpy(arrays["inputs"]))[0].numpy()
    drawn = Image.fromarray(np.dstack([colours, opaque])).resize((224, 224), Image.Resampling.LANCZOS)
    expected = Image.new("RGB", drawn.size, "white")
    expected.paste(drawn, mask=drawn)
    sheet, wanted = np.asarray(Image.open(written.files[0]).convert("RGB")), np.asarray(expected)
    ats = [y for y in range(sheet.shape[0] - 224) if np.array_equal(sheet[y : y + 224, 16:240], wanted)]
    assert len(ats) == 1


def test_the_same_request_gives_the_same_files_and_another_seed_others(tmp_path):
    def inputs(name, seed):
        request = UnitQuery("scenes", None, "fish", VisualisationSettings(starts=1, steps=3, seed=seed))
        (npz,) = (p for p in visualise_files(request, tmp_path / name).files if p.suffix == ".npz")
        return {path.name: path.read_bytes() for path in npz.parent.iterdir()}, np.load(npz)["inputs"]

    (files, first), (again, _), (_, other) = inputs("a", 0), inputs("b", 0), inputs("c", 1)
    assert files == again
    assert not np.array_equal(first, other)


def test_a_class_by_name_or_index_is_the_same_unit(tmp_path):
    """And its files tell classes of one name apart."""
    categories = open_classifier("scenes", ROOT).categories
    names = {
        visualise_files(UnitQuery("scenes", None, given, VisualisationSettings(starts=1, steps=1)), tmp_path)
        .files[0]
        .name
        for given in ("fish", str(categories.index("fish")))
    }
    assert names == {f"scenes.class-fish-{categories.index('fish')}.fourier.png"}


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("features.3.1:12", Unit(12, "features.3.1")),
        ("head:0", Unit(0, "head")),
        ("features.3.1:12:5,7", Unit(12, "features.3.1", 5, 7)),
    ],
)
def test_a_unit_is_read_as_it_is_written(text, unit):
    assert parse_unit(text) == unit


@pytest.mark.parametrize(
    "text", ["", "head", "head:", ":3", "head:-1", "head:x", "head:1:2", "head:1:2,", "head:1:2,3,4"]
)
def test_what_is_no_unit_is_refused_with_the_form(text):
    with pytest.raises(ForetellError, match="is not of the form LAYER:CHANNEL or LAYER:CHANNEL:ROW,COLUMN"):
        parse_unit(text)


@pytest.mark.parametrize(
    ("request_", "sentence"),
    [
        (UnitQuery("scenes"), r"^Give one unit: --unit LAYER:CHANNEL or .*, or --class NAME\.$"),
        (UnitQuery("scenes", "head:0", "fish"), "^Give one unit"),
        (UnitQuery("scenes", "feature.3.1:0"), r"no layer 'feature.3.1'\. Did you mean 'features\.3\.1'"),
        (UnitQuery("scenes", "features.3.1:96"), "has channels 0 to 95, not 96"),
        (UnitQuery("scenes", "features.3.1:0:12,0"), r"has places \(0, 0\) to \(11, 11\), not \(12, 0\)"),
        (UnitQuery("scenes", None, "fsh"), "no class 'fsh'. Did you mean fish"),
        (UnitQuery("scenes", None, "16"), "not a class of scenes: it has classes 0 to 15"),
        (UnitQuery("scenes", None, "top"), r"no class 'top'\. Give the name or the index of a class\.$"),
        (
            UnitQuery("scenes", "head:0", settings=VisualisationSettings("waves")),
            "--how 'waves' is not one of fourier, maco, pixels",
        ),
        (
            UnitQuery("scenes", "head:0", settings=VisualisationSettings("maco")),
            "^--how maco measures the spectrum of images: name a folder of them with --images, or",
        ),
        (
            UnitQuery("scenes", "head:0", settings=VisualisationSettings(starts=0)),
            "starts=0, steps=128: an image needs at least 1",
        ),
        (UnitQuery("scenes", "head:0", images="nowhere"), "There is no image nowhere"),
    ],
)
def test_wrong_input_is_one_sentence_and_writes_nothing(request_, sentence, tmp_path):
    with pytest.raises(ForetellError, match=sentence):
        visualise_files(request_, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_unreadable_image_stops_it_before_anything_long_is_done(folder, tmp_path):
    (folder / "2.png").write_bytes(b"not a picture")
    seen = []
    with pytest.raises(ForetellError, match=r"2\.png cannot be read as an image"):
        visualise_files(
            UnitQuery("scenes", "head:0", None, QUICK, str(folder)),
            tmp_path / "out",
            lambda *report: seen.append(report),
        )
    assert not any(what == "steps" for _, _, what in seen)


def test_cut_off_while_writing_no_facts_stand_beside_files_they_are_not_of(folder, tmp_path, monkeypatch):
    """Over files of another seed and with pictures: what is left has neither facts nor another one's sheet."""
    out, writing = tmp_path / "out", units.write_whole
    visualise_files(UnitQuery("scenes", f"{LAYER}:12", None, QUICK, str(folder)), out)

    def cut_off(path, content):
        if path.suffix == ".npz":
            raise KeyboardInterrupt
        return writing(path, content)

    monkeypatch.setattr(units, "write_whole", cut_off)
    with pytest.raises(KeyboardInterrupt):
        visualise_files(UnitQuery("scenes", f"{LAYER}:12", None, VisualisationSettings(starts=1, steps=2, seed=5)), out)
    assert sorted(path.name for path in out.iterdir()) == [f"{STEM}.npz", f"{STEM}.png"]
