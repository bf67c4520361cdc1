"""Personal links: guessed, of another participant, on two devices at once, and after a withdrawal."""

from __future__ import annotations

import pytest

from study.participation.refusals import Refusal
from study.participation.sittings.course import BACK, make_link
from study.service import Service
from tests.study.participants import MakeBundle, answer, query
from tests.study.sitting_studies import TWO, Clock, answer_all, clock, end_first, find, open_two, opened, refused

__all__ = ["clock", "opened"]


def test_guessed_links_and_those_of_others(opened: Service, bundle: MakeBundle) -> None:
    """Catches a guessed link, one of another study or workspace, and one that opens another participant's session."""
    study = open_two(opened, bundle)
    other = opened.researcher.open_study(bundle(name="other", config=TWO, trials=6, practice=0, seed=8), 2)
    tokens = [end_first(opened, study)[0] for _ in range(2)]
    links = [opened.participant.state(token)["link"].removeprefix(BACK) for token in tokens]
    ids = [one for (one,) in query(opened, "SELECT session_id FROM session ORDER BY started_at, session_id")]
    assert links[0] != links[1]
    for wrong in ("", links[0][:-1] + ("A" if links[0][-1] != "A" else "B"), make_link(b"another key", ids[0]), ids[0]):
        with pytest.raises(Refusal, match="No participant has this personal link"):
            opened.participant.come_back(study, wrong)
    with pytest.raises(Refusal, match="No participant has this personal link"):
        opened.participant.come_back(other, links[0])
    (hashed,) = query(opened, f"SELECT link_hash FROM session WHERE session_id = '{ids[0]}'")[0]
    with pytest.raises(Refusal, match="No participant has this personal link"):
        opened.participant.come_back(study, hashed)
    codes = [opened.participant.state(token)["withdrawal_code"] for token in tokens]
    back = opened.participant.come_back(study, links[1])
    assert opened.participant.state(back)["withdrawal_code"] == codes[1]
    assert opened.participant.state(tokens[0])["withdrawal_code"] == codes[0]


def test_links_tried_from_one_address_are_limited_and_those_that_fit_are_not(
    opened: Service, bundle: MakeBundle
) -> None:
    """Catches a flood of guesses, and a class behind one address whose own links are refused after it."""
    study = open_two(opened, bundle)
    link = end_first(opened, study)[1]["link"].removeprefix(BACK)
    for _ in range(30):
        opened.participant.come_back(study, link, "address")
    codes = []
    for _ in range(30):
        with pytest.raises(Refusal) as caught:
            opened.participant.come_back(study, "wrong", "address")
        codes.append(caught.value.code)
    assert {*codes[:20]} == {403}
    assert 429 in codes[20:]
    opened.participant.come_back(study, link, "address")


def test_one_device_at_once(opened: Service, clock: Clock, bundle: MakeBundle) -> None:
    """Catches two devices that respond in turn: the link replaces the token, and one tab alone holds the session."""
    study = open_two(opened, bundle)
    token, state = end_first(opened, study)
    clock.wait(opened, 25)
    phone = opened.participant.come_back(study, state["link"].removeprefix(BACK))
    with pytest.raises(Refusal) as caught:
        opened.participant.state(token)
    assert (caught.value.code, caught.value.says) == (401, "refused_stale")
    opened.participant.start_sitting(phone, 2, "tab 1")
    with pytest.raises(Refusal) as caught:
        opened.participant.start_sitting(phone, 2, "tab 2")
    assert caught.value.code == 423
    laptop = opened.participant.come_back(study, state["link"].removeprefix(BACK))
    with pytest.raises(Refusal):
        opened.participant.record(phone, answer(7), "tab 1")
    assert opened.participant.record(laptop, answer(7), "tab 3").code == 201


def test_a_withdrawal_erases_all_sittings_and_the_link_opens_nothing(
    opened: Service, clock: Clock, bundle: MakeBundle
) -> None:
    """Catches responses or times of a sitting that stay, and a link that opens a sitting after the withdrawal."""
    study = open_two(opened, bundle)
    token, state = end_first(opened, study)
    clock.wait(opened, 25)
    answer_all(opened, token, opened.participant.start_sitting(token, 2))
    opened.participant.withdraw(state["withdrawal_code"])
    for table in ("response", "sitting", "trial_plan"):
        assert query(opened, f"SELECT count(*) FROM {table}") == [(0,)]
    back = opened.participant.come_back(study, state["link"].removeprefix(BACK))
    assert opened.participant.state(back)["stage"] == "withdrawn"
    assert "link" not in opened.participant.state(back)
    assert refused(opened, back)[0] == 425
    assert find(opened) == []
