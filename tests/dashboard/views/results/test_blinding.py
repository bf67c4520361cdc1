"""Results of a study that still collects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from streamlit.testing.v1 import AppTest

from dashboard.shared import service as door
from study.simulate import simulate
from study.store import audit
from tests.conftest import write_bundle
from tests.dashboard.conftest import made
from tests.dashboard.views.results.conftest import script
from tests.dashboard.views.results.test_results import AS_IN_THE_PAPER, take_part


def test_results_of_a_study_that_collects_are_blinded_until_a_reason_is_logged(workspace: Path) -> None:
    """Catches outcomes by condition that anybody sees while they can still stop at a favourable moment."""
    service = door.get_service()
    first = write_bundle(workspace / "bundles" / "demo-00", name="demo", trials=18, config=AS_IN_THE_PAPER)
    service.researcher.open_study(first, 3)
    simulate(service, "demo", 8, {"belief_projector": 1.0}, 0)
    for person in "abcd":
        take_part("demo", person)
    app = made(AppTest.from_function(script).run())
    assert app.info[0].value.startswith("This study still collects responses, so its results are blinded.")
    assert not app.metric
    assert not app.get("plotly_chart")
    assert not app.dataframe
    made(app.toggle(key="results_simulated").set_value(True).run())  # simulated ones are no outcome
    assert {m.label: m.value for m in app.metric}["Responses"] == "144"
    made(app.toggle(key="results_simulated").set_value(False).run())
    named(app.button, "Unblind and log").click()
    app.run()
    assert "requires a reason" in app.error[0].value
    app.text_input(key="unblind_reason").set_value("the ethics board asked")
    named(app.button, "Unblind and log").click()
    made(app.run())
    assert {m.label: m.value for m in app.metric}["Responses"] == "72"
    (act,) = service.workspace.store.read(lambda db: audit.acts(db, "unblinded"))
    assert json.loads(act["detail_json"]) == {"study": "demo", "reason": "the ethics board asked"}
    service.researcher.close_study("demo")
    service.researcher.open_study(first, 4)
    assert service.researcher.is_blinded("demo") is False  # what was seen stays seen
    service.researcher.open_study(write_bundle(workspace / "bundles" / "demo-1", name="demo", trials=18, seed=8), 3)
    assert service.researcher.is_blinded("demo") is True  # another version of the study


def named(widgets: Any, label: str) -> Any:
    return next(one for one in widgets if one.label == label)
