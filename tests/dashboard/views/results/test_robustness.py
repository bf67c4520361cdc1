"""The section Robustness of the page Results, and the same in the command and its report."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dashboard.cli import analysis
from dashboard.results import responses as answers
from study.analysis.exploratory import analysis as exploratory
from study.analysis.exploratory import bootstrap
from study.analysis.exploratory.analysis import EXPLORATORY, AnalysedStudy
from study.analysis.planned import nested
from study.analysis.responses.reading import prepare
from tests.dashboard.conftest import made
from tests.dashboard.views.results.conftest import choose, headings, script, section, table
from tests.study.analysis.simulated import study_with_images


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """A study that is fast to fit."""
    return study_with_images(5, people=12, categories=8, sd=0.6)


def test_the_page_says_whose_responses_matter(
    frame: pd.DataFrame, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches a section that computes nothing, shows codes for headings, or says another thing than its table."""
    monkeypatch.setattr(answers, "study_frames", lambda: {"Main": lambda: frame})
    app = made(AppTest.from_function(script).run())
    section(choose(app, "Main"), "Robustness")
    made_table = table(app, "exploratory_leave_out_participants")
    assert set(made_table["participant"]) == set(frame["participant"])
    said = next(one.value for one in app.markdown if "without any one participant" in one.value)
    assert "Simulated" not in said
    assert headings(app)["exploratory_leave_out_participants"] == [
        *("Participant", "Result", "% points (all)", "% points (without)", "95% CI from", "to"),
        *("Shift (% points)", "p (all)", "p (without)", "Change"),
    ]


def test_the_command_adds_robustness_on_request(
    frame: pd.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches an option that changes nothing, a file of other rows, and a report without the sentence."""
    monkeypatch.setattr(bootstrap, "STUDIES", 3)
    frame.to_csv(tmp_path / "responses.csv", index=False)
    analysis.analyze(str(tmp_path / "responses.csv"), out=tmp_path, robustness=True)
    out = capsys.readouterr().out
    kinds = [
        ("leave_out_participants", "without any one participant", 12 * 11),
        ("leave_out_images", "without any one image", 24 * 11),
        ("specifications", "specifications point the same way", 6 * 9),
        ("bootstrap", "By bootstrap, ", 2),
        ("checks", "properties of the responses", 8),
        ("residuals", "Outside the 95% of the draws", 12 + 24),
    ]
    for name, words, rows in kinds:
        assert len(pd.read_csv(tmp_path / f"exploratory_{name}.csv")) == rows
        said = next(line for line in out.splitlines() if words in line).partition(". ")[2]
        for report in ("report.md", "report.html"):
            assert said[:80] in (tmp_path / report).read_text(encoding="utf-8")


def test_a_report_has_costly_analyses_only_on_request(frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a report that makes every reader wait for refits. Expected: what is computed, by name."""
    computed: list[str] = []
    monkeypatch.setattr(exploratory, "compute", lambda name, study: computed.append(name))
    one = AnalysedStudy(prepare(frame), models=nested.analyze(frame))
    exploratory.compute_all(one)
    default = set(computed)
    assert {"slopes", "means"} <= default
    for request in ("robustness", "bayes"):
        computed.clear()
        exploratory.compute_all(one, requests=[request])
        costly = {name for name, made in EXPLORATORY.items() if made.seconds is not None and made.request == request}
        assert set(computed) - default == costly != set()
