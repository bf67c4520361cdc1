"""The question explainer on the Layers page and as a command, against the question itself."""

from __future__ import annotations

import json

import pandas as pd

from core.types import silent
from inquiry.layers import QUESTIONS
from tests.commands import run
from tests.dashboard.views.test_inside import COUNT, answered, asked, begun


def test_the_page_shows_the_table_the_drawings_and_the_warnings(opened) -> None:
    """Catches a parameter that does not arrive, a warning that stays in the table, and a page without drawings."""
    link = {"view": "Layers", "question": "Explainer", "layers.images": str(COUNT), "explainer.steps": "5"}
    app = begun(opened(**link))
    _, inspected = asked("explainer", parameters={"steps": "5"})
    expected = QUESTIONS["explainer"](inspected, silent, steps=5)
    found = answered(app)
    assert found["feature"].tolist() == expected["feature"].tolist()
    columns = ["p", "restored", "same", "images"]
    pd.testing.assert_frame_equal(found[columns], expected[columns], check_dtype=False, rtol=1e-2, atol=1e-2)
    assert len(app.get("plotly_chart")) == 1
    assert len(app.get("image")) == 3
    assert expected["note"].iloc[0]
    assert expected["note"].iloc[0] in {warning.value.replace("\\", "") for warning in app.warning}


def test_the_command_writes_table_drawing_and_settings(workspace, tmp_path) -> None:
    """Catches a drawing that is not written, and settings that are not recorded."""
    given = ["layers", "explainer", "--setting", "split=standard", "--setting", "size=48", "--out", tmp_path / "out"]
    ran = run(*given, "--param", "unit=5", "--param", "steps=2", home=workspace)
    assert ran.returncode == 0, ran.stderr
    names = {file.name for file in (tmp_path / "out").iterdir() if file.is_file()}
    assert names >= {f"scenes.explainer.{end}" for end in ("csv", "json", "channel_5.png")}
    facts = json.loads((tmp_path / "out" / "scenes.explainer.json").read_text())
    assert facts["parameters"] == {"unit": "5", "steps": "2"}
