"""The task `rating`, in which no response is right or wrong: from the study file to the export, and what is refused."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from study.collection.integrity import find_faults
from study.collection.tables import outcomes
from study.plan.config import StudyConfig
from study.service import Service, SimulatedTrial
from study.simulate import choose_side, simulate
from study.tasks import TASKS, find_task
from tests.study.participants import MakeBundle, answer, query, to_trials

SETTINGS = {"study": {"task": "rating"}}
RECIPE = Path(__file__).parents[2] / "data" / "studies" / "rating.toml"
LEVELS = ["Strongly disagree", "Disagree", "Neither agree nor disagree", "Agree", "Strongly agree"]


def test_ratings_are_stored_as_levels_and_nothing_is_correct(service: Service, bundle: MakeBundle) -> None:
    """Both orders of the scale, through practice and attention checks to the table.

    Catches feedback after practice, a `correct` in the export, the replay or the outcomes of Monitor, a level that
    changes with the order on the screen, the truth in a screen, and a bonus that is owed.
    """
    config = {**SETTINGS, "pacing": {"catch": 2}}
    study = service.researcher.open_study(bundle(config=config, practice=1), per_condition=2)
    manifest = service.workspace.find_shown_manifest(study)
    foils = {trial.assets.target: {trial.truth, trial.alternative} - {trial.target} for trial in manifest.trials}
    orders = set()
    for _ in range(8):
        token = service.participant.begin(study)
        state = to_trials(service, token)
        assert state["keys"] == {"left": "1", "right": "5"}
        while state["stage"] in ("practice", "main"):
            screen = state["trial"]
            names = [option["name"] for option in screen["options"]]
            orders.add(tuple(names))
            assert screen["reveals"] is False
            assert not any(name in json.dumps(screen) for name in foils.get(screen["target"], ()))
            ack = service.participant.record(
                token, answer(screen["index"], str(names.index(screen.get("asked", "Agree")) + 1))
            )
            assert (ack.code, ack.feedback) == (201, None)
            state = ack.state
        service.participant.finish(token)
    assert orders == {tuple(LEVELS), tuple(LEVELS[::-1])}
    frame = service.researcher.responses(study)
    assert len(frame) == 8 * 12
    assert frame["correct"].isna().all()
    assert (set(frame["level"]), set(frame["n_levels"]), set(frame["choice"])) == ({4}, {5}, {"agree"})
    people = service.researcher.load_participants(study)
    assert set(people["catch_missed"]) == {0}
    assert query(service, "SELECT * FROM payment") == []
    made = outcomes.table(frame, people)
    assert (set(made["mean_level"]), "accuracy" in made) == ({4.0}, False)
    assert service.workspace.store.read(lambda db: list(find_faults(db, service.workspace.manifest_of))) == []
    service.researcher.close_study(study)
    replayed = service.researcher.replay(study, str(frame["participant"].iloc[0])).trials
    assert all(one.correct is None for one in replayed if one.phase != "catch")
    assert all(one.correct for one in replayed if one.phase == "catch")


def test_simulated_ratings_follow_a_cumulative_logit(service: Service, bundle: MakeBundle) -> None:
    """Shares of the levels are differences of the logistic function with thresholds -1.5, -0.5, 0.5 and 1.5.

    Catches a level drawn without regard to the latent rating, and a scale upside down; over a grid of 10,000 quantiles
    the shares are exact to 1e-4. Through the service, learners agree more where the AI is right.
    """
    levels = ("5", "4", "3", "2", "1")
    known = SimulatedTrial(None, False, TASKS["rating"], (), levels, None)  # type: ignore[arg-type]
    sides = [choose_side(known, 0.7, (k + 0.5) / 10_000) for k in range(10_000)]
    below = [1 / (1 + 2.718281828459045**-cut * 0.7 / 0.3) for cut in (-1.5, -0.5, 0.5, 1.5)]
    expected = [high - low for low, high in zip([0.0, *below], [*below, 1.0], strict=True)]
    assert [sides.count(side) / len(sides) for side in levels] == pytest.approx(expected, abs=1.5e-4)
    study = service.researcher.open_study(bundle(config=SETTINGS, practice=0), per_condition=1)
    simulate(service, study, 8, {"belief_projector": 1.0}, seed=5)
    frame = service.researcher.responses(study, ("sim",))
    means = frame.groupby("ai_correct")["level"].mean()
    assert means[1] > means[0] + 1
    assert frame["correct"].isna().all()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"trials": {"levels": 1}}, "trials.levels is 1, but a scale of the task 'rating' has 3 to 7 levels"),
        ({"study": {"name": "x", "title": "X"}, "trials": {"levels": 5}}, "the task 'predict' has no levels to set"),
        ({"trials": {"options": 4}}, "trials.options is 4, but a trial of the task 'rating' has 2"),
        ({"pay": {"per_right": 5, "most": 100}}, "pay: a bonus for correct responses needs .* pay all participants a"),
        ({"blocks": {"training": 2, "test": 2}}, "blocks: training needs right and wrong responses"),
        ({"pacing": {"confidence": True}}, "pacing.confidence: confidence in a response needs right and wrong"),
        ({"analysis": {"equivalence": 5}}, "analysis.equivalence: a difference in the percentage of correct"),
        ({"analysis": {"exclusions": {"least_accuracy": 0.5}}}, "least_accuracy: an exclusion by accuracy needs"),
    ],
)
def test_what_needs_right_responses_is_refused_in_words(change: dict[str, Any], said: str) -> None:
    """Catches a bonus, feedback or an exclusion by a score that no response has, and a scale of one level."""
    recipe = tomllib.loads(RECIPE.read_text(encoding="utf-8"))
    assert not StudyConfig.model_validate(recipe).task.is_scored
    with pytest.raises(ValidationError, match=said):
        StudyConfig.model_validate(recipe | change)


def test_a_study_sets_the_number_of_levels() -> None:
    """Catches levels that read the same, and a text of a level that is not on the scale."""
    recipe = tomllib.loads(RECIPE.read_text(encoding="utf-8"))
    for count in (3, 4, 5, 6, 7):
        made = StudyConfig.model_validate(recipe | {"trials": {"levels": count}})
        assert made.task.count == len(set(made.task.choices or ())) == count
        for texts in made.task.texts.values():
            named = [key.removeprefix("choice_") for key in texts if key.startswith("choice_")]
            assert sorted(named) == sorted(made.task.choices or ())
    assert "levels" not in StudyConfig.model_validate(recipe | {"trials": {}}).model_dump()["trials"]
    assert find_task({"study": {"task": "rating"}, "trials": {"levels": 7}}).count == 7
