"""Targets spread over the AI's doubt: against the measures asked directly, and what a study freezes of them."""

from __future__ import annotations

import re
import tomllib

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from core.teaching.kfac import fit_prior
from core.types import silent
from core.uncertainty.measures import mutual_information
from core.uncertainty.samplers import inserted_dropout
from study.building.build import build
from study.building.candidates import Candidate
from study.building.measures.ground import Ground
from study.building.plan import make_planner
from study.building.strata import Stratifier, strata_of
from study.bundle import Bundle
from study.network.sources import open_set, open_sources
from study.plan.config import ImageSource, StudyConfig, read
from study.plan.measures import IMAGE_MEASURES
from study.plan.strata import Strata
from study.workspace.seeds import seed_of
from tests.core.scenes import scene_net
from tests.study.studies import TINY

pytestmark = pytest.mark.usefixtures("shared_predictions")

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
        return Stratifier(Ground(settings, classifier, {"adversarial": images}, prior, cache, cache, 7))

    return stratifier


def test_values_are_the_measure_and_strata_its_thirds(made):
    stratifier = made()
    found = list(stratifier.order_candidates(PICTURES, 0, np.random.default_rng(0)))
    assert len(found) == len({one.candidate.index for one in found}) == 9
    ground = stratifier._ground
    for one in found[:3]:
        picture = ground.classifier.preprocess(ground.sets["adversarial"].open(one.candidate.index))
        generator = torch.Generator().manual_seed(seed_of(7, "doubt", "adversarial", one.candidate.index))
        answers = inserted_dropout(ground.classifier, picture[None], passes=12, generator=generator).softmax(-1)
        assert one.value == pytest.approx(float(mutual_information(answers).value[0]), rel=1e-3, abs=1e-6)
    by_stratum = [sorted(one.value for one in found if one.stratum == k) for k in range(3)]
    assert [len(values) for values in by_stratum] == [3, 3, 3]
    assert by_stratum[0][-1] <= by_stratum[1][0]
    assert by_stratum[1][-1] <= by_stratum[2][0]


def test_strata_take_turns_and_any_may_begin(made):
    for first in range(4):
        order = [one.stratum for one in made().order_candidates(PICTURES, first, np.random.default_rng(1))]
        assert order == [(first + k) % 3 for k in range(3)] * 3


def test_what_was_asked_is_not_asked_again(made, monkeypatch):
    stratifier = made()
    before = list(stratifier.order_candidates(PICTURES, 0, np.random.default_rng(0)))
    monkeypatch.setattr(stratifier._ground.classifier, "preprocess", lambda _: pytest.fail("asked again"))
    assert list(stratifier.order_candidates(PICTURES, 0, np.random.default_rng(0))) == before


def test_laplace_draws_from_the_prior_of_the_study(made):
    found = list(
        made(Strata(measure="entropy", sampler="laplace", passes=5)).order_candidates(
            PICTURES, 0, np.random.default_rng(0)
        )
    )
    assert len(found) == 20
    assert {one.stratum for one in found} == {0, 1}


def test_a_study_freezes_the_doubt_of_its_trials_and_one_without_strata_nothing(tmp_path):
    one = TINY.replace("categories = 3", "categories = 1")
    text = one.replace("practice = 2", "practice = 2\n[trials.strata]\nmeasure = 'entropy'\npasses = 10")
    (tmp_path / "strata.toml").write_text(text)
    (tmp_path / "plain.toml").write_text(TINY)
    bundle = build(tmp_path / "strata.toml", tmp_path / "home")
    strata = [trial.stratum for trial in bundle.manifest.trials]
    assert {found.stratum for found in strata} == {0, 1}
    assert all(found.measure == "entropy" and found.strata == 2 for found in strata)
    assert Bundle(bundle.folder).manifest == bundle.manifest  # as read again
    plain = read(tmp_path / "plain.toml")
    assert "strata" not in plain.model_dump()["trials"]
    assert "strata" in read(tmp_path / "strata.toml").model_dump()["trials"]


@pytest.mark.parametrize(
    ("strata", "sentence"),
    [
        ({"measure": "entopy"}, f"Unknown measure 'entopy': name one of {', '.join(IMAGE_MEASURES)}."),
        ({"measure": "margin", "passes": 5}, "margin is not a measure of uncertainty: leave out sampler and passes"),
        (
            {"measure": "margin", "sampler": "laplace"},
            "margin is not a measure of uncertainty: leave out sampler and passes",
        ),
        ({"measure": "margin", "parameters": {"directions": "up"}}, "choose one of anywhere, discriminative, random"),
        ({"measure": "margin", "parameters": {"direction": "random"}}, "Did you mean 'directions'"),
        ({"measure": "concept_effect"}, "concept_effect needs the parameter 'concept'"),
        ({"measure": "assertion", "parameters": {"file": "rules.py"}}, "assertion needs the parameter 'rule'"),
        ({"measure": "entropy", "parameters": {"rate": 0}}, "rate=0.0 is out of range"),
        ({"measure": "entropy", "parameters": {"rate": 1}}, "rate=1.0 is out of range"),
        ({"measure": "entropy", "sampler": "mc_dropout", "parameters": {"rate": 1}}, "rate=1.0 is out of range"),
        (
            {"measure": "entropy", "sampler": "additive_noise", "parameters": {"variance": 0}},
            "variance=0.0 gives no noise",
        ),
        ({"measure": "entropy", "parameters": {"last": -1}}, "last=-1 is not a number of layers"),
        ({"measure": "entropy", "sampler": "dropout"}, "Did you mean 'mc_dropout'"),
        ({"measure": "entropy", "parameters": {"rat": 1}}, "Did you mean 'rate'"),
        ({"measure": "entropy", "parameters": {"passes": 3}}, "passes belongs next to parameters"),
        ({"measure": "entropy", "bins": 1}, "greater than or equal to 2"),
    ],
)
def test_wrong_strata_are_refused_with_the_file(strata, sentence):
    content = tomllib.loads(TINY)
    content["trials"]["strata"] = strata
    with pytest.raises(ValidationError, match=re.escape(sentence)):
        StudyConfig.model_validate(content)


def test_the_networks_own_rate_is_allowed():
    """Catches refusing mc_dropout's rate 0, which stands for each layer's own."""
    given = {"measure": "entropy", "sampler": "mc_dropout", "parameters": {"rate": 0.0}}
    assert Strata.model_validate(given).parsed_parameters == {"rate": 0.0}


def test_only_measures_of_uncertainty_write_sampler_and_passes_down():
    """Catches another hash of studies with the old names, or a margin that claims to have been asked under noise."""
    noisy, exact = (Strata.model_validate({"measure": name}).model_dump() for name in ("entropy", "margin"))
    assert list(noisy.items()) == [
        ("measure", "entropy"),
        ("sampler", "inserted_dropout"),
        ("parameters", {}),
        ("passes", 50),
        ("bins", 2),
        ("candidates", 24),
    ]
    assert exact == {"measure": "margin", "parameters": {}, "bins": 2, "candidates": 24}


@pytest.mark.parametrize("broken", range(1, 9))
def test_a_rule_that_holds_or_not_keeps_its_strata_apart(broken):
    """Catches equal values dealt to several strata by the chance of their order."""
    values = np.random.default_rng(broken).permutation(np.arange(9) < broken).astype(float)
    np.testing.assert_array_equal(strata_of(values, 2, exact=True), values)


def test_strata_without_ties_are_equal_parts_of_the_order():
    """Catches strata of unequal size, a lost infinite value, and ties of Monte Carlo values that are put together."""
    values = np.random.default_rng(0).permutation([*range(10), np.inf]).astype(float)
    expected = np.array([0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2])[np.argsort(np.argsort(values))]
    for exact in (True, False):
        np.testing.assert_array_equal(strata_of(values, 3, exact=exact), expected)
    np.testing.assert_array_equal(strata_of(np.zeros(6), 2, exact=False), [0, 0, 0, 1, 1, 1])
    np.testing.assert_array_equal(strata_of(np.zeros(6), 2, exact=True), np.zeros(6))


def test_a_changed_rule_or_image_is_another_study(tmp_path):
    """Catches a bundle that is taken for that of a rules file or folder of a concept changed since."""
    (tmp_path / "rules.py").write_text("a = 1")
    (tmp_path / "ice").mkdir()
    (tmp_path / "ice" / "1.png").write_bytes(b"1")
    rule = Strata(measure="assertion", parameters={"file": "rules.py", "rule": "a"})
    ice = Strata(measure="concept_sensitivity", parameters={"concept": "ice", "random": "."})
    before = [one.digest_files(tmp_path) for one in (rule, ice)]
    (tmp_path / "rules.py").write_text("a = 2")
    (tmp_path / "ice" / "1.png").write_bytes(b"2")
    after = [one.digest_files(tmp_path) for one in (rule, ice)]
    assert all(one != other for one, other in zip(before, after, strict=True))
    assert Strata(measure="concept_effect", parameters={"concept": "context=sea"}).digest_files(tmp_path) is None


@pytest.mark.parametrize(
    ("measure", "parameters"),
    [("margin", {"directions": "anywhere"}), ("concept_effect", {"concept": "context=sea"})],
)
def test_a_study_by_another_measure_plans_by_what_is_computed_apart(tmp_path, measure, parameters):
    """Catches strata that are not by the number which the trials freeze, and other pictures' numbers."""
    given = ", ".join(f"{key} = '{value}'" for key, value in parameters.items())
    strata = f"[trials.strata]\nmeasure = '{measure}'\nparameters = {{ {given} }}\ncandidates = 8"
    (tmp_path / "study.toml").write_text(TINY.replace("practice = 2", f"practice = 2\n{strata}"))
    sources = open_sources(tmp_path / "study.toml")
    planned = make_planner(sources, tmp_path / "cache").plan(silent).trials
    classifier = scene_net()
    assert {trial.stratum.stratum for trial in planned} == {0, 1}
    for trial in planned:
        value = apart(measure, classifier, sources.sets[trial.candidate.role], trial.candidate.index)
        assert trial.stratum.value == pytest.approx(value, rel=2e-2, abs=1e-4)
        assert trial.stratum.error == 0
        assert set(trial.stratum.model_dump()) == {"measure", "value", "error", "stratum", "strata"}


def apart(measure, classifier, images, index):
    """The value of an image by another computation: a walk to the boundary of its own, or the scenes painted again."""
    picture = classifier.preprocess(images.open(index))[None]
    answer = int(classifier.logits(picture).argmax())
    if measure == "margin":
        return walked(classifier, picture, answer)
    factor = images.factors["context"]
    painted = {value: classifier.preprocess(factor.do(index, value))[None] for value in factor.values}
    p = {value: float(classifier.probabilities(one)[0, answer]) for value, one in painted.items()}
    return p.pop("sea") - np.mean(list(p.values()))


def walked(classifier, picture, answer):
    """DeepFool (Moosavi-Dezfooli et al. 2015, algorithm 2) over all classes, then the last stretch in small steps."""
    x = picture.clone()
    while int(classifier.logits(x).argmax()) == answer:
        x.requires_grad_()
        with classifier.differentiable() as network, torch.enable_grad():
            logits = network(x)[0]
            gradients = [torch.autograd.grad(one, x, retain_graph=True)[0] for one in logits]
        steps = []
        for k in set(range(len(logits))) - {answer}:
            w, f = gradients[k] - gradients[answer], (logits[answer] - logits[k]).detach()
            steps.append((float(f / w.norm()), f / w.norm() ** 2 * w))
        x = x.detach() + 1.02 * min(steps, key=lambda step: step[0])[1]
    change = x.detach() - picture
    shares = torch.linspace(0, 1, 500)
    others = classifier.logits(picture + shares[:, None, None, None] * change).argmax(1) != answer
    return float(change.norm() * shares[others].min())
