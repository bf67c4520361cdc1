"""Simulated people through the real service."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from core.errors import ForetellError
from study.participation.refusals import Refusal
from study.service import Service
from study.simulate import simulate

MakeBundle = Callable[..., Path]
CHOICES = ["condition", "trial", "item", "choice", "rt_ms"]
ANSWERS = 12 + 2 + 1
"""Trials, practice and catch trials of the bundle."""


def run(home: Path, folder: Path, participants: int, seed: int = 3) -> pd.DataFrame:
    home.mkdir()
    with Service(home) as service:
        study = service.researcher.open_study(folder, per_condition=1)
        simulate(service, study, participants, {"belief_projector": 1.0, "map_reader": 1.0}, seed)
        assert service.researcher.verify() == []
        return service.researcher.responses(study, ("sim",))


def test_the_same_seed_gives_the_same_answers(tmp_path: Path, bundle: MakeBundle) -> None:
    folder = bundle()
    one, two, other = (run(tmp_path / name, folder, 8, seed) for name, seed in (("a", 3), ("b", 3), ("c", 4)))
    pd.testing.assert_frame_equal(one[CHOICES], two[CHOICES])
    assert list(one["choice"]) != list(other["choice"])


def test_everybody_answers_everything_once_in_balance(tmp_path: Path, bundle: MakeBundle) -> None:
    frame = run(tmp_path / "a", bundle(), 8)
    assert len(frame) == 8 * 12
    assert not frame.duplicated(["participant", "item"]).any()
    assert dict(frame.groupby("condition")["participant"].nunique()) == dict.fromkeys(frame["condition"].unique(), 2)
    assert frame["condition"].nunique() == 4
    assert set(frame["input"]) == {"sim"}


def test_nobody_is_let_in_for_the_sake_of_simulated_people(service: Service, bundle: MakeBundle) -> None:
    """A study never opened, and one that was closed, stay so; an open one stays open."""
    folder = bundle()
    study = service.researcher.add_study(folder)
    assert simulate(service, study, 4, {"guesser": 1.0}, seed=1) == 4 * ANSWERS
    with pytest.raises(Refusal, match="is not open"):
        service.participant.begin(study)
    service.researcher.open_study(folder, per_condition=1)
    service.researcher.add_study(folder)
    assert service.participant.state(service.participant.begin(study))["stage"] == "consent"
    service.researcher.close_study(study)
    service.researcher.add_study(folder)
    assert simulate(service, study, 8, {"guesser": 1.0}, seed=1) == 4 * ANSWERS
    with pytest.raises(Refusal, match="no longer accepts participants"):
        service.participant.begin(study, participant="another")


def test_running_again_adds_only_what_is_missing(service: Service, bundle: MakeBundle) -> None:
    study = service.researcher.open_study(bundle(), per_condition=1)
    mixture = {"guesser": 1.0}
    stopped = RuntimeError("stopped")

    def stop(done: int, total: int, what: str) -> None:
        if done == 2:
            raise stopped

    with pytest.raises(RuntimeError, match="stopped"):
        simulate(service, study, 4, mixture, 1, stop)
    before = service.researcher.responses(study, ("sim",))
    assert simulate(service, study, 4, mixture, 1) == 2 * 15
    assert simulate(service, study, 4, mixture, 1) == 0
    after = service.researcher.responses(study, ("sim",))
    pd.testing.assert_frame_equal(after.head(len(before)), before)
    assert simulate(service, study, 5, mixture, 1) == 15
    assert simulate(service, study, 1, mixture, 2) == 15


def test_people_do_what_their_theory_says(service: Service, bundle: MakeBundle) -> None:
    """Belief projectors predict the truth: nearly always right where the AI is, nearly never where it is not.

    Catches sides or options exchanged anywhere between the person and the table: with a lapse of .1 and people's
    sd of .38, accuracy is near .9 on correct trials and near .1 on the others; 16 people x 12 trials.
    """
    study = service.researcher.open_study(bundle(), per_condition=1)
    simulate(service, study, 16, {"belief_projector": 1.0}, seed=5)
    accuracy = service.researcher.responses(study, ("sim",)).groupby("trial_type")["correct"].mean()
    assert accuracy["std_correct"] > 0.75
    assert accuracy["std_incorrect"] < 0.25
    assert accuracy["adv_incorrect"] < 0.25


def test_answers_of_a_guesser_are_independent(service: Service, bundle: MakeBundle) -> None:
    """Catches one random number used for every trial of a person; binomial(192, .5) is within 72..120 (p > .999)."""
    study = service.researcher.open_study(bundle(), per_condition=1)
    simulate(service, study, 16, {"guesser": 1.0}, seed=6)
    frame = service.researcher.responses(study, ("sim",))
    assert frame.groupby("participant")["correct"].nunique().min() == 2
    assert frame.groupby("item")["correct"].nunique().min() == 2
    assert 72 <= frame["correct"].sum() <= 120
    assert frame["rt_ms"].nunique() == len(frame)


def test_the_ais_answer_is_told_to_nobody_else(service: Service, bundle: MakeBundle) -> None:
    study = service.researcher.open_study(bundle(), per_condition=1)
    for mode in ("live", "preview"):
        token = service.participant.begin(study, mode=mode)  # type: ignore[arg-type]
        service.participant.consent(token, True)
        service.participant.ready(token)
        service.participant.ready(token, "example")
        with pytest.raises(Refusal) as refused:
            service.participant.load_simulated_trial(token, 0)
        assert refused.value.code == 403


def test_nobody_and_unknown_people_are_refused_in_words(service: Service, bundle: MakeBundle) -> None:
    study = service.researcher.open_study(bundle(), per_condition=1)
    with pytest.raises(ForetellError, match="at least 1"):
        simulate(service, study, 0, {"guesser": 1.0}, 1)
    with pytest.raises(ForetellError, match="Did you mean 'guesser'"):
        simulate(service, study, 1, {"gueser": 1.0}, 1)


def test_attention_checks_are_simulated_under_every_condition(service: Service, bundle: MakeBundle) -> None:
    """Catches a simulated participant that looks for a placebo's facts in an attention check, which has none."""
    study = service.researcher.open_study(bundle(conditions=("random_maps",), config={"pacing": {"catch": 2}}), 2)
    assert simulate(service, study, 2, {"map_reader": 1.0}, 0) > 0
