"""The question parts on the Layers page and as a command, against the question itself."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from core.types import silent
from inquiry.layers import QUESTIONS
from inquiry.layers.units import part_graph
from tests.commands import run
from tests.dashboard.views.test_inside import COUNT, answered, asked, begun


def test_the_page_shows_the_table_the_drawings_and_the_warnings(opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a parameter that does not arrive, a warning that stays in the table, and a page without drawings."""
    link = {"view": "Layers", "question": "Parts", "layers.images": str(COUNT)}
    app = begun(opened(**link))
    assert ["A graph of parts is learned from 12 or more images" in error.value for error in app.error] == [True]
    monkeypatch.setattr(part_graph, "LEAST", 3)  # few images are enough for a page
    app = begun(opened(**link, **{"parts.channels": "2"}))
    request, inspected = asked("parts", parameters={"channels": "2"})
    expected = QUESTIONS["parts"](inspected, silent, channels=2)
    pd.testing.assert_frame_equal(answered(app), expected, check_dtype=False, rtol=1e-3, atol=1e-4)
    assert len(app.get("plotly_chart")) == 1
    drawn = [image.proto.imgs[0].caption.split()[-1] for image in app.get("image")]  # type: ignore[attr-defined]
    assert drawn == expected["layer"].drop_duplicates().tolist()
    notes = expected["note"].dropna().tolist()
    assert notes
    assert {warning.value.replace("\\", "") for warning in app.warning} >= set(notes)
    assert request.parameters == {"channels": "2"}


def test_the_command_writes_table_drawings_and_settings_or_refuses(workspace, tmp_path) -> None:
    """Catches a drawing that is not written, settings that are not recorded, and another exit code than 2."""
    given = ["layers", "parts", "--setting", "split=standard", "--setting", "size=160", "--out", tmp_path / "out"]
    ran = run(*given, "--param", "of=fish", "--param", "channels=2", home=workspace)
    assert ran.returncode == 0, ran.stderr
    names = {file.name for file in (tmp_path / "out").iterdir() if file.is_file()}
    assert names >= {f"scenes.parts.{end}" for end in ("csv", "json", "features.5.png", "features.4.png")}
    facts = json.loads((tmp_path / "out" / "scenes.parts.json").read_text())
    assert facts["parameters"] == {"of": "fish", "channels": "2"}
    ran = run(*given, "--param", "of=fish", "--param", "spread=0", home=workspace)
    assert (ran.returncode, "Traceback" in ran.stderr) == (2, False)
    assert "spread=0.0: give a number above 0" in ran.stderr
