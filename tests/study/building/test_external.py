"""Studies of explanations that Foretell did not make: frozen with their origin, verified, and refused in words."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from core.errors import ForetellError
from data.sets import scenes
from study.building.build import build, verify
from study.building.check import check
from study.building.plan import make_planner, names_of_trial
from study.building.reopening import reopen
from study.bundle import Bundle
from study.network.methods import describe_missing_method
from study.network.sources import open_sources
from study.plan.config import read_frozen
from tests.study.studies import SMALL

pytestmark = pytest.mark.usefixtures("shared_predictions")

MINE = """
def explain(model, images, targets, *, times: float = 1.0):
    images.requires_grad_()
    model(images.clone()).gather(1, targets[:, None]).sum().backward()
    return (images.grad * images).sum(1) * times
"""


SIZES = {"pool": 96, "standard": 160, "adversarial": 96}


def study_text(method: str, parameters: str = "{}", conditions: str = '"none", "saliency", "random_maps"') -> str:
    text = SMALL.replace("parameters = { samples = 8 }", f'method = "{method}"\nparameters = {parameters}')
    for role in SIZES:
        text = text.replace(f'set = "scenes"\nsplit = "{role}"\nsize = 160', f'set = "folder"\npath = "{role}"')
    return f"conditions = [{conditions}]\n" + text


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three folders of images, which open faster than they are drawn, and a method next to them."""
    folder = tmp_path_factory.mktemp("mine")
    for role, size in SIZES.items():
        images = scenes.load(split=role, size=size)
        for i, label in enumerate(images.labels):
            path = folder / role / images.categories[label] / f"{i:03d}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            images.open(i).save(path)
    (folder / "mine.py").write_text(MINE)
    return folder


@pytest.fixture(scope="module")
def bundle(folder):
    """A study whose heatmaps are of the file."""
    (folder / "mine.toml").write_text(study_text("mine.py:explain", "{ times = 2 }"))
    return build(folder / "mine.toml", folder / "home")


def test_a_study_freezes_the_method_of_a_file(folder, bundle):
    """Oracle: the registered method that the file repeats. Catches a file that is not part of the study's identity."""
    sha256 = hashlib.sha256(MINE.encode()).hexdigest()
    for trial in bundle.manifest.trials:
        facts = trial.saliency
        assert (facts.method, facts.origin) == ("mine.py:explain", {"file": "mine.py", "sha256": sha256})
        assert (facts.parameters, facts.deletion is not None) == ({"times": 2.0}, True)
    (folder / "theirs.toml").write_text(study_text("input_x_gradient"))
    theirs = reopen(build(folder / "theirs.toml", folder / "home"), folder / "home" / "cache")
    ours = reopen(bundle, folder / "home" / "cache")
    for one, other in zip(bundle.manifest.trials, theirs.bundle.manifest.trials, strict=True):
        assert one.source == other.source
        expected = 2 * theirs.target_map(other).map
        np.testing.assert_allclose(
            ours.target_map(one).map, expected, rtol=1e-2, atol=1e-4 * float(expected.abs().max())
        )
        assert other.saliency.origin == {}
        assert one.saliency.deletion == pytest.approx(other.saliency.deletion, rel=1e-2)


def test_a_frozen_study_is_verified_with_and_without_its_file(folder, bundle):
    """Catches a changed method that passes for the frozen one, and a bundle that is worthless without the file."""
    try:
        (folder / "mine.py").write_text(MINE + "# changed\n")
        faults = verify(bundle)
        assert faults[0] == "The heatmaps of 3 trial(s) came from files with other content: mine.py."
        again = build(folder / "mine.toml", folder / "home")
        assert again.study_hash != bundle.study_hash
        (folder / "mine.py").unlink()
        assert verify(bundle) == []
        assert "mine.py is not here, so the heatmaps were not made again." in str(
            describe_missing_method(bundle.manifest)
        )
        asset = next((bundle.folder / "assets").iterdir())
        content = asset.read_bytes()
        asset.write_bytes(b"changed")
        assert "was changed since the study was frozen" in verify(bundle)[0]
        asset.write_bytes(content)
    finally:
        (folder / "mine.py").write_text(MINE)
    assert describe_missing_method(bundle.manifest) is None


@pytest.fixture
def names(folder):
    """The images that a study of a folder of heatmaps needs, by the names of their heatmaps."""
    (folder / "maps").mkdir()
    (folder / "folder.toml").write_text(study_text("heatmaps:maps"))
    sources = open_sources(folder / "folder.toml")
    plan = make_planner(sources, folder / "home" / "cache", lambda *_: None).plan(lambda *_: None)
    return list(
        dict.fromkeys(
            Path(name).with_suffix("").as_posix()
            for trial in plan.trials
            for name, _ in names_of_trial(sources.sets, trial)
        )
    )


def fill(folder, names):
    """Write a heatmap of each image, of its own values."""
    for k, name in enumerate(names):
        path = folder / f"{name}.npy"
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, np.random.default_rng(k).normal(size=(96, 96)).astype(np.float32))


def test_a_study_of_finished_heatmaps(folder, names):
    """Catches a heatmap of another image, a build that starts without those it needs, and one that draws NaN."""
    home = folder / "home"
    fill(folder / "maps", names[1:])
    with pytest.raises(ForetellError, match=rf"^heatmaps:maps has no heatmap of {names[0]}\.png \(1 of {len(names)} "):
        build(folder / "folder.toml", home)
    assert "heatmaps:maps has no heatmap of" in check(folder / "folder.toml", home).obstacles[0]
    fill(folder / "maps", names)
    np.save(folder / "maps" / f"{names[-1]}.npy", np.full((96, 96), np.nan))
    with pytest.raises(ForetellError, match=r"\.npy has NaN or infinite values"):
        build(folder / "folder.toml", home)
    fill(folder / "maps", names)
    bundle = build(folder / "folder.toml", home)
    trial = bundle.manifest.trials[0]
    expected = np.load(folder / "maps" / f"{trial.saliency.origin['file']}")
    np.testing.assert_array_equal(reopen(bundle, home / "cache").target_map(trial).map[0].numpy(), expected)
    assert f"folder/{trial.saliency.origin['file']}" == trial.source.replace(".png", ".npy")
    assert trial.saliency.origin["class"] == "not recorded"
    assert "target class is not recorded" in trial.saliency.warnings[0]
    assert Bundle(bundle.folder).manifest.trials[0].assets.by_condition["random_maps"].target_map


def test_a_package_that_is_gone_is_one_sentence(bundle):
    """Catches a stack trace of `verify` where the package of the study's method is not installed."""
    saliency = {**bundle.manifest.config["saliency"], "method": "brightness"}
    config = {**bundle.manifest.config, "saliency": saliency}
    with pytest.raises(ForetellError, match=r"^Unknown method 'brightness'\. Known: "):
        read_frozen(config)


@pytest.mark.parametrize(
    ("method", "conditions", "sentence"),
    [
        ("heatmaps:maps", '"none", "reinitialised_maps"', "heatmaps:maps has finished ones. Remove that condition"),
        ("heatmaps:gone", '"none"', "There is no folder "),
        ("gone.py:explain", '"none"', "There is no file "),
        ("grad_camm", '"none"', "Unknown method 'grad_camm'. Did you mean 'grad_cam'"),
    ],
)
def test_a_method_that_a_study_cannot_have_is_one_sentence(tmp_path, method, conditions, sentence):
    (tmp_path / "maps").mkdir()
    (tmp_path / "wrong.toml").write_text(study_text(method, conditions=conditions))
    with pytest.raises(ForetellError) as refused:
        open_sources(tmp_path / "wrong.toml")
    assert sentence in str(refused.value)
