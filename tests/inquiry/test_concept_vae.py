"""Effects of concepts by VAEs, on images whose every cause is known, and what is refused."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from scipy.stats import t
from torch import nn

from core.errors import ForetellError
from core.network.classifier import Classifier
from data.bars.network import transforms
from data.sets import bars
from data.types import Factor, ImageSet
from inquiry.concepts import concept_vae as module
from inquiry.concepts.concept_images import NO_CLASS, condition_images
from inquiry.concepts.concept_vae import VaeQuery, estimate_by_vae
from inquiry.concepts.conceptsets import parse_concepts

SIDE, N = 12, 400
CLASSES = ("bright", "dark")
QUERY = VaeQuery("planted", "bright", ("colour=red",), trainings=3, epochs=30, latent=2)


class Planted(nn.Module):
    """P(bright) = sigmoid(8 (red - green) + 4 (blue - 1/2)): it depends on the colour and on the brightness."""

    def forward(self, x):
        red, green, blue = x.mean((2, 3)).T
        said = 8 * (red - green) + 4 * (blue - 0.5)
        return torch.stack([said, torch.zeros_like(said)], 1)


class Parity(nn.Module):
    """Reads whether the value of one pixel is even, which no smooth reconstruction keeps."""

    def forward(self, x):
        even = (x[:, 0, 0, 0] * 255).round() % 2 * 10
        return torch.stack([even, 10 - even], 1)


def unit(image):
    return torch.from_numpy(np.array(image)).permute(2, 0, 1).float() / 255


def planted(network: type[nn.Module] = Planted) -> Classifier:
    return Classifier(network(), unit, list(CLASSES), name="planted")


def draw(colour: str, light: float) -> Image.Image:
    """A plain image: red or green lit by 26 of 255, blue by the light."""
    return Image.new("RGB", (SIDE, SIDE), (26 * (colour == "red"), 26 * (colour == "green"), round(255 * light)))


@pytest.fixture(scope="module")
def world() -> ImageSet:
    """Nine in ten bright images are red, one in ten of the dark ones."""
    rng = np.random.default_rng(3)
    labels = np.arange(N) % 2
    colours = tuple(np.where(rng.random(N) < np.where(labels == 0, 0.9, 0.1), "red", "green").tolist())
    lights = np.clip(np.where(labels == 0, 0.75, 0.25) + 0.05 * rng.normal(size=N), 0, 1)
    colour = Factor(("red", "green"), lambda i, value: draw(value, lights[i]), colours)
    return ImageSet(
        name="planted",
        categories=CLASSES,
        labels=labels.astype(np.int64),
        ids=tuple(f"{i:03}" for i in range(N)),
        open=lambda i: draw(colours[i], lights[i]),
        digest=hashlib.sha256(b"planted").hexdigest(),
        factors={"colour": colour},
    )


@pytest.fixture(scope="module")
def found(world):
    return estimate_by_vae(planted(), QUERY, world)


def test_the_planted_effect_is_found_and_observation_overstates_it(world, found):
    """Expected: the intervention, drawn by hand. Catches an effect of the class taken for the colour's."""
    classifier, factor = planted(), world.factors["colour"]
    red, green = (
        classifier.probabilities(torch.stack([unit(factor.do(i, value)) for i in range(N)]))[:, 0].numpy()
        for value in factor.values
    )
    true, row = float((red - green).mean()), found.table.iloc[0]
    assert row["causal"] == pytest.approx(true, abs=0.03)
    assert row["observed"] > true + 0.2
    for way in module.WAYS:
        assert row[way] == pytest.approx(true, abs=0.08)
        assert row[f"{way}_low"] < row[way] < row[f"{way}_high"]
        assert row[f"{way}_high"] - row[f"{way}_low"] < 0.4
    assert min(row["kept"], row["shown"]) > 0.9
    assert found.report["effects"]["colour=red"]["effect"]["bright"][0] == pytest.approx(row["effect"], abs=1e-5)
    assert found.report["effects"]["colour=red"]["effect"]["dark"][0] == pytest.approx(-row["effect"], abs=1e-5)
    json.dumps(found.report, allow_nan=False)


def test_limits_are_students():
    """Expected: scipy's interval for one further value. Catches a normal quantile, and an error of the mean."""
    effects = np.random.default_rng(0).normal(size=(5, 3))
    low, high = t.interval(0.95, 4, loc=effects.mean(0), scale=effects.std(0, ddof=1))
    np.testing.assert_allclose(module._limit(effects), [effects.mean(0), low, high])


def test_reconstructions_that_change_the_prediction_are_refused_with_the_share(world, monkeypatch):
    """Planted: a network that reads parity. Catches a refusal after all trainings: the first is enough to know."""
    trained = []
    train = module._train
    monkeypatch.setattr(module, "_train", lambda *given: trained.append(given[-1]) or train(*given))
    with pytest.raises(
        ForetellError, match=r"keep the prediction of \d+% \(\d+% to \d+%\) of 100 held-out images, and"
    ):
        estimate_by_vae(planted(Parity), replace(QUERY, epochs=2), world)
    assert trained == [0]


def test_one_prediction_for_nearly_all_images_is_no_agreement(world):
    """A VAE that draws the same of every image keeps 99% of the predictions of a network that gives one to 99%."""
    shown = condition_images(planted(), world, parse_concepts(world, ["colour=red"], None)[0], 0)
    kept = module.share_of(99, 100)
    constant = replace(shown, inputs=shown.inputs * torch.tensor([0.0, 1.0, 0.0]).view(1, 3, 1, 1) + 0.1)
    with pytest.raises(ForetellError, match="one class alone is predicted of 100%"):
        module._refuse_reconstructions(planted(), constant, kept)
    module._refuse_reconstructions(planted(), shown, kept)


def test_a_killed_run_trains_only_what_is_missing(world, found, tmp_path, monkeypatch):
    """Catches pieces under a key that does not hold, and a resumed run with other results."""
    trained, train = [], module._train
    monkeypatch.setattr(module, "_train", lambda *given: trained.append(given[-1]) or train(*given))

    def kill(done: int, total: int, what: str) -> None:
        if what.startswith("training VAEs") and done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        estimate_by_vae(planted(), QUERY, world, tmp_path, kill)
    again = estimate_by_vae(planted(), QUERY, world, tmp_path)
    assert trained == [0, 1, 2]
    pd.testing.assert_frame_equal(again.table, found.table, rtol=1e-4, atol=1e-5)
    assert not list(tmp_path.iterdir())


def test_folders_are_conditioned_on_the_classes_that_they_name(world, tmp_path):
    """Catches classes of the wrong images, and folders without classes that are not warned of."""
    factor = world.factors["colour"]
    for i in range(N):
        own = "red" if factor.known[i] == "red" else "other"
        for folder in (tmp_path / own / CLASSES[world.labels[i]], tmp_path / f"{own}-flat"):
            folder.mkdir(parents=True, exist_ok=True)
            world.open(i).save(folder / f"{i:03}.png")
    read = {}
    for end in ("", "-flat"):
        (concept,) = parse_concepts(world, [str(tmp_path / f"red{end}")], str(tmp_path / f"other{end}"))
        read[end] = condition_images(planted(), world, concept, 0)
    named, flat = read[""], read["-flat"]
    bright = named.inputs[:, 2].mean((1, 2)) > 0.5
    assert torch.equal(named.conditions[:, 1] == 0, bright)
    assert torch.equal(named.conditions[:, 0] == 0, named.inputs[:, 0].mean((1, 2)) > 0)
    assert (named.classes, named.warnings, named.sizes) == (CLASSES, (), (2, 2))
    assert (flat.warnings, flat.sizes) == ((NO_CLASS,), (2,))


def test_a_factor_that_is_the_class_is_the_only_condition():
    """Catches a VAE told the class twice, whose two copies are then set against each other."""
    images = bars.load(size=80)
    classifier = Classifier(
        nn.Sequential(nn.Flatten(), nn.Linear(3 * 24 * 24, 2)), transforms, list(images.categories), name="flat"
    )
    sizes = {
        name: condition_images(classifier, images, parse_concepts(images, [name], None)[0], 0).sizes
        for name in ("orientation", "colour")
    }
    assert sizes == {"orientation": (2,), "colour": (2, 2)}


def test_what_no_image_shows_is_said(world):
    """A class that never has the value; an intervention outside the interval; two estimates that differ."""
    shown = condition_images(planted(), world, parse_concepts(world, ["colour=red"], None)[0], 0)
    red_is_bright = shown.only(np.flatnonzero((shown.conditions[:, 0] == shown.conditions[:, 1]).numpy()))
    assert (red_is_bright.count_missing(0), shown.count_missing(0)) == (1, 0)
    apart = {"effect": np.array([0.5, 0.4, 0.6]), "reencoded": np.array([0.2, 0.1, 0.3]), "causal": np.array([0.3])}
    said = module._warn(red_is_bright, 0, apart, 0.3)
    assert [warning.split(":")[0] for warning in said] == [
        "No image of 1 of the 2 classes shows it",
        "Only 30% of the images drawn with it show it, so the effect is understated",
        "Each image's own code gives another effect",
        "The effect by intervention is outside the interval",
    ]
    near = {"effect": np.array([0.5, 0.4, 0.6]), "reencoded": np.array([0.5, 0.3, 0.6]), "causal": np.array([0.45])}
    assert module._warn(shown, 0, near, 0.9) == []


@pytest.mark.parametrize(
    ("changed", "rows", "sentence"),
    [
        ({"trainings": 2}, N, "trainings=2: the interval is over several VAEs"),
        ({"latent": 0}, N, "latent=0: give at least 1 epoch"),
        ({"target": "grey"}, N, "planted has no class 'grey'"),
        ({}, 40, "learned from 60 images or more, and 40 were given"),
        ({"concepts": ("colour=blue",)}, N, "colour.*'blue'"),
    ],
)
def test_wrong_input_is_one_sentence(changed, rows, sentence, world):
    with pytest.raises(ForetellError, match=sentence):
        estimate_by_vae(planted(), replace(QUERY, **changed), world.only(range(rows)))


def test_values_that_are_rare_or_not_recorded_are_refused(world):
    """Catches a value learned from a handful of images."""
    colours = world.factors["colour"].known
    rows = [i for i in range(N) if colours[i] == "green"][:80] + [i for i in range(N) if colours[i] == "red"][:9]
    (concept,) = parse_concepts(world, ["colour=red"], None)
    with pytest.raises(ForetellError, match="9 images show 'red', and 10 or more are needed"):
        condition_images(planted(), world.only(rows), concept, 0)
    unknown = replace(world, factors={"colour": replace(world.factors["colour"], known=None)})
    with pytest.raises(ForetellError, match="planted does not record the colour of each image"):
        condition_images(planted(), unknown, concept, 0)
