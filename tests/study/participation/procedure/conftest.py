"""A study with a whole procedure, and a clock that tests set."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from study.service import Service
from tests.study.participants import MakeBundle

MINUTE = 60 * 10**9


class Clock:
    """Nanoseconds that pass when told."""

    def __init__(self) -> None:
        self.now = 10**18

    def __call__(self) -> int:
        return self.now

    def minutes(self, number: float) -> None:
        self.now += int(number * MINUTE)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def service(tmp_path: Path, clock: Clock) -> Iterator[Service]:
    with Service(tmp_path / "home", clock=clock) as opened:
        yield opened


Open = Callable[..., str]


@pytest.fixture
def opened(service: Service, bundle: MakeBundle) -> Open:
    """Opens a study with these sections: ``opened(pacing={...})``."""

    def make(per_condition: int = 2, **config: Any) -> str:
        return service.researcher.open_study(bundle(config=config), per_condition)

    return make
