"""The page Results where a study has several versions."""

from __future__ import annotations

from pathlib import Path

from streamlit.testing.v1 import AppTest

from dashboard.shared import service as door
from study.simulate import simulate
from tests.conftest import write_bundle
from tests.dashboard.conftest import made
from tests.dashboard.views.results.conftest import script
from tests.dashboard.views.results.test_results import AS_IN_THE_PAPER


def test_versions_of_a_study_are_not_pooled(workspace: Path) -> None:
    service = door.get_service()
    for seed, people in ((7, 4), (8, 8)):
        place = workspace / "bundles" / f"demo-{seed}"
        folder = write_bundle(place, name="demo", trials=18, seed=seed, config=AS_IN_THE_PAPER)
        service.researcher.open_study(folder, 3)
        simulate(service, "demo", people, {"belief_projector": 1.0}, seed)
    app = made(AppTest.from_function(script).run())
    assert {m.label: m.value for m in app.metric}["Responses"] == "144"
    versions = app.selectbox(key="results_version")
    made(versions.select_index(1).run())
    assert {m.label: m.value for m in app.metric}["Responses"] == "72"
