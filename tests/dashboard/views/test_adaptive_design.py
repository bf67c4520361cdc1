"""Design and Power of a study that chooses trials by responses."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.errors import ForetellError
from dashboard.power.jobs import PowerAnalysis
from study.plan.draft import MISSING, StudyDraft
from tests.dashboard.views.conftest import Open
from tests.dashboard.views.test_design import named, settle
from tests.study.test_adaptive import read_demo


def choose(app: AppTest, policy: str) -> AppTest:
    named(app.selectbox, "Order of trials").set_value(policy)  # type: ignore[attr-defined]
    return settle(app)


def test_the_order_of_trials_is_a_choice(open_page: Open, mine: Path) -> None:
    """Catches a policy that cannot be chosen, changed or removed, and a number of trials that no participant has.

    Also settings of the former policy that stay and make the file invalid.
    """
    app = choose(open_page(study="mine", part="Trials"), "staircase")
    assert StudyDraft.read(mine).get("adaptive") == {"policy": "staircase", "trials": 15}
    said = " ".join(one.value for one in app.markdown)
    assert "**15 trials** for each participant: chosen by responses from 30 (10 categories" in said
    named(app.number_input, "Levels of difficulty").set_value(4)  # type: ignore[attr-defined]
    named(settle(app).number_input, "Trials of a participant").set_value(12)  # type: ignore[attr-defined]
    app = settle(app)
    assert StudyDraft.read(mine).get("adaptive") == {"policy": "staircase", "trials": 12, "levels": 4}
    app = choose(app, "information")
    assert StudyDraft.read(mine).get("adaptive") == {"policy": "information", "trials": 12}
    assert "Levels of difficulty" not in {one.label for one in app.number_input}
    named(app.number_input, "Trials of a participant").set_value(20)  # type: ignore[attr-defined]
    assert any("leave little to choose from" in one.value for one in settle(app).warning)
    choose(app, "drawn")
    assert StudyDraft.read(mine).get("adaptive") is MISSING


def test_power_says_that_it_gives_all_the_same_trials() -> None:
    """Catches a sample size for another study than the one that is planned."""
    study = read_demo(adaptive={"policy": "staircase", "trials": 15, "by": "ai_probability"})
    with pytest.raises(ForetellError, match="use a copy without \\[adaptive\\] and with 15 trials"):
        PowerAnalysis(study, (4,)).truth()
