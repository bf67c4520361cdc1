"""Examples by influence and the nearest next to Bayesian teaching: one real study from its file to the contrasts."""

from __future__ import annotations

from math import exp, log
from pathlib import Path

import pytest
import torch
from scipy.special import logit

from core.errors import ForetellError
from core.teaching.kfac import with_bias
from core.teaching.scoring import score_sets
from study.analysis.planned import placebos
from study.analysis.responses import reading as responses
from study.building.build import build, verify
from study.building.plan import TeachingProblem, make_planner
from study.building.reopening import ReopenedStudy, reopen
from study.bundle import Bundle
from study.conditions import CONDITIONS
from study.network.sources import open_sources
from study.plan.config import read
from study.plan.simulated_participants import BayesianLearner
from study.plan.texts import apply_condition_words, complete_texts, example
from study.service import Service
from study.simulate import simulate
from study.tasks.theory import ShownExplanations
from tests.study.studies import SMALL

pytestmark = pytest.mark.usefixtures("shared_predictions")

ONE = SMALL.replace("practice = 0", "practice = 1").replace("parameters = { samples = 8 }", 'method = "gradient"')
NAMES = ("influence_examples", "nearest_examples")
FILE = f'conditions = ["none", "examples", "influence_examples", "nearest_examples"]\n{ONE}'


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """The tiny study with the three policies, by one line of its file."""
    home = tmp_path_factory.mktemp("policies")
    (home / "tiny.toml").write_text(FILE)
    return build(home / "tiny.toml", home)


@pytest.fixture(scope="module")
def reopened(built: Bundle) -> ReopenedStudy:
    return reopen(built, built.folder.parent.parent / "cache")


def score(name: str, reopened: ReopenedStudy, question: TeachingProblem) -> torch.Tensor:
    """Score the possible examples by the condition's formula written out, (N,); the target's first."""
    prior, candidate = reopened.planner.prior, question.candidate
    x, z = with_bias(question.image[None])[0], with_bias(reopened.planner.material.pool.features[question.pool])
    if name == "nearest_examples":
        return -((z - x) ** 2).sum(1)
    residual = (z @ prior.head.T).softmax(1)
    residual[: question.targets, candidate.target] -= 1
    residual[question.targets :, candidate.alternative] -= 1
    return -(residual @ prior.class_covariance)[:, candidate.target] * (z @ prior.feature_covariance @ x)


@pytest.mark.parametrize("name", NAMES)
def test_the_frozen_images_are_the_policys_choice(built: Bundle, reopened: ReopenedStudy, name: str) -> None:
    """Catches images of another policy, option or trial: the two first of each option by the formula, by a sort."""
    for trial in (*built.manifest.trials, *built.manifest.practice):
        question = reopened.planner.question(reopened.candidate(trial))
        assert isinstance(question, TeachingProblem)
        scores = score(name, reopened, question).tolist()
        sides = range(question.targets), range(question.targets, len(scores))
        best = [k for side in sides for k in sorted(sorted(side, key=scores.__getitem__)[-2:])]
        ids = reopened.sources.sets["pool"].ids
        shown = trial.assets.by_condition[name]
        assert shown.sources == tuple(ids[int(question.pool[k])] for k in best)
        assert set(shown.examples) == set(trial.options)
        assert set(shown.every) <= set(built.manifest.assets)


def test_the_images_are_drawn_as_those_of_the_studys_policy(built: Bundle) -> None:
    """Catches another size or cut: the same pool image has the same bytes in every condition, whoever chose it."""
    by_source: dict[str, set[str]] = {}
    for trial in (*built.manifest.trials, *built.manifest.practice):
        for one in trial.assets.examples:
            by_source.setdefault(one.source, set()).add(one.image)
        for name in NAMES:
            own = trial.assets.by_condition[name]
            drawn = [*own.examples[trial.target], *own.examples[trial.alternative]]
            for source, asset in zip(own.sources, drawn, strict=True):
                by_source.setdefault(source, set()).add(asset)
    assert all(len(assets) == 1 for assets in by_source.values())


def test_the_words_are_those_of_the_examples_in_both_languages() -> None:
    """Catches a condition whose participants read something else: only the images may differ."""
    for language in ("en", "de"):
        texts = complete_texts(language, {})
        for name in NAMES:
            assert apply_condition_words(texts, CONDITIONS[name]) == apply_condition_words(
                texts, CONDITIONS["examples"]
            )
            assert example(texts, CONDITIONS[name]) == example(texts, CONDITIONS["examples"])


def test_the_study_verifies_and_a_study_without_them_is_as_it_was(built: Bundle) -> None:
    """Catches trials that change with the conditions next to them: with and without, all else is equal to the byte."""
    assert verify(built) == []
    home = built.folder.parent.parent
    (home / "alone.toml").write_text(f'conditions = ["none", "examples"]\n{ONE}'.replace('"tiny"', '"alone"'))
    alone = build(home / "alone.toml", home)
    for without, with_them in zip(alone.manifest.trials, built.manifest.trials, strict=True):
        assert without.assets.by_condition == {}
        shared = with_them.assets.model_copy(update={"by_condition": {}})
        assert with_them.model_copy(update={"assets": shared}) == without


def test_a_simulated_learner_gains_what_the_examples_teach(built: Bundle, reopened: ReopenedStudy) -> None:
    """Catches a gain that is not of the images shown: the learner is asked again, about the frozen images by name."""
    planner, ids = reopened.planner, reopened.sources.sets["pool"].ids
    for trial in built.manifest.trials:
        candidate = reopened.candidate(trial)
        question = planner.question(candidate)
        assert isinstance(question, TeachingProblem)
        for name in NAMES:
            own = trial.assets.by_condition[name]
            members = torch.tensor([[ids.index(source) for source in own.sources]])
            classes = (candidate.target, candidate.alternative)
            pool = planner.material.pool.features
            after = score_sets(planner.prior, pool, members, question.image, classes, weight=128.0)
            gain = float(logit(float(after)) - logit(float(trial.teaching.p_prior or 0)))
            assert own.gain == pytest.approx(gain, rel=1e-3, abs=1e-5)
            p = BayesianLearner().p_ai(CONDITIONS[name].read(trial), ShownExplanations(False, True))
            believed = log(9) if trial.truth == trial.target else -log(9)
            assert p == pytest.approx(1 / (1 + exp(-believed - own.gain)))


def test_simulated_participants_see_them_and_the_contrast_is_with_the_examples(service: Service, built: Bundle) -> None:
    """Catches a condition that cannot be run, or whose default contrast is not with the study's own examples."""
    study = service.researcher.open_study(built.folder, per_condition=2)
    simulate(service, study, 8, {"bayesian_learner": 1.0}, seed=3)
    frame = service.researcher.responses(study, ("sim",))
    assert set(frame["condition"]) == {"none", "examples", *NAMES}
    shown = frame[frame["condition"].isin(NAMES)]
    assert (shown["examples"] == 1).all()
    assert (shown["saliency"] == 0).all()
    assert service.researcher.verify() == []
    found = responses.prepare(frame)
    assert not set(NAMES) & set(found.frame["condition"])
    pairs = {(c.more, c.less) for c in placebos.list_default_contrasts(found)}
    assert pairs == {("examples", name) for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_the_policy_of_the_study_can_be_either(built: Bundle, name: str) -> None:
    """Catches a policy that the study file refuses or takes for another: its examples are those of the condition."""
    policy, home = name.removesuffix("_examples"), built.folder.parent.parent
    (home / f"{policy}.toml").write_text(ONE.replace('policy = "best"', f'policy = "{policy}"'))
    planner = make_planner(open_sources(home / f"{policy}.toml"), home / "cache")
    ids = planner.sets["pool"].ids
    plan = planner.plan(lambda *_: None)
    assert [one.teaching.policy for one in plan.trials] == [policy] * len(plan.trials)
    expected = [trial.assets.by_condition[name].sources for trial in built.manifest.trials]
    assert [tuple(ids[i] for i in one.teaching.indices) for one in plan.trials] == expected


def test_a_condition_that_repeats_the_studys_policy_is_refused(tmp_path: Path) -> None:
    (tmp_path / "same.toml").write_text(FILE.replace('policy = "best"', 'policy = "influence"'))
    with pytest.raises(
        ForetellError, match="'influence_examples' would show the same examples as the other conditions"
    ):
        read(tmp_path / "same.toml")
