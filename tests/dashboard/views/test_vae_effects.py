"""Effects of concepts by VAEs in Explore, against the command's own estimate; and the same refusals."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from dashboard.explore.units import concept_jobs, vae_effects
from dashboard.explore.units.concepts import format_concept
from dashboard.explore.units.vae_effects import WAYS, list_recorded, list_ways, make_vae_task
from dashboard.shared import cache
from inquiry.concepts.concept_vae import VaeQuery, estimate_by_vae
from study.network.sources import open_set
from study.plan.config import ImageSource
from tests.dashboard.conftest import gallery_of
from tests.dashboard.views.conftest import settled
from tests.dashboard.views.test_units import QUICK

N = 160
MODEL = """
import numpy as np
import torch

CATEGORIES = ["bright", "dark"]


def transforms(image):
    return torch.from_numpy(np.array(image.convert("RGB").resize((12, 12)))).permute(2, 0, 1).float() / 255


class Planted(torch.nn.Module):
    def forward(self, x):
        red, green, blue = x.mean((2, 3)).T
        said = 8 * (red - green) + 4 * (blue - 0.5)
        return torch.stack([said, torch.zeros_like(said)], 1)


def build():
    return Planted()
"""
"""It says bright where blue is strong, and more so where red is stronger than green."""
PAGE = {"view": "Classes and units", "vae": "true", **QUICK}
LINK = {"classifier": "models/planted.py", "unit.class": "bright", "source": "red", **PAGE}
SMALL = {"vae.trainings": "3", "vae.epochs": "20", "vae.latent": "2"}


@pytest.fixture
def world(opened, workspace: Path):
    """Images, red in nine of ten bright ones, in two sets of the workspace by colour; and a network that reads both."""
    (workspace / "models").mkdir()
    (workspace / "models" / "planted.py").write_text(MODEL)
    rng = np.random.default_rng(3)
    for k in range(N):
        bright = k % 2 == 0
        red = bool(rng.random() < (0.9 if bright else 0.1))
        light = float(np.clip((0.75 if bright else 0.25) + 0.05 * rng.normal(), 0, 1))
        folder = workspace / "pictures" / ("red" if red else "green") / ("bright" if bright else "dark")
        folder.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (12, 12), (26 * red, 26 * (not red), round(255 * light))).save(folder / f"{k:03}.png")
    return opened


def test_the_page_shows_the_estimate_of_the_command(world, workspace: Path) -> None:
    """Against the command's function. Catches folders that are exchanged, a setting or a class that does not arrive."""
    app = settled(world(**LINK, **SMALL, **{"vae.folder": "red", "vae.others": "green"}))
    assert not app.error, [error.value for error in app.error]
    classifier, folder = cache.load_classifier("models/planted.py"), workspace / "pictures"
    paths = {name: str(folder / name) for name in ("red", "green")}
    given = {name.partition(".")[2]: int(value) for name, value in SMALL.items()}
    query = VaeQuery("planted", "bright", (paths["red"],), paths["green"], **given)
    images = open_set(ImageSource.model_validate({"set": "folder", "path": "red"}), folder)
    row = estimate_by_vae(classifier, query, images).table.iloc[0]
    (shown,) = (one.value for one in app.dataframe if "drawn from" in one.value)
    ways = ["effect", "decoded", "reencoded", "observed"]
    assert shown["drawn from"].tolist() == [WAYS[way] for way in ways]
    np.testing.assert_allclose(shown["effect"], [row[way] for way in ways], atol=1e-5)
    np.testing.assert_allclose(shown["low"], [row[f"{way}_low"] for way in ways], atol=1e-5)
    np.testing.assert_allclose(shown["high"], [row[f"{way}_high"] for way in ways], atol=1e-5)
    (caption,) = (one.value for one in app.caption if "Reconstructions" in one.value)
    assert f"keep the prediction of {row['kept']:.0%} of the held-out images (at least {row['kept_low']:.0%}" in caption
    assert f"from {N} images" in caption
    warned = " ".join(one.value for one in app.warning)
    assert (not row["warning"]) or row["warning"].split(":")[0] in warned


def test_reconstructions_that_change_the_prediction_are_refused(world) -> None:
    """Catches numbers that are shown in spite of a VAE that has learned nothing, and a page that breaks."""
    app = settled(world(**LINK, **(SMALL | {"vae.epochs": "1"}), **{"vae.folder": "red", "vae.others": "green"}))
    (error,) = app.error
    assert error.value.startswith("The reconstructions of the VAE keep the prediction of")
    assert "what it draws says nothing about" in error.value
    assert not any("drawn from" in one.value for one in app.dataframe)


def test_the_same_images_with_and_without_the_concept_are_refused(world) -> None:
    app = settled(world(**LINK, **{"vae.folder": "red", "vae.others": "red"}))
    assert not app.error
    assert any("Choose different image sets" in one.value for one in app.info)


def test_a_set_that_records_values_offers_these_and_one_without_folders_says_so(opened, monkeypatch) -> None:
    """Of the scenes, context and object are recorded, colours are not. Catches a concept that no VAE could learn."""
    images = gallery_of("scenes", "adversarial").images
    offered = list_recorded(images)
    assert {name.partition("=")[0] for name in offered} == {"context", "object"}
    monkeypatch.setattr(concept_jobs, "CHANGED", 2)
    app = settled(opened(**PAGE, **{"vae.concept": format_concept(offered[3])}))
    assert app.selectbox(key="vae.concept").value == offered[3]
    assert any("learned from 60 images or more, and 48 were given" in one.value for one in app.error)
    monkeypatch.setattr(vae_effects, "list_recorded", lambda _: [])
    alone = settled(opened(**PAGE))
    assert any("into two image sets of the workspace" in one.value for one in alone.info)


def test_only_ways_that_were_estimated_are_listed() -> None:
    row = pd.Series({f"{way}{end}": 0.5 for way in WAYS for end in ("", "_low", "_high")} | {"causal": math.nan})
    assert WAYS["causal"] not in list_ways(row)["drawn from"].tolist()
    assert len(list_ways(row)) == len(WAYS) - 1


def test_whatever_the_estimate_depends_on_is_in_its_key(opened) -> None:
    """Catches a result of other settings, another class, other images or changed folders."""
    classifier = cache.load_classifier("scenes")
    images, others = (gallery_of("scenes", split).images for split in ("adversarial", "standard"))
    query = VaeQuery("scenes", "fish", ("context=sea",))
    changed = ({"target": "boat"}, {"concepts": ("context=road",)}, {"trainings": 7}, {"epochs": 3}, {"latent": 4})
    tasks = [make_vae_task(classifier, images, replace(query, **one)) for one in ({}, *changed)]
    assert len({task.key for task in [*tasks, make_vae_task(classifier, others, query)]}) == 7
    folders = replace(query, concepts=("a",), random="b")
    before = make_vae_task(classifier, images, folders).key
    (cache.find_sets_folder() / "new").mkdir(parents=True)
    assert make_vae_task(classifier, images, folders).key != before
