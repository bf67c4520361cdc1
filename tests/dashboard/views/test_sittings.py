"""Several sittings on the pages Design and Monitor."""

from __future__ import annotations

import uuid
from pathlib import Path

from streamlit.testing.v1 import AppTest

from dashboard.shared import service
from study.participation.payloads import TrialResponse
from study.plan.draft import MISSING, StudyDraft
from tests.conftest import write_bundle
from tests.dashboard.views.conftest import Open
from tests.dashboard.views.test_design import named, settle
from tests.dashboard.views.test_monitor import script


def show(study: str) -> AppTest:
    app = AppTest.from_function(script)
    app.query_params["study"] = study
    return settle(app)


def test_several_sittings_are_a_choice(open_page: Open, mine: Path) -> None:
    """Catches sittings that cannot be made, changed or removed, and what cannot be that is not said."""
    app = open_page(study="mine", part="Procedure")
    (switch,) = (one for one in app.toggle if one.key == "design.mine.sittings")
    switch.set_value(True)
    settle(app)
    assert StudyDraft.read(mine).get("sittings") == {"count": 2, "gap_hours": 24, "within_hours": 72}
    named(app.number_input, "Sittings").set_value(3)  # type: ignore[attr-defined]
    settle(app)
    named(app.text_area, "Completion codes of all but the last, one per line").set_value("ONE")  # type: ignore[attr-defined]
    settle(app)
    assert StudyDraft.read(mine).get("sittings.codes") == ["ONE"]
    assert any("3 sittings need 2 different codes" in one.value for one in (*app.warning, *app.caption))
    (switch,) = (one for one in app.toggle if one.key == "design.mine.sittings")
    switch.set_value(False)
    settle(app)
    assert StudyDraft.read(mine).get("sittings") is MISSING


def test_sittings_are_counted_where_there_are_several(workspace: Path) -> None:
    """Catches sittings in every study, and a participant between two who counts as inactive."""
    config = {"sittings": {"count": 2}}
    folder = write_bundle(workspace / "bundles" / "two", name="two", trials=6, practice=0, config=config)
    participant = service.get_service().participant
    service.get_service().researcher.open_study(folder, 2)
    token = participant.begin("two", participant="p")
    participant.consent(token, True)
    participant.ready(token)
    state = participant.ready(token, "example")
    while state["stage"] == "main":
        attempt = str(uuid.uuid4())
        given = TrialResponse(
            trial_index=state["trial"]["index"], attempt_id=attempt, side="left", input="key", rt_ms=500
        )
        state = participant.record(token, given).state
    one = write_bundle(workspace / "bundles" / "one", name="one", trials=6, practice=0, seed=8)
    service.get_service().researcher.open_study(one, 2)
    plain = show("one")
    assert "Sittings" not in {one.value for one in plain.header}
    assert "Between sittings" not in {metric.label for metric in plain.metric}
    app = show("two")
    assert "Sittings" in {one.value for one in app.header}
    assert {metric.label: metric.value for metric in app.metric}["Between sittings"] == "1"
    table = next(one.value for one in app.table if "Sitting" in one.value)
    assert table["May still start"].tolist() == [0, 1]
    assert app.dataframe[0].value["stage"].tolist() == ["Between sittings"]
