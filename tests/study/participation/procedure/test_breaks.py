"""Breaks between the trials."""

from __future__ import annotations

import pytest

from study.service import Service
from tests.study.participants import answer, to_trials
from tests.study.participation.procedure.conftest import Open

pytestmark = pytest.mark.usefixtures("database")


def test_there_is_no_break_near_the_end(service: Service, opened: Open) -> None:
    """Catches a break after 30 of 32 trials, and images of the trials after it that are not loaded."""
    opened(pacing={"break_every": 9})
    token = service.participant.begin("demo", mode="preview", condition="none")
    to_trials(service, token)
    for index in range(3):
        state = service.participant.record(token, answer(index)).state
    assert (state["total"], state["breaks"]) == (12, [])
    assert len(service.participant.preload(token)) == 12 * 10
