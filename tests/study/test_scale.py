"""Tasks with a scale in place of two options: `agreement` from the plan to the table, and what is refused."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pydantic import ValidationError

from core.errors import ForetellError
from study.analysis.exploratory import levels, ordinal
from study.analysis.exploratory.analysis import AnalysedStudy, list_analyses
from study.analysis.responses import reading
from study.bundle import Bundle
from study.collection.integrity import find_faults
from study.participation.screens import plan
from study.plan.config import StudyConfig
from study.service import Service, SimulatedTrial
from study.simulate import choose_side, simulate
from study.tasks import TASKS
from tests.study.participants import MakeBundle, answer, query, to_trials

SETTINGS = {"study": {"task": "agreement"}}
RECIPE = Path(__file__).parents[2] / "data" / "studies" / "agreement.toml"
LEVELS = [
    "Fairly confident that it is wrong",
    "Somewhat confident that it is wrong",
    "Somewhat confident that it is right",
    "Fairly confident that it is right",
]


def test_who_always_gives_the_top_level_is_correct_where_the_ai_is(service: Service, bundle: MakeBundle) -> None:
    """Both orders of the scale, through practice, attention checks and bonus to the table.

    Catches a level that changes with the order on the screen, an attention check that cannot be passed, the truth in a
    screen, and a criterion other than the side of the scale.
    """
    pay = {"per_right": 1, "most": 100}
    config = {**SETTINGS, "pay": pay, "pacing": {"catch": 2}}
    study = service.researcher.open_study(bundle(config=config, practice=1), per_condition=2)
    manifest = service.workspace.find_shown_manifest(study)
    foils = {trial.assets.target: {trial.truth, trial.alternative} - {trial.target} for trial in manifest.trials}
    orders = set()
    for _ in range(8):
        token = service.participant.begin(study)
        state = to_trials(service, token)
        assert state["keys"] == {"left": "1", "right": "4"}
        while state["stage"] in ("practice", "main"):
            screen = state["trial"]
            names = [option["name"] for option in screen["options"]]
            orders.add(tuple(names))
            assert not any(name in json.dumps(screen) for name in foils.get(screen["target"], ()))
            wanted = screen.get("asked", LEVELS[-1])
            ack = service.participant.record(token, answer(screen["index"], str(names.index(wanted) + 1)))
            assert (ack.code, ack.feedback is None) == (201, state["stage"] == "main")
            state = ack.state
        service.participant.finish(token)
    assert orders == {tuple(LEVELS), tuple(LEVELS[::-1])}
    frame = service.researcher.responses(study)
    assert len(frame) == 8 * 12
    assert (frame["correct"] == frame["ai_correct"]).all()
    assert set(frame["level"]) == {4}
    assert set(frame["choice"]) == {"fairly_right"}
    assert set(frame["task"]) == {"agreement"}
    assert set(service.researcher.load_participants(study)["catch_missed"]) == {0}
    assert query(service, "SELECT minor_units FROM payment") == [(4,)] * 8  # of 12 trials in three equal types
    assert {row[0] for row in query(service, "SELECT side FROM response")} >= {"1", "4"}
    assert service.workspace.store.read(lambda db: list(find_faults(db, service.workspace.manifest_of))) == []
    service.researcher.close_study(study)
    replayed = service.researcher.replay(study, str(frame["participant"].iloc[0])).trials
    assert all(one.correct == (one.trial.target == one.trial.truth) for one in replayed if one.phase == "main")


@pytest.mark.parametrize(
    ("task", "side", "known"),
    [("agreement", "5", "1, 2, 3, 4"), ("agreement", "left", "1, 2, 3, 4"), ("predict", "3", "left, right")],
)
def test_an_option_that_a_trial_does_not_have_is_refused(
    service: Service, bundle: MakeBundle, task: str, side: str, known: str
) -> None:
    """Catches a response stored under a wrong letter, one that stops the session, and one lost without a trace."""
    study = service.researcher.open_study(bundle(config={"study": {"task": task}}, practice=0), per_condition=1)
    token = service.participant.begin(study)
    to_trials(service, token)
    refused = service.participant.record(token, answer(0, side))
    assert (refused.code, refused.message) == (422, f"This trial has no option {side!r}: its options are {known}.")
    assert query(service, "SELECT reason, trial_index FROM response_conflict") == [("no such option", 0)]
    assert query(service, "SELECT * FROM response") == []
    first = known.split(", ", maxsplit=1)[0]
    assert service.participant.record(token, given := answer(0, first)).code == 201
    assert service.participant.record(token, given).code == 200  # a retry
    assert service.participant.record(token, answer(0, first)).code == 409
    assert query(service, "SELECT side FROM response") == [(first,)]


def test_levels_of_simulated_participants_follow_their_log_odds(service: Service, bundle: MakeBundle) -> None:
    """Cumulative logit: the shares of the levels are differences of the logistic function one apart.

    Catches a level that is drawn without regard to how sure the participant is, and one on the wrong side; the shares
    are over a grid of 10,000 quantiles, so they are exact to 1e-4. Participants of a theory go through the service.
    """
    known = SimulatedTrial(None, False, TASKS["agreement"], ("3", "4"), ("2", "1"), None)  # type: ignore[arg-type]
    grid = [(k + 0.5) / 10_000 for k in range(10_000)]
    sides = [choose_side(known, 0.7, drawn) for drawn in grid]
    odds = 0.7 / 0.3
    at_least = [1 / (1 + 2.718281828459045**step / odds) for step in (-1, 0, 1)]  # of levels 2, 3 and 4
    expected = [1 - at_least[0], at_least[0] - at_least[1], at_least[1] - at_least[2], at_least[2]]
    assert [sides.count(level) / len(sides) for level in "1234"] == pytest.approx(expected, abs=1.5e-4)
    study = service.researcher.open_study(bundle(config=SETTINGS, practice=0), per_condition=1)
    simulate(service, study, 8, {"belief_projector": 1.0}, seed=5)
    frame = service.researcher.responses(study, ("sim",))
    assert frame["correct"].mean() > 0.75
    assert ((frame["level"] > 2) == (frame["correct"] == frame["ai_correct"])).all()
    assert set(frame["level"]) >= {1, 4}
    assert list(ordinal.rate(AnalysedStudy(reading.prepare(frame)))["rank"]) == list(frame["level"])


def test_the_correct_side_stays_on_one_end_for_three_trials_at_most(bundle: MakeBundle) -> None:
    """Catches an order of trials that ignores the scale's side, and an attention check with a scale of its own."""
    manifest = Bundle(bundle(config={**SETTINGS, "pacing": {"catch": 3}})).manifest
    for side_flip in (0, 1):
        shown = plan(manifest, "both", side_flip, order_seed=3)
        expected = LEVELS if side_flip == 0 else LEVELS[::-1]
        assert all([option["name"] for option in one.screen["options"]] == expected for one in shown)
        main = [one.trial for one in shown if one.phase == "main"]
        at_left = "".join("xo"[(one.target == one.truth) == bool(side_flip)] for one in main)
        assert at_left.count("o") in (4, 8)
        assert "xxxx" not in at_left
        assert "oooo" not in at_left


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"pacing": {"confidence": True}}, "the task 'agreement' asks for the confidence already. Set it to false"),
        ({"keys": {"left": "d", "right": "k"}}, "the keys of the task 'agreement' are the digits 1 to 4. Remove"),
        ({"texts": {"choice_fairly_wrong": LEVELS[1]}}, "two levels of the task 'agreement' read 'Somewhat"),
        ({"conditions": ["none", "rules"]}, "'rules' cannot go with the task 'agreement', because it explains a"),
    ],
)
def test_what_makes_no_sense_with_a_scale_is_refused_in_words(change: dict[str, Any], said: str) -> None:
    """Catches a second confidence, keys that press nothing, and an attention check with two right buttons."""
    recipe = tomllib.loads(RECIPE.read_text(encoding="utf-8"))
    assert StudyConfig.model_validate(recipe).task.is_scale
    with pytest.raises(ValidationError, match=said):
        StudyConfig.model_validate(recipe | change)


@pytest.mark.parametrize(("base", "count", "most"), [("agreement", 10, 9), ("agreement", 1, 9), ("reliance", 3, 2)])
def test_a_scale_has_a_digit_for_each_level(base: str, count: int, most: int) -> None:
    """Catches a tenth level, which no key presses, and a scale in trials of two steps, whose table has two options."""
    with pytest.raises(ForetellError, match=f"has {count} choices: give it 2 to {most}"):
        replace(TASKS[base], choices=tuple(map(str, range(count))))


def test_shares_of_levels_are_those_of_the_responses() -> None:
    """Catches a level counted in another cell, shares that do not add up, and the table in a study of two options.

    Two participants of hand-written responses: shares and counts by hand.
    """
    names = tuple(TASKS["agreement"].choices or ())
    rows = [("p", "fairly_right"), ("p", "somewhat_wrong"), ("q", "fairly_right"), ("q", "fairly_right")]
    frame = pd.DataFrame(
        [(who, "cat", "std_correct", 0, 0, int("right" in choice), choice, "agreement") for who, choice in rows],
        columns=[*reading.REQUIRED, "choice", "task"],
    )
    data = reading.prepare(frame)
    made = levels.table(data.frame, names).set_index("level")
    assert dict(made["responses"]) == {1: 0, 2: 1, 3: 0, 4: 3}
    assert list(made["share"]) == [0, 0.25, 0, 0.75]
    assert (made["low"] <= made["share"]).all()
    assert (made["share"] <= made["high"]).all()
    assert "levels" in list_analyses(AnalysedStudy(data))
    assert "levels" not in list_analyses(AnalysedStudy(reading.prepare(frame.assign(task="accept_reject"))))
    with pytest.raises(ForetellError, match="Column 'choice' has 'right': its values are fairly_wrong, somewhat"):
        levels.table(data.frame.assign(choice="right"), names)
