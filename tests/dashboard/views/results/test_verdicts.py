"""The main result next to the same tests as in the paper."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from core.errors import ForetellError
from dashboard.results import findings
from study.analysis.exploratory import slopes
from study.analysis.planned import nested
from study.analysis.report import verdicts
from study.analysis.responses import reading as responses
from tests.dashboard.conftest import made
from tests.dashboard.views.results.conftest import choose, section, tables, upload
from tests.study.analysis.simulated import study


def test_a_verdict_is_followed_by_the_same_test_as_in_the_paper(app: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches evidence that only the section Checks takes back, and a failed check that says nothing."""
    choose(app, "Main")
    data = responses.prepare(study(24, 8, 6, seed=5))
    analysis = nested.analyze(data)
    table = slopes.compare(data, analysis)
    (said,) = (line.value for line in app.markdown if "χ²" in line.value)
    for row, verdict in zip(said.splitlines()[2:4], verdicts.list_verdicts(analysis, data, table), strict=True):
        main, paper = row.strip("| ").split(" | ")[1:]
        conclusion, numbers = main.split(": ")
        assert f"{conclusion} that" in verdict.main.removeprefix("There is ").capitalize()
        assert numbers in findings._write(verdict.main)
        assert paper in findings._write(verdict.beneath)
    made(app.button(key="see_checks").click().run())
    assert app.session_state["section"] == "Checks"
    shown = tables(app)
    assert len(shown["slopes_tests"]) + len(shown["slopes_contrasts"]) == len(table)
    assert shown["slopes_tests"]["p"].notna().all()
    assert shown["slopes_contrasts"]["p_holm"].notna().all()

    def refuse(*_: object, **__: object) -> None:
        raise ForetellError("Too many effects.")

    monkeypatch.setattr(slopes, "compare", refuse)
    section(upload(choose(app, "Upload a CSV file"), study(24, 8, 6, seed=61)), "Main result")
    assert any(
        caption.value == "With random intercepts only, as in the paper: Too many effects." for caption in app.caption
    )


BADGE = ":orange-badge[Simulated: not evidence]"


def test_above_the_data_simulated_participants_are_named_once(app: AppTest) -> None:
    """Catches the badge said again by the verdict and by the figure next to it, whose image could leave the page."""
    above = app.markdown[: next(i for i, line in enumerate(app.markdown) if "χ²" in line.value) + 1]
    assert [line.value for line in above if "imulated" in line.value] == [BADGE]
    (forest, figure1) = app.get("plotly_chart")
    assert "not evidence" not in forest.proto.spec
    assert "toImage" in forest.proto.config
    assert "not evidence" in figure1.proto.spec
    assert "toImage" not in figure1.proto.config


def test_simulated_participants_are_marked_before_any_result(app: AppTest) -> None:
    assert app.markdown[0].value == BADGE
    assert "Simulated participants: not evidence (288 of 288 responses)." in [box.value for box in app.warning]
    choose(app, "Main")
    assert not any("Simulated" in one.value for one in (*app.warning, *app.markdown))
