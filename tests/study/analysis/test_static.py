"""Figures as files: what Matplotlib draws is what the page's figure holds."""

from __future__ import annotations

import io
from xml.etree import ElementTree

import docx
import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
from matplotlib.collections import LineCollection
from PIL import Image

from study import plots
from study.analysis.report import figures, static
from study.analysis.report.headline import forest
from study.analysis.report.manuscript.manuscript import Manuscript, ManuscriptFigure
from study.analysis.report.manuscript.word import write_word
from study.analysis.responses import accuracies
from study.analysis.responses.reading import prepare
from tests.study.analysis.simulated import study

INK = static.to_rgba(static.INK)


@pytest.fixture(scope="module")
def accuracy() -> go.Figure:
    return figures.draw(accuracies.accuracy(prepare(study(24, 8, 6, seed=1)).frame), simulated=True)


def read_words(svg: str) -> list[str]:
    return ["".join(node.itertext()) for node in ElementTree.fromstring(svg).iter() if node.tag.endswith("}text")]


def test_marks_and_intervals_are_those_of_the_page(accuracy: go.Figure) -> None:
    """Catches a mark or a limit that moves between page and paper, a colour or shape of another trial type."""
    (panel,) = static.draw(accuracy).axes
    marks = [line for line in panel.lines if line.get_marker() in static.MARKERS.values()]
    bars = [one for one in panel.collections if isinstance(one, LineCollection)]
    for trace, mark, bar in zip(accuracy.data, marks, bars, strict=True):
        np.testing.assert_allclose(mark.get_xdata(), trace.x)
        np.testing.assert_allclose(mark.get_ydata(), trace.y)
        assert mark.get_color() == static.to_rgba(trace.marker.color)
        assert mark.get_marker() == static.MARKERS[trace.marker.symbol]
        ends = np.array([segment[:, 1] for segment in bar.get_segments()])
        np.testing.assert_allclose(ends[:, 0], trace.y - np.array(trace.error_y.arrayminus))
        np.testing.assert_allclose(ends[:, 1], trace.y + np.array(trace.error_y.array))


def test_words_are_words_and_all_there(accuracy: go.Figure) -> None:
    """Catches a figure of simulated participants without the words that say so, and one whose words are outlines."""
    words = read_words(static.write_svg(accuracy))
    text = " ".join(words)
    assert "Simulated participants: not evidence" in words
    assert {"chance", "Correct predictions of the AI", "Explanation shown", "AI right", "100%"} <= set(words)
    assert "No" in words
    assert "explanation" in words
    assert "<b" not in text
    assert "<br" not in text


def test_the_same_figure_gives_the_same_bytes(accuracy: go.Figure) -> None:
    """Catches a date or a random name in a file: reports of the same analysis would differ."""
    assert static.write_svg(accuracy) == static.write_svg(accuracy)
    assert static.write_png(accuracy) == static.write_png(accuracy)
    assert Image.open(io.BytesIO(static.write_png(accuracy))).width > 6 * static.DPI


def test_contrasts_are_named_from_the_top_and_zero_is_a_line() -> None:
    """Catches names next to other marks, groups of trial types not set off, and a line at another value."""
    names = ["saliency - none, adv_incorrect", "both - none, std_correct"]
    contrasts = pd.DataFrame(
        {"contrast": names, "points": [10.0, -5.0], "points_low": [1.0, -9.0], "points_high": [19.0, -1.0]}
    )
    (panel,) = static.draw(forest(contrasts)).axes
    ticks = dict(zip(panel.get_yticks(), panel.get_yticklabels(), strict=True))
    mark = next(line for line in panel.lines if line.get_marker() == "o")
    shown = {ticks[y].get_text(): x for x, y in zip(mark.get_xdata(), mark.get_ydata(), strict=True)}
    assert shown == {"Saliency maps": 10.0, "Both explanations": -5.0}
    assert [one.get_text() for one in ticks.values() if one.get_fontweight() == "bold"] == [
        "AI wrong\n(adversarial)",
        "AI right",
    ]
    assert any(list(line.get_xdata()) == [0, 0] for line in panel.lines)
    (bars,) = (one for one in panel.collections if isinstance(one, LineCollection))
    limits = {tuple(segment[:, 0]) for segment in bars.get_segments()}
    assert limits == {(1.0, 19.0), (-9.0, -1.0)}


def test_axes_are_those_of_the_page() -> None:
    """Catches a logarithm drawn straight, percentages without their sign, and a range that is not kept."""
    table = pd.DataFrame({"x": [1, 2], "y": [0.5, 2.0], "low": [0.4, 1.5], "high": [0.6, 2.5], "by": ["$a", "$a"]})
    drawn = plots.curves(table, x="x", y="y", by="by", title="Odds", x_title="Level")
    drawn.update_yaxes(type="log", range=[-1, 1], tickformat=None)
    (panel,) = static.draw(drawn).axes
    assert panel.get_yscale() == "log"
    assert panel.get_ylim() == pytest.approx((0.1, 10))
    drawn.update_yaxes(type="linear", range=[0, 1], tickformat=".0%").add_trace(drawn.data[0].to_plotly_json())
    words = read_words(static.write_svg(drawn))
    assert "100%" in words
    assert words.count("$a") == 2, "a name is no formula"


def test_a_kind_that_is_not_drawn_stays_on_the_page() -> None:
    """Catches a package's figure that costs the report, and one drawn without its marks."""
    heat = go.Figure(go.Heatmap(z=[[1, 2], [3, 4]]))
    with pytest.raises(static.NotDrawnError, match="heatmap is on the page only"):
        static.write_svg(heat)
    assert static.write_figures({"a.svg": heat, "b.svg": None}) == {}


def test_word_shows_the_figure_that_the_page_shows(accuracy: go.Figure) -> None:
    """Catches a document without the figure, or with another one; and a number or note that is lost."""
    draft = Manuscript("A study", {}, [], [], [ManuscriptFigure("Accuracy", accuracy, "Dots are means.", "a.svg")])
    document = docx.Document(io.BytesIO(write_word(draft)))
    (shape,) = document.inline_shapes
    part = document.part.related_parts[shape._inline.graphic.graphicData.pic.blipFill.blip.embed]
    assert part.blob == static.write_png(accuracy)
    said = [paragraph.text for paragraph in document.paragraphs]
    assert "Figure 1\nAccuracy" in said
    assert "Note. Dots are means." in said
    assert "![Accuracy](a.svg)\n\n*Note.* Dots are means." in draft.markdown
