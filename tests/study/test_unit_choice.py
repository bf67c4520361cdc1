"""The task `unit_choice`, from the participants' page to the export: a study about units of the network."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit

from study.bundle import Bundle
from study.collection.integrity import find_faults, find_unplayable
from study.conditions import CONDITIONS
from study.participation.screens import assets, lay_out_trial, plan
from study.plan.orders import write_order
from study.plan.simulated_participants import sample_mixture
from study.plan.texts import word_task
from study.service import Service
from study.simulate import simulate
from study.tasks import TASKS
from study.tasks.theory import ShownExplanations
from tests.study.participants import answer, take_part
from tests.study.unit_studies import UNITS, build_units

TASK = TASKS["unit_choice"]
SHOWN = ShownExplanations(examples=True)


@pytest.fixture(scope="module")
def units(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return build_units(tmp_path_factory.mktemp("units"))


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with Service(tmp_path / "home") as running:
        yield running


def test_participants_of_both_conditions_choose_between_the_same_two_images(units: Bundle, service: Service) -> None:
    """Eight participants, half of them with references, through practice to the table.

    Catches sides that change from participant to participant while the buttons say left and right, references in the
    condition without, other bytes that are loaded there, the right side in what the page knows before a response, and
    what a unit does not have in the table (a predicted class, its truth).
    """
    study = service.researcher.open_study(units.folder, per_condition=4)
    right = {trial.id: trial.target for trial in units.manifest.trials}
    every = (*units.manifest.trials, *units.manifest.practice)
    expected = {tuple(example.image for example in trial.assets.examples) for trial in every}
    has_references = []
    for _ in range(8):
        screens = take_part(service, service.participant.begin(study), "left")
        for screen in screens:
            assert (*screen["left"]["samples"], *screen["right"]["samples"]) in expected
            assert [screen[side]["name"] for side in ("left", "right")] == [
                "The picture on the left",
                "The picture on the right",
            ]
            assert screen["part"] == "units"
            assert not {"target_legend", "activations", "least", "most", "layer"} & {*screen}
        has_references.append({screen["map"] is not None for screen in screens})
    assert sorted(map(tuple, has_references)) == [(False,)] * 4 + [(True,)] * 4
    for trial in units.manifest.trials:
        loaded = {*TASK.list_assets(trial)}
        for name, count in (("none", 2), ("examples", 4)):
            screen = lay_out_trial("main", trial, CONDITIONS[name], "a", word_task(units.manifest)).screen
            assert (len(assets(screen)), set(assets(screen)) <= loaded) == (count, True)
    frame = service.researcher.responses(study)
    assert len(frame) == 8 * 6
    assert (set(frame["choice"]), set(frame["trial_type"])) == ({"left"}, {"unit"})
    assert frame["correct"].tolist() == [int(right[item] == "left") for item in frame["item"]]
    assert set(frame["category"]) == {trial.unit.name for trial in units.manifest.trials if trial.unit}
    assert (frame["truth"] == "").all()
    assert frame[["ai_correct", "ai_probability", "gain", "n_classes"]].isna().all(axis=None)
    gaps = {trial.id: trial.unit.gap for trial in units.manifest.trials if trial.unit}
    assert frame["unit_gap"].tolist() == [gaps[item] for item in frame["item"]]
    assert list(find_unplayable(units.manifest)) == []
    assert service.workspace.store.read(lambda db: list(find_faults(db, service.workspace.manifest_of))) == []


def test_practice_tells_the_right_side_in_the_language_of_the_study(tmp_path: Path, service: Service) -> None:
    """Catches an English side in a German sentence, and feedback after a trial that counts."""
    bundle = build_units(tmp_path / "built", 'language = "de"\n' + UNITS)
    study = service.researcher.open_study(bundle.folder, per_condition=1)
    token = service.participant.begin(study)
    service.participant.consent(token, True)
    service.participant.ready(token)
    state = service.participant.ready(token, "example")
    told = []
    while state["stage"] in ("practice", "main"):
        ack = service.participant.record(token, answer(state["trial"]["index"]))
        told.append(ack.feedback)
        state = ack.state
    side = {"left": "linke", "right": "rechte"}[bundle.manifest.practice[0].target]
    assert told == [f"Der Teil der KI reagiert stärker auf das {side} Bild.", *[None] * 6]


def test_simulated_participants_learn_from_references_alone(units: Bundle, service: Service) -> None:
    """The oracle is a closed form: half a unit of log-odds for each SD between the activations, else one half.

    Catches participants who know a unit that they were never shown, and a gain that has the AI's belief in it.
    """
    for trial in units.manifest.trials:
        assert trial.unit is not None
        (learner,) = sample_mixture({"bayesian_learner": 1.0}, 1, np.random.default_rng(1))
        expected = expit(0.5 * trial.unit.gap + learner.deviation)
        assert learner.p_right(TASK, trial, SHOWN) == pytest.approx(expected, rel=1e-9)
        assert learner.p_right(TASK, trial, ShownExplanations()) == 0.5
        for theory in ("guesser", "belief_projector", "map_reader"):
            (person,) = sample_mixture({theory: 1.0}, 1, np.random.default_rng(2))
            assert person.p_right(TASK, trial, SHOWN) == 0.5
    study = service.researcher.open_study(units.folder, per_condition=20)
    simulate(service, study, 40, {"bayesian_learner": 1.0}, seed=3)
    share = service.researcher.responses(study, ("sim",)).groupby("condition")["correct"].mean()
    assert abs(share["none"] - 0.5) < 4 * 0.5 / np.sqrt(20 * 6)  # four standard errors
    assert share["examples"] > share["none"] + 0.2


def test_each_participant_may_see_both_conditions(tmp_path: Path) -> None:
    """Catches units that are all in one period, and an order that the design does not have."""
    bundle = build_units(tmp_path, UNITS + "[allocation]\nwithin = true\n")
    assert "(examples || participant)" in bundle.manifest.config["analysis"]["models"]["explanation"]
    screens = plan(bundle.manifest, write_order(["none", "examples"]), 1, 11)[1:]
    shown = [one.screen["map"] is not None for one in screens]
    assert shown == [False] * 3 + [True] * 3
    assert len({one.trial.category for one in screens[:3]}) >= 2
    assert all(one.left_is == "a" for one in screens)


def test_the_page_is_told_what_is_left_and_right(units: Bundle, service: Service) -> None:
    """Catches a legend that the page does not get, so that participants do not know which references are which."""
    study = service.researcher.open_study(units.folder, per_condition=1)
    token = service.participant.begin(study)
    take = service.participant
    take.consent(token, True)
    take.ready(token)
    state = take.ready(token, "example")
    texts = state["texts"]
    assert (texts["target_legend"], texts["map_legend"]) == ("It responds least to these", "It responds most to these")
    assert json.dumps(state["trial"]).count(units.manifest.practice[0].assets.examples[0].image) == 1
