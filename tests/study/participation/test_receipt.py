"""Receipts: made after the trials, proved by the workspace that gave them, and by no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import ForetellError
from dashboard.cli import study as verbs
from study.participation.receipt import PATTERN
from study.service import Service
from study.workspace.workspace import VARIABLE
from tests.conftest import write_bundle
from tests.study.participants import answer, tamper, to_trials


@pytest.fixture
def study(service: Service, bundle) -> str:
    return str(service.researcher.open_study(bundle(trials=3, practice=1), per_condition=4))


def finished(service: Service, study: str) -> tuple[str, str]:
    """The token and the receipt of somebody who answered everything; there is none on the way."""
    token = service.participant.begin(study)
    state = to_trials(service, token)
    while state["stage"] in ("practice", "main"):
        assert "receipt" not in state
        state = service.participant.record(token, answer(state["trial"]["index"])).state
    return token, state["receipt"]


def test_a_receipt_is_proved_and_the_same_to_the_end(service: Service, study: str) -> None:
    token, receipt = finished(service, study)
    assert PATTERN.fullmatch(receipt)
    assert service.participant.finish(token)["receipt"] == receipt
    _, other = finished(service, study)
    assert other != receipt
    found = service.researcher.receipt(receipt)
    assert (found.responses, found.study, found.stage) == (4, study, "done")
    assert service.researcher.receipt(other).stage == "debrief"


def test_a_made_up_receipt_is_refused(service: Service, study: str, tmp_path: Path) -> None:
    """Another number, another letter, and the receipt of the same answers in a workspace with another key."""
    receipt = finished(service, study)[1]
    letter = "A" if receipt[-1] != "A" else "B"
    with Service(tmp_path / "other") as other:
        elsewhere = other.researcher.open_study(write_bundle(tmp_path / "b", name="demo", trials=3, practice=1), 4)
        foreign = finished(other, elsewhere)[1]
    for wrong in (receipt.replace("R4", "R3"), receipt[:-1] + letter, foreign, "R4-", "R0-" + receipt[3:]):
        with pytest.raises(ForetellError, match="No participation has the receipt"):
            service.researcher.receipt(wrong)


def test_a_changed_answer_proves_no_receipt(service: Service, study: str) -> None:
    """Its last answer's hash replaced in the file, as somebody who covers a change up would."""
    receipt = finished(service, study)[1]
    other = "CASE substr(row_hash, 1, 1) WHEN 'f' THEN '0' ELSE 'f' END || substr(row_hash, 2)"
    tamper(service, f"UPDATE response SET row_hash = {other} WHERE trial_index = 3")
    with pytest.raises(ForetellError, match="No participation"):
        service.researcher.receipt(receipt)


def test_a_receipt_outlasts_withdrawal_by_its_hashes(service: Service, study: str) -> None:
    token, receipt = finished(service, study)
    code = service.participant.finish(token)["withdrawal_code"]
    service.participant.withdraw(code)
    assert service.researcher.receipt(receipt).stage == "withdrawn"


def test_the_verb_says_what_a_receipt_proves(
    service: Service, study: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(VARIABLE, str(service.workspace.home))
    verbs.verify(finished(service, study)[1])
    assert "Genuine: the server held 4 responses of this participant to demo" in capsys.readouterr().out
