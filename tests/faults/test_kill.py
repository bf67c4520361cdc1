"""kill -9 of the server while people answer: nothing acknowledged is lost, nothing is doubled."""

from __future__ import annotations

from pathlib import Path

from tests.faults.soak import BETWEEN, prepared, soak
from tests.server import serving

CLIENTS, KILLS, TRIALS = 8, 4, 400


def test_kill_9_loses_no_acknowledged_answer_and_doubles_none(tmp_path: Path) -> None:
    """A server that answered before the commit, or a retry stored twice, fails here; `bench faults` does it longer.

    With two responses in a trial, so that both tables and the step between them are under fire.
    """
    prepared(tmp_path, CLIENTS, TRIALS, "reliance")
    with serving(tmp_path) as server:
        found = soak(server, CLIENTS, KILLS, seed=20)
    assert found.acknowledged > BETWEEN * KILLS
    assert (found.lost, found.doubled, found.conflicts, found.faults) == (0, 0, 0, ())
    assert found.stored == found.acknowledged
