"""The question x-features on the Layers page and as a command, against the question itself."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from core.types import silent
from inquiry.layers import QUESTIONS
from inquiry.layers.record import record_of
from tests.commands import run
from tests.dashboard.views.test_inside import COUNT, answered, asked, begun


def test_the_page_shows_the_table_the_drawings_and_the_warnings(opened) -> None:
    """Catches a parameter that does not arrive, a warning that stays in the table, and a page without drawings."""
    link = {"view": "Layers", "question": "x-features", "layers.images": str(COUNT), "x_features.features": "2"}
    link |= {"x_features.heatmap": "contrastive_excitation", "x_features.heatmap_layer": "features.1.2"}
    app = begun(opened(**link))
    assert app.selectbox(key="x_features.heatmap").options == ["Gradient x activation", "Contrastive excitation"]
    given = {"heatmap": "contrastive_excitation", "heatmap_layer": "features.1.2"}
    request, inspected = asked("x_features", parameters={"features": "2", **given})
    expected = QUESTIONS["x_features"](inspected, silent, features=2, **given)
    shown, of_heatmaps = answered(app), ["locality", "on_object"]  # which depend on the fit's last digits
    kept = [table.drop(columns=of_heatmaps) for table in (shown, expected)]
    pd.testing.assert_frame_equal(*kept, check_dtype=False, rtol=1e-3, atol=1e-4)
    pd.testing.assert_frame_equal(shown[of_heatmaps], expected[of_heatmaps], check_dtype=False, rtol=0.05, atol=0.02)
    assert request.parameters == {"features": "2", **given}
    assert len(app.get("plotly_chart")) == 1
    noted = expected.dropna(subset="note")
    notes = [
        row.note if row.x_feature == "all" else f"x-feature {row.x_feature}: {row.note}" for row in noted.itertuples()
    ]
    assert set(noted["x_feature"]) > {"all"}, "a warning about one x-feature alone, which it has to name"
    assert {warning.value.replace("\\", "") for warning in app.warning} >= set(notes)


def test_the_page_refuses_in_one_sentence(opened) -> None:
    """Catches a traceback in place of the reason."""
    link = {"view": "Layers", "question": "x-features", "layers.images": str(COUNT), "x_features.features": "50"}
    app = begun(opened(**link))
    assert [error.value for error in app.error] == ["features=50: choose 1 to 20 x-features."]


def test_the_figure_shows_what_each_x_feature_adds() -> None:
    """Catches a bar for the row about all x-features."""
    table = pd.DataFrame({"class": "fish", "x_feature": ["all", "1", "2"], "adds": [None, 3.0, -1.0]})
    (bar,) = record_of("x_features").figure(table).data
    assert (list(bar.x), list(bar.y)) == (["x-feature 1", "x-feature 2"], [3.0, -1.0])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--param", "of=dragon"], "dragon"),
        (["--param", "features=0"], "choose 1 to 20 x-features"),
        (["--param", "encoder=deep"], "choose one of rectified, linear"),
        (["--param", "heatmap_layer=features.0"], "is for heatmap=contrastive_excitation"),
        (["--layer", "features", "--layer", "avgpool"], "are of one layer"),
    ],
)
def test_the_command_refuses_bad_input(workspace, given, message) -> None:
    """Catches a traceback, and another exit code than 2."""
    ran = run("layers", "x_features", "--setting", "split=standard", "--setting", "size=32", *given, home=workspace)
    assert ran.returncode == 2
    assert message in ran.stderr
    assert "Traceback" not in ran.stderr


def test_the_command_writes_table_drawings_and_settings(workspace, tmp_path) -> None:
    """Catches a drawing that is not written, and settings that are not recorded."""
    given = ["--setting", "split=standard", "--setting", "size=160", "--param", "of=fish", "--param", "features=2"]
    ran = run("layers", "x_features", *given, "--out", tmp_path / "out", home=workspace)
    assert ran.returncode == 0, ran.stderr
    names = {file.name for file in (tmp_path / "out").iterdir() if file.is_file()}
    assert names >= {f"scenes.x_features.{end}" for end in ("csv", "json", "x-feature_1.png", "x-feature_2.png")}
    facts = json.loads((tmp_path / "out" / "scenes.x_features.json").read_text())
    assert facts["parameters"] == {"of": "fish", "features": "2"}
