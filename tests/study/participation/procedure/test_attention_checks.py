"""Catch trials: where they come, what they say, and that no analysis counts them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from study.bundle import Bundle
from study.collection.export import PARTICIPANTS
from study.participation.catch import catch_trials, draw_catch_positions
from study.participation.screens import plan
from study.service import Service
from tests.study.participants import query, take_part
from tests.study.participation.procedure.conftest import Open

pytestmark = pytest.mark.usefixtures("database")


# Catch trials


def test_attention_checks_are_spread_and_say_what_to_choose(service: Service, opened: Open) -> None:
    """One in each stretch, none first, on both sides; the picture is left out, and the map and examples with it."""
    opened(pacing={"catch": 3})
    manifest = Bundle(service.researcher.studies()[0].folder).manifest
    sides = set()
    for seed in range(20):
        made = plan(manifest, "both", 0, seed)
        main = [item for item in made if item.phase != "practice"]
        where = [i for i, item in enumerate(main) if item.phase == "catch"]
        assert len(main) == 15
        assert where[0] > 0
        assert all(1 <= b - a <= 10 for a, b in pairwise(where))
        for i in where:
            screen = main[i].screen
            sides.add(screen["left"]["name"] == screen["asked"])
            assert (screen["target"], screen["map"], screen["left"]["samples"]) == (None, None, [])
            assert screen["asked"] in (screen["left"]["name"], screen["right"]["name"])
    assert sides == {True, False}
    assert len({item.shown_sha256 for item in main}) >= 13


def test_places_are_one_in_each_stretch() -> None:
    """Against the stretches themselves: 90 trials, 3 catches: 1-30, 30-60, 60-90."""
    rng = np.random.default_rng(0)
    found = np.array([draw_catch_positions(90, 3, rng) for _ in range(300)])
    assert (found.min(0) >= [1, 30, 60]).all()
    assert (found.max(0) <= [30, 60, 90]).all()
    assert (found.max(0) - found.min(0) > 20).all()
    assert draw_catch_positions(5, 0, rng) == []


def test_attention_checks_are_never_analysed_but_named(service: Service, opened: Open) -> None:
    study = opened(pacing={"catch": 3, "catch_allowed": 1})
    for _ in range(6):
        take_part(service, service.participant.begin(study))  # always left
    assert len(service.researcher.responses(study)) == 6 * 12
    people = service.researcher.load_participants(study)
    assert list(people.columns) == list(PARTICIPANTS)
    missed = query(
        service,
        "SELECT sum(CASE r.choice WHEN 'b' THEN 1 ELSE 0 END) FROM response r "
        "JOIN trial_plan p USING (session_id, trial_index) "
        "JOIN session s USING (session_id) WHERE p.phase = 'catch' "
        "GROUP BY session_id, s.started_at ORDER BY s.started_at, session_id",
    )
    assert list(people["catch_missed"]) == [row[0] for row in missed]
    assert list(people["excluded"]) == ["catch" if row[0] > 1 else "" for row in missed]
    assert service.researcher.verify() == []


def test_attention_checks_are_the_same_for_everybody(service: Service, opened: Open) -> None:
    opened(pacing={"catch": 4})
    manifest = Bundle(service.researcher.studies()[0].folder).manifest
    names = {name for trial in manifest.trials for name in trial.options}
    made = catch_trials(manifest)
    assert made == catch_trials(manifest)
    assert [trial.id for trial in made] == [f"catch-{k}" for k in range(4)]
    assert all({*trial.options} <= names and trial.ai_choice == "a" for trial in made)
