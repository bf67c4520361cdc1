"""Conditions within participants: from the study file to the rows that are analysed, and what is refused."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from study.analysis.power.truths import Theories
from study.bundle import Bundle, Manifest
from study.collection.integrity import find_faults, find_unplayable
from study.conditions import CONDITIONS as KNOWN
from study.participation.allocation import list_new_slots
from study.participation.periods import list_period_breaks, read_period, share_seeds
from study.participation.screens import assets, plan
from study.plan.config import StudyConfig
from study.plan.orders import list_orders, list_places, read_order
from study.plan.preregistration import DEFAULT
from study.service import Service
from study.simulate import simulate
from tests.study.participants import MakeBundle, answer, query, tamper, to_trials
from tests.study.test_trained_participants import teach

FOUR = ("none", "saliency", "examples", "both")
WITHIN = {"allocation": {"within": True, "per_condition": 4}}
DEMO = Path(__file__).parents[2] / "data" / "studies" / "demo.toml"


def make_manifest(bundle: MakeBundle, conditions: tuple[str, ...] = FOUR, **options: Any) -> Manifest:
    config = {**WITHIN, **options.pop("config", {})}
    return Bundle(bundle(config=config, conditions=conditions, practice=0, **{"trials": 24, **options})).manifest


@pytest.mark.parametrize("count", [2, 3, 4, 5, 6, 7])
def test_orders_are_balanced_for_position_and_for_what_came_before(count: int) -> None:
    """Catches a cyclic square, in which a condition always follows the same one, and too many orders.

    Expected (Williams 1949): k orders, 2k of odd k; each condition in each position in 1/k of them; each ordered pair
    of neighbours equally often, once, or twice of odd k.
    """
    conditions = tuple("abcdefg"[:count])
    orders = list_orders(conditions)
    each = 1 + count % 2
    assert len({*orders}) == len(orders) == each * count
    places = Counter((k, name) for order in orders for k, name in enumerate(order))
    pairs = Counter(pair for order in orders for pair in pairwise(order))
    assert set(places.values()) == {each}
    assert len(places) == count**2
    assert set(pairs.values()) == {each}
    assert len(pairs) == count * (count - 1)


@pytest.mark.parametrize("conditions", [FOUR, FOUR[:3], FOUR[:2]])
def test_over_a_block_each_image_is_seen_in_each_condition_equally_often(
    bundle: MakeBundle, conditions: tuple[str, ...]
) -> None:
    """Enumerates the places of two permuted blocks.

    Catches images that belong to a condition, a participant who sees one twice, a period with more of one type, and
    blocks that divide the trials alike. Expected: each image once in each condition for each k orders.
    """
    manifest = make_manifest(bundle, conditions)
    places, kept = list_places(manifest), 3 * (8 // len(conditions) * len(conditions))
    slots = share_seeds(list_new_slots(places, 2, 7, 0, "blocks"))
    seen: list[Counter[tuple[str, str]]] = [Counter(), Counter()]
    first: list[list[tuple[str, str]]] = []
    for slot in slots:
        made = plan(manifest, slot.condition, slot.side_flip, slot.order_seed)
        periods = [read_period(one.screen) for one in made]
        assert all(periods)
        assert len({one.trial.assets.target for one in made}) == len(made) == kept
        assert [p.condition for p in periods if p and p.opens] == [*read_order(slot.condition)]
        assert [p.number for p in periods if p] == sorted(p.number for p in periods if p)
        for number in range(1, len(conditions) + 1):
            kinds = Counter(o.trial.trial_type for o, p in zip(made, periods, strict=True) if p and p.number == number)
            assert set(kinds.values()) == {8 // len(conditions)}
            assert len(kinds) == 3
        seen[slot.block].update((p.condition, o.trial.id) for o, p in zip(made, periods, strict=True) if p)
        first.append(
            {c: {o.trial.id for o, p in zip(made, periods, strict=True) if p and p.condition == c} for c in conditions}
        )
        for one, period in zip(made, periods, strict=True):
            assert period
            shown = KNOWN[period.condition]
            assert bool(one.screen["map"]) == shown.shows_saliency
            assert bool(one.screen["left"]["samples"]) == shown.shows_examples
    for block in seen:
        assert set(block.values()) == {len(places) // len(conditions)}
        assert len(block) == kept * len(conditions)
    assert Counter(slot.condition for slot in slots) == dict.fromkeys(places, 2)
    for place in places:
        one, other = (divided for slot, divided in zip(slots, first, strict=True) if slot.condition == place)
        assert one != other


def test_a_participation_within_conditions(service: Service, bundle: MakeBundle) -> None:
    """Four participants go through all conditions, with attention checks and breaks within periods.

    Catches a condition's name or period in what the page is told, images that a condition loads beyond the others', a
    page before a period that does not say what is shown, legends of another condition, periods without a break, rows
    without their condition, and faults that the database does not have.
    """
    config = {**WITHIN, "pacing": {"catch": 2, "break_every": 4}}
    study = service.researcher.open_study(bundle(config=config, conditions=FOUR, trials=24, practice=1), 4)
    manifest = service.workspace.find_shown_manifest(study)
    by_image = {trial.assets.target: trial for trial in (*manifest.trials, *manifest.practice)}
    for _ in FOUR:
        token = service.participant.begin(study)
        state = to_trials(service, token)
        openings = 0
        (place,) = query(service, "SELECT condition FROM session ORDER BY started_at DESC LIMIT 1")[0]
        order = read_order(place)
        while state["stage"] in ("practice", "main"):
            screen = state["trial"]
            told = json.dumps(
                {**state, "texts": None, "trials": [{**t, "texts": 0, "opening": 0} for t in state["trials"]]}
            )
            assert not any(f'"{name}"' in told for name in (*FOUR, "period", "condition")), told
            assert all(trial["steps"] == 1 for trial in state["trials"])
            assert {*assets(screen)} <= {*service.participant.preload(token)}
            if screen["target"]:
                every = by_image[screen["target"]].assets.every
                assert {*every} <= {*service.participant.preload(token)}
            if "opening" in screen:
                openings += 1
                condition = KNOWN[order[openings]]
                assert ("heatmap" in screen["opening"]["text"]) == condition.shows_saliency
                assert ("Above each name" in screen["opening"]["text"]) == condition.shows_examples
                assert screen["opening"]["title"] == f"Part {openings + 1} of 4"
                assert screen["index"] - 1 in state["breaks"]
            state = service.participant.record(token, answer(screen["index"])).state
        assert openings == 3
        service.participant.finish(token)
    assert service.workspace.store.read(lambda db: list(find_faults(db, service.workspace.manifest_of))) == []
    frame = service.researcher.responses(study)
    assert len(frame) == 96
    assert set(frame.groupby(["item", "condition"]).size()) == {1}
    for _, rows in frame.groupby("participant"):
        rows = rows.sort_values("trial")
        order = tuple(dict.fromkeys(rows["condition"]))
        assert read_order(rows["condition_order"].iloc[0]) == order
        assert rows["period"].tolist() == [k for k in range(1, 5) for _ in range(6)]
        assert rows["previous_condition"].tolist()[:6] == [pytest.approx(float("nan"), nan_ok=True)] * 6
        assert rows["previous_condition"].tolist()[6:] == [name for name in order[:3] for _ in range(6)]
        assert rows["saliency"].tolist() == [int(KNOWN[name].shows_saliency) for name in rows["condition"]]
    outcomes = service.researcher.unblind(study, "the test needs it")
    assert outcomes["done"].tolist() == [4] * 4
    assert outcomes["responses"].tolist() == [24] * 4
    assert next(s for s in service.researcher.studies() if s.name == study).quota == 4


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE session SET condition = 'OTHER'",
        'UPDATE screen SET screen_json = replace(screen_json, \'"condition": "none"\', \'"condition": "both"\')',
    ],
)
def test_a_condition_that_was_changed_is_noticed(service: Service, bundle: MakeBundle, sql: str) -> None:
    """Catches an order or a trial's condition that `verify` does not draw again."""
    study = service.researcher.open_study(bundle(config=WITHIN, conditions=("none", "both"), trials=6, practice=0), 2)
    to_trials(service, service.participant.begin(study))
    assert service.researcher.verify() == []
    ((before,),) = query(service, "SELECT condition FROM session")
    tamper(service, sql.replace("OTHER", "none > both" if before == "both > none" else "both > none"))
    assert any("plan does not match" in line for line in service.researcher.verify())


def test_breaks_within_periods() -> None:
    """By hand: periods of 6 and 5 with an attention check; one each 3 trials where at least 1.5 follow in the period.

    Catches breaks counted over periods, and a missing one at a period's start.
    """
    marks = [{"period": {"number": 1, "condition": "a", "opens": k == 0}} for k in range(6)]
    marks += [{"period": {"number": 2, "condition": "b", "opens": k == 0}} for k in range(5)]
    marks.insert(6, {})  # an attention check before the second period
    assert list_period_breaks(marks, 3) == [3, 7, 10]
    assert list_period_breaks(marks, 0) == [7]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"conditions": ["both"]}, "the study has one condition, 'both', and nothing to compare"),
        ({"trials": {"categories": 3}}, "4 conditions need at least 4 trials of each type, and there are 3"),
        ({"blocks": {"training": 2, "test": 2}}, "Remove the section blocks, or leave within out"),
        ({"allocation": {"within": "maybe"}}, "valid boolean"),
    ],
)
def test_what_cannot_go_with_it_is_refused_in_words(settings: dict[str, Any], said: str) -> None:
    """Catches a study that would fail at its first participant, and a refusal without its remedy."""
    content = tomllib.loads(DEMO.read_text(encoding="utf-8"))
    with pytest.raises(ValidationError, match=said):
        StudyConfig.model_validate({**content, "allocation": {"within": True}, **settings})


def test_a_bundle_that_cannot_be_divided_is_refused(bundle: MakeBundle) -> None:
    """Catches too few trials that only the build leaves, and an image that a participant would see twice."""
    few = make_manifest(bundle, trials=9)
    assert any("need at least 4 trials of each type, and there are 3" in fault for fault in find_unplayable(few))
    manifest = make_manifest(bundle)
    assert list(find_unplayable(manifest)) == []
    one, two, *others = manifest.trials
    same = two.model_copy(update={"assets": one.assets})
    (fault,) = [
        f for f in find_unplayable(manifest.model_copy(update={"trials": (one, same, *others)})) if "two cond" in f
    ]
    assert "Build the study again" in fault


def test_the_setting_is_frozen_only_where_it_is_used_and_plans_slopes() -> None:
    """Catches a hash of earlier study files that changes, and models without the slopes that the design needs."""
    content = tomllib.loads(DEMO.read_text(encoding="utf-8"))
    before = StudyConfig.model_validate(content)
    assert "within" not in before.model_dump()["allocation"]
    assert before.analysis.models == DEFAULT
    within = StudyConfig.model_validate({**content, "allocation": {"within": True}})
    assert all(
        "(trial_type + saliency + examples || participant)" in model for model in within.analysis.models.values()
    )
    own = {**content, "allocation": {"within": True}, "analysis": {"models": {"null": "trial_type"}}}
    assert StudyConfig.model_validate(own).analysis.models == {"null": "trial_type"}
    assert StudyConfig.model_validate(within.model_dump()) == within


def test_simulated_participants_read_the_condition_of_each_trial(service: Service, bundle: MakeBundle) -> None:
    """Against the theory's accuracy in each condition, by quadrature, within 4 standard errors of 12 participants.

    Catches explanations of the first condition in every period, and places that are not opened by whole squares.
    """
    conditions = ("none", "saliency", "both")
    folder = bundle(config=WITHIN, conditions=conditions, trials=18, practice=1)
    trials = teach(folder)
    study = service.researcher.open_study(folder, 4)
    assert next(one for one in service.researcher.studies() if one.name == study).quota == 6
    simulate(service, study, 12, {"bayesian_learner": 1.0}, seed=1)
    frame = service.researcher.responses(study, ["sim"])
    assert service.researcher.verify() == []
    assert set(frame.groupby(["item", "condition"]).size()) == {4}
    token = service.participant.begin(study, mode="sim", participant="another")
    to_trials(service, token)
    newest = "(SELECT session_id FROM session ORDER BY started_at DESC LIMIT 1)"
    plan_of = f"SELECT screen_json FROM trial_plan JOIN screen USING (screen_id) WHERE session_id = {newest}"
    screens = query(service, f"{plan_of} ORDER BY trial_index")
    known = [service.participant.load_simulated_trial(token, index).shows_heatmaps for index in range(len(screens))]
    assert known == [json.loads(screen)["map"] is not None for (screen,) in screens]
    world = (
        Theories({"bayesian_learner": 1.0}, trials, conditions).tabulate_means().groupby("condition")["accuracy"].mean()
    )
    assert world["both"] - world["none"] > 0.2
    for name in conditions:
        own = frame[frame["condition"] == name].groupby("participant")["correct"].mean()
        assert len(own) == 12
        assert abs(own.mean() - world[name]) < 4 * own.std() / np.sqrt(len(own))
