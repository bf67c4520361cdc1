"""Which units, references and images a study about units has, and how they are drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image, ImageStat

from core.errors import ForetellError
from core.network.classifier import Classifier
from data.types import ImageSet
from study.building.build import build, verify
from study.building.check import check
from study.building.drawing import find_size
from study.building.preview import preview_trial
from study.bundle import Bundle, Trial
from study.network.sources import open_sources
from tests.study.unit_studies import UNITS, build_units


@pytest.fixture(scope="module")
def units(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return build_units(tmp_path_factory.mktemp("units"))


def pass_slowly(classifier: Classifier, inputs: torch.Tensor, layer: str) -> NDArray[np.float64]:
    """Activations (K,) of a layer for one input (C, H, W), with PyTorch alone, averaged over places in NumPy."""
    kept: list[torch.Tensor] = []
    with classifier.exclusive() as module, torch.no_grad():
        handle = module.get_submodule(layer).register_forward_hook(lambda _, __, out: kept.append(out))
        module(inputs[None])
        handle.remove()
    return kept[0][0].double().numpy().reshape(kept[0].shape[1], -1).mean(axis=1)


def activate_slowly(classifier: Classifier, images: ImageSet, layer: str) -> NDArray[np.float64]:
    """The oracle: one image at a time."""
    inputs = (classifier.preprocess(images.open(index)) for index in range(len(images)))
    return np.array([pass_slowly(classifier, one, layer) for one in inputs])


def test_references_and_images_are_those_of_a_slow_search(units: Bundle) -> None:
    """Catches references of another unit or the wrong end, a right side that is wrong, and a unit asked about twice."""
    sources = open_sources(units.folder.parents[1] / "units.toml")
    pool, standard = (
        activate_slowly(sources.classifier, sources.sets[role], "features.4") for role in ("pool", "standard")
    )
    ids = {role: list(sources.sets[role].ids) for role in ("pool", "standard")}
    manifest = units.manifest
    for trial in (*manifest.trials, *manifest.practice):
        assert trial.unit is not None
        own, shown = pool[:, trial.unit.channel], standard[:, trial.unit.channel]
        ranked = np.sort(own)
        for names, expected in ((trial.unit.least, ranked[:4]), (trial.unit.most, ranked[::-1][:4])):
            assert own[[ids["pool"].index(name) for name in names]] == pytest.approx(expected, abs=1e-5)
        left, right = (shown[ids["standard"].index(example.source)] for example in trial.assets.examples)
        assert trial.unit.activations == pytest.approx((left, right), rel=1e-4, abs=1e-6)
        assert trial.target == ("left" if left > right else "right")
        assert trial.unit.gap == pytest.approx(abs(left - right) / own.std(), rel=1e-3)
        ends = np.sort(shown)
        assert max(left, right) >= ends[-2] - 1e-6
        assert min(left, right) <= ends[1] + 1e-6
    asked = [trial.category for trial in manifest.trials]
    assert sorted(asked.count(name) for name in set(asked)) == [2, 2, 2]
    assert manifest.practice[0].category not in asked
    assert [trial.target for trial in manifest.trials].count("right") == 3


def test_what_is_drawn_is_what_is_named(units: Bundle) -> None:
    """The oracle is the image of that name, resized by Pillow alone. Catches swapped sides and a mixed-up grid."""
    sources = open_sources(units.folder.parents[1] / "units.toml")

    def differ(drawn: Image.Image, role: str, name: str) -> float:
        images = sources.sets[role]
        alone = images.open(list(images.ids).index(name)).convert("RGB").resize(drawn.size, Image.Resampling.BICUBIC)
        return float(np.abs(np.asarray(drawn, float) - np.asarray(alone, float)).mean())

    trial = units.manifest.trials[0]
    assert trial.unit is not None
    names = [example.source for example in trial.assets.examples]
    for example in trial.assets.examples:
        drawn = Image.open(units.asset(example.image)).convert("RGB")
        assert drawn.size == find_size(sources) == (96, 96)
        others = [name for name in names if name != example.source]
        assert differ(drawn, "standard", example.source) < 6 < differ(drawn, "standard", others[0])
    for asset, references in ((trial.assets.target, trial.unit.least), (trial.assets.target_map, trial.unit.most)):
        grid = Image.open(units.asset(asset)).convert("RGB")
        assert grid.size == (96, 96)
        assert ImageStat.Stat(grid.crop((46, 0, 50, 96))).mean == pytest.approx([255] * 3, abs=20)
        for place, name in enumerate(references):
            x, y = 50 * (place % 2), 50 * (place // 2)
            tile = grid.crop((x, y, x + 46, y + 46))
            assert min(references, key=lambda other, tile=tile: differ(tile, "pool", other)) == name


def test_a_study_about_units_is_the_same_again(units: Bundle, tmp_path: Path) -> None:
    """Catches a draw that depends on more than the seed, a changed image that verify accepts, and another seed's trials
    that are the same."""
    assert verify(units) == []
    again = build_units(tmp_path / "again")
    assert again.study_hash == units.study_hash
    other = build_units(tmp_path / "other", UNITS.replace("seed = 7", "seed = 8"))
    assert {trial.category for trial in other.manifest.trials} != {trial.category for trial in units.manifest.trials}
    asset = other.asset(other.manifest.trials[0].assets.target)
    asset.write_bytes(asset.read_bytes() + b"0")
    assert verify(other)[0].startswith(f"{asset} was changed")


@pytest.mark.parametrize("layer", ["head", "features.1.0"])
def test_units_of_any_layer(tmp_path: Path, layer: str) -> None:
    """Of the logits, the references of a class are the images that the network gives it most: planted evidence.

    Catches a layer without places, and one before a ReLU.
    """
    bundle = build_units(tmp_path, UNITS.replace("features.4", layer))
    assert {trial.unit.layer for trial in bundle.manifest.trials if trial.unit} == {layer}
    if layer != "head":
        return
    sources = open_sources(tmp_path / "units.toml")
    images, names = sources.sets["pool"], sources.classifier.categories
    for trial in bundle.manifest.trials:
        assert trial.unit is not None
        seen = [images.categories[images.labels[list(images.ids).index(name)]] for name in trial.unit.most]
        assert names[trial.unit.channel] in seen


def test_occlusions_are_those_of_a_slow_search(tmp_path: Path) -> None:
    """The oracle covers one place after the other with NumPy and PyTorch alone, and finds the lowest and the highest.

    Catches a square over another place than the one that is drawn, sides that are swapped, an image that does not
    activate the unit most, and one image with two squares of which one is missing.
    """
    bundle = build_units(tmp_path, UNITS.replace("unit_choice", "unit_counterfactual"))
    sources = open_sources(tmp_path / "units.toml")
    classifier, images = sources.classifier, sources.sets["standard"]
    activations = activate_slowly(classifier, images, "features.4")
    side, height = round(0.4 * classifier.input_shape[2]), classifier.input_shape[1]
    starts = [round(k * (height - side) / 6) for k in range(7)]
    for trial in bundle.manifest.trials[:2]:
        assert trial.unit is not None
        names = [example.source for example in trial.assets.examples]
        index = list(images.ids).index(names[0])
        own = activations[:, trial.unit.channel]
        assert names[0] == names[1]
        assert trial.source == f"scenes/standard/{names[0]}"
        assert own[index] >= np.sort(own)[-2] - 1e-6
        measured = {}
        for top in starts:
            for left in starts:
                inputs = classifier.preprocess(images.open(index)).clone()
                inputs[:, top : top + side, left : left + side] = classifier.fill("mean")[:, :1, :1]
                measured[top, left] = float(pass_slowly(classifier, inputs, "features.4")[trial.unit.channel])
        assert sorted(trial.unit.activations) == pytest.approx(
            [min(measured.values()), max(measured.values())], rel=1e-3, abs=1e-5
        )
        low, high = (min(measured, key=measured.get), max(measured, key=measured.get))  # type: ignore[arg-type]
        more = 0 if trial.target == "left" else 1
        plain = np.asarray(images.open(index).convert("RGB").resize((96, 96), Image.Resampling.BICUBIC), float)
        for example, place in zip(trial.assets.examples[:: 1 if more else -1], (low, high), strict=True):
            drawn = np.asarray(Image.open(bundle.asset(example.image)).convert("RGB"), float)
            top, left = (round(start * 96 / height) for start in place)
            end = round(0.4 * 96)
            inside = np.zeros((96, 96), bool)
            inside[top + 2 : top + end - 2, left + 2 : left + end - 2] = True
            outside = np.ones((96, 96), bool)
            outside[max(0, top - 2) : top + end + 2, max(0, left - 2) : left + end + 2] = False
            assert np.abs(drawn[inside] - classifier.mean_colour).mean() < 6
            assert np.abs(drawn[outside] - plain[outside]).mean() < 6


def test_one_set_for_both_shows_no_reference_twice(tmp_path: Path) -> None:
    """Catches an image to choose that is among its own references, which gives the response away."""
    text = UNITS.replace('split = "standard"\nsize = 40', 'split = "pool"\nsize = 48')
    trials = build_units(tmp_path, text).manifest.trials
    assert all(not _list_shown(trial) & _list_references(trial) for trial in trials)


def _list_shown(trial: Trial) -> set[str]:
    return {example.source for example in trial.assets.examples}


def _list_references(trial: Trial) -> set[str]:
    assert trial.unit is not None
    return {*trial.unit.least, *trial.unit.most}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('"features.4"', '"feature.4"'), "scenes has no layer 'feature.4'. Did you mean 'features.4'"),
        (("channels = 3", "channels = [1, 4000]"), "Layer 'features.4' has channels 0 to 111, not 4000."),
        (("channels = 3", "channels = 113"), "units.channels is 113, but .* of the 112 units of layer 'features.4'"),
        (("size = 40", "size = 3"), "0 of the 112 .* a unit needs 8 images of the pool and 4 standard images, half of"),
        (("references = 4", "references = 5"), r"units.references: must be 1, 4 or 9 \(it is 5\)"),
        (('layer = "features.4"', ""), "units.layer: the task 'unit_choice' needs the layer whose units it asks about"),
        (("channels = 3", "channels = [2, 2]"), "name at least one channel, each once"),
        (('["none", "examples"]', '["none", "both"]'), "'both' cannot go with the task 'unit_choice', because it expl"),
        (("[units]", '[saliency]\nmethod = "grad_cam"\n[units]'), "saliency: the task 'unit_choice' asks about units"),
        (("practice = 1", "practice = 1\ncategories = 4"), "trials: the task 'unit_choice' asks about units"),
        (('task = "unit_choice"', ""), "units: the task 'predict' asks about no units. Remove the section."),
    ],
)
def test_wrong_units_are_refused_in_words(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    """Catches a wrong setting that ends in a traceback, or in a study about something else."""
    assert change[0] in UNITS
    file = tmp_path / "units.toml"
    text = UNITS.replace(*change)
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ForetellError, match=said):
        build(file, tmp_path)


def test_a_check_and_a_preview_are_of_the_same_trials(units: Bundle, tmp_path: Path) -> None:
    """Catches a check that opens Design on a study that cannot be built, and a preview of other units."""
    file = tmp_path / "units.toml"
    file.write_text(UNITS, encoding="utf-8")
    checked = check(file, tmp_path)
    assert (checked.obstacles, checked.trials) == ((), 6)
    assert checked.notes == ("Planned: 6 trials and 1 for practice.",)
    assert set(checked.chosen) == {trial.category for trial in units.manifest.trials}
    preview = preview_trial(file, tmp_path, number=2)
    assert preview.trial == units.manifest.trials[2]
    assert preview.asset(preview.trial.assets.target_map).is_file()
    file.write_text(UNITS.replace("channels = 3", "channels = 300"), encoding="utf-8")
    assert "units.channels is 300" in check(file, tmp_path).obstacles[0]


DEAD = """
import torch
from torch import nn

CATEGORIES = ["one", "two"]


def build():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(3, 3, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 2))
    with torch.no_grad():
        network[0].weight[0], network[0].bias[0] = 0, -1
        network[0].weight[1], network[0].bias[1] = 0, 1
    return network.eval()
"""


def test_a_unit_that_is_the_same_for_all_images_is_left_out(tmp_path: Path) -> None:
    """Of three units, the first is never active and the second is always as active: planted in a network of our own.

    Catches a question without a right response, and one whose references are drawn from equal activations.
    """
    (tmp_path / "dead.py").write_text(DEAD, encoding="utf-8")
    text = UNITS.replace('model = "scenes"', 'model = "dead.py:build"').replace('"features.4"', '"1"')
    alone = text.replace("channels = 3", "channels = 1").replace("practice = 1", "practice = 0")
    bundle = build_units(tmp_path, alone)
    assert {trial.category for trial in bundle.manifest.trials} == {"1:2"}
    for channels in ("2", "[1]", "[0, 2]"):
        with pytest.raises(ForetellError, match=r"1 of the 3 units|unit [01] of layer '1' does not tell enough images"):
            build_units(tmp_path, alone.replace("channels = 1", f"channels = {channels}"))
