"""Targets spread over the AI's doubt: against the measures asked directly, and what a study freezes of them."""

from __future__ import annotations

import tomllib

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from core.teaching.prior import fit_prior
from core.uncertainty.measures import mutual_information
from core.uncertainty.samplers import inserted_dropout
from study.building.build import build
from study.building.design import Candidate
from study.building.strata import Stratifier
from study.bundle import Bundle
from study.config import ImageSource, Strata, StudyConfig, read
from study.seeds import seed_of
from study.sources import open_set
from tests.core.scenes import scene_net
from tests.study.studies import TINY

SETTINGS = Strata(measure="mutual_information", passes=12, bins=3, candidates=9)
PICTURES = [Candidate("adversarial", "adversarial", i, 0, 1, 0) for i in range(20)]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A stratifier of the built-in network over shifted scenes."""
    classifier = scene_net()
    images = open_set(ImageSource.model_validate({"set": "scenes", "split": "adversarial", "size": 20}), None)
    features = classifier.features(torch.stack([classifier.preprocess(images.open(i)) for i in range(20)]))
    prior = fit_prior(classifier.head, [features], damping=0.01)

    def stratifier(settings=SETTINGS, folder="cache"):
        cache = tmp_path_factory.mktemp(folder)
        return Stratifier(settings, classifier, {"adversarial": images}, prior, cache, 7)

    return stratifier


def test_values_are_the_measure_and_strata_its_thirds(made):
    stratifier = made()
    found = list(stratifier.ordered(PICTURES, 0, np.random.default_rng(0)))
    assert len(found) == len({one.candidate.index for one in found}) == 9
    for one in found[:3]:
        picture = stratifier.classifier.preprocess(stratifier.sets["adversarial"].open(one.candidate.index))
        generator = torch.Generator().manual_seed(seed_of(7, "doubt", "adversarial", one.candidate.index))
        answers = inserted_dropout(stratifier.classifier, picture[None], passes=12, generator=generator).softmax(-1)
        assert one.value == pytest.approx(float(mutual_information(answers).value[0]), rel=1e-3, abs=1e-6)
    by_stratum = [sorted(one.value for one in found if one.stratum == k) for k in range(3)]
    assert [len(values) for values in by_stratum] == [3, 3, 3]
    assert by_stratum[0][-1] <= by_stratum[1][0]
    assert by_stratum[1][-1] <= by_stratum[2][0]


def test_strata_take_turns_and_any_may_begin(made):
    for first in range(4):
        order = [one.stratum for one in made().ordered(PICTURES, first, np.random.default_rng(1))]
        assert order == [(first + k) % 3 for k in range(3)] * 3


def test_what_was_asked_is_not_asked_again(made, monkeypatch):
    stratifier = made()
    before = list(stratifier.ordered(PICTURES, 0, np.random.default_rng(0)))
    monkeypatch.setattr(stratifier.classifier, "preprocess", lambda _: pytest.fail("asked again"))
    assert list(stratifier.ordered(PICTURES, 0, np.random.default_rng(0))) == before


def test_laplace_draws_from_the_prior_of_the_study(made):
    found = list(
        made(Strata(measure="entropy", sampler="laplace", passes=5)).ordered(PICTURES, 0, np.random.default_rng(0))
    )
    assert len(found) == 20
    assert {one.stratum for one in found} == {0, 1}


def test_a_study_freezes_the_doubt_of_its_trials_and_one_without_strata_nothing(tmp_path):
    text = TINY.replace("practice = 2", "practice = 2\n[trials.strata]\nmeasure = 'entropy'\npasses = 10")
    (tmp_path / "strata.toml").write_text(text)
    (tmp_path / "plain.toml").write_text(TINY)
    bundle = build(tmp_path / "strata.toml", tmp_path / "home")
    doubts = [trial.doubt for trial in bundle.manifest.trials]
    assert {doubt["stratum"] for doubt in doubts} == {0, 1}
    assert all(doubt["measure"] == "entropy" and doubt["strata"] == 2 for doubt in doubts)
    assert Bundle(bundle.folder).manifest == bundle.manifest  # as read again
    plain = read(tmp_path / "plain.toml")
    assert "strata" not in plain.model_dump()["trials"]
    assert "strata" in read(tmp_path / "strata.toml").model_dump()["trials"]


@pytest.mark.parametrize(
    ("strata", "sentence"),
    [
        ({"measure": "entopy"}, "Did you mean 'entropy'"),
        ({"measure": "entropy", "sampler": "dropout"}, "Did you mean 'mc_dropout'"),
        ({"measure": "entropy", "parameters": {"rat": 1}}, "Did you mean 'rate'"),
        ({"measure": "entropy", "parameters": {"passes": 3}}, "passes stands beside parameters"),
        ({"measure": "entropy", "bins": 1}, "greater than or equal to 2"),
    ],
)
def test_wrong_strata_are_refused_with_the_file(strata, sentence):
    content = tomllib.loads(TINY)
    content["trials"]["strata"] = strata
    with pytest.raises(ValidationError, match=sentence):
        StudyConfig.model_validate(content)
