"""What should be in place before a study is opened: each point by a study that lacks it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dashboard.studies.checklist import list_points
from dashboard.studies.workspace_studies import Study
from study.bundle import Bundle
from study.collection.status import StudyStatus
from tests.conftest import write_bundle

CONTACT = {"researcher": "Dr Ada Example", "email": "ada@university.edu", "board": "Board"}
ADDRESS = "https://lab.example.org/studies"
QUESTION = {"text": "Which?", "options": ["a", "b"], "answer": "a"}
COMPLETE = {"contact": CONTACT, "check": {"questions": [QUESTION]}, "analysis": {}, "allocation": {"per_condition": 4}}


def study_with(folder: Path, config: dict[str, object], simulated: int = 4) -> Study:
    bundle = Bundle(write_bundle(folder, name="mine", config=config))
    sessions = {"sim": {"none": {"done": simulated}}}
    version = StudyStatus("mine", "Mine", bundle.study_hash, bundle.folder, "open", sessions, {})
    return Study("mine", None, None, bundle, (version,), ())


def missing(study: Study, address: str = ADDRESS, ways: tuple[str, ...] = ("password",), piloted: int = 2) -> str:
    return " ".join(point.text for point in list_points(study, address, ways, piloted) if not point.holds)


def test_nothing_is_missing_where_everything_is_in_place(tmp_path: Path) -> None:
    assert missing(study_with(tmp_path, COMPLETE)) == ""


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"contact": {**CONTACT, "board": ""}}, "does not name the ethics board. Complete"),
        ({"contact": {**CONTACT, "researcher": "", "email": ""}}, "does not name a researcher or an e-mail address."),
        ({"contact": {}}, "does not name a researcher, an e-mail address or the ethics board. Complete"),
        ({"contact": {**CONTACT, "email": "Ada@Example.org"}}, "consent has the made-up e-mail address"),
        ({"contact": {**CONTACT, "email": "a@b.test", "board": ""}}, "not name the ethics board and has the made-up"),
        ({"check": {}}, "understood the instructions"),
    ],
)
def test_what_the_study_lacks_is_said(tmp_path: Path, config: dict[str, object], said: str) -> None:
    """Catches a point that always holds, and one that does not say which part is missing."""
    assert said in missing(study_with(tmp_path, COMPLETE | config))


def test_sittings_are_named_and_paid(tmp_path: Path) -> None:
    """Catches a service that pays for each sitting and gets one code, and sittings that nobody thinks of."""
    sittings = {"count": 2, "gap_hours": 24, "within_hours": 72}
    once = study_with(tmp_path / "once", COMPLETE | {"sittings": sittings, "recruiter": {"service": "prolific"}})
    assert "only the last one gives a completion code" in missing(once)
    each = study_with(tmp_path / "each", COMPLETE | {"sittings": {**sittings, "codes": ["A"]}})
    assert missing(each) == ""
    said = [point.text for point in list_points(each, ADDRESS, ("password",), 2)]
    assert any(text.startswith("2 sittings, 24 to 72 hours apart: try the later ones in a preview") for text in said)


def test_what_the_server_lacks_is_said(tmp_path: Path) -> None:
    study = study_with(tmp_path, COMPLETE)
    assert "have no password" in missing(study, ways=())
    assert "not encrypted" in missing(study, "http://lab.example.org:8501/studies")
    assert "this machine only" in missing(study, "http://127.0.0.1:8501/studies")
    nobody = replace(study, versions=(replace(study.versions[0], sessions={}),))
    assert "No simulated participant has completed" in missing(nobody)


def test_a_point_leads_to_where_it_is_corrected(tmp_path: Path) -> None:
    """Catches a point that names another page without a link to it, and a link to a study without a file."""
    study = study_with(tmp_path, COMPLETE | {"contact": {}, "check": {}}, simulated=0)
    filed = replace(study, file=tmp_path / "mine.toml")

    def list_fixes(one: Study) -> list[tuple[str, dict[str, str]]]:
        points = list_points(one, ADDRESS, ("password",), 0)
        return [(point.fix.page, point.fix.query) for point in points if point.fix and not point.holds]

    in_design = [("design", {"study": "mine", "part": part}) for part in ("Procedure", "Procedure", "Study")]
    simulate = ("studies", {"study": "mine", "section": "Simulate"})
    assert list_fixes(filed) == [*in_design[:2], simulate, in_design[2]]
    assert list_fixes(study) == [simulate]


def test_a_pilot_is_asked_for_until_somebody_completed_it(tmp_path: Path) -> None:
    """Also catches a pilot that is asked for a pilot of its own."""
    study = study_with(tmp_path, COMPLETE)
    assert "No participant has completed a pilot" in missing(study, piloted=0)
    said = {point.text for point in list_points(study, ADDRESS, ("password",), 1)}
    assert "1 participant has completed the pilot." in said
    assert missing(replace(study, name="mine-pilot"), piloted=0) == ""
