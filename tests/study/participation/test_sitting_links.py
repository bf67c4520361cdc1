"""Personal links: guessed, of another participant, on two devices at once, and after a withdrawal."""

from __future__ import annotations

import pytest

from study.participation.refusals import Refusal
from study.participation.sittings.course import BACK, make_link
from study.service import Service
from tests.study.participants import MakeBundle, answer, query
from tests.study.sitting_studies import TWO, Clock, answer_all, clock, end_first, find, open_two, refused, timed_service

__all__ = ["clock", "timed_service"]


def test_guessed_links_and_those_of_others(timed_service: Service, bundle: MakeBundle) -> None:
    """Catches a guessed link, one of another study or workspace, and one that opens another participant's session."""
    study = open_two(timed_service, bundle)
    other = timed_service.researcher.open_study(bundle(name="other", config=TWO, trials=6, practice=0, seed=8), 2)
    tokens = [end_first(timed_service, study)[0] for _ in range(2)]
    links = [timed_service.participant.state(token)["link"].removeprefix(BACK) for token in tokens]
    ids = [one for (one,) in query(timed_service, "SELECT session_id FROM session ORDER BY started_at, session_id")]
    assert links[0] != links[1]
    for wrong in ("", links[0][:-1] + ("A" if links[0][-1] != "A" else "B"), make_link(b"another key", ids[0]), ids[0]):
        with pytest.raises(Refusal, match="No participant has this personal link"):
            timed_service.participant.come_back(study, wrong)
    with pytest.raises(Refusal, match="No participant has this personal link"):
        timed_service.participant.come_back(other, links[0])
    (hashed,) = query(timed_service, f"SELECT link_hash FROM session WHERE session_id = '{ids[0]}'")[0]
    with pytest.raises(Refusal, match="No participant has this personal link"):
        timed_service.participant.come_back(study, hashed)
    codes = [timed_service.participant.state(token)["withdrawal_code"] for token in tokens]
    back = timed_service.participant.come_back(study, links[1])
    assert timed_service.participant.state(back)["withdrawal_code"] == codes[1]
    assert timed_service.participant.state(tokens[0])["withdrawal_code"] == codes[0]


def test_links_tried_from_one_address_are_limited_and_those_that_fit_are_not(
    timed_service: Service, bundle: MakeBundle
) -> None:
    """Catches a flood of guesses, and a class behind one address whose own links are refused after it."""
    study = open_two(timed_service, bundle)
    link = end_first(timed_service, study)[1]["link"].removeprefix(BACK)
    for _ in range(30):
        timed_service.participant.come_back(study, link, "address")
    codes = []
    for _ in range(30):
        with pytest.raises(Refusal) as caught:
            timed_service.participant.come_back(study, "wrong", "address")
        codes.append(caught.value.code)
    assert {*codes[:20]} == {403}
    assert 429 in codes[20:]
    timed_service.participant.come_back(study, link, "address")


def test_one_device_at_once(timed_service: Service, clock: Clock, bundle: MakeBundle) -> None:
    """Catches two devices that respond in turn: the link replaces the token, and one tab alone holds the session."""
    study = open_two(timed_service, bundle)
    token, state = end_first(timed_service, study)
    clock.wait(timed_service, 25)
    phone = timed_service.participant.come_back(study, state["link"].removeprefix(BACK))
    with pytest.raises(Refusal) as caught:
        timed_service.participant.state(token)
    assert (caught.value.code, caught.value.says) == (401, "refused_stale")
    timed_service.participant.start_sitting(phone, 2, "tab 1")
    with pytest.raises(Refusal) as caught:
        timed_service.participant.start_sitting(phone, 2, "tab 2")
    assert caught.value.code == 423
    laptop = timed_service.participant.come_back(study, state["link"].removeprefix(BACK))
    with pytest.raises(Refusal):
        timed_service.participant.record(phone, answer(7), "tab 1")
    assert timed_service.participant.record(laptop, answer(7), "tab 3").code == 201


def test_a_withdrawal_erases_all_sittings_and_the_link_opens_nothing(
    timed_service: Service, clock: Clock, bundle: MakeBundle
) -> None:
    """Catches responses or times of a sitting that stay, and a link that opens a sitting after the withdrawal."""
    study = open_two(timed_service, bundle)
    token, state = end_first(timed_service, study)
    clock.wait(timed_service, 25)
    answer_all(timed_service, token, timed_service.participant.start_sitting(token, 2))
    timed_service.participant.withdraw(state["withdrawal_code"])
    for table in ("response", "sitting", "trial_plan"):
        assert query(timed_service, f"SELECT count(*) FROM {table}") == [(0,)]
    back = timed_service.participant.come_back(study, state["link"].removeprefix(BACK))
    assert timed_service.participant.state(back)["stage"] == "withdrawn"
    assert "link" not in timed_service.participant.state(back)
    assert refused(timed_service, back)[0] == 425
    assert find(timed_service) == []
