"""Adaptive choice of trials: its policies, a participation by them, what `verify` replays, and what is refused."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import norm

from core.errors import ForetellError
from study.adaptive.ability import PastTrial, estimate_ability, read_score
from study.adaptive.difficulty import measure_difficulty
from study.adaptive.policy import MARK, choose_trial, climb
from study.bundle import Bundle
from study.participation.adapting import plan_trials
from study.participation.allocation import Place
from study.plan.adaptive import Adaptive, add_difficulty
from study.plan.config import StudyConfig
from study.plan.preregistration import DEFAULT
from study.plan.procedure import TO_BUILD
from study.service import Service
from study.simulate import simulate
from tests.study.adaptive_studies import INFORMATION, STAIRCASE, make_adaptive, write_adaptive
from tests.study.participants import MakeBundle, answer, query, tamper, to_trials
from tests.study.test_within import DEMO

PLACE = Place("both", 1, 11)


def list_main(made: list[Any]) -> list[Any]:
    return [one for one in made if one.phase == "main"]


@pytest.mark.parametrize(
    ("rule", "target"),
    [
        ({"right": 1}, 0.5),
        ({"right": 2}, 0.7071),
        ({"right": 3}, 0.7937),
        ({"right": 1, "harder_by": 1, "easier_by": 3}, 0.75),
    ],
)
def test_a_staircase_converges_on_its_target(rule: dict[str, int], target: float) -> None:
    """Closed forms of Levitt (1971) and Kaernbach (1991), and 20,000 responses of an observer with a known function.

    Catches a rule that counts correct responses over a wrong one, steps in the wrong direction, and a wrong target.
    The observer's function is nearly linear over the few levels that are visited, without which the mean is biased.
    """
    adaptive = Adaptive.model_validate({"policy": "staircase", "trials": 8, "levels": 12, "start": 6, **rule})
    assert adaptive.target == pytest.approx(target, abs=1e-4)
    rng, rights = np.random.default_rng(1), list[bool]()
    level, run = 6, 0
    for _ in range(20_000):  # an independent staircase, written as the textbook says it
        right = bool(rng.random() < 1 - expit(0.35 * (level - 6.5) - np.log(target / (1 - target))))
        rights.append(right)
        run = run + 1 if right else 0
        if run == rule["right"]:
            level, run = min(level + rule.get("harder_by", 1), 12), 0
        elif not right:
            level = max(level - rule.get("easier_by", 1), 1)
    levels = [one for one, _ in climb(adaptive, rights)]
    assert levels[-1] == level
    assert np.mean(rights[100:]) == pytest.approx(target, abs=0.025)


def test_reasons_say_what_the_staircase_did() -> None:
    """Worked by hand: 2 correct in a row up, a wrong one down, and no step beyond the hardest level."""
    adaptive = Adaptive.model_validate({"policy": "staircase", "trials": 8, "levels": 3})
    rights = [True, True, True, True, False, True, False, False, False]
    assert [*climb(adaptive, rights)] == [
        (2, "start"), (2, "same"), (3, "harder"), (3, "same"), (3, "same"), (2, "easier"), (2, "same"), (1, "easier"),
        (1, "same"), (1, "same"),
    ]  # fmt: skip


def test_ability_is_the_posterior_of_the_rasch_model(bundle: MakeBundle) -> None:
    """Compares the grid with numerical integration. Catches a wrong sign, a prior that is left out, and the spread."""
    adaptive = Adaptive.model_validate({**INFORMATION, "prior_mean": 0.5, "prior_sd": 1.2, "spread": 0.7})
    trials = make_adaptive(bundle, INFORMATION).trials
    history = [PastTrial(trial, bool(k % 3)) for k, trial in enumerate(trials[:9])]

    def density(theta: float) -> float:
        each = [expit((1 if one.right else -1) * (theta - 0.7 * one.trial.difficulty.score)) for one in history]  # type: ignore[union-attr]
        return float(norm.pdf(theta, 0.5, 1.2) * np.prod(each))

    total, first, second = (quad(lambda t, k=k: t**k * density(t), -9, 9)[0] for k in range(3))
    mean, sd = estimate_ability(adaptive, history)
    assert mean == pytest.approx(first / total, abs=1e-4)
    assert sd == pytest.approx(np.sqrt(second / total - (first / total) ** 2), abs=1e-4)


def test_information_chooses_what_tells_most(bundle: MakeBundle) -> None:
    """A Rasch observer: each choice has the largest p (1 - p) at the current ability among those that may come.

    Catches a choice by the ability before the last response, and of the trial that is furthest away.
    """
    adaptive, trials = Adaptive.model_validate(INFORMATION), make_adaptive(bundle, INFORMATION).trials
    rng, history = np.random.default_rng(2), list[PastTrial]()
    for _ in range(30):
        unseen = [trial for trial in trials if trial.id not in {one.trial.id for one in history}]
        chosen = choose_trial(adaptive, unseen, history, rng).trial
        ability = estimate_ability(adaptive, history)[0]
        p = expit([ability - read_score(adaptive, trial) for trial in unseen])
        told = dict(zip([trial.id for trial in unseen], p * (1 - p), strict=True))
        assert told[chosen.id] == pytest.approx(max(told.values()), abs=1e-6)
        history.append(PastTrial(chosen, bool(rng.random() < expit(1.0 - read_score(adaptive, chosen)))))
    assert estimate_ability(adaptive, history)[0] == pytest.approx(1.0, abs=2 * estimate_ability(adaptive, history)[1])


def test_difficulty_is_ranked_within_each_type(bundle: MakeBundle) -> None:
    """Catches levels that have one type more often than others, and a measure that is read the wrong way round."""
    manifest = make_adaptive(bundle, STAIRCASE)
    counts = Counter((trial.trial_type, trial.difficulty.level) for trial in manifest.trials if trial.difficulty)
    assert set(counts.values()) == {4}
    assert len(counts) == 12
    for kind in {trial.trial_type for trial in manifest.trials}:
        own = sorted(
            (t for t in manifest.trials if t.trial_type == kind), key=lambda t: -float(t.teaching.p_learner or 0)
        )
        assert [t.difficulty.level for t in own if t.difficulty] == sorted(
            t.difficulty.level for t in own if t.difficulty
        )  # type: ignore[type-var]
        assert np.argsort([t.difficulty.score for t in own if t.difficulty]).tolist() == [*range(len(own))]


@pytest.mark.parametrize("section", [STAIRCASE, INFORMATION])
@pytest.mark.parametrize("task", ["predict", "accept_reject", "agreement", "reliance_one_step"])
def test_types_and_sides_do_not_depend_on_responses(bundle: MakeBundle, section: dict[str, Any], task: str) -> None:
    """Compares a participant whose responses are all correct with one whose are all wrong, and attention checks.

    Catches a policy that gives the AI's errors to participants who are wrong, a side that follows from responses, long
    runs of one side, a trial that comes twice, and a plan that is not the beginning of the next.
    """
    config = {"study": {"task": task}, "pacing": {"catch": 2}}
    manifest = make_adaptive(bundle, section, config=config)
    plans = [plan_trials(manifest, PLACE, [right] * 12) for right in (True, False)]
    kinds = [[(one.phase, one.trial.trial_type) for one in made] for made in plans]
    assert kinds[0] == kinds[1]
    assert Counter(kind for phase, kind in kinds[0] if phase == "main") == dict.fromkeys(
        ("adv_incorrect", "std_incorrect", "std_correct"), 4
    )
    assert [one.trial.id for one in plans[0]] != [one.trial.id for one in plans[1]]
    for made in plans:
        main = list_main(made)
        assert len({one.trial.id for one in main}) == len(main) == 12
        assert len(made) == 1 + 12 + 2
        for count in range(13):
            part = plan_trials(manifest, PLACE, [made is plans[0]] * count)
            assert part == made[: len(part)]
            assert len(list_main(part)) == min(count + 1, 12)
    easy, hard = (np.mean([one.trial.difficulty.score for one in list_main(made)[-6:]]) for made in reversed(plans))
    assert easy < hard - 0.5


def respond(service: Service, token: str, state: dict[str, Any], *, side: str = "left") -> dict[str, Any]:
    ack = service.participant.record(token, answer(state["trial"]["index"], side))
    assert ack.code == 201
    return ack.state


@pytest.mark.parametrize("section", [STAIRCASE, INFORMATION])
def test_a_participation_chooses_each_trial_once(service: Service, bundle: MakeBundle, section: dict[str, Any]) -> None:
    """Reloads, repeats and a second tab between responses; then the replay by `verify`, and a withdrawal.

    Catches a choice that is made again at a reload, one before the response, one that the page could read, images of
    the next trial in what is loaded before the response, and a plan that `verify` does not make again.
    """
    config = {"pacing": {"catch": 2, "break_every": 5}}
    study = service.researcher.open_study(write_adaptive(bundle, section, config=config), 4)
    token = service.participant.begin(study)
    state = to_trials(service, token)
    sides = iter(["left", "left", "right", "left", "right", "right", "left", "left"] * 2)
    while state["stage"] in ("practice", "main"):
        index = state["trial"]["index"]
        assert MARK not in json.dumps({key: value for key, value in state.items() if key != "texts"})
        assert all(word not in json.dumps(state) for word in ("difficulty", "aimed", "chosen_by"))
        assert service.participant.state(token)["trial"] == state["trial"]
        assert state["trial"].get("part") == (
            "next" if state["stage"] == "main" and not state["trial"].get("asked") else None
        )
        loaded = service.participant.preload(token)
        assert state["trial"]["target"] is None or state["trial"]["target"] in loaded
        assert len(loaded) <= 10
        (rows,) = query(service, "SELECT count(*) FROM trial_plan")[0]
        sent = answer(index, next(sides))
        state = service.participant.record(token, sent).state
        again = service.participant.record(token, sent)
        assert (again.code, again.state["stage"]) == (200, state["stage"])
        assert rows <= query(service, "SELECT count(*) FROM trial_plan")[0][0] <= rows + 2
        assert service.researcher.verify() == []
    service.participant.finish(token)
    assert query(service, "SELECT count(*), max(trial_index) FROM trial_plan") == [(15, 14)]
    assert service.researcher.verify() == []
    service.participant.withdraw(service.participant.state(token)["withdrawal_code"])
    assert service.researcher.verify() == []
    assert query(service, "SELECT count(*) FROM trial_plan") == [(0,)]


@pytest.mark.parametrize("what", ["item", "mark", "response"])
def test_verify_names_the_first_trial_that_deviates(service: Service, bundle: MakeBundle, what: str) -> None:
    """Plants a trial that the policy did not choose, a level that it did not aim at, and another response.

    Catches a replay that takes the stored trials for what was chosen, or the stored marks for levels.
    """
    study = service.researcher.open_study(write_adaptive(bundle, STAIRCASE, practice=0), 4)
    simulate(service, study, 2, {"belief_projector": 1.0}, 1)
    assert service.researcher.verify() == []
    ((session,),) = query(service, "SELECT session_id FROM session ORDER BY started_at LIMIT 1")
    steps = query(
        service,
        "SELECT trial_index, screen_json FROM screen JOIN trial_plan USING (screen_id) "
        f"WHERE session_id = '{session}' ORDER BY 1",
    )
    changed = next(index for index, text in steps if json.loads(text)[MARK]["chosen_by"] == "easier") - 1
    place = f"session_id = '{session}' AND trial_index = {changed}"
    if what == "item":
        ((last,),) = query(
            service, f"SELECT item_id FROM trial_plan WHERE session_id = '{session}' AND trial_index = 11"
        )
        tamper(service, f"UPDATE trial_plan SET item_id = '{last}' WHERE {place}")
    elif what == "mark":
        ((number, text),) = query(
            service,
            f"SELECT s.screen_id, screen_json FROM screen s JOIN trial_plan USING (screen_id) WHERE {place}",
        )
        screen = json.loads(text)
        screen[MARK]["aimed"] += 1
        tamper(service, f"UPDATE screen SET screen_json = '{json.dumps(screen)}' WHERE screen_id = {number}")
    else:
        ((choice, side),) = query(service, f"SELECT choice, side FROM response WHERE {place}")
        other, turned = {"a": "b", "b": "a"}[choice], {"left": "right", "right": "left"}[side]
        tamper(service, f"UPDATE response SET choice = '{other}', side = '{turned}' WHERE {place}")
    first = changed + (what == "response")
    faults = service.researcher.verify()
    assert any(f"Session {session}, trial {first}: the plan has" in fault for fault in faults), faults
    assert not any(f"trial {k}: the plan has" in fault for fault in faults for k in range(12) if k != first)


def test_rows_say_why_each_trial_was_chosen(service: Service, bundle: MakeBundle) -> None:
    """Catches columns of another response, an ability before the response, and columns in studies without a policy."""
    study = service.researcher.open_study(write_adaptive(bundle, STAIRCASE), 4)
    simulate(service, study, 3, {"belief_projector": 1.0}, 1)
    frame = service.researcher.responses(study, ("sim",))
    adaptive = Adaptive.model_validate(STAIRCASE)
    manifest = service.workspace.find_shown_manifest(study)
    trials = {trial.id: trial for trial in manifest.trials}
    assert len(frame) == 36
    for _, own in frame.groupby("participant"):
        own = own.sort_values("trial")
        steps = [*climb(adaptive, own["correct"].astype(bool).tolist())][:-1]
        assert [*zip(own["aimed_level"], own["chosen_by"], strict=True)] == steps
        assert own["difficulty"].tolist() == [trials[name].difficulty.score for name in own["item"]]  # type: ignore[union-attr]
        assert (own["difficulty_level"] - own["aimed_level"]).abs().max() <= 3
        history = [
            PastTrial(trials[name], bool(right)) for name, right in zip(own["item"], own["correct"], strict=True)
        ]
        assert (own["ability"].iloc[-1], own["ability_sd"].iloc[-1]) == estimate_ability(adaptive, history)
        assert own["target_share"].unique() == pytest.approx([0.7071], abs=1e-4)


def read_demo(**sections: Any) -> StudyConfig:
    return StudyConfig.model_validate({**tomllib.loads(DEMO.read_text()), **sections}, context=TO_BUILD)


def test_a_study_file_plans_the_difficulty(bundle: MakeBundle) -> None:
    """Catches models without the difficulty, another hash without the section, and defaults that are not frozen."""
    made = read_demo(adaptive={"policy": "staircase", "trials": 15, "by": "ai_probability"})
    assert made.analysis.covariates == ("difficulty",)
    assert [*made.analysis.models] == [*DEFAULT]
    assert made.analysis.models["null"] == add_difficulty(DEFAULT["null"])
    assert "adaptive" not in read_demo().model_dump(mode="json")
    dumped = made.model_dump(mode="json")
    assert dumped["adaptive"] == {
        "policy": "staircase", "trials": 15, "by": "ai_probability", "harder": "low",
        "levels": 5, "start": 3, "right": 2, "harder_by": 1, "easier_by": 1,
    }  # fmt: skip
    assert StudyConfig.model_validate(dumped) == made
    assert "difficulty" not in Bundle(bundle()).manifest.model_dump(mode="json")["trials"][0]


@pytest.mark.parametrize(
    ("sections", "said"),
    [
        ({"adaptive": {**STAIRCASE, "among": 2}}, "among is a setting of the policy 'information'"),
        ({"adaptive": {**STAIRCASE, "start": 5}}, "start is level 5, and there are levels 1 to 4"),
        ({"adaptive": {**STAIRCASE, "by": "taste"}}, "there is no measure 'taste'"),
        ({"adaptive": {**STAIRCASE, "trials": 500}}, "leave little to choose from"),
        ({"adaptive": {**STAIRCASE, "by": "stratum"}}, "[trials.strata], which is missing"),
        ({"blocks": {"training": 2, "test": 2}}, "Remove one of the two sections"),
        ({"sittings": {"count": 2}}, "trials of [sittings] are drawn before the first response"),
        ({"allocation": {"within": True}}, "Leave within out"),
        (
            {"study": {"name": "x", "title": "x", "task": "rating"}},
            "no response to the task 'rating' is right or wrong",
        ),
        ({"study": {"name": "x", "title": "x", "task": "reliance"}}, "cannot be chosen by the responses before them"),
        ({"analysis": {"exclusions": {"least_accuracy": 0.5}}}, "drives the accuracy of all participants"),
        ({"analysis": {"models": DEFAULT}}, "each model needs + difficulty"),
    ],
)
def test_what_makes_no_sense_is_refused(sections: dict[str, Any], said: str) -> None:
    """Each with the setting and the remedy."""
    with pytest.raises(ValidationError) as refused:
        read_demo(**{"adaptive": STAIRCASE, **sections})
    assert said in str(refused.value)


def test_trials_without_a_measure_or_for_too_many_levels_are_refused(bundle: MakeBundle) -> None:
    """Catches a difficulty that is made up where it was not measured, and levels without trials."""
    trials = make_adaptive(bundle, STAIRCASE).trials
    for change, said in (
        ({"by": "insertion"}, "48 of 48 trials have no insertion"),
        ({"levels": 10, "start": 5}, "10 levels need 20 trials of each type"),
        ({"by": "ai_probability"}, "different values of ai_probability"),
        ({"trials": 25}, "leave little to choose from"),
    ):
        with pytest.raises(ForetellError, match=said):
            measure_difficulty(Adaptive.model_validate({**STAIRCASE, **change}), trials)
