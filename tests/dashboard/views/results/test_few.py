"""Results of a collection that has just begun."""

from __future__ import annotations

from pathlib import Path

from streamlit.testing.v1 import AppTest

from dashboard.results.quality import count_by_condition
from dashboard.shared import service as door
from dashboard.shared.messages import escape_markdown
from study.analysis.planned import nested
from study.analysis.responses import reading as responses
from tests.dashboard.conftest import made
from tests.dashboard.views.results.conftest import choose, script, section
from tests.dashboard.views.results.test_results import planned_study
from tests.study.analysis.simulated import study


def test_two_participants_get_one_warning_and_no_estimates(app: AppTest) -> None:
    """Catches a box for every message of models that two participants cannot determine, and a message that is lost."""
    choose(app, "Two")
    assert [box.value for box in app.warning] == [
        "Too few participants for models: 2 so far, in every condition; the main result needs at least 6. "
        "Figure 1 and the counts are below."
    ]
    assert not any("percentage points" in line.value or "χ²" in line.value for line in app.markdown)
    analysis = nested.analyze(responses.prepare(study(2, 8, 6, seed=5)))
    said = [f"Model {name}: {message}" for name, model in analysis.models.items() for message in model.messages]
    (folded,) = [box for box in app.expander if box.label.startswith("Messages of the models")]
    lines = [line.removeprefix("- ") for line in folded.markdown[0].value.splitlines()]
    assert folded.label == f"Messages of the models ({len(lines)})"
    assert set(map(escape_markdown, said)) <= set(lines)
    shown = analysis.largest.messages
    for name in ("Models", "Contrasts"):  # where the fitted models are shown, their messages are too
        section(app, name)
        assert all(any(message in box.value for box in app.warning) for message in shown)


def test_too_few_participants_are_counted_among_the_studys_conditions(workspace: Path) -> None:
    planned_study(workspace, {}, participants=2)
    app = made(AppTest.from_function(script).run())
    met = responses.prepare(door.get_service().researcher.responses("demo", ("sim",))).frame["condition"].nunique()
    assert met < 4
    said = f"Too few participants for models: 2 so far, in {met} of 4 conditions; the main result needs at least 8. "
    assert any(box.value.startswith(said) for box in app.warning)


def test_conditions_are_counted_in_the_order_of_the_design() -> None:
    """Catches an alphabetical order, which no other table and no figure has."""
    counts = count_by_condition(responses.prepare(study(24, 8, 6, seed=5).iloc[1:]).frame)
    assert list(counts["condition"]) == ["none", "saliency", "examples", "both"]
    first = counts.set_index("condition").loc["none"]
    assert first.to_dict() == {"participants": 6, "responses": 107, "fewest": 17, "most": 18}
