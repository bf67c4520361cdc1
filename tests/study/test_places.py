"""Responses that are places: regions and scores by closed forms, chance by permutation, through the service."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from study.bundle import Bundle
from study.collection.integrity import find_faults
from study.participation.screens import assets, plan
from study.places.chance import CHANCE
from study.places.grid import CELLS, DIGITS, SIDE, encode_cells
from study.places.marks import is_right, read_mark
from study.places.region import open_region
from study.places.simulated import compute_central_hits, draw_mark
from study.plan.config import StudyConfig
from study.plan.simulated_participants import compute_expected_accuracy
from study.service import Service
from study.simulate import simulate
from study.tasks import TASKS
from study.tasks.theory import ShownExplanations
from tests.study.participants import MakeBundle, answer, everything, query, tamper, to_trials

RECIPES = Path(__file__).parents[2] / "data" / "studies"
MIDDLE, CORNER = "0.50000,0.50000", "0.01000,0.01000"


def take_part(service: Service, token: str, text: str) -> None:
    """Mark the same place in all trials."""
    state = to_trials(service, token)
    while state["stage"] in ("practice", "main"):
        ack = service.participant.record(token, answer(state["trial"]["index"], "1", place=text))
        assert ack.code == 201
        state = ack.state
    service.participant.finish(token)


def test_a_place_is_stored_once_and_sealed_until_then(service: Service, bundle: MakeBundle) -> None:
    """From the page's state to the table.

    Catches a region, or the name of a heatmap of the image, among what the page is told or loads; a second place that
    replaces the first; a place of another kind; one lost without a trace; a choice that is not that of the region.
    """
    config = {"study": {"task": "localise"}, "pay": {"per_right": 1, "most": 100}}
    study = service.researcher.open_study(bundle(config=config, practice=1, conditions=("examples",)), per_condition=1)
    frozen = service.workspace.find_shown_manifest(study)
    token = service.participant.begin(study)
    state = to_trials(service, token)
    told = json.dumps([state, service.participant.preload(token)])
    sealed = {trial.assets.target_map for trial in (*frozen.trials, *frozen.practice)}
    sealed |= {trial.region.evidence for trial in frozen.trials if trial.region}
    assert not [one for one in sealed if one in told]
    assert "region" not in told
    assert not any(trial.alternative in json.dumps(state["trial"]) for trial in frozen.practice)
    for given, said in ((None, "asks for a place"), ("nan,nan", "is not x,y"), ("f" * DIGITS, "is not x,y")):
        refused = service.participant.record(token, answer(0, "1", place=given))
        assert refused.code == 422
        assert said in refused.message
    assert query(service, "SELECT count(*) FROM response_conflict WHERE reason = 'no such place'") == [(3,)]
    first = service.participant.record(token, given := answer(0, "1", place=CORNER))
    assert (first.code, first.reveal) == (201, frozen.practice[0].assets.target_map)
    assert service.participant.record(token, given).code == 200
    assert service.participant.record(token, given.model_copy(update={"place": MIDDLE})).code == 409
    for index in range(1, 1 + len(frozen.trials)):
        ack = service.participant.record(token, answer(index, "1", place=CORNER))
        assert (ack.code, ack.reveal) == (201, None)
    service.participant.finish(token)
    assert query(service, "SELECT DISTINCT place, count(*) FROM response GROUP BY place") == [(CORNER, 13)]
    frame = service.researcher.responses(study)
    assert list(frame["correct"]) == [int(int(item.split("-")[1]) % 4 == 0) for item in frame["item"]]
    assert set(frame["choice"]) == {"inside", "outside"}
    assert frame[["x", "y"]].drop_duplicates().to_numpy().tolist() == [[0.01, 0.01]]
    assert frame["region_area"].unique().tolist() == [0.25]
    assert set(frame.loc[frame["correct"] == 1, CHANCE]) == {2 / 11}
    assert frame[["cells", "pointing", "iou"]].isna().all(axis=None)
    assert query(service, "SELECT minor_units FROM payment") == [(3,)]
    assert service.workspace.store.read(lambda db: list(find_faults(db, service.workspace.manifest_of))) == []
    replayed = service.researcher.close_study(study) or service.researcher.replay(study, frame["participant"].iloc[0])
    assert sum(bool(one.correct) for one in replayed.trials if one.phase == "main") == 3


def test_a_changed_place_is_found_and_a_withdrawn_one_is_gone(service: Service, bundle: MakeBundle) -> None:
    """Catches a place outside the hash of its response, and one that stays on the disk after a withdrawal."""
    study = service.researcher.open_study(
        bundle(config={"study": {"task": "highlight"}}, practice=0, trials=3, conditions=("none",)), per_condition=2
    )
    cells = np.zeros((SIDE, SIDE), dtype=bool)
    cells[5:9, 7:20] = True
    text = encode_cells(cells)
    stays, leaves = (service.participant.begin(study) for _ in range(2))
    for token in (stays, leaves):
        take_part(service, token, text)
    frame = service.researcher.responses(study)
    in_quadrant = {"main-0": 9 / 13, "main-1": 4 / 13, "main-2": 0.0}  # columns 7 to 19 of four rows: 9 left, 4 right
    assert frame["brushed"].tolist() == [4 * 13 / CELLS] * 6
    assert frame["pointing"].tolist() == pytest.approx([in_quadrant[item] for item in frame["item"]])
    service.participant.withdraw(service.participant.state(leaves)["withdrawal_code"])
    assert everything(service).count(text) == 3
    tamper(service, "UPDATE response SET place = replace(place, '1', '3') WHERE trial_index = 1")
    faults = service.workspace.store.read(lambda db: list(find_faults(db, service.workspace.manifest_of)))
    assert any("was changed after it was recorded" in fault for fault in faults)


def test_a_study_of_options_takes_no_place(service: Service, bundle: MakeBundle) -> None:
    study = service.researcher.open_study(bundle(practice=0), per_condition=1)
    token = service.participant.begin(study)
    to_trials(service, token)
    refused = service.participant.record(token, answer(0, "left", place=MIDDLE))
    assert (refused.code, refused.message) == (422, "This study asks for an option, not for a place on the image.")
    assert query(service, "SELECT reason FROM response_conflict") == [("no such place",)]


def test_all_conditions_load_the_same_images(bundle: MakeBundle) -> None:
    """Catches a condition that loads more, and one that shows the image's heatmap or the foil."""
    conditions = ("none", "examples", "mapped_examples")
    frozen = Bundle(bundle(config={"study": {"task": "localise"}}, conditions=conditions)).manifest
    by_id = {trial.id: trial for trial in (*frozen.trials, *frozen.practice)}
    for condition in conditions:
        for one in plan(frozen, condition, 1, order_seed=2):
            trial = by_id[one.trial.id]
            loaded = set(TASKS["localise"].list_assets(trial))
            assert set(assets(one.screen)) <= loaded
            assert trial.assets.target_map not in loaded
            assert not loaded & {e.image for e in trial.assets.examples if e.category == trial.alternative}
            assert one.screen["options"] == [{"name": "Confirm", "samples": []}]


@pytest.mark.parametrize("task", ["localise", "highlight"])
def test_simulated_participants_mark_by_their_theory(service: Service, bundle: MakeBundle, task: str) -> None:
    """The share of correct marks is the theory's, within four standard errors; wrong and right marks as they should be.

    Catches a mark drawn without regard to the probability, and a guesser with knowledge.
    """
    config = {"study": {"task": task}}
    study = service.researcher.open_study(
        bundle(config=config, practice=0, conditions=("none",), trials=6), per_condition=1
    )
    simulate(service, study, 40, {"belief_projector": 1.0}, seed=2)
    frame = service.researcher.responses(study, ("sim",))
    trials = service.workspace.find_shown_manifest(study).trials
    expected = [
        compute_expected_accuracy({"belief_projector": 1.0}, trial, ShownExplanations(), task=TASKS[task])
        for trial in trials
    ]
    error = np.sqrt(np.mean([p * (1 - p) for p in expected]) / len(frame))
    assert abs(frame["correct"].mean() - np.mean(expected)) < 4 * error
    guessed = compute_expected_accuracy({"guesser": 1.0}, trials[0], ShownExplanations(), task=TASKS[task])
    assert guessed == pytest.approx(compute_central_hits(trials[0].region)) == pytest.approx(0.25)
    region = trials[0].region
    assert region is not None
    rng = np.random.default_rng(0)
    kind = TASKS[task].place
    assert kind is not None
    for right in (True, False):
        marks = [draw_mark(kind, region, right, rng) for _ in range(20)]
        assert {is_right(read_mark(kind, mark.text), open_region(region)) for mark in marks} == {right}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"conditions": ["none", "saliency"]}, "'saliency' cannot go with the task 'localise', because it shows the"),
        ({"conditions": ["none", "both"]}, "'both' cannot go with the task 'localise', because it shows the heatmap"),
        ({"conditions": ["none", "rules"]}, "'rules' cannot go with the task 'localise', because it explains a choice"),
        ({"pacing": {"catch": 1}}, "an attention check asks for an option"),
        ({"blocks": {"training": 2, "test": 2}}, "seals heatmaps, which training would show"),
        ({"keys": {"left": "d", "right": "k"}}, "has the arrow keys and Enter"),
        ({"place": {"share": 1.5}}, "less than 1"),
    ],
)
def test_what_makes_no_sense_with_a_place_is_refused_in_words(change: dict[str, Any], said: str) -> None:
    recipe = tomllib.loads((RECIPES / "localise.toml").read_text(encoding="utf-8"))
    assert StudyConfig.model_validate(recipe).task.place == "point"
    with pytest.raises(ValidationError, match=said):
        StudyConfig.model_validate(recipe | {"analysis": {}} | change)


def test_a_share_belongs_to_places_alone() -> None:
    recipe = tomllib.loads((RECIPES / "accept-reject.toml").read_text(encoding="utf-8"))
    with pytest.raises(ValidationError, match="the task 'accept_reject' asks for no place"):
        StudyConfig.model_validate(recipe | {"place": {"share": 0.4}})
    assert "place" not in StudyConfig.model_validate(recipe).model_dump()
