"""The question recognition on the Layers page: parameters, figure and caption; and as a command."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from inquiry.layers.record import record_of
from study.network.sources import open_set
from study.plan.config import ImageSource
from tests.commands import run
from tests.dashboard.views.test_inside import answered, begun

SMALL = {"filters": "4,3", "side": "16", "size": "3", "epochs": "1", "words": "10", "levels": "2", "parts": "2"}


def write_two_classes(folder: Path, count: int) -> None:
    drawn = open_set(ImageSource.model_validate({"set": "scenes", "split": "standard", "size": 160}), None)
    for name in ("boat", "fish"):
        (folder / name).mkdir(parents=True)
        for i in np.flatnonzero(drawn.labels == drawn.categories.index(name))[:count]:
            drawn.open(int(i)).save(folder / name / f"{i}.png")


def test_the_page_shows_every_kind_of_features_with_its_chance(opened, workspace) -> None:
    """Catches a parameter that does not arrive, and a page that calls the network into it or results warnings."""
    write_two_classes(workspace / "pictures" / "two", 9)
    link = {"view": "Layers", "question": "Recognition", "source": "two"}
    app = begun(opened(**link, **{f"recognition.{name}": value for name, value in SMALL.items()}))
    found = answered(app)
    assert found["features"].tolist() == ["layer 1", "layer 2", "all layers", "patches of pixels", "pixels"]
    assert found["chance"].tolist() == [0.5] * 5
    assert found["images"].tolist() == [6] * 5
    assert len(app.get("plotly_chart")) == 1
    assert not app.warning
    notes = "\n".join(f"- {note}" for note in found["note"].dropna())
    assert notes in [said.value.replace("\\", "") for said in app.caption]
    assert any("The dotted line is chance." in said.value for said in app.caption)
    assert any("All 18 images" in said.value for said in app.caption)


def test_the_figure_has_the_interval_of_the_accuracy_and_what_it_is_compared_with() -> None:
    """Catches limits that are drawn as distances, bars of another column, and a chance line elsewhere."""
    table = pd.DataFrame({"features": ["layer 1", "pixels"], "accuracy": [0.6, 0.3], "low": [0.5, 0.25],
                          "high": [0.8, 0.4], "random": [0.55, None], "without_pyramid": [0.4, None],
                          "chance": [0.1, 0.1]})  # fmt: skip
    figure = record_of("recognition").figure(table)
    own, random, whole = figure.data
    assert (own.name, random.name, whole.name) == ("with the pyramid", "random filters", "without the pyramid")
    assert (list(own.y), random.y[0], whole.y[0]) == ([0.6, 0.3], 0.55, 0.4)
    np.testing.assert_allclose([own.error_y.array, own.error_y.arrayminus], [[0.2, 0.1], [0.1, 0.05]])
    assert random.error_y.array is None
    assert [line.y0 for line in figure.layout.shapes] == [0.1]


def test_the_command_writes_the_table_and_the_warnings(workspace, tmp_path) -> None:
    """Catches a row that is lost on the way to the file, and a warning that is not printed."""
    given = ["layers", "recognition", "--model", "bars", "--set", "bars", "--out", tmp_path]
    words = [word for name, value in SMALL.items() for word in ("--param", f"{name}={value}")]
    ran = run(*given, *words, "--setting", "size=30", home=workspace)
    assert ran.returncode == 0, ran.stderr
    table = pd.read_csv(tmp_path / "bars.recognition.csv")
    assert table["images"].tolist() == [10] * 5
    assert all(note in ran.stdout for note in table["note"].dropna())
