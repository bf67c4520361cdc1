"""Which images the grids of a study about attributes have, how they are arranged, and what its file may say."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps

import foretell
from core.drawing.views import view
from core.errors import ForetellError
from data.scenes.generator import Scene, render
from data.scenes.interventions import other_contexts
from data.scenes.splits import picture
from study.building.build import verify
from study.building.check import check
from study.building.preview import preview_trial
from study.bundle import Bundle, Manifest
from study.network.sources import open_sources
from study.plan.config import StudyConfig, read
from study.plan.procedure import TO_BUILD
from study.plan.templates import path_of
from tests.study.attribute_studies import ATTRIBUTES, build_attributes

TILE, GAP = 64, 4
"""Of the images of a grid, px: 40% of a display of 160."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return build_attributes(tmp_path_factory.mktemp("attributes"))


def test_grids_are_sorted_by_what_the_network_alone_says(built: Bundle) -> None:
    """The oracle is one forward pass for each image, and the drawing of one image alone, compared with its tile.

    Catches columns in another order, or from the right, a class with too few images, an image in two grids, confidence
    in another class, and the heatmap's grid arranged differently.
    """
    sources = open_sources(built.folder.parents[1] / "attributes.toml")
    images, classifier = sources.sets["standard"], sources.classifier
    bird, fish = (classifier.categories.index(name) for name in ("bird", "fish"))
    ids, seen = list(images.ids), []
    for trial in (*built.manifest.trials, *built.manifest.practice):
        assert trial.attributes is not None
        indices = [ids.index(name) for name in trial.attributes.images]
        assert sorted(images.categories[images.labels[k]] for k in indices) == ["bird"] * 5 + ["fish"] * 5
        seen += indices
        odds = []
        for k in indices:
            with torch.no_grad():
                logits = classifier.logits(classifier.preprocess(images.open(k))[None])[0]
            odds.append(float(logits[fish] - logits[bird]))
        assert odds == sorted(odds)
        assert trial.attributes.confidences == pytest.approx(1 / (1 + np.exp(-np.array(odds))), rel=1e-3)
        with (
            Image.open(built.asset(trial.assets.target)) as grid,
            Image.open(built.asset(trial.assets.target_map)) as maps,
        ):
            assert grid.size == maps.size == (5 * TILE + 4 * GAP, 2 * TILE + GAP)
            for rank, k in enumerate(indices):
                left, top = rank // 2 * (TILE + GAP), rank % 2 * (TILE + GAP)
                tile = np.asarray(grid.convert("RGB").crop((left, top, left + TILE, top + TILE)), dtype=float)
                image = images.open(k)
                alone = np.asarray(
                    view(classifier, image, classifier.preprocess(image)).draw((TILE, TILE)), dtype=float
                )
                assert np.abs(tile - alone).mean() < 12  # webp
                over = np.asarray(maps.convert("RGB").crop((left, top, left + TILE, top + TILE)), dtype=float)
                grey = alone.mean(axis=2)
                assert np.corrcoef(over.mean(axis=2).ravel(), grey.ravel())[0, 1] > 0.5
    assert len({*seen}) == len(seen) == 30
    assert verify(built) == []


def test_what_is_used_is_in_no_order_and_no_name(built: Bundle) -> None:
    """Catches the order of the file, in which the used attributes come first, and a truth lost in the freeze."""
    for trial in built.manifest.trials:
        assert trial.attributes is not None
        assert trial.attributes.names == ("a frame", "its height", "the background", "the shape", "which way it faces")
        assert trial.attributes.used == (False, False, True, True, False)
    assert Manifest.model_validate_json(built.manifest.model_dump_json()).compute_hash() == built.study_hash


def change(**tables: Any) -> dict[str, Any]:
    """Return the study file with other values in its tables; a value that is no table replaces one."""
    content = tomllib.loads(ATTRIBUTES)
    for name, values in tables.items():
        content[name] = {**content.get(name, {}), **values} if isinstance(values, dict) else values
    return content


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({"attributes": {"used": []}}, "attributes.used: the task 'discover' compares attributes"),
        ({"attributes": {"unused": []}}, "List at least one that it does not use"),
        (
            {"attributes": {"unused": ["The  Background"]}},
            "'The  Background' is listed twice|'the background' is listed",
        ),
        ({"attributes": {"unused": ["  "]}}, "has no name that participants can read"),
        ({"attributes": {"unused": ["a\nb"]}}, "has no name that participants can read"),
        (
            {"attributes": {"unused": [f"number {k}" for k in range(11)]}},
            "13 attributes are listed, and a page has room",
        ),
        ({"attributes": {"unused": ["x" * 81]}}, "at most 80 characters"),
        ({"attributes": {"classes": ["bird"]}}, "name the two classes"),
        ({"attributes": {"classes": ["bird", "bird"]}}, "name the two classes"),
        ({"attributes": {"images": 12}}, "multiple of 5"),
        (
            {"conditions": ["none", "examples"]},
            "'examples' cannot go with the task 'discover', because it explains the",
        ),
        ({"conditions": ["none", "concepts"]}, "'concepts' cannot go with the task 'discover'"),
        ({"allocation": {"within": True}}, "allocation.within: the task 'discover' asks about attributes"),
        ({"pacing": {"catch": 1}}, "pacing.catch: the task 'discover'"),
        ({"pacing": {"confidence": True}}, "pacing.confidence: the task 'discover'"),
        ({"blocks": {"training": 1, "test": 1}}, "blocks: "),
        ({"study": {"task": "predict"}}, "attributes: the task 'predict' asks about no attributes"),
    ],
)
def test_a_file_that_cannot_be_asked_is_refused_in_a_sentence(tables: dict[str, Any], said: str) -> None:
    """Catches a study whose judgements mean nothing, which would be found out when its data are there."""
    with pytest.raises(ValueError, match=said):
        StudyConfig.model_validate(change(**tables), context=TO_BUILD)


def test_images_and_classes_that_the_network_does_not_have_are_said_before_the_build(tmp_path: Path) -> None:
    """Catches a build that fails after a while, and one that repeats images."""
    file = tmp_path / "attributes.toml"
    for old, new, said in (
        ("trials = 2", "trials = 4", "attributes: 5 grids of 10 images need 25 of 'bird', and scenes"),
        ('["bird", "fish"]', '["bird", "unicorn"]', "attributes.classes: 'unicorn' is no class of"),
    ):
        file.write_text(ATTRIBUTES.replace(old, new), encoding="utf-8")
        (obstacle,) = check(file, tmp_path).obstacles
        assert said in obstacle
        with pytest.raises(ForetellError, match=said):
            preview_trial(file, tmp_path)
    file.write_text(ATTRIBUTES, encoding="utf-8")
    checked = check(file, tmp_path)
    assert (checked.obstacles, checked.trials, checked.chosen) == ((), 2, ("bird", "fish"))
    trial = preview_trial(file, tmp_path, number=1).trial
    assert trial.attributes is not None
    assert len(trial.attributes.images) == 10


def test_the_template_says_of_its_network_what_interventions_say() -> None:
    """The oracle is the network's mean change in log-odds under do(context), do(object), mirroring and shifting.

    Catches a template that calls an attribute used that changes little, or unused one that changes much.
    """
    assert read(path_of("discover")).attributes.used == ("the background", "the shape of the thing in front")
    network = foretell.load("scenes")
    bird, fish = (network.categories.index(name) for name in ("bird", "fish"))

    def measure(images: list[Image.Image]) -> Any:
        with torch.no_grad():
            logits = network.logits(torch.stack([network.preprocess(image) for image in images]))
        return (logits[:, fish] - logits[:, bird]).numpy()

    drawn = (picture("adversarial", 0, index) for index in range(640))
    scenes: list[Scene] = [scene for scene in drawn if scene.label in ("bird", "fish")]
    before = measure([scene.image for scene in scenes])
    other = {"bird": "fish", "fish": "bird"}
    changed = {
        "background": np.array([measure([other_contexts(scene)[0].image])[0] for scene in scenes]),
        "shape": measure([render(one.seed, category=other[one.label], context=one.context).image for one in scenes]),
        "facing": measure([ImageOps.mirror(scene.image) for scene in scenes]),
        "height": measure([_shift(scene.image, 0, 8) for scene in scenes]),
        "side": measure([_shift(scene.image, 8, 0) for scene in scenes]),
    }
    effects = {name: float(np.abs(after - before).mean() / before.std()) for name, after in changed.items()}
    assert min(effects["background"], effects["shape"]) > 0.5
    assert max(effects["facing"], effects["height"], effects["side"]) < 0.2


def _shift(image: Image.Image, right: int, down: int) -> Image.Image:
    padded = np.pad(np.asarray(image), ((16, 16), (16, 16), (0, 0)), mode="reflect")
    height, width = np.asarray(image).shape[:2]
    return Image.fromarray(padded[16 - down : 16 - down + height, 16 - right : 16 - right + width])
