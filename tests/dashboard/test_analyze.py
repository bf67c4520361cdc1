"""The verb ``analyze``, told by the workspace how a collection ended."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from dashboard.cli import main as cli
from study.bundle import Bundle
from study.collection.export import export
from study.service import Service
from study.workspace.workspace import VARIABLE
from tests.conftest import write_bundle
from tests.study.participants import answer, to_trials

LOOKS = {"looks": [3, 6], "contrast": {"more": "saliency"}, "spending": "pocock"}
PLAN = {"models": {"only": "trial_type + saliency"}, "contrasts": [], "participants": 6, "stopping": LOOKS}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace whose study was closed by its first look, its answers also as ``answers.csv``."""
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    options = {"name": "looked", "trials": 18, "practice": 0, "config": {"analysis": PLAN}}
    folder = write_bundle(tmp_path / "bundles" / "looked-1", conditions=("none", "saliency"), **options)
    ai = {trial.assets.target: trial.target for trial in Bundle(folder).manifest.trials}
    rng = np.random.default_rng(0)
    with Service(tmp_path) as service:
        service.researcher.open_study(folder, per_condition=6)
        for person in range(6):
            token = service.participant.begin("looked", participant=str(person))
            state = to_trials(service, token)
            while state["stage"] == "main":
                screen = state["trial"]
                knows = rng.random() < (0.95 if screen["map"] else 0.35)
                side = "left" if (screen["left"]["name"] == ai[screen["target"]]) == knows else "right"
                state = service.participant.record(token, answer(screen["index"], side)).state
            service.participant.finish(token)
        assert service.researcher.run_interim_analysis("looked").is_crossed
        export(service.researcher, "looked", tmp_path / "answers.csv")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["looked"], "at 3 participants per condition: the bound is crossed. The collection is closed."),
        (["answers.csv", "--study", "looked"], "at 3 participants per condition: the bound is crossed."),
    ],
)
def test_the_report_says_how_the_collection_ended(home: Path, arguments: list[str], said: str) -> None:
    """Catches a report that calls the planned end of a collection interim, also of a file that names its study."""
    given = [str(home / part) if part.endswith(".csv") else part for part in arguments]
    done = CliRunner().invoke(cli.build_app(), ["analyze", *given, "--out", str(home / "results")])
    assert done.exit_code == 0, done.output
    report = (home / "results" / "report.md").read_text()
    assert said in report
    both = report + (home / "results" / "report.html").read_text()
    assert "not complete" not in both
    assert "interim data" not in both
