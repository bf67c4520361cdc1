"""Results of ratings: effects and means of the level, where no response is right or wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.results import responses as answers
from study.analysis.means.effects import average_effects
from study.analysis.planned import nested
from study.analysis.responses import reading as responses
from tests.dashboard.conftest import made
from tests.dashboard.views.results.conftest import headings, script, section, table
from tests.study.analysis.test_ratings import simulate


@pytest.mark.usefixtures("no_slopes")
def test_effects_and_means_of_ratings_are_levels(monkeypatch: pytest.MonkeyPatch, workspace: Path) -> None:
    """Catches a page that leaves them out, or writes levels as percentages. Expected: the functions that tests compare
    with the definition (`tests/study/analysis/test_level_effects.py`), of the same rows."""
    monkeypatch.setattr(answers, "study_frames", lambda: {"Ratings": simulate})
    shown = section(made(AppTest.from_function(script).run()), "Contrasts")
    data = responses.prepare(simulate())
    expected = average_effects(data.frame, nested.analyze(data).largest, ["saliency"], by="trial_type")
    drawn = table(shown, "effects").merge(expected, on=["variable", "trial_type"], suffixes=("", "_expected"))
    assert len(drawn) == 2  # two trial types
    assert list(drawn["effect"]) == pytest.approx(list(drawn["effect_expected"]), abs=0.006)
    assert "Levels" in headings(shown)["effects"]
    assert any(one.value.startswith("Average effects on the mean level") for one in shown.header)
    assert table(shown, "means")["estimate"].between(1, 5).all()
    assert shown.selectbox(key="means_scale").options[0] == "Mean level, averaged over the random effects"
