"""Who may start a study, how fast one address fills it, and how places come back; on both real databases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from core.errors import ForetellError
from dashboard.cli import main as cli
from study.collection.monitor import CROWD
from study.collection.tables.frames import pseudonym
from study.participation.arrival import STARTS, STARTS_PER_MINUTE
from study.participation.limits import MOST_SOURCES, Allowance
from study.participation.links import signature
from study.participation.payloads import Recruit
from study.participation.refusals import Refusal
from study.service import Service
from study.workspace.workspace import VARIABLE
from tests.study.participants import MakeBundle, query, take_part, to_place, to_trials

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def study(service: Service, bundle: MakeBundle) -> str:
    return service.researcher.open_study(bundle(), per_condition=40)


def refusal(service: Service, study: str, **arrival: Any) -> tuple[int, str]:
    with pytest.raises(Refusal) as refused:
        service.participant.begin(study, **arrival)
    return refused.value.code, refused.value.says


def signed(service: Service, study: str, person: str) -> Recruit:
    key = (service.workspace.home / "participants.key").read_bytes()
    return Recruit(person=person, signature=signature(key, study, person))


def newest(service: Service) -> str:
    """The name of the participant who started last, as tables have it."""
    [(who,)] = query(service, "SELECT participant_id FROM session ORDER BY started_at DESC LIMIT 1")
    return pseudonym({"participant_id": who})


def test_a_closed_list_lets_in_who_is_on_it(service: Service, study: str) -> None:
    begun = service.participant.begin(study)
    assert service.researcher.set_access(study, "list", ["grete", "5e" * 12]) == 2
    assert service.researcher.set_access(study, "list", ["grete"]) == 2
    assert refusal(service, study) == (403, "refused_invited")
    assert refusal(service, study, recruit=Recruit(person="eve")) == (403, "refused_invited")
    prolific = {"source": "prolific", "study": "a" * 24, "session": "b" * 24}
    assert refusal(service, study, recruit=Recruit(person="5f" * 12, **prolific)) == (403, "refused_invited")  # type: ignore[arg-type]
    for person in (Recruit(person="grete"), Recruit(person="5e" * 12, **prolific)):  # type: ignore[arg-type]
        assert to_trials(service, service.participant.begin(study, recruit=person))["stage"] == "practice"
    assert (
        to_trials(service, service.participant.begin(study, recruit=signed(service, study, "eve")))["stage"]
        == "practice"
    )
    assert to_trials(service, begun)["stage"] == "practice"  # who has started can finish
    assert service.participant.begin(study, mode="preview")
    assert "grete" not in str(query(service, "SELECT * FROM invitation"))


def test_who_took_part_in_an_excluded_study_is_turned_away(service: Service, bundle: MakeBundle) -> None:
    """Catches a pilot's participant in the main study, and one turned away who never agreed."""
    pilot = service.researcher.open_study(bundle(name="mine-pilot"), per_condition=4)
    main = bundle(name="mine", config={"recruiter": {"exclude": ["mine-pilot"]}})
    study = service.researcher.open_study(main, per_condition=4)
    agreed, looked, declined = (Recruit(person=person) for person in ("agreed", "looked", "declined"))
    to_place(service, service.participant.begin(pilot, recruit=agreed))
    service.participant.begin(pilot, recruit=looked)
    service.participant.consent(service.participant.begin(pilot, recruit=declined), False)
    to_place(service, service.participant.begin(pilot, participant="program"))
    assert refusal(service, study, recruit=agreed) == (403, "refused_earlier")
    assert refusal(service, study, participant="program") == (403, "refused_earlier")
    for arrival in ({"recruit": looked}, {"recruit": declined}, {"recruit": Recruit(person="new")}, {}):
        assert to_trials(service, service.participant.begin(study, **arrival))["stage"] == "practice"
    assert service.participant.begin(pilot, recruit=Recruit(person="later"))


def test_a_personal_link_starts_one_participation(service: Service, study: str) -> None:
    service.researcher.set_access(study, "personal")
    for arrival in ({}, {"recruit": Recruit(person="grete")}):
        assert refusal(service, study, **arrival) == (403, "refused_invited")
    to_trials(service, service.participant.begin(study, recruit=signed(service, study, "grete")))
    assert (
        service.participant.state(service.participant.begin(study, recruit=signed(service, study, "grete")))["stage"]
        == "practice"
    )
    assert query(service, "SELECT count(*) FROM session") == [(1,)]


def test_a_newer_build_keeps_who_may_take_part(service: Service, bundle: MakeBundle, study: str) -> None:
    """Catches a study that is open to everybody again because it was built again."""
    service.researcher.set_access(study, "personal")
    service.researcher.open_study(bundle(seed=8), per_condition=4)
    assert [version.access for version in service.researcher.studies()] == ["personal", "personal"]
    assert refusal(service, study) == (403, "refused_invited")
    with pytest.raises(ForetellError, match="does not exist"):
        service.researcher.set_access(study, "closed")  # type: ignore[arg-type]
    with pytest.raises(ForetellError, match="not open"):
        service.researcher.set_access("other", "open")


def test_access_is_set_by_a_command(
    service: Service, study: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(service.workspace.home))
    (tmp_path / "ids.txt").write_text("grete\ngrace\n")
    told = CliRunner().invoke(cli.build_app(), ["access", study, "list", "--ids", str(tmp_path / "ids.txt")])
    assert told.stdout == "demo: list, 2 ids on the list\n"
    assert service.researcher.studies()[0].access == "list"


def test_a_script_at_one_address_is_slowed_down_and_flagged(service: Service, study: str) -> None:
    """It held 160 of 160 places in 7 s."""

    def start() -> int:
        try:
            to_place(service, service.participant.begin(study, address="192.0.2.7"))
        except Refusal as refused:
            return refused.code
        return 201

    codes = [start() for _ in range(STARTS + 5)]
    taken = codes.count(201)
    assert set(codes) == {201, 429}
    assert STARTS <= taken <= STARTS + 3  # a slow machine earns one or two in between
    to_place(service, service.participant.begin(study, address="192.0.2.8"))
    people = service.researcher.monitor(study).participants
    flagged = people[people["flags"].str.contains(f"one of {taken} from one address")]
    assert (taken >= CROWD, len(flagged), len(people)) == (True, taken, taken + 1)
    assert "192.0.2.7" not in str(query(service, "SELECT * FROM session"))


def test_two_hundred_behind_one_address_get_in(service: Service) -> None:
    """By the rule alone, on a clock of its own: all at once, each trying again every 15 s as pages do."""
    now = [0.0]
    allowance = Allowance(STARTS, STARTS_PER_MINUTE, clock=lambda: now[0])
    waiting = 200
    while waiting:
        waiting -= sum(allowance.take("university") for _ in range(waiting))
        now[0] += 15
    assert now[0] <= 5 * 60
    minute = [allowance.take("script") for _ in range(1000)]
    assert sum(minute) == STARTS
    now[0] += 60
    assert sum(allowance.take("script") for _ in range(1000)) == STARTS_PER_MINUTE


def test_the_memory_of_addresses_is_bounded() -> None:
    allowance = Allowance(1, 1, clock=lambda: 0.0)
    for n in range(MOST_SOURCES + 100):
        allowance.take(str(n))
    assert len(allowance._left) == MOST_SOURCES


def test_a_place_is_released_for_a_reason(service: Service, bundle: MakeBundle) -> None:
    study = service.researcher.open_study(bundle("small"), per_condition=1)
    tokens = [service.participant.begin(study) for _ in range(4)]
    for token in tokens:
        to_trials(service, token)
    gone = newest(service)
    assert refusal(service, study) == (410, "full")
    for wrong, reason, why in ((gone, " ", "reason"), ("Pnobody", "gone", "No participant"), ("", "gone", "No part")):
        with pytest.raises(ForetellError, match=why):
            service.researcher.release_quota_place(study, wrong, reason)
    assert refusal(service, study) == (410, "full")
    service.researcher.release_quota_place(study, gone, "left the laboratory")
    assert to_trials(service, service.participant.begin(study))["stage"] == "practice"
    [(detail,)] = query(service, "SELECT detail_json FROM audit WHERE act = 'released a place'")
    assert json.loads(detail)["reason"] == "left the laboratory"
    assert service.researcher.verify() == []


def test_an_excluded_participant_is_left_out_and_named(service: Service, bundle: MakeBundle) -> None:
    """A place that a script finished was taken for good."""
    study = service.researcher.open_study(bundle("small"), per_condition=1)
    for _ in range(4):
        take_part(service, service.participant.begin(study))
    script = newest(service)
    assert refusal(service, study) == (410, "full")
    service.researcher.exclude(study, script, "a script")
    with pytest.raises(ForetellError, match="reason"):
        service.researcher.exclude(study, script, "")
    assert script not in set(service.researcher.responses(study)["participant"])
    assert len(service.researcher.responses(study)) == 3 * 12
    people = service.researcher.load_participants(study).set_index("participant")
    assert tuple(people.loc[script, ["excluded", "reason", "responses"]]) == ("researcher", "a script", 15)
    assert (people["excluded"] == "").sum() == 3
    assert service.researcher.exclusions(study)[["participant", "reason"]].to_numpy().tolist() == [[script, "a script"]]
    assert "excluded" in service.researcher.monitor(study).participants.set_index("participant").loc[script, "flags"]
    take_part(service, service.participant.begin(study))
    assert len(service.researcher.responses(study)) == 4 * 12
    assert ("excluded a participant",) in query(service, "SELECT act FROM audit")
    assert service.researcher.verify() == []


def test_exclusions_are_counted_by_reason(service: Service, bundle: MakeBundle) -> None:
    """The table of exclusions of an analysis did not count the participants whom a researcher had excluded."""
    study = service.researcher.open_study(bundle("small"), per_condition=1)
    reasons = ["a script", "told us to", "a script"]
    tokens = [service.participant.begin(study) for _ in range(4)]
    for token in tokens[:3]:
        take_part(service, token)
    to_trials(service, tokens[3])
    (study_hash,) = {status.study_hash for status in service.researcher.studies()}
    assert service.researcher.count_exclusions(study_hash).empty
    for participant, reason in zip(
        service.researcher.load_participants(study)["participant"][1:], reasons, strict=True
    ):
        service.researcher.exclude(study, participant, reason)
    counts = service.researcher.count_exclusions(study_hash)
    assert counts.to_numpy().tolist() == [
        ["excluded by a researcher: a script", 2, 12],  # the last one gave no response
        ["excluded by a researcher: told us to", 1, 12],
    ]
    assert service.researcher.count_exclusions("another").empty
