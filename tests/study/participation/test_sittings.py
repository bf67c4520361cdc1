"""Several sittings: what participants may do when, by the server's clock, and what every attempt at more leaves."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest

from study.bundle import Bundle
from study.collection.integrity import find_unplayable
from study.participation.payloads import Recruit, SessionCredentials
from study.participation.refusals import Refusal
from study.participation.screens import plan
from study.participation.sittings.course import BACK, HOUR_NS
from study.participation.sittings.division import divide_trials, read_sitting
from study.service import Service
from study.simulate import simulate
from tests.study.participants import CONDITIONS, MakeBundle, answer, everything, query, tamper, to_trials
from tests.study.sitting_studies import TWO, Clock, answer_all, clock, end_first, find, open_two, refused, timed_service

__all__ = ["clock", "timed_service"]


@pytest.mark.parametrize(("trials", "count"), [(24, 2), (25, 2), (31, 3), (12, 4)])
def test_trials_are_divided_by_type_and_none_is_lost(bundle: MakeBundle, trials: int, count: int) -> None:
    """Catches a sitting with more of one type, a trial left out or in two sittings, and one division for all.

    Expected: each type, and all trials, as often in each sitting or within one.
    """
    manifest = Bundle(bundle(trials=trials, practice=0)).manifest
    divisions = [divide_trials(manifest.trials, count, np.random.default_rng(seed)) for seed in range(8)]
    for parts in divisions:
        assert sorted(one.id for part in parts for one in part) == sorted(one.id for one in manifest.trials)
        sizes = [len(part) for part in parts]
        assert max(sizes) - min(sizes) <= 1
        for kind in {one.trial_type for one in manifest.trials}:
            each = [sum(one.trial_type == kind for one in part) for part in parts]
            assert max(each) - min(each) <= 1
    assert len({frozenset(one.id for one in parts[0]) for parts in divisions}) > 4


def test_a_plan_has_its_sittings_and_one_without_them_is_as_it_was(bundle: MakeBundle) -> None:
    """Catches a sitting that is not frozen in the plan, one that an attention check opens, and one in other studies."""
    divided = Bundle(bundle(config={**TWO, "pacing": {"catch": 2}}, trials=12, practice=1)).manifest
    made = plan(divided, "both", 0, 5)
    numbers = [sitting.number for one in made if (sitting := read_sitting(one.screen))]
    assert numbers == [1] * 6 + [2] * 6
    assert [one.phase for one in made if read_sitting(one.screen) is None] == ["practice", "catch", "catch"]
    assert plan(divided, "both", 0, 5) == made != plan(divided, "both", 0, 6)
    whole = Bundle(bundle(trials=12, practice=1)).manifest
    assert not [one for one in plan(whole, "both", 0, 5) if "sitting" in one.screen]


def test_two_sittings_from_the_first_to_the_code(timed_service: Service, clock: Clock, bundle: MakeBundle) -> None:
    """A participant, with reloads between the sittings and in the second.

    Catches a link that is lost after a reload, another condition or order in the second sitting, a second consent or
    practice, trials of the next sitting or its images told in the first, no page of instructions, and a place that is
    given to another.
    """
    study = open_two(timed_service, bundle)
    token = timed_service.participant.begin(study)
    state = to_trials(timed_service, token)
    (before,) = query(timed_service, "SELECT condition, side_flip, order_seed FROM session")
    ahead: Counter[int] = Counter()
    while state["stage"] in ("practice", "main"):
        ahead.update(trial["index"] for trial in state["trials"])
        assert "sitting" not in json.dumps({**state, "texts": None})
        if state["stage"] == "main":
            assert (state["first"], state["total"]) == (1, 6)
        state = timed_service.participant.record(token, answer(state["trial"]["index"])).state
    assert max(ahead) == 6
    assert state["stage"] == "between"
    assert state["texts"]["sitting_done"] == "Session 1 of 2 is finished"
    assert state["wait_ms"] == 24 * 3600 * 1000
    assert state["closes_ms"] - state["opens_ms"] == 48 * 3600 * 1000
    assert timed_service.participant.state(token)["link"] == state["link"]
    assert state["code"] is None
    assert state["link"].removeprefix(BACK) not in everything(timed_service)
    assert timed_service.participant.preload(token) == []
    clock.wait(timed_service, 24)
    assert timed_service.participant.state(token)["wait_ms"] == 0
    again = timed_service.participant.start_sitting(token, 2)
    assert timed_service.participant.start_sitting(token, 2)["trial"] == again["trial"]
    assert again["trial"]["index"] == again["first"] == 7
    assert again["trial"]["opening"]["title"] == "Session 2 of 2"
    assert "Your task is to predict the AI." in again["trial"]["opening"]["text"]
    state = timed_service.participant.record(token, answer(7)).state
    assert "opening" not in state["trial"]
    timed_service.participant.state(token)
    assert answer_all(timed_service, token, state)["stage"] == "debrief"
    done = timed_service.participant.finish(token)
    assert (done["stage"], bool(done["code"])) == ("done", True)
    assert query(timed_service, "SELECT condition, side_flip, order_seed FROM session") == [before]
    assert query(timed_service, "SELECT state FROM allocation_slot WHERE session_id IS NOT NULL") == [("done",)]
    assert find(timed_service) == []
    rows = timed_service.researcher.responses(study)
    assert rows.groupby("sitting").size().to_dict() == {1: 6, 2: 6}


def test_the_next_sitting_opens_by_the_servers_clock(timed_service: Service, clock: Clock, bundle: MakeBundle) -> None:
    """Catches a sitting started too early, out of order, or twice, and a response before it was started.

    A response to its first trial is refused (425) before the start, with the sitting open or not.
    """
    token, _ = end_first(timed_service, open_two(timed_service, bundle))
    assert refused(timed_service, token) == (425, "refused_early")
    assert refused(timed_service, token, 3) == refused(timed_service, token, 1) == (425, "refused_moved")
    assert timed_service.participant.record(token, answer(7)).code == 425
    clock.wait(timed_service, 23.99)
    assert refused(timed_service, token) == (425, "refused_early")
    clock.wait(timed_service, 0.01)
    assert timed_service.participant.record(token, answer(7)).code == 425
    timed_service.participant.start_sitting(token, 2)
    assert timed_service.participant.record(token, answer(7)).code == 201
    assert refused(timed_service, token, 3) == (425, "refused_moved")
    assert find(timed_service) == []


def test_after_its_closing_a_sitting_is_over_and_the_place_free(
    timed_service: Service, clock: Clock, bundle: MakeBundle
) -> None:
    """Catches a link that never closes, responses lost with it, and a place that is never free, or too soon."""
    study = open_two(timed_service, bundle)
    token, _ = end_first(timed_service, study)
    link = timed_service.participant.state(token)["link"].removeprefix(BACK)
    held = "SELECT count(*) FROM allocation_slot WHERE state = 'held'"
    clock.wait(timed_service, 71)
    assert timed_service.participant.state(token)["stage"] == "between"
    others = [end_first(timed_service, study)[0] for _ in range(7)]  # the other places
    with pytest.raises(Refusal, match="All places"):
        timed_service.participant.begin(study)
    clock.wait(timed_service, 3.1)
    back = timed_service.participant.come_back(study, link)
    state = timed_service.participant.state(back)
    assert state["stage"] == "expired"
    assert "next session of this study is over" in state["text"]
    assert state["code"]
    assert refused(timed_service, back)[0] == 425
    assert query(timed_service, held) == [(7,)]
    assert len(timed_service.researcher.responses(study)) == 8 * 6
    timed_service.participant.begin(study)
    assert timed_service.participant.state(others[0])["stage"] == "between"
    assert find(timed_service) == []


def test_a_sitting_started_in_time_may_be_finished_in_its_own_time(
    timed_service: Service, clock: Clock, bundle: MakeBundle
) -> None:
    """Catches a time limit that counts from the consent, and one that does not count in the second sitting."""
    study = open_two(timed_service, bundle, pacing={"longest_minutes": 120})
    tokens = [end_first(timed_service, study)[0] for _ in range(2)]
    clock.wait(timed_service, 71.9)
    states = [timed_service.participant.start_sitting(token, 2) for token in tokens]
    clock.wait(timed_service, 1.5)
    assert answer_all(timed_service, tokens[0], states[0])["stage"] == "debrief"
    clock.wait(timed_service, 1)
    assert timed_service.participant.state(tokens[1])["stage"] == "expired"
    assert "time for this study is over" in timed_service.participant.state(tokens[1])["text"]
    assert find(timed_service) == []


def test_the_link_back_of_the_recruiter_opens_the_next_sitting_too(
    timed_service: Service, clock: Clock, bundle: MakeBundle
) -> None:
    """Catches a study in parts at a recruiter whose participants get a second session, and codes that are all one.

    Expected: each part has its code, and the link with {code} leads back with it.
    """
    url = "https://recruiter.example/done?cc={code}"
    study = open_two(
        timed_service,
        bundle,
        sittings={**TWO["sittings"], "codes": ["PART1"]},
        recruiter={"complete": "PART2", "url": url},
    )
    recruit, proof = Recruit(person="p-1"), SessionCredentials(browser="b" * 40)
    _, state = end_first(timed_service, study, recruit=recruit, proof=proof)
    assert (state["code"], state["redirect"]) == ("PART1", "https://recruiter.example/done?cc=PART1")
    clock.wait(timed_service, 25)
    token = timed_service.participant.begin(study, recruit=recruit, proof=proof)
    state = answer_all(timed_service, token, timed_service.participant.start_sitting(token, 2))
    done = timed_service.participant.finish(token)
    assert (done["code"], done["redirect"]) == ("PART2", "https://recruiter.example/done?cc=PART2")
    assert query(timed_service, "SELECT count(*) FROM session") == [(1,)]


def test_a_clock_that_jumps_closes_no_sitting(timed_service: Service, clock: Clock, bundle: MakeBundle) -> None:
    """Catches a clock a month ahead that ends every participation, and one that keeps participants waiting.

    Expected: the time that is not confirmed closes nothing; a server that was off for the gap opens the next sitting.
    """
    token, _ = end_first(timed_service, open_two(timed_service, bundle))
    clock.now += 25 * HOUR_NS
    assert timed_service.participant.state(token)["wait_ms"] == 0
    clock.now += 30 * 24 * HOUR_NS
    assert timed_service.participant.state(token)["stage"] == "between"
    clock.now -= 30 * 24 * HOUR_NS
    assert timed_service.participant.start_sitting(token, 2)["stage"] == "main"
    assert find(timed_service) == []


def test_previews_do_not_wait_and_the_consent_says_all(timed_service: Service, bundle: MakeBundle) -> None:
    """Catches a researcher who cannot try the second sitting, and a consent that is silent about it."""
    study = open_two(timed_service, bundle)
    token, state = end_first(timed_service, study, mode="preview", condition="both")
    assert state["wait_ms"] == 0
    assert timed_service.participant.start_sitting(token, 2)["stage"] == "main"
    text = timed_service.participant.state(timed_service.participant.begin(study))["texts"]["consent"]
    assert "The study has 2 sessions" in text
    assert "opens 24 hours after" in text
    assert "within 3 days of finishing" in text
    assert "paid after the last session" in text


def test_simulated_participants_go_through_all_sittings(timed_service: Service, bundle: MakeBundle) -> None:
    """Catches a simulation that ends after the first sitting, or waits."""
    study = open_two(timed_service, bundle)
    assert simulate(timed_service, study, 2, {"guesser": 1.0}, 3) == 2 * 13
    rows = timed_service.researcher.responses(study, ("sim",))
    assert rows.groupby(["participant", "sitting"]).size().tolist() == [6] * 4
    assert find(timed_service) == []


def test_conditions_within_participants_keep_their_periods_whole(
    timed_service: Service, clock: Clock, bundle: MakeBundle
) -> None:
    """Catches a period in two sittings, and a page before the second sitting that does not say what is shown.

    Expected: of four conditions two in each sitting.
    """
    config = {**TWO, "allocation": {"within": True}}
    study = timed_service.researcher.open_study(bundle(config=config, conditions=CONDITIONS, trials=24, practice=0), 4)
    for number in range(4):
        token, state = end_first(timed_service, study, participant=str(number))
        assert state["stage"] == "between"
        clock.wait(timed_service, 25)
        state = timed_service.participant.start_sitting(token, 2)
        assert state["total"] == 12
        assert state["breaks"] == [6]
        assert state["trial"]["opening"]["title"] == "Session 2 of 2"
        answer_all(timed_service, token, state)
        timed_service.participant.finish(token)
    rows = timed_service.researcher.responses(study)
    assert set(rows.groupby(["participant", "sitting"])["period"].nunique()) == {2}
    assert set(rows.groupby(["participant", "condition"])["sitting"].nunique()) == {1}
    assert find(timed_service) == []


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ("UPDATE sitting SET ended_at = NULL WHERE number = 1", "has ended 0 sittings"),
        ("UPDATE sitting SET ends = ends + 1 WHERE number = 1", "has other sittings than its plan"),
        ("UPDATE sitting SET started_at = started_at - 7200000000000 WHERE number = 2", "before it opened"),
        ("DELETE FROM sitting WHERE number = 2", "has other sittings than its plan"),
        ("UPDATE session SET stage = 'between'", "is at 'between' in a sitting"),
    ],
)
def test_verify_replays_the_sittings(
    timed_service: Service, clock: Clock, bundle: MakeBundle, change: str, fault: str
) -> None:
    """Catches a sitting, its trials or its times that somebody changed."""
    token, _ = end_first(timed_service, open_two(timed_service, bundle))
    clock.wait(timed_service, 25)
    timed_service.participant.start_sitting(token, 2)
    assert find(timed_service) == []
    tamper(timed_service, change)
    assert any(fault in one for one in find(timed_service))


def test_a_study_with_too_few_trials_of_a_type_is_not_opened(bundle: MakeBundle) -> None:
    """Catches a sitting without trials of a type: builds drop trials."""
    manifest = Bundle(bundle(config=TWO, trials=4, practice=0)).manifest
    assert [fault for fault in find_unplayable(manifest) if "2 sittings need at least 2 trials of each type" in fault]
