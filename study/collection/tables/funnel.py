"""How far participants came, and how long they took, in all and by part. Blinded: no condition, no outcome."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType

import numpy as np
import pandas as pd

from study.store.rows import Row, SessionRow, SittingRow

STEPS: dict[str, Callable[[SessionRow], bool]] = {
    "Opened the study": lambda _: True,
    "Gave consent": lambda row: row["agreed_at"] is not None,
    "Passed the comprehension check": lambda row: row["condition"] is not None,
    "Responded to the first trial": lambda row: row["position"] > 0,
    "Responded to every trial": lambda row: 0 < row["practice"] + row["main"] <= row["position"],
    "Completed": lambda row: row["stage"] == "done",
}
"""The steps of a participation, in order, and whether a participant took each."""
NO_PAUSES: Mapping[str, int] = MappingProxyType({})
QUANTILES = {"10%": 0.1, "Median": 0.5, "90%": 0.9}
TRIALS = "Trials"
PARTS = ("Consent", "Instructions and comprehension check", "Practice", TRIALS, "Questionnaire and last page")
"""The parts of a study. In a study without a comprehension check, the instructions count as part of what follows."""


def tabulate_funnel(sessions: Sequence[SessionRow]) -> pd.DataFrame:
    """Count the participants who took each step or a later one, with the share of those who took the step before.

    Returns
    -------
    DataFrame
        step, participants, share (of the step before; NaN where nobody took that).
    """
    taken = [max((i for i, took in enumerate(STEPS.values()) if took(row)), default=0) for row in sessions]
    counts = [sum(last >= i for last in taken) for i in range(len(STEPS))]
    before = [len(sessions), *counts[:-1]]
    shares = [count / of if of else np.nan for count, of in zip(counts, before, strict=True)]
    return pd.DataFrame({"step": list(STEPS), "participants": counts, "share": shares})


def measure_pauses(sittings: Sequence[SittingRow]) -> int:
    """Measure the time between a participant's sittings, in nanoseconds."""
    pairs = pairwise(sittings)
    return sum((after["started_at"] or 0) - (before["ended_at"] or 0) for before, after in pairs if after["started_at"])


def list_minutes(sessions: Sequence[SessionRow], pauses: Mapping[str, int] = NO_PAUSES) -> pd.Series[float]:
    """List the minutes from consent to completion of the participants who completed; none across a clock set back.

    Without those between sittings, ``pauses`` by session.
    """
    times = [
        (row["completed_at"] - row["agreed_at"] - pauses.get(row["session_id"], 0)) / 60e9
        for row in sessions
        if row["stage"] == "done" and row["completed_at"] and row["agreed_at"]
    ]
    return pd.Series([minutes for minutes in times if minutes >= 0], dtype=float, name="minutes")


def tabulate_page_times(
    sessions: Sequence[SessionRow], milestones: Sequence[Row], pauses: Mapping[str, int] = NO_PAUSES
) -> pd.DataFrame:
    """Tabulate how long participants took for each part of the study, by the server's clock, without ``pauses``.

    A part ends when the server receives what ends it: the consent, the passed check, the last practice response, the
    last response, the completion. Whoever left in a part, or withdrew, is not counted in it.

    Returns
    -------
    DataFrame
        part, participants, then the minutes of the quantiles in `QUANTILES`. Parts that nobody finished are left out.
    """
    reached = {row["session_id"]: row for row in milestones}
    times: dict[str, list[float]] = {part: [] for part in PARTS}
    for session in sessions:
        if session["stage"] == "withdrawn":
            continue
        last = session["started_at"]
        for part, ended in zip(PARTS, _find_ends(session, reached[session["session_id"]]), strict=True):
            if ended is not None:
                took = ended - last - (pauses.get(session["session_id"], 0) if part == TRIALS else 0)
                if took >= 0:  # else the clock was set back meanwhile
                    times[part].append(took / 60e9)
                last = ended
    rows = [(part, len(took), *np.quantile(took, list(QUANTILES.values()))) for part, took in times.items() if took]
    return pd.DataFrame(rows, columns=["part", "participants", *QUANTILES])


def _find_ends(session: SessionRow, reached: Row) -> tuple[int | None, ...]:
    """Find when each part of `PARTS` ended, in nanoseconds since 1970; None for one that did not, or is not there."""
    position, practice, trials = session["position"], session["practice"], session["main"]
    return (
        session["agreed_at"],
        reached["passed_at"],
        reached["practised_at"] if 0 < practice <= position else None,
        reached["responded_at"] if trials > 0 and practice + trials <= position else None,
        session["completed_at"] if session["stage"] == "done" else None,
    )
