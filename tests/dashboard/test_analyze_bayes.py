"""The command ``analyze --bayes``: the draws that were asked for, in the fit and in the report."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dashboard.cli import analysis
from dashboard.cli import main as cli
from study.plan.draft import StudyDraft
from study.plan.preregistration import NESTED
from tests.dashboard.views.conftest import DEMO
from tests.study.analysis.simulated import study

DRAWS = 300


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Responses, and a plan of the paper's models, which are fast to fit."""
    path = tmp_path_factory.mktemp("analyze")
    study(16, 6, 4, seed=2).to_csv(path / "responses.csv", index=False)
    draft = StudyDraft.read(DEMO)
    draft.set("analysis.models", NESTED)
    draft.set("analysis.tests", "chi_square")
    draft.save(path / "plan.toml")
    return path


@pytest.mark.slow
def test_the_draws_that_were_asked_for_are_drawn_and_stated(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Catches draws that do not reach the fit, and a report that states the default."""
    out = folder / "results"
    analysis.analyze(str(folder / "responses.csv"), out=out, plan=folder / "plan.toml", bayes=True, draws=DRAWS, seed=3)
    report = (out / "report.md").read_text(encoding="utf-8")
    assert f"4 chains of {DRAWS} draws after 500 of warm-up, target acceptance 0.9" in report
    assert "random seed 3." in report
    assert "chains of 1,000 draws" not in report
    assert f"of {4 * DRAWS:,}" in capsys.readouterr().out  # counted in the posterior, not in the request


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--draws", "2000"], "--draws is an option of Bayesian fits: add --bayes, or leave it out."),
        (["--bayes", "--draws", "0"], "0 draws of each chain are too few"),
        (["--bayes", "--draws", "-5"], "-5 draws of each chain are too few"),
    ],
)
def test_draws_that_mean_nothing_are_refused(
    folder: Path,
    options: list[str],
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Catches an option that is ignored in silence, a traceback, and a refusal after the models were fitted."""
    out = folder / "refused"
    monkeypatch.setattr(
        sys, "argv", ["foretell", "analyze", str(folder / "responses.csv"), "--out", str(out), *options]
    )
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    printed = capsys.readouterr()
    assert stopped.value.code == 2
    assert printed.err.startswith(f"Error: {said}")
    assert printed.err.count("\n") == 1
    assert not out.exists()
