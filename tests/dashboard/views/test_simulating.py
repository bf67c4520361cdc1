"""Simulated participants of a study that is not open yet."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import ForetellError
from dashboard.shared import service
from dashboard.studies import workspace_studies
from tests.conftest import write_bundle
from tests.dashboard.views.conftest import open_by_link, press, studies_script


def test_simulated_participants_try_a_study_before_it_opens(workspace: Path) -> None:
    """Catches a checklist that can be met only after the study was opened, and a trial run that opens it."""
    write_bundle(workspace / "bundles" / "tiny-0123456789ab", name="tiny")
    app = open_by_link(studies_script, study="tiny", section="Simulate")
    app.number_input(key="simulate_people").set_value(4)
    press(app, "Simulate")
    assert app.success[0].value.startswith("60 new simulated responses")
    with pytest.raises(ForetellError):
        service.get_service().participant.begin("tiny")
    app.button_group(key="section").select("Collection").run()
    assert "blue-badge[built]" in app.title[0].value
    assert any("Simulated participants have completed the study." in point.value for point in app.markdown)
    found = {one.name: one for one in workspace_studies.list_studies(workspace, service.get_service().researcher)}
    assert workspace_studies.find_next_action(found["tiny"]).label == "Preview and open it"
