"""A clock that jumps: nothing ends, no place changes hands and no id is erased until the time is known to be right."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dashboard.cli import main as cli
from study.collection import backup, export
from study.participation.payloads import Recruit
from study.service import Service
from study.store.timemark import LIVED_NS
from study.workspace.workspace import VARIABLE
from tests.study.participants import MakeBundle, answer, query, to_trials

HOUR = 3600 * 10**9
DAY = 24 * HOUR
PEOPLE = 12

pytestmark = pytest.mark.usefixtures("database")


class Clock:
    def __init__(self) -> None:
        self.now = 10**18

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def opened(tmp_path: Path, clock: Clock) -> Iterator[Service]:
    with Service(tmp_path / "home", clock=clock) as service:
        yield service


def arrive(service: Service, bundle: MakeBundle) -> list[str]:
    """Twelve participants at their first trial, as many as there are places."""
    study = service.researcher.open_study(
        bundle(config={"recruiter": {"retention_days": 3}}), per_condition=PEOPLE // 4
    )
    tokens = [service.participant.begin(study, recruit=Recruit(person=f"person-{n}")) for n in range(PEOPLE)]
    for token in tokens:
        to_trials(service, token)
    return tokens


def expired(service: Service) -> int:
    [(count,)] = query(service, "SELECT count(*) FROM session WHERE stage = 'expired'")
    return int(count)


def ids(service: Service) -> int:
    with service.workspace.identities._writing.begin() as db:
        return int(db.exec_driver_sql("SELECT count(*) FROM identity").scalar_one())


@pytest.mark.parametrize("jump", [3 * HOUR, 200 * DAY])
def test_six_seconds_of_a_wrong_clock_end_nothing(opened: Service, clock: Clock, bundle: MakeBundle, jump: int) -> None:
    """Three hours ahead ended 12 of 12 participations for good: all of them asked for their state in that time."""
    tokens = arrive(opened, bundle)
    clock.now += jump
    assert opened.researcher.monitor("demo").clock_jump_ns == jump
    for second, token in enumerate(tokens):
        clock.now += 10**9 * (second % 2)
        assert opened.participant.state(token)["stage"] == "practice"
        assert opened.participant.record(token, answer(0)).code == 201
        opened.workspace.keep_watch()
    assert opened.workspace.erase_identities() == 0
    clock.now -= jump
    assert opened.researcher.monitor("demo").clock_jump_ns == 0
    assert [opened.participant.record(token, answer(1)).code for token in tokens] == [201] * PEOPLE
    assert (expired(opened), ids(opened)) == (0, PEOPLE)


def test_a_running_server_moves_the_time_on(opened: Service, clock: Clock, bundle: MakeBundle) -> None:
    """An idle night of a server that runs is no jump: what is due ends and is erased."""
    tokens = arrive(opened, bundle)
    for _ in range(4 * 24 * 2):
        clock.now += HOUR // 2
        opened.workspace.keep_watch()
    assert opened.researcher.monitor("demo").clock_jump_ns == 0
    assert opened.participant.state(tokens[0])["stage"] == "expired"
    assert opened.workspace.erase_identities() == PEOPLE


def test_ten_minutes_of_responses_settle_it(opened: Service, clock: Clock, bundle: MakeBundle) -> None:
    """After a night without the server: the first responses do not, those of ten minutes do."""
    tokens = arrive(opened, bundle)
    clock.now += 10 * HOUR
    opened.workspace.keep_watch()
    for index in range(11):
        assert opened.researcher.monitor("demo").clock_jump_ns > 0
        assert opened.participant.record(tokens[0], answer(index)).code == 201
        clock.now += LIVED_NS // 10
        opened.workspace.keep_watch()
    assert opened.researcher.monitor("demo").clock_jump_ns == 0
    assert opened.participant.state(tokens[1])["stage"] == "expired"


def test_a_researcher_can_say_that_the_clock_is_right(opened: Service, clock: Clock, bundle: MakeBundle) -> None:
    tokens = arrive(opened, bundle)
    clock.now += 4 * DAY
    assert opened.workspace.erase_identities() == 0
    opened.researcher.confirm_time()
    assert opened.workspace.erase_identities() == PEOPLE
    assert opened.participant.state(tokens[0])["stage"] == "expired"
    assert ("confirmed the clock",) in query(opened, "SELECT act FROM audit")


def test_a_clock_that_was_behind_ends_nothing_when_it_is_set_right(
    opened: Service, clock: Clock, bundle: MakeBundle
) -> None:
    """A machine without a battery begins in 1970."""
    arrive(opened, bundle)
    study, now = opened.researcher.open_study(bundle("late"), per_condition=4), clock.now
    clock.now = 10**15
    token = opened.participant.begin(study, recruit=Recruit(person="late"))
    to_trials(opened, token)
    clock.now = now
    assert opened.participant.state(token)["stage"] == "practice"
    assert opened.workspace.erase_identities() == 0


def test_reading_erases_nothing(tmp_path: Path, bundle: MakeBundle, monkeypatch: pytest.MonkeyPatch) -> None:
    """``verify``, which should only read, erased every id with a clock 200 days ahead; so did every other command."""
    home = tmp_path / "home"
    monkeypatch.setenv(VARIABLE, str(home))
    with Service(home) as service:
        arrive(service, bundle)
    later = Clock()
    with Service(home) as service:
        later.now = service.workspace.clock() + 200 * DAY
    with Service(home, clock=later) as service:
        assert service.researcher.verify() == []
        backup.backup(service.researcher, tmp_path / "saved")
        export.export(service.researcher, "demo", tmp_path / "out.csv")
        assert ids(service) == PEOPLE
    told = ["export", "demo", "--out", str(tmp_path / "again.csv")]
    assert CliRunner().invoke(cli.build_app(), told, catch_exceptions=False).exit_code == 0
    with Service(home) as service:
        assert (ids(service), expired(service)) == (PEOPLE, 0)


@pytest.mark.parametrize("jump", [-2 * HOUR, 3 * HOUR])
def test_a_clock_that_jumps_leaves_no_wrong_duration(
    opened: Service, clock: Clock, bundle: MakeBundle, jump: int
) -> None:
    """Catches durations of -116 minutes, and of three hours too many, in the export, the monitor and the timeouts."""
    folder = bundle(trials=4, practice=0, config={"pacing": {"longest_minutes": 600}})
    study = opened.researcher.open_study(folder, per_condition=1)
    token = opened.participant.begin(study)
    to_trials(opened, token)
    browser_ms = 1e12
    for index in range(4):
        clock.now += 60 * 10**9 + (jump if index == 2 else 0)
        browser_ms += 60_000.0
        opened.participant.record(token, answer(index, time_origin_ms=1e12, event_ms=browser_ms - 1e12))
    opened.participant.finish(token)
    [row] = opened.researcher.load_participants(study).to_dict("records")
    assert row["clock_jump"] == pytest.approx(jump / 60e9)
    assert row["minutes"] == pytest.approx(4, abs=0.01)
    seen = opened.researcher.monitor(study)
    assert (seen.minutes >= 0).all()
    assert (seen.page_times.select_dtypes("number") >= 0).all().all()
