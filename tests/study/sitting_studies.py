"""Studies with two sittings, and a server's clock that is put forward."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from study.collection.integrity import find_faults
from study.participation.refusals import Refusal
from study.participation.sittings.course import HOUR_NS
from study.service import Service
from tests.study.participants import MakeBundle, answer, to_trials
from tests.study.test_clock import Clock as SetClock

TWO = {"sittings": {"count": 2, "gap_hours": 24, "within_hours": 72}}


class Clock(SetClock):
    """A server's clock that is put forward; what a running server does meanwhile happens on the way."""

    def wait(self, service: Service, hours: float) -> None:
        until = self.now + int(hours * HOUR_NS)
        while self.now < until:
            self.now = min(until, self.now + HOUR_NS // 2)
            service.workspace.store.write(service.workspace.compute_trusted_time)


def open_two(service: Service, bundle: MakeBundle, **config: Any) -> str:
    return service.researcher.open_study(bundle(config={**TWO, **config}, trials=12, practice=1), per_condition=2)


def answer_all(service: Service, token: str, state: dict[str, Any]) -> dict[str, Any]:
    """Respond up to the end of the sitting."""
    while state["stage"] in ("practice", "main"):
        ack = service.participant.record(token, answer(state["trial"]["index"]))
        assert ack.code == 201
        state = ack.state
    return state


def end_first(service: Service, study: str, **begin: Any) -> tuple[str, dict[str, Any]]:
    """Bring a participant to the end of the first sitting; return token and state."""
    token = service.participant.begin(study, **begin)
    return token, answer_all(service, token, to_trials(service, token))


def find(service: Service) -> list[str]:
    return service.workspace.store.read(lambda db: list(find_faults(db, service.workspace.manifest_of)))


def refused(service: Service, token: str, number: int = 2) -> tuple[int, str]:
    with pytest.raises(Refusal) as caught:
        service.participant.start_sitting(token, number)
    return caught.value.code, caught.value.says


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def timed_service(tmp_path: Path, clock: Clock) -> Iterator[Service]:
    with Service(tmp_path / "home", clock=clock) as service:
        yield service
