"""Who may resume a session: an id that can be guessed is not enough, and takes nothing from whoever has it."""

from __future__ import annotations

import hashlib
import hmac
from base64 import urlsafe_b64encode
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dashboard.cli import main as cli
from study.participation.arrival import LIVE_NS
from study.participation.payloads import Recruit, SessionCredentials
from study.participation.refusals import Refusal
from study.service import Service
from study.workspace.workspace import VARIABLE
from tests.study.participants import MakeBundle, answer, query, to_trials

MINE, OTHER = SessionCredentials(browser="a" * 36), SessionCredentials(browser="b" * 36)
SEVEN = Recruit(person="7")


def signed(service: Service, study: str, person: str) -> Recruit:
    """By the words of RFC 2104 and the file's key, not by the code under test."""
    key = (service.workspace.home / "participants.key").read_bytes()
    digest = hmac.new(key, f"link\0{study}\0{person}".encode(), hashlib.sha256).digest()[:16]
    return Recruit(person=person, signature=urlsafe_b64encode(digest).decode().rstrip("="))


@pytest.fixture
def study(service: Service, bundle: MakeBundle) -> str:
    return service.researcher.open_study(bundle(), per_condition=4)


@pytest.fixture
def token(service: Service, study: str) -> str:
    """Somebody in the middle of the study, who came by ``?pid=7``."""
    mine = service.participant.begin(study, recruit=SEVEN, proof=MINE)
    to_trials(service, mine)
    service.participant.record(mine, answer(0))
    return mine


@pytest.mark.parametrize(
    "proof",
    [
        None,
        OTHER,
        SessionCredentials(),
        SessionCredentials(code="K7QHTM2XWPAC"),
        SessionCredentials(browser="b" * 36, code="X"),
    ],
    ids=str,
)
def test_an_id_alone_opens_nothing_and_ends_nothing(
    service: Service, study: str, token: str, proof: SessionCredentials | None
) -> None:
    """Guessing ``?pid=7`` gave the session away: its token ended, its private code was shown."""
    with pytest.raises(Refusal) as refused:
        service.participant.begin(study, recruit=SEVEN, proof=proof)
    assert (refused.value.code, refused.value.says) == (403, "refused_known")
    assert service.participant.record(token, answer(1)).code == 201


def test_the_browsers_own_secret_the_private_code_and_a_signed_link_resume(
    service: Service, study: str, token: str
) -> None:
    code = service.participant.state(token)["withdrawal_code"]
    again = service.participant.begin(study, recruit=SEVEN, proof=MINE)
    assert service.participant.state(again)["trial"]["index"] == 1
    elsewhere = service.participant.begin(
        study, recruit=SEVEN, proof=SessionCredentials(browser="b" * 36, code=f" {code.lower()} ")
    )
    assert service.participant.state(elsewhere)["withdrawal_code"] == code
    assert (
        service.participant.state(service.participant.begin(study, recruit=SEVEN, proof=OTHER))["trial"]["index"] == 1
    )  # its own from now on
    with pytest.raises(Refusal):
        service.participant.begin(study, recruit=SEVEN, proof=MINE)
    assert (
        service.participant.state(service.participant.begin(study, recruit=signed(service, study, "7")))["trial"][
            "index"
        ]
        == 1
    )
    assert query(service, "SELECT count(*) FROM session") == [(1,)]


def test_a_signature_is_of_one_id_in_one_study(service: Service, bundle: MakeBundle, study: str, token: str) -> None:
    other = service.researcher.open_study(bundle("other"), per_condition=4)
    good = signed(service, study, "7").signature
    for named, person in ((study, "8"), (other, "7"), (study, "07")):
        with pytest.raises(Refusal) as refused:
            service.participant.begin(named, recruit=Recruit(person=person, signature=good))
        assert (refused.value.code, refused.value.says) == (403, "refused_link")
    prolific = {"source": "prolific", "person": "5e" * 12, "study": "a" * 24, "session": "b" * 24}
    with pytest.raises(Refusal):
        service.participant.begin(study, recruit=Recruit(**prolific, signature=good))  # type: ignore[arg-type]


def test_before_the_consent_an_id_is_free_once_nobody_has_it_open(tmp_path: Path, bundle: MakeBundle) -> None:
    """Somebody who read the first page on a phone can start at a computer; a stranger cannot end what is open."""
    now = [10**18]
    with Service(tmp_path / "home", clock=lambda: now[0]) as service:
        study = service.researcher.open_study(bundle(), per_condition=4)
        phone = service.participant.begin(study, recruit=SEVEN, proof=OTHER)
        with pytest.raises(Refusal):
            service.participant.begin(study, recruit=SEVEN, proof=MINE)
        assert service.participant.state(phone)["stage"] == "consent"
        now[0] += LIVE_NS + 1
        computer = service.participant.begin(study, recruit=SEVEN, proof=MINE)
        assert "withdrawal_code" not in service.participant.state(computer)
        service.participant.consent(computer, True)
        now[0] += 2 * LIVE_NS
        with pytest.raises(Refusal):
            service.participant.begin(study, recruit=SEVEN, proof=OTHER)


def test_links_are_signed_from_a_list(
    service: Service, study: str, token: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(service.workspace.home))
    (tmp_path / "ids.txt").write_text("pid\n7\n8\n\n7\n")
    out = tmp_path / "links.csv"
    told = ["links", study, str(tmp_path / "ids.txt"), "--address", "https://study.test/", "--out", str(out)]
    assert CliRunner().invoke(cli.build_app(), told, catch_exceptions=False).exit_code == 0
    wanted = [f"{n},https://study.test/run/demo?pid={n}&sig={signed(service, study, n).signature}" for n in ("7", "8")]
    assert out.read_text().splitlines() == ["pid,link", *wanted]
    assert out.stat().st_mode & 0o777 == 0o600


def test_codes_of_an_older_database_are_found_again(service: Service, study: str, token: str) -> None:
    """Sessions of before have no indexed code; it is made when the database is opened, by the key it was made with."""
    code = service.participant.state(token)["withdrawal_code"]
    query(service, "UPDATE session SET code_hash = NULL")
    with Service(service.workspace.home) as later:
        assert later.participant.withdraw(code)["stage"] == "withdrawn"


def test_a_code_is_found_by_an_index(service: Service, study: str) -> None:
    plan = str(query(service, "EXPLAIN QUERY PLAN SELECT * FROM session WHERE code_hash = 'x'"))
    assert "USING INDEX session_code" in plan


def test_codes_are_not_tried_without_end(service: Service, study: str, token: str) -> None:
    """Both ways by which a code can be tried count together, by address."""

    def guess(n: int) -> int:
        try:
            if n % 2:
                service.participant.begin(
                    study, recruit=SEVEN, proof=SessionCredentials(code=f"WRONG{n}"), address="192.0.2.7"
                )
            else:
                service.participant.withdraw(f"WRONG{n}", "192.0.2.7")
        except Refusal as refused:
            return refused.code
        return 200

    codes = [guess(n) for n in range(30)]
    assert codes[:2] == [404, 403]
    assert codes[-1] == 429
    assert (
        service.participant.withdraw(service.participant.state(token)["withdrawal_code"], "192.0.2.8")["stage"]
        == "withdrawn"
    )


HEX = "0123456789abcdef01234567"
BY_PROLIFIC = Recruit(source="prolific", person=HEX, study=HEX, session=HEX)
BY_LINK = Recruit(person=HEX)


@pytest.mark.parametrize(
    ("first", "second"), [(BY_LINK, BY_PROLIFIC), (BY_PROLIFIC, BY_LINK)], ids=["link", "prolific"]
)
def test_an_id_takes_part_once_whatever_its_source(
    service: Service, study: str, bundle: MakeBundle, first: Recruit, second: Recruit
) -> None:
    """Catches an invited participant coming by `?pid=` and by `?PROLIFIC_PID=`, and takes part twice."""
    assert service.researcher.set_access(study, "list", [HEX]) == 1
    to_trials(service, service.participant.begin(study, recruit=first, proof=MINE))
    with pytest.raises(Refusal, match="not proved to be yours"):
        service.participant.begin(study, recruit=second, proof=OTHER)
    again = service.participant.begin(study, recruit=second, proof=MINE)
    assert service.participant.state(again)["stage"] == "practice"
    assert query(service, "SELECT count(*) FROM session") == [(1,)]


@pytest.mark.parametrize(
    ("first", "second"), [(BY_LINK, BY_PROLIFIC), (BY_PROLIFIC, BY_LINK)], ids=["link", "prolific"]
)
def test_an_excluded_study_knows_an_id_whatever_its_source(
    service: Service, bundle: MakeBundle, first: Recruit, second: Recruit
) -> None:
    """Catches a pilot participant coming to the main study by another recruiter's link."""
    pilot = service.researcher.open_study(bundle(name="pilot"), per_condition=4)
    main = service.researcher.open_study(bundle(name="main", config={"recruiter": {"exclude": ["pilot"]}}), 4)
    to_trials(service, service.participant.begin(pilot, recruit=first, proof=MINE))
    with pytest.raises(Refusal, match="They took part in pilot, which this study excludes"):
        service.participant.begin(main, recruit=second, proof=MINE)
