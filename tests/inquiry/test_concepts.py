"""The table of concepts against the engine asked directly, and what a killed run leaves."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from core.concepts.tcav import tcav
from core.errors import ForetellError
from data.sets import scenes
from inquiry.concepts import concepts as module
from inquiry.concepts.concepts import ConceptQuery, concept_files, concepts
from inquiry.concepts.interventions import draw_rows
from study.network.sources import class_of_labels
from tests.core.scenes import scene_net

SETTINGS = {"split": "standard", "size": 160}
LAYER = "pool"
REQUEST = ConceptQuery("scenes", "fish", ("context=sea", "context=road"), settings=SETTINGS, count=12, runs=3)


@pytest.fixture(scope="module", autouse=True)
def few():
    """A set is drawn once for each of its contexts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "INTERVENED", 20)
        yield


@pytest.fixture(scope="module")
def world():
    return scene_net(), scenes.load(split="standard", size=160)


@pytest.fixture(scope="module")
def found(world):
    return concepts(world[0], replace(REQUEST, layers=(LAYER,)), world[1])


def test_the_effects_are_those_of_drawing_the_images_again(world, found):
    """Slow re-implementation, picture by picture, over all the set's contexts."""
    classifier, images = world
    fish, rows = classifier.categories.index("fish"), draw_rows(160, 0, 20)
    factor = images.factors["context"]

    def answer(picture):
        return float(classifier.probabilities(classifier.preprocess(picture)[None])[0, fish])

    sea = np.array([answer(factor.do(i, "sea")) for i in rows])
    rest = [[answer(factor.do(i, value)) for value in factor.values if value != "sea"] for i in rows]
    difference = sea - np.mean(rest, axis=1)
    row = found.table.set_index("concept").loc["context=sea"]
    assert row["causal"] == pytest.approx(difference.mean(), abs=1e-5)
    assert row["causal_error"] == pytest.approx(difference.std(ddof=1) / len(rows) ** 0.5, abs=1e-5)
    as_they_are, own = np.array([answer(images.open(i)) for i in rows]), np.array(factor.known)[rows] == "sea"
    assert row["observed"] == pytest.approx(as_they_are[own].mean() - as_they_are[~own].mean(), abs=1e-5)
    assert found.report["effects"]["context=sea"]["causal"]["fish"][0] == pytest.approx(row["causal"], abs=1e-5)


def test_the_sea_pushes_the_fish_up_and_is_found_in_a_layer(found):
    table = found.table.set_index("concept")
    assert table.loc["context=sea", "causal"] > 3 * table.loc["context=sea", "causal_error"]
    assert table.loc["context=road", "causal"] < 0
    assert table.loc["context=sea", "score"] > 0.9
    assert table.loc["context=sea", "accuracy"] > 0.7
    assert set(found.table["layer"]) == {LAYER}
    json.dumps(found.report, allow_nan=False)


def test_scores_are_tcavs_and_p_values_pay_for_all_tests(world, found):
    """The same pictures handed to the engine; two tests ask for 39 concepts that are none and double the p-value."""
    classifier, images = world
    fish, labels = classifier.categories.index("fish"), class_of_labels(images, classifier)
    concept = module.parse_concepts(images, ["context=sea"], None)[0]
    seen = module.draw_inputs(classifier, concept, images, labels, fish, 12, 0)
    assert [len(part) for part in (seen.concept, seen.others, seen.target)] == [12, 36, 10]
    draws = torch.Generator().manual_seed(0)
    (direct,) = tcav(classifier, [LAYER], seen.concept, seen.others, seen.target, fish, runs=3, generator=draws)
    row = found.table.set_index("concept").loc["context=sea"]
    assert row["score"] == pytest.approx(direct.score)
    assert row["p_value"] == pytest.approx(min(1, 2 * direct.p_value))


def test_a_killed_run_goes_on_where_it_was(world, found, tmp_path, monkeypatch):
    """The second run tests only what the first did not finish, intervenes on nothing again, and says the same."""
    tested, drawn = [], []
    run, answered = module._test_concept, module._predict_images
    monkeypatch.setattr(module, "_test_concept", lambda *given: tested.append(given[5].name) or run(*given))
    monkeypatch.setattr(module, "_predict_images", lambda *given: drawn.append(given[3]) or answered(*given))

    def killed(done: int, total: int, what: str) -> None:
        if what == "testing concepts":
            raise KeyboardInterrupt

    request = replace(REQUEST, layers=(LAYER,))
    with pytest.raises(KeyboardInterrupt):
        concepts(*world[:1], request, world[1], tmp_path / "parts", killed)
    before = len(drawn)
    again = concepts(*world[:1], request, world[1], tmp_path / "parts")
    assert tested == ["context=sea", "context=road"]
    assert len(drawn) == before
    pd.testing.assert_frame_equal(again.table, found.table, rtol=1e-4, atol=1e-5)
    assert not list((tmp_path / "parts").iterdir())


def test_concepts_in_folders(world, tmp_path):
    """Pictures of a user's own: no effect by intervention, and the stripe is told from what is none."""
    rng = np.random.default_rng(0)
    images = world[1]
    for name, count in (("seas", 12), ("others", 30)):
        (tmp_path / name).mkdir()
        for i in range(count):
            value = "sea" if name == "seas" else rng.choice(["road", "meadow", "snow"])
            images.factors["context"].do(i if name == "seas" else 40 + i, str(value)).save(tmp_path / name / f"{i}.png")
    folders = {"concepts": (str(tmp_path / "seas"),), "random": str(tmp_path / "others")}
    request = replace(REQUEST, layers=(LAYER,), **folders)
    csv, report = concept_files(request, tmp_path / "out")
    table = pd.read_csv(csv)
    assert table["concept"].tolist() == ["seas"]
    assert table["causal"].isna().all()
    assert table["accuracy"].item() > 0.7
    assert json.loads(report.read_text())["effects"] == {}
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"scenes.fish.csv", "scenes.fish.json"}


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"target": "whale"}, "scenes has no class 'whale'"),
        ({"concepts": ("context=see",)}, "Did you mean 'sea'"),
        ({"concepts": ("stripes",)}, "scenes/standard can be changed in context, object, colour"),
        ({"concepts": ()}, "No concept was named"),
        ({"concepts": (str(Path(__file__).parent),)}, "also give a folder of other images"),
        ({"layers": ("features.9",)}, "no layer 'features.9'"),
        ({"count": 60}, "give fewer"),
        ({"count": 0}, r"count=0: a concept is learned from images: give \d or more"),
        ({"settings": {"size": 3}}, "no image of 'fish'"),
    ],
)  # fmt: skip
def test_wrong_input_is_one_sentence(changed, sentence, tmp_path):
    with pytest.raises(ForetellError, match=sentence):
        concept_files(replace(REQUEST, **changed), tmp_path)
