"""Figure 1 shows the numbers of its table, and can be told apart by everyone."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from study import plots
from study.analysis.exploratory import speed
from study.analysis.report import figures, headline
from study.analysis.responses import reading as responses
from tests.contrast import LEAST, measure_contrast
from tests.study.analysis.simulated import study


@pytest.fixture(scope="module")
def drawn():
    data = responses.prepare(study(32, 8, 6, seed=4))
    return figures.accuracy_figure(data)


def test_points_and_bars_are_the_numbers(drawn) -> None:
    figure, numbers = drawn
    assert len(figure.data) == 3
    for trace, (_, cell) in zip(figure.data, numbers.groupby("trial_type", sort=False), strict=True):
        np.testing.assert_allclose(trace.y, cell["accuracy"], atol=1e-12)
        np.testing.assert_allclose(np.array(trace.y) + trace.error_y.array, cell["high"], atol=1e-12)
        np.testing.assert_allclose(np.array(trace.y) - trace.error_y.arrayminus, cell["low"], atol=1e-12)
        np.testing.assert_array_equal(np.round(np.array(trace.x)), [0, 1, 2, 3])
    assert list(figure.layout.xaxis.ticktext) == [
        "No<br>explanation",
        "Saliency<br>maps",
        "Examples",
        "Both<br>explanations",
    ]


def test_chance_is_marked_and_the_background_is_the_pages(drawn) -> None:
    figure, _ = drawn
    assert [shape.y0 for shape in figure.layout.shapes] == [0.5]
    assert "chance" in [note.text for note in figure.layout.annotations]
    assert figure.layout.paper_bgcolor == figure.layout.plot_bgcolor == "rgba(0,0,0,0)"


def test_series_differ_in_color_and_in_shape() -> None:
    colors, marks = zip(*plots.TYPE_STYLES.values(), strict=True)
    assert len(set(colors)) == len(set(marks)) == 3


def test_a_trial_type_has_one_colour_and_mark_in_every_figure(drawn) -> None:
    """Catches response times in which the blue circle of "AI right" is another trial type."""
    frame = study(32, 8, 6, seed=4)
    times = speed.figure(speed.table(responses.prepare(frame.assign(rt_ms=900.0)).frame))
    looks = [{trace.name: (trace.marker.color, trace.marker.symbol) for trace in one.data} for one in (drawn[0], times)]
    assert looks[0] == looks[1]


def test_the_first_condition_is_not_struck_through() -> None:
    """Catches the axis line at 0, which is where the first of the categories is."""
    assert plots.apply_layout(go.Figure(), "", percent=False).layout.xaxis.zeroline is False


def test_a_forest_plot_has_a_whole_zero_line_and_its_names_outside() -> None:
    """Catches names that lie over the intervals and cut the line of no difference into pieces."""
    names = ["saliency - none, std_correct", "both - examples", "both - none, std_correct"]
    rows = pd.DataFrame({"contrast": names, "points": [1.0, 2.0, 3.0], "points_low": -1.0, "points_high": 5.0})
    forest = headline.forest(rows)
    assert [(shape.x0, shape.yref) for shape in forest.layout.shapes] == [(0, "y domain")]
    assert not forest.layout.annotations
    labels = dict(zip(forest.layout.yaxis.tickvals, forest.layout.yaxis.ticktext, strict=True))
    assert [labels[height] for height in sorted(labels, reverse=True)] == [
        *("<b>AI right</b>", "Saliency maps<br>vs no explanation", "Both explanations<br>vs no explanation"),
        *("<b>All trials</b>", "Both explanations<br>vs examples"),
    ]
    assert list(forest.data[0].y) == [3, 0, 2]
    assert forest.layout.yaxis.automargin
    assert forest.layout.xaxis.title.text == "Difference in accuracy<br>(percentage points)"


def test_a_forest_plot_names_the_condition_of_all_its_contrasts_once() -> None:
    """Catches "vs no explanation" in each of nine rows, and a reference that no row and no axis names."""
    rows = pd.DataFrame({"contrast": ["saliency - none", "both - none"], "points": [1.0, 2.0]})
    forest = headline.forest(rows.assign(points_low=-1.0, points_high=5.0))
    assert list(forest.layout.yaxis.ticktext) == ["<b>All trials</b>", "Saliency maps", "Both explanations"]
    assert forest.layout.xaxis.title.text == "Difference in accuracy<br>from no explanation<br>(percentage points)"


@pytest.mark.parametrize("background", ["#FFFFFF", "#000000"])
def test_ink_is_legible_on_light_and_dark(background: str) -> None:
    assert measure_contrast(plots.INK, background) >= LEAST


def test_absent_trial_type_has_no_series() -> None:
    frame = study(seed=4)
    data = responses.prepare(frame[frame["trial_type"] != "std_incorrect"])
    figure, _ = figures.accuracy_figure(data)
    assert [trace.name for trace in figure.data] == ["AI wrong (adversarial)", "AI right"]


def test_simulated_answers_are_marked_on_the_figure(drawn) -> None:
    words = "Simulated participants: not evidence"
    data = responses.prepare(study(seed=4).assign(mode="sim"))
    marked, _ = figures.accuracy_figure(data)
    assert marked.layout.title.text == words
    assert drawn[0].layout.title.text is None
