"""What the monitor says of a collection, against what the test did; and that it says nothing of outcomes."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from core.errors import ForetellError
from study.collection.monitor import LONGEST_RUN, SILENT_NS, describe_flags
from study.conditions import CONDITIONS
from study.participation.payloads import TrialResponse
from study.service import Service
from study.store import audit

MakeBundle = Callable[..., Path]
MINUTE = 60 * 10**9
TRIALS = 20


class Clock:
    """A clock that is set by hand; each look takes a microsecond."""

    def __init__(self) -> None:
        self.now = 1_800_000_000 * 10**9

    def __call__(self) -> int:
        self.now += 1000
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def watched(tmp_path: Path, clock: Clock, bundle: MakeBundle) -> Service:
    service = Service(tmp_path / "home", clock=clock)
    pacing = {"catch": 1, "hold_minutes": 30}
    service.researcher.open_study(bundle(trials=TRIALS, practice=0, config={"pacing": pacing}), per_condition=3)
    return service


def at_trials(service: Service, person: str) -> str:
    token = service.participant.begin("demo", participant=person)
    service.participant.consent(token, True)
    service.participant.ready(token)
    service.participant.ready(token, "example")
    return token


def answer(service: Service, token: str, index: int, side: str = "left", rt_ms: float = 900.0, away: float = 0) -> None:
    sent = TrialResponse(
        trial_index=index, attempt_id=str(uuid.uuid4()), side=side, input="key", rt_ms=rt_ms, blur_ms=away  # type: ignore[arg-type]
    )  # fmt: skip
    assert service.participant.record(token, sent).code == 201


def test_everybody_is_where_she_is(watched: Service, clock: Clock) -> None:
    """One of each kind, made by hand; a preview is nobody."""
    watched.participant.begin("demo", participant="reads")
    watched.participant.consent(watched.participant.begin("demo", participant="declines"), False)
    at_trials(watched, "goes")
    clock.now += SILENT_NS + MINUTE
    answering = at_trials(watched, "answers")
    answer(watched, answering, 0)
    finished = at_trials(watched, "finishes")
    for index in range(TRIALS + 1):
        answer(watched, finished, index, ("left", "right")[index % 2])
    watched.participant.finish(finished)
    watched.participant.begin("demo", mode="preview")
    clock.now += MINUTE
    seen = watched.researcher.monitor("demo")
    assert {kind: seen.count(kind) for kind in ("waiting", "responding", "silent", "finished", "ended")} == {
        "waiting": 0, "responding": 1, "silent": 2, "finished": 1, "ended": 1,
    }  # fmt: skip
    newest = seen.participants.iloc[0]
    assert (newest["where"], newest["trial"], newest["of"], newest["minutes"]) == ("finished", 21, 21, 1.0)
    assert seen.places[["places", "open", "held", "done"]].sum().tolist() == [12, 9, 2, 1]
    order = [name for name in CONDITIONS if name in set(seen.places["condition"])]  # as on every page
    assert seen.places["condition"].tolist() == order != sorted(order)
    assert seen.throughput["responses"].tolist() == [22]
    assert seen.free_bytes > 0
    assert seen.database_bytes > 0


def test_throughput_counts_the_empty_steps_too(watched: Service, clock: Clock) -> None:
    token = at_trials(watched, "p")
    answer(watched, token, 0)
    clock.now += 15 * MINUTE
    answer(watched, token, 1)
    answer(watched, token, 2)
    assert watched.researcher.monitor("demo").throughput["responses"].tolist() == [1, 0, 0, 2]


def test_flags_say_what_the_answers_show(watched: Service) -> None:
    """Four odd people and a good one; the longest run against a slow count of the same sides."""
    sides = {
        "straight": "left " * 13 + "right left right right left right left right",
        "hasty": "left right " * 10 + "left",
        "away": "left right " * 10 + "left",
        "good": "left left right left right right " * 3 + "left left right",
    }
    for person, pressed in sides.items():
        token = at_trials(watched, person)
        for index, side in enumerate(pressed.split()):
            fast = 150.0 if person == "hasty" and index < 3 else 900.0
            answer(watched, token, index, side, fast, 31_000.0 if person == "away" and index == 4 else 0)
    longest = {p: max(len(list(g)) for _, g in itertools.groupby(s.split())) for p, s in sides.items()}
    assert longest["straight"] == 13 > LONGEST_RUN > longest["good"]
    said = watched.researcher.monitor("demo").participants["flags"].iloc[::-1].tolist()
    said = [text.replace("attention checks failed beyond the allowed number: 1", "").strip("; ") for text in said]
    assert said == ["13 responses in a row on the same side", "14% faster than 300 ms", "31 s with the page hidden", ""]


def test_a_missed_attention_check_is_flagged_and_an_allowed_one_is_not() -> None:
    fine = {"responses": 5, "fast": 0, "blur_ms": 0.0, "run": 2}
    assert describe_flags(fine, 1) == ["attention checks failed beyond the allowed number: 1"]
    assert describe_flags(fine, 0) == describe_flags(None, -1) == []


def test_attention_checks_are_counted_where_they_stand(watched: Service) -> None:
    """All left: the person misses exactly the catch trials that asked for the right side."""
    for person in range(6):
        token = at_trials(watched, str(person))
        for index in range(TRIALS + 1):
            answer(watched, token, index)
    people = watched.researcher.load_participants("demo")
    missed = watched.researcher.monitor("demo").participants["flags"].str.contains("attention").iloc[::-1].tolist()
    assert missed == (people["catch_missed"] > 0).tolist()
    assert 0 < sum(missed) < 6 or len(set(missed)) == 1


def test_what_is_seen_is_the_same_whatever_was_right(tmp_path: Path, clock: Clock, bundle: MakeBundle) -> None:
    """Blinded: with the AI's answers exchanged in the bundle not a cell of the monitor changes."""
    seen = []
    for swap in (False, True):
        with Service(tmp_path / str(swap), clock=clock) as service:
            service.researcher.open_study(bundle(trials=TRIALS, practice=0, swap_answers=swap), per_condition=2)
            token = at_trials(service, "p")
            for index in range(TRIALS):
                answer(service, token, index, ("left", "right")[index % 3 == 0])
            seen.append(service.researcher.monitor("demo"))
    for name in ("places", "throughput", "incidents"):
        pd.testing.assert_frame_equal(getattr(seen[0], name), getattr(seen[1], name))
    rest = [look.participants.drop(columns="participant") for look in seen]
    pd.testing.assert_frame_equal(*rest)
    assert "condition" not in seen[0].participants


def test_unblinding_needs_a_reason_and_is_kept(watched: Service) -> None:
    token = at_trials(watched, "p")
    answer(watched, token, 0)
    with pytest.raises(ForetellError, match="requires a reason"):
        watched.researcher.unblind("demo", "  ")
    acts = watched.workspace.store.read(audit.acts)
    assert [row["act"] for row in acts] == ["opened"]
    table = watched.researcher.unblind("demo", "safety board")
    last = watched.workspace.store.read(audit.acts)[-1]
    assert (last["act"], "safety board" in last["detail_json"]) == ("unblinded", True)
    assert table["responses"].sum() == len(watched.researcher.responses("demo"))
    assert table["begun"].sum() == 1
    assert watched.researcher.verify() == []


def test_an_unknown_study_is_said(watched: Service) -> None:
    with pytest.raises(ForetellError, match="Study 'other' is not open"):
        watched.researcher.monitor("other")


def test_the_funnel_counts_how_far_participants_came(watched: Service, clock: Clock) -> None:
    """By hand: one only opened the study, one consented, one responded to two trials, one completed in 7 minutes.

    Catches steps counted by where participants are now, so that those who went on would disappear.
    """
    watched.participant.begin("demo", participant="opened")
    watched.participant.consent(watched.participant.begin("demo", participant="consented"), True)
    stopped = at_trials(watched, "stopped")
    for index in range(2):
        answer(watched, stopped, index)
    done = at_trials(watched, "done")
    total = int(watched.researcher.monitor("demo").participants["of"].max())
    for index in range(total):
        answer(watched, done, index)
    clock.now += 7 * MINUTE
    watched.participant.finish(done)
    seen = watched.researcher.monitor("demo")
    assert seen.funnel["participants"].tolist() == [4, 3, 2, 2, 1, 1]
    assert seen.funnel["share"].iloc[1:3].tolist() == pytest.approx([3 / 4, 2 / 3])
    assert seen.minutes.tolist() == pytest.approx([7], abs=0.01)
    assert not {"condition", "target", "choice"} & set(seen.funnel.columns)
