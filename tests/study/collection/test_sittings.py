"""Several sittings on the researcher's side: counts, links, pay, times, and databases from before there were any."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

from dashboard.cli import main as cli
from study.participation.payloads import Recruit
from study.plan.config import StudyConfig
from study.service import Service
from study.store import Store
from study.store.database import engine
from study.store.migrations import MIGRATIONS, migrate
from study.workspace.workspace import VARIABLE
from tests.study.participants import MakeBundle, query, to_trials
from tests.study.sitting_studies import TWO, Clock, answer_all, clock, end_first, timed_service

__all__ = ["clock", "timed_service"]
CODES = {"sittings": {**TWO["sittings"], "codes": ["PART1"]}, "recruiter": {"complete": "PART2"}}


@pytest.fixture
def study(timed_service: Service, clock: Clock, bundle: MakeBundle) -> str:
    """Five participants: finished, in the second sitting, waiting, not returned, and in the first sitting."""
    study = timed_service.researcher.open_study(bundle(config=CODES, trials=12, practice=1), per_condition=2)
    end_first(timed_service, study, recruit=Recruit(person="gone"))
    clock.wait(timed_service, 60)
    tokens = []
    for name in ("done", "second"):
        tokens.append(end_first(timed_service, study, recruit=Recruit(person=name))[0])
        clock.wait(timed_service, 0.1)
    clock.wait(timed_service, 25)
    states = [timed_service.participant.start_sitting(token, 2) for token in tokens]
    answer_all(timed_service, tokens[0], states[0])
    timed_service.participant.finish(tokens[0])
    end_first(timed_service, study, recruit=Recruit(person="waits"))
    clock.wait(timed_service, 0.1)
    to_trials(timed_service, timed_service.participant.begin(study, recruit=Recruit(person="first")))
    return study


def test_monitor_counts_the_sittings(timed_service: Service, study: str) -> None:
    """Catches a participant in no sitting or in two, and gaps in the time that the study takes."""
    seen = timed_service.researcher.monitor(study)
    assert seen.sittings.to_dict("records") == [
        {"sitting": 1, "started": 5, "ended": 4, "waiting": 0, "missed": 0},
        {"sitting": 2, "started": 2, "ended": 1, "waiting": 1, "missed": 1},
    ]
    assert seen.count("between") == 2
    assert seen.count("finished") == 1
    assert seen.minutes.max() < 1
    assert seen.page_times[["10%", "Median", "90%"]].max().max() < 1
    people = timed_service.researcher.load_participants(study, ("live",))
    assert people["sittings_ended"].tolist() == [1, 2, 1, 1, 0]
    times = [json.loads(text) for text in people["sitting_times"]]
    assert [[one["sitting"] for one in own] for own in times] == [[1], [1, 2], [1, 2], [1], [1]]
    assert times[1][1]["started_at"] > times[1][0]["ended_at"]
    assert people["minutes"].max() < 1


def test_links_are_of_participants_who_may_return(timed_service: Service, study: str) -> None:
    """Catches a link for others, one next to a pseudonym, one that does not open, and a list that nobody logged."""
    table = timed_service.researcher.list_sitting_links(study)
    assert table.columns.tolist() == ["pid", "sitting", "opens_at", "closes_at", "link"]
    assert table[["pid", "sitting"]].to_numpy().tolist() == [["waits", 2]]
    path, _, link = table["link"].iloc[0].partition("#back-")
    assert path == f"/run/{study}"
    assert timed_service.participant.state(timed_service.participant.come_back(study, link))["stage"] == "between"
    assert any("listed links of sittings" in str(row) for row in query(timed_service, "SELECT act FROM audit"))


def test_the_command_writes_them(
    timed_service: Service, study: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches a file that others can read, a link without an address, and an empty one after the closing."""
    monkeypatch.setenv(VARIABLE, str(timed_service.workspace.home))
    out = tmp_path / "links.csv"
    given = ["links", study, "--sittings", "--address", "https://study.example.org/", "--out", str(out)]
    told = CliRunner().invoke(cli.build_app(), given)
    assert told.exit_code == 0, told.output
    assert "links to the next sitting" in told.output
    frame = pd.read_csv(out)
    assert all(frame["link"].str.startswith(f"https://study.example.org/run/{study}#back-"))
    assert out.stat().st_mode & 0o077 == 0
    refused = CliRunner().invoke(cli.build_app(), [*given, "--count", "3"])
    assert "Leave out ids and --count" in str(refused.exception)


def test_each_sitting_is_settled_with_its_code(timed_service: Service, study: str) -> None:
    """Catches a paid first sitting that is called unfinished, and a code of a sitting that was not finished."""
    columns = ["Participant id", "Status", "Completion code"]
    rows = [(name, "APPROVED", "PART1") for name in ("done", "waits", "first")]
    table = timed_service.researcher.reconcile(study, pd.DataFrame(rows, columns=columns)).set_index("person")["matter"]
    assert table.get("done") is None
    assert table.get("waits") is None
    assert table["first"] == "handed in the code of sitting 1, but not finished it here"
    rows = [(name, "APPROVED", "PART2") for name in ("done", "waits")]
    table = timed_service.researcher.reconcile(study, pd.DataFrame(rows, columns=columns)).set_index("person")["matter"]
    assert table.get("done") is None
    assert table["waits"] == "handed in, but not finished here"


def test_a_database_of_version_11_goes_on(tmp_path: Path) -> None:
    """Catches a session that is lost or changed when its table is replaced, and rules that are lost with it."""
    place = tmp_path / "old.db"
    made = engine.create_write_engine(f"sqlite:///{place}")
    migrate(made, {"sqlite": MIGRATIONS["sqlite"][:11]})
    with made.begin() as db:
        db.exec_driver_sql(
            "INSERT INTO study_version(study_hash, name, folder, opened_at, state) VALUES ('h', 'd', '/', 1, 'open')"
        )
        for name, stage in (("s", "main"), ("u", "done")):
            db.exec_driver_sql(
                "INSERT INTO session(session_id, study, study_hash, participant_id, mode, token_hash, stage, position, "
                "practice, main, condition, side_flip, order_seed, started_at, last_seen, agreed_at, code_hash, "
                "origin) "
                f"VALUES ('{name}', 'd', 'h', 'p{name}', 'live', 't{name}', '{stage}', 2, 0, 3, 'none', 0, 1, 5, 6, "
                f"7, 'c{name}', 'o')"
            )
        db.exec_driver_sql("INSERT INTO withdrawal VALUES ('u', 9)")
    made.dispose()
    with sqlite3.connect(place) as db:
        before = db.execute("SELECT * FROM session ORDER BY 1").fetchall()
    Store(place).close()
    with sqlite3.connect(place) as db:
        db.execute("PRAGMA foreign_keys=ON")
        after = db.execute("SELECT * FROM session ORDER BY 1").fetchall()
        assert [row[:-1] for row in after] == before
        assert [row[-1] for row in after] == [None, None]
        db.execute("UPDATE session SET stage = 'between' WHERE session_id = 's'")
        for wrong in (
            "UPDATE session SET stage = 'elsewhere'",
            "UPDATE session SET code_hash = 'c'",
            "INSERT INTO sitting VALUES ('nobody', 1, 3, NULL, NULL)",
            "INSERT INTO withdrawal VALUES ('nobody', 9)",
        ):
            with pytest.raises(sqlite3.IntegrityError):
                db.execute(wrong)


BASE: dict[str, Any] = {
    "study": {"name": "s", "title": "S"},
    "classifier": {"model": "scenes"},
    "sets": {role: {"set": "scenes"} for role in ("pool", "standard", "adversarial")},
}


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"sittings": {"count": 1}}, "a study of one sitting has no sittings"),
        ({"sittings": {"count": 11}}, "11 sittings cannot be. Give 2 to 10."),
        ({"sittings": {"count": 2, "gap_hours": -1}}, "-1 is no time between sittings"),
        ({"sittings": {"count": 2, "gap_hours": 80}}, "within_hours is 72: a sitting closes after it opens"),
        ({"sittings": {"count": 3, "codes": ["A"]}}, "3 sittings need 2 different codes"),
        ({"sittings": {"count": 2, "codes": ["A"]}, "recruiter": {"complete": "A"}}, "must be another one"),
        ({"sittings": {"count": 3}, "trials": {"categories": 2}}, "3 sittings need at least 3 trials of each type"),
        ({"sittings": {"count": 3}, "allocation": {"within": True}}, "4 conditions within participants cannot be"),
        ({"sittings": {"count": 2}, "blocks": {"training": 3, "test": 3}}, "blocks of training and test are not"),
        (
            {"analysis": {"models": {"a": "sitting + (sitting || participant) + (1 | category)"}}},
            "a model names sitting, and the study has only one",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_words(settings: dict[str, Any], fault: str) -> None:
    """Catches a study that is built and cannot be run."""
    with pytest.raises(ValueError, match=fault):
        StudyConfig.model_validate({**BASE, **settings})


def test_a_study_without_sittings_has_no_word_of_them() -> None:
    """Catches a setting that changes the hash of studies frozen before."""
    assert "sittings" not in StudyConfig.model_validate(BASE).model_dump()
    made = StudyConfig.model_validate({**BASE, "sittings": {"count": 2}})
    assert StudyConfig.model_validate(json.loads(made.model_dump_json())).digest == made.digest
