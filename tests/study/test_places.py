"""Responses that are places: regions and scores by closed forms, chance by permutation, through the service."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError
from scipy.stats import spearmanr, ttest_1samp

from core.errors import ForetellError
from study.analysis.exploratory import detection, importance, places
from study.analysis.exploratory.analysis import AnalysedStudy, list_analyses
from study.analysis.responses import reading
from study.building.stimuli import make_region
from study.bundle import Bundle, Trial
from study.collection.integrity import find_faults
from study.participation.screens import assets, plan
from study.places.chance import CHANCE, PERMUTED_IOU, Permutation
from study.places.grid import CELLS, DIGITS, SIDE, decode_cells, encode_cells, pool
from study.places.marks import Brush, Point, is_right, read_mark
from study.places.region import Region, open_region
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


def plant(values: dict[tuple[int, int], float], share: float = 0.5, aspect: float = 1.0) -> Region:
    """A region whose evidence lies in few cells."""
    evidence = np.zeros((SIDE, SIDE))
    for place, value in values.items():
        evidence[place] = value
    return open_region(make_region(evidence, share, aspect, None))


@pytest.mark.parametrize(("share", "cells"), [(0.5, 1), (0.501, 2), (0.75, 2), (0.76, 3), (0.99, 5), (1.0, 5)])
def test_a_region_is_the_smallest_set_with_its_share_of_the_evidence(share: float, cells: int) -> None:
    """Catches a set that is a cell too large or too small, one of single pixels, and negative evidence that counts.

    Evidence of 8, 4, 2, 1 and 1 of 16, and -50 elsewhere: the cumulated shares are 8, 12, 14, 15 and 16 of 16.
    """
    planted = {(3, 4): 8.0, (3, 5): 4.0, (20, 1): 2.0, (31, 31): 1.0, (0, 0): 1.0, (9, 9): -50.0}
    region = plant(planted, share)
    assert region.inside.sum() == cells
    assert region.area == cells / CELLS
    assert region.peak == ((4 + 0.5) / SIDE, (3 + 0.5) / SIDE)


@pytest.mark.parametrize("size", [(224, 224), (100, 33), (16, 50)])
def test_cells_share_pixels_by_area(size: tuple[int, int]) -> None:
    """Catches evidence that is lost or counted twice where cells and pixels do not meet: uniform stays uniform."""
    values = pool(np.ones(size))
    assert values == pytest.approx(np.full((SIDE, SIDE), size[0] * size[1] / CELLS))
    drawn = np.random.default_rng(0).random(size)
    assert pool(drawn).sum() == pytest.approx(drawn.sum())
    assert encode_cells(decode_cells("0f" * (DIGITS // 2))) == "0f" * (DIGITS // 2)


def test_a_heatmap_without_positive_evidence_is_refused() -> None:
    with pytest.raises(ForetellError, match="no positive evidence"):
        make_region(np.full((32, 32), -1.0), 0.5, 1.0, None)


def test_distances_are_in_widths_of_the_image() -> None:
    """By geometry: the region is the cell from (.5, .5), the image half as high as wide.

    Catches a distance to the middle of the region, one in heights, and an edge of a cell that is another one's.
    """
    region = plant({(16, 16): 1.0}, aspect=0.5)
    right = 0.5 + 1 / SIDE
    assert Point(0.25, 0.51).measure(region)["distance"] == pytest.approx(0.25)
    assert Point(0.51, 0.1).measure(region)["distance"] == pytest.approx(0.4 * 0.5)
    assert Point(right + 0.3, 0.5 + 1 / SIDE + 0.4).measure(region)["distance"] == pytest.approx(np.hypot(0.3, 0.2))
    assert Point(0.51, 0.51).measure(region)["distance"] == 0
    middle = 0.5 + 0.5 / SIDE
    assert Point(middle + 0.3, middle - 0.4).measure(region)["peak_distance"] == pytest.approx(np.hypot(0.3, 0.2))
    assert is_right(Point(1.0, 1.0), plant({(31, 31): 1.0}))  # the last edge belongs to the last cell


def test_scores_of_a_brush_are_those_of_sets_and_scipy() -> None:
    """An independent implementation with sets of cells, and SciPy's correlation.

    Catches intersection over union with the region instead of as many cells, and ties that are ranked by their order.
    """
    rng = np.random.default_rng(3)
    evidence = np.round(rng.random((SIDE, SIDE)), 1)  # with ties
    region = open_region(make_region(evidence, 0.3, 1.0, None))
    cells = rng.random((SIDE, SIDE)) < 0.2
    scores = Brush(cells).measure(region)
    brushed, inside = set(np.flatnonzero(cells)), set(np.flatnonzero(region.inside))
    top = set(sorted(range(CELLS), key=lambda k: (-region.evidence.ravel()[k], k))[: len(brushed)])
    assert scores["pointing"] == pytest.approx(len(brushed & inside) / len(brushed))
    assert scores["iou"] == pytest.approx(len(brushed & top) / len(brushed | top))
    assert scores["rank_correlation"] == pytest.approx(spearmanr(cells.ravel(), region.evidence.ravel()).statistic)
    assert "rank_correlation" not in Brush(np.ones((SIDE, SIDE), dtype=bool)).measure(region)
    assert not is_right(Brush(np.ones((SIDE, SIDE), dtype=bool)), region)  # all of the image is no place


@pytest.fixture
def manifest(bundle: MakeBundle) -> Any:
    return Bundle(bundle(config={"study": {"task": "localise"}}, trials=8, conditions=("none", "examples"))).manifest


def test_chance_is_that_of_the_other_images(manifest: Any) -> None:
    """Closed forms: a uniform clicker has the area of the region, and a mark on the middle no advantage.

    The quadrants are planted, two of each. Catches the image's own region among those of chance, and a chance of one
    half.
    """
    permutation = Permutation(manifest.trials)
    grid = [Point((c + 0.5) / SIDE, (r + 0.5) / SIDE) for r in range(SIDE) for c in range(SIDE)]
    for trial in manifest.trials:
        region = open_region(trial.region)
        assert np.mean([is_right(point, region) for point in grid]) == pytest.approx(region.area) == 0.25
        scored = [permutation.measure(trial, point) for point in grid]
        assert np.mean([one[CHANCE] for one in scored]) == pytest.approx(0.25)
        own = [one[CHANCE] for point, one in zip(grid, scored, strict=True) if is_right(point, region)]
        assert set(own) == {1 / 7}  # of the other seven images, one has this quadrant
    whole = Brush(np.ones((SIDE, SIDE), dtype=bool))
    assert permutation.measure(manifest.trials[0], whole)[PERMUTED_IOU] == 1
    alike = [trial.model_copy(update={"region": manifest.trials[0].region}) for trial in manifest.trials]
    centred = Permutation(alike)
    for x, y in ((0.2, 0.2), (0.8, 0.2), (0.5, 0.5)):  # regions that are alike: hits are chance, wherever one marks
        one = Point(x, y)
        assert centred.measure(alike[0], one)[CHANCE] == is_right(one, open_region(alike[0].region))


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        ("point", "1.20000,0.50000", "outside the image"),
        ("point", "-0.1000,0.50000", "is not x,y"),
        ("point", "nan,nan", "is not x,y"),
        ("point", "0.5,0.5", "is not x,y"),
        ("point", "0.50000,0.50000;DROP TABLE", "is not x,y"),
        ("point", "٠.٥٠٠٠٠,٠.٥٠٠٠٠", "is not x,y"),
        ("cells", "0" * DIGITS, "is empty"),
        ("cells", "f" * 60_000, "60,000 characters, not 256"),
        ("cells", "F" * DIGITS, "hexadecimal digits"),
        ("cells", "", "0 characters"),
    ],
)
def test_what_is_no_mark_is_refused(kind: Any, text: str, said: str) -> None:
    with pytest.raises(ForetellError, match=said):
        read_mark(kind, text)


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


def make_rows(task: str, **columns: Any) -> pd.DataFrame:
    """Rows of three participants with four responses each, half of them right."""
    rng = np.random.default_rng(1)
    people = np.repeat(["p", "q", "r"], 4)
    fixed = {"category": "cat", "trial_type": "std_correct", "saliency": 0, "examples": 0, "task": task}
    drawn = {"correct": rng.permutation([0, 1] * 6), "chance": rng.random(12), "item": ["i1", "i2", "i3", "i4"] * 3}
    return pd.DataFrame({"participant": people, **fixed, **drawn, **columns})


def test_marks_above_chance_have_the_interval_of_participants() -> None:
    """With as many responses of each participant, it is Student's interval of their means (SciPy).

    Catches an interval over responses, and a difference from one half instead of from chance.
    """
    frame = make_rows("localise")
    study = AnalysedStudy(reading.prepare(frame))
    table = places.tabulate(study.data.every).set_index("measure")
    means = (frame["correct"] - frame["chance"]).groupby(frame["participant"]).mean()
    expected = ttest_1samp(means, 0).confidence_interval()
    above = table.loc[places.ABOVE]
    assert (above["estimate"], above["low"], above["high"]) == pytest.approx((means.mean(), *expected))
    assert table.loc[places.RIGHT, "estimate"] == 0.5
    assert table.loc[places.BY_CHANCE, "estimate"] == pytest.approx(frame["chance"].mean())
    assert "No explanation: 50% of the marks are correct" in places.describe(table.reset_index())
    offered = list_analyses(study)
    assert "places" in offered
    assert not {"diffusion", "levels", "ordinal", "reliance", "team", "projection", "importance"} & set(offered)
    with pytest.raises(ForetellError, match="d' does not apply to marked places"):
        detection.code_signals(study.frame)
    plain = reading.prepare(frame.assign(task="predict"))
    assert "chance" not in plain.frame
    assert "places" not in list_analyses(AnalysedStudy(plain))


def test_an_importance_map_is_the_mean_of_the_brushes(manifest: Any) -> None:
    """By hand: three participants brush one cell or none of the others; catches a map of one participant alone."""
    one, two = (np.zeros((SIDE, SIDE), dtype=bool) for _ in range(2))
    one[0, 0] = two[0, 0] = two[0, 1] = True
    texts = [encode_cells(one)] * 8 + [encode_cells(two)] * 4
    trials: tuple[Trial, ...] = manifest.trials[:4]
    frame = make_rows("highlight", cells=texts).assign(item=[trial.id for trial in trials] * 3)
    study = AnalysedStudy(reading.prepare(frame), manifest=manifest)
    drawn, people = importance.average(study.data.every)[trials[0].id, "none"]
    assert people == 3
    assert (drawn[0, 0], drawn[0, 1], drawn.sum()) == pytest.approx((1.0, 1 / 3, 4 / 3))
    table = importance.tabulate(study).set_index("item")
    evidence = open_region(trials[0].region).evidence  # type: ignore[arg-type]
    assert table.loc[trials[0].id, "rank_correlation"] == pytest.approx(spearmanr(drawn, evidence, axis=None).statistic)
    files = importance.describe_files(study)
    rows = str(files["importance_maps.csv"]).splitlines()
    assert rows[1:3] == [f"{trials[0].id},none,1,1,1.0", f"{trials[0].id},none,1,2,0.333333"]
    assert bytes(files["importance_maps.png"])[:4] == b"\x89PNG"  # type: ignore[arg-type]
