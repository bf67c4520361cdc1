"""Simulated people do what their theory says, on trials of every kind."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import exponnorm, norm

from core.errors import ForetellError
from study.bundle import Trial, TrialAssets
from study.facts import TeachingFacts
from study.plan import simulated_participants
from study.tasks.predict import TASK as PREDICT
from study.tasks.theory import ShownExplanations


def trial(kind: str = "std_correct", relevance: float | None = None) -> Trial:
    """The AI right, or wrong, on a picture of a cat."""
    target, alternative = ("cat", "dog") if kind == "std_correct" else ("dog", "cat")
    return Trial(
        id="t",
        trial_type=kind,
        target=target,
        alternative=alternative,
        truth="cat",
        options=("cat", "dog"),
        ai_probability=0.9,
        source="s",
        assets=TrialAssets(target="0", target_map="1", examples=()),
        teaching={},
        saliency={},
        relevance=relevance,
    )


RIGHT, WRONG = trial(), trial("std_incorrect")


def expit(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def test_guesser_guesses() -> None:
    for shown in (True, False):
        for question in (RIGHT, WRONG, trial("std_incorrect", 0.0)):
            assert (
                simulated_participants.Guesser().p_ai(question, ShownExplanations(saliency=shown), deviation=3.0) == 0.5
            )


def test_belief_projector_is_right_when_the_ai_is() -> None:
    person = simulated_participants.BeliefProjector(lapse=0.2)
    assert person.p_ai(RIGHT, ShownExplanations()) == pytest.approx(0.8)
    assert person.p_ai(WRONG, ShownExplanations()) == pytest.approx(0.2)
    assert person.p_ai(trial("adv_incorrect", 0.0), ShownExplanations(saliency=True)) == pytest.approx(0.2)


def test_deviation_moves_the_tendency_to_answer_ones_own_label() -> None:
    # Closed form: expit(logit(.9) + d) for her own label; so more right answers where the AI is right, fewer where not.
    person, own = simulated_participants.BeliefProjector(lapse=0.1), math.log(9) + 0.7
    assert person.p_ai(RIGHT, ShownExplanations(), deviation=0.7) == pytest.approx(expit(own))
    assert person.p_ai(WRONG, ShownExplanations(), deviation=0.7) == pytest.approx(expit(-own))


@pytest.mark.parametrize(("kind", "sign"), [("std_correct", 1), ("adv_incorrect", -1)])
@pytest.mark.parametrize("relevance", [0.0, 0.2, 0.5, 1.0])
def test_map_reader_adds_the_evidence_of_the_map(kind: str, sign: int, relevance: float) -> None:
    person = simulated_participants.MapReader(lapse=0.1, slope=6.0, threshold=0.4)
    own = math.log(9) + 6.0 * (relevance - 0.4)
    assert person.p_ai(trial(kind, relevance), ShownExplanations(saliency=True)) == pytest.approx(expit(sign * own))


def test_map_on_the_context_tells_that_the_ai_errs() -> None:
    person = simulated_participants.MapReader()
    assert person.p_ai(trial("adv_incorrect", 0.1), ShownExplanations(saliency=True)) > 0.5
    assert person.p_ai(trial("adv_incorrect", 0.1), ShownExplanations()) < 0.2


def test_map_reader_without_a_map_projects_beliefs() -> None:
    reader, projector = simulated_participants.MapReader(lapse=0.15), simulated_participants.BeliefProjector(lapse=0.15)
    for question, shown in ((trial("std_incorrect", 0.1), False), (trial("std_incorrect", None), True)):
        assert reader.p_ai(question, ShownExplanations(saliency=shown)) == projector.p_ai(
            question, ShownExplanations(saliency=shown)
        )


@pytest.mark.parametrize("lapse", [0.0, 1.0, -0.1, math.nan])
def test_impossible_lapse_is_refused(lapse: float) -> None:
    for theory in (simulated_participants.BeliefProjector, simulated_participants.MapReader):
        with pytest.raises(ForetellError, match="not a probability"):
            theory(lapse=lapse)


def test_mixture_is_drawn_in_its_shares() -> None:
    drawn = simulated_participants.sample_mixture({"guesser": 1, "map_reader": 3}, 4000, np.random.default_rng(1))
    share = np.mean([person.name == "map_reader" for person in drawn])
    assert share == pytest.approx(0.75, abs=4 * math.sqrt(0.75 * 0.25 / 4000))
    deviations = np.array([person.deviation for person in drawn])
    assert deviations.std() == pytest.approx(0.38, abs=4 * 0.38 / math.sqrt(2 * 4000))
    assert abs(deviations.mean()) < 4 * 0.38 / math.sqrt(4000)


def test_same_seed_same_people() -> None:
    mixture = {"guesser": 1.0, "belief_projector": 1.0}
    first, again = (simulated_participants.sample_mixture(mixture, 20, np.random.default_rng(6)) for _ in range(2))
    assert first == again


@pytest.mark.parametrize(
    ("mixture", "said"),
    [
        ({"map_raeder": 1.0}, "Unknown simulated participant 'map_raeder'. Did you mean 'map_reader'?"),
        ({"guesser": -1.0, "map_reader": 2.0}, "The weight -1.0 of 'guesser'"),
        ({"guesser": math.nan}, "The weight nan of 'guesser'"),
        ({"guesser": 0.0}, "The mixture is empty"),
        ({}, "The mixture is empty"),
    ],
)
def test_bad_mixtures_are_refused(mixture: dict[str, float], said: str) -> None:
    with pytest.raises(ForetellError) as caught:
        simulated_participants.sample_mixture(mixture, 3, np.random.default_rng(0))
    assert said in str(caught.value)
    with pytest.raises(ForetellError):
        simulated_participants.compute_expected_accuracy(mixture, RIGHT, ShownExplanations())


def test_expected_accuracy_against_numerical_integration() -> None:
    # Oracle: adaptive quadrature of the definition, by scipy.
    question = trial("adv_incorrect", 0.3)
    reader = simulated_participants.MapReader()

    def weighted(d: float) -> float:
        return reader.p_ai(question, ShownExplanations(saliency=True), deviation=d) * norm.pdf(d, scale=1.5)

    reads = quad(weighted, -15, 15, epsabs=1e-12)[0]
    expected = 0.25 * 0.5 + 0.75 * reads
    got = simulated_participants.compute_expected_accuracy(
        {"guesser": 1, "map_reader": 3}, question, ShownExplanations(saliency=True), sd=1.5
    )
    assert got == pytest.approx(expected, abs=1e-8)


def test_answers_have_the_expected_frequency() -> None:
    rng = np.random.default_rng(8)
    mixture = {"belief_projector": 1.0, "map_reader": 1.0}
    question = trial("adv_incorrect", 0.2)
    drawn = simulated_participants.sample_mixture(mixture, 5000, rng)
    hits = [rng.random() < person.p_right(PREDICT, question, ShownExplanations(saliency=True)) for person in drawn]
    expected = simulated_participants.compute_expected_accuracy(mixture, question, ShownExplanations(saliency=True))
    assert np.mean(hits) == pytest.approx(expected, abs=4 * 0.5 / math.sqrt(5000))


def test_response_times_are_ex_gaussian_milliseconds() -> None:
    # Moments of scipy's exponnorm; no draw under the floor.
    rng = np.random.default_rng(9)
    clock = simulated_participants.ResponseTime(mu=1000.0, sigma=100.0, tau=500.0)
    draws = np.array([clock.draw(rng) for _ in range(20_000)])
    exact = exponnorm(500 / 100, loc=1000, scale=100)
    assert draws.mean() == pytest.approx(exact.mean(), abs=4 * exact.std() / math.sqrt(20_000))
    assert draws.std() == pytest.approx(exact.std(), rel=0.05)
    assert np.median(draws) == pytest.approx(exact.median(), abs=20)
    hasty = simulated_participants.ResponseTime(mu=0.0, sigma=100.0, tau=1.0)
    assert min(hasty.draw(rng) for _ in range(100)) == hasty.fastest


def test_bayesian_learner_adds_the_teaching_gain_where_examples_are_shown() -> None:
    # Closed form: log-odds of the AI's choice are those of her own belief plus weight times the gain.
    person = simulated_participants.BayesianLearner(lapse=0.1, weight=0.5)
    taught = trial("adv_incorrect").model_copy(update={"teaching": TeachingFacts(gain=3.0)})
    shown = person.p_ai(taught, ShownExplanations(examples=True))
    assert shown == pytest.approx(expit(-math.log(9) + 1.5))
    for question, examples in ((taught, False), (trial("adv_incorrect"), True)):
        assert person.p_ai(question, ShownExplanations(True, examples)) == pytest.approx(0.1)


def test_inattentive_mixes_belief_and_chance() -> None:
    person = simulated_participants.Inattentive(lapse=0.1, absence=0.4)
    assert person.p_ai(RIGHT, ShownExplanations()) == pytest.approx(0.6 * 0.9 + 0.2)
    assert person.p_ai(WRONG, ShownExplanations(saliency=True)) == pytest.approx(0.6 * 0.1 + 0.2)
    with pytest.raises(ForetellError, match="not a probability"):
        simulated_participants.Inattentive(absence=1.0)
