"""The table and the report of a set against the engine asked directly, and what a killed run leaves."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from core.errors import ForetellError
from core.uncertainty import UNCERTAINTY_MEASURES, reliability
from core.uncertainty.samplers import inserted_dropout
from inquiry.debugging import uncertainty as module
from inquiry.debugging.uncertainty import UncertaintyQuery, uncertainty, uncertainty_files
from inquiry.units.exemplars import of_set
from study.network.priors import learn_prior
from study.network.sources import class_of_labels, open_set
from study.plan.config import ImageSource
from tests.core.scenes import scene_net

SIZE = 40
REQUEST = UncertaintyQuery(
    "scenes", settings={"split": "adversarial", "size": SIZE}, sampler="inserted_dropout", passes=10
)


@pytest.fixture(scope="module")
def scenes():
    classifier = scene_net()
    images = open_set(ImageSource.model_validate({"set": "scenes", "split": "adversarial", "size": SIZE}), None)
    return classifier, of_set(images), class_of_labels(images, classifier)


@pytest.fixture(scope="module")
def found(scenes):
    return uncertainty(scenes[0], REQUEST, scenes[1], scenes[2])


def test_the_table_is_what_the_engine_says(scenes, found):
    """The same draws for every picture: one asked alone answers as it does among the others."""
    classifier, pictures, labels = scenes
    table = found.table
    for i in (0, 17, SIZE - 1):
        image = classifier.preprocess(pictures.open(i))[None]
        answers = inserted_dropout(classifier, image, passes=10, generator=torch.Generator().manual_seed(0)).softmax(-1)
        plain = classifier.probabilities(image)[0]
        row = table.iloc[i]
        assert row["image"] == pictures.ids[i]
        assert row["truth"] == classifier.categories[labels[i]]
        assert row["predicted"] == classifier.categories[int(plain.argmax())]
        assert row["confidence"] == pytest.approx(float(plain.max()), abs=1e-5)
        assert row["correct"] == (int(plain.argmax()) == labels[i])
        for name in UNCERTAINTY_MEASURES:
            estimate = UNCERTAINTY_MEASURES[name](answers)
            assert row[name] == pytest.approx(estimate.value.item(), abs=1e-5)
            assert row[f"{name}_error"] == pytest.approx(estimate.error.item(), abs=1e-4)


def test_the_report_is_of_the_table(found):
    table, report = found.table, found.report["reliability"]
    assert report["labelled"] == SIZE
    assert report["plain"]["accuracy"] == table["correct"].mean()
    assert report["averaged"]["accuracy"] == table["averaged_correct"].mean()
    wrong = ~table["correct"].astype(bool)
    for name in UNCERTAINTY_MEASURES:
        detection = reliability.error_detection(table[name], wrong)
        assert report["detection"][name]["area"] == pytest.approx(detection.area)
        unsure = reliability.error_detection(1 - table["confidence"], wrong)
        difference = report["detection"][name]["better_than_confidence"]
        assert difference == pytest.approx(detection.area - unsure.area)
    json.dumps(found.report, allow_nan=False)


def test_a_temperature_is_judged_on_the_other_half():
    """Answers that are three times too sure: both halves find 3, and the error falls."""
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(3000, 4)) * 2
    answers = torch.tensor(logits).softmax(1).numpy()
    labels = np.array([rng.choice(4, p=p) for p in answers])
    sure = torch.tensor(3 * logits).softmax(1).numpy()
    columns = {module.PLAIN: sure, module.AVERAGED: sure, **{name: rng.random(3000) for name in UNCERTAINTY_MEASURES}}
    report = module.reliability(columns, labels)
    assert report["temperature"]["halves"] == pytest.approx([3, 3], rel=0.12)
    assert report["temperature"]["calibration_error"] < 0.3 * report["plain"]["calibration_error"]


def test_a_killed_run_goes_on_where_it_was(scenes, found, tmp_path, monkeypatch):
    """Blocks of 16: the second run asks only about what the first did not finish, and says the same."""
    monkeypatch.setattr(module, "BLOCK", 16)
    asked: list[range] = []
    ask = module._predict_block

    def counted(*arguments):
        asked.append(arguments[-1])
        return ask(*arguments)

    def killed(done: int, total: int, what: str) -> None:
        if done == 32:
            raise KeyboardInterrupt

    monkeypatch.setattr(module, "_predict_block", counted)
    with pytest.raises(KeyboardInterrupt):
        uncertainty(scenes[0], REQUEST, scenes[1], scenes[2], tmp_path, killed)
    assert [rows.start for rows in asked] == [0, 16]
    again = uncertainty(scenes[0], REQUEST, scenes[1], scenes[2], tmp_path)
    assert [rows.start for rows in asked] == [0, 16, 32]
    pd.testing.assert_frame_equal(again.table, found.table, rtol=1e-4, atol=1e-5)
    assert not list(tmp_path.iterdir())


def test_other_settings_do_not_use_what_was_kept(scenes, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "BLOCK", SIZE)

    def killed(done: int, total: int, what: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        uncertainty(scenes[0], REQUEST, scenes[1], scenes[2], tmp_path, killed)
    (kept,) = tmp_path.iterdir()
    other = UncertaintyQuery("scenes", sampler="inserted_dropout", passes=10, parameters={"rate": "0.3"})
    uncertainty(scenes[0], other, scenes[1], scenes[2], tmp_path)
    assert list(tmp_path.iterdir()) == [kept]


def test_images_without_labels_have_no_reliability(tmp_path):
    images = open_set(ImageSource.model_validate({"set": "scenes", "split": "standard", "size": 3}), None)
    for i in range(3):
        images.open(i).save(tmp_path / f"{i}.png")
    request = UncertaintyQuery("scenes", images=str(tmp_path), sampler="multiplicative_noise", passes=5)
    csv, facts = uncertainty_files(request, tmp_path / "out")
    table = pd.read_csv(csv)
    assert table["truth"].isna().all()
    assert table["correct"].isna().all()
    assert "reliability" not in json.loads(facts.read_text())
    assert {path.name for path in (tmp_path / "out").iterdir()} == {csv.name, facts.name}


def test_laplace_reads_a_prior_file(tmp_path):
    classifier = scene_net()
    pool = open_set(ImageSource.model_validate({"set": "scenes", "split": "pool", "size": 300}), None)
    stored = learn_prior(classifier, pool, tmp_path / "prior.safetensors", damping=0.01)
    settings = {"split": "adversarial", "size": SIZE}
    request = UncertaintyQuery("scenes", settings=settings, sampler="laplace", prior=tmp_path / "prior.safetensors")
    csv, facts = uncertainty_files(request, tmp_path)
    assert json.loads(facts.read_text())["prior"] == stored.digest
    assert pd.read_csv(csv)["mutual_information"].between(0, 3).all()
    with pytest.raises(ForetellError, match="inserted_dropout uses no prior"):
        uncertainty_files(replace(request, sampler="inserted_dropout"), tmp_path)


def test_few_errors_are_said_and_the_table_is_there_all_the_same():
    request = UncertaintyQuery(
        "scenes", settings={"split": "standard", "size": 4}, sampler="inserted_dropout", passes=3
    )
    images = open_set(ImageSource.model_validate({"set": "scenes", "split": "standard", "size": 4}), None)
    classifier = scene_net()
    made = uncertainty(classifier, request, of_set(images), class_of_labels(images, classifier))
    assert "needs two of each" in made.report["reliability"]["detection"]
    assert len(made.table) == 4


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"sampler": "mc_drpout"}, "Did you mean 'mc_dropout'"),
        ({"parameters": {"rat": "0.1"}}, "Did you mean 'rate'"),
        ({"sampler": "mc_dropout"}, "scenes has no dropout"),
        ({"sampler": "laplace"}, "give --prior FILE"),
        ({"prior": Path("none.safetensors")}, "There is no prior none.safetensors"),
        ({"images": "nowhere"}, "There is no image nowhere"),
        ({"settings": {"split": "shifted"}}, "Unknown split 'shifted'"),
    ],
)
def test_wrong_input_is_one_sentence(changed, sentence, tmp_path):
    with pytest.raises(ForetellError, match=sentence):
        uncertainty_files(UncertaintyQuery(**{"model": "scenes", "sampler": "inserted_dropout", **changed}), tmp_path)
