"""Comparing two networks: which are offered, and where their heatmaps differ."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

import data
from core.types import Explanation
from dashboard.explore.figures import HeatmapStyle
from dashboard.explore.heatmap_jobs import HeatmapRequest
from dashboard.explore.heatmaps.cells import ClassifiedImage
from dashboard.explore.heatmaps.difference import HIGHER, LOWER, draw_difference, subtract_heatmaps
from dashboard.explore.source import open_from_set
from dashboard.explore.table import Cell
from tests.dashboard.conftest import gallery_of
from tests.dashboard.views.conftest import OTHER

RENAMED = OTHER.replace("CATEGORIES, MEAN", "CATEGORIES as NAMES, MEAN").replace(
    "def build", 'CATEGORIES = ["fish", *(f"class {k}" for k in range(15))]\n\n\ndef build'
)


def test_only_networks_with_common_classes_are_offered_and_the_others_named(opened, workspace: Path) -> None:
    """Catches a comparison of networks without common classes, and a broken file that takes the page with it."""
    (workspace / "models").mkdir()
    broken = "import nothing_of_that_name"
    for name, text in (("alike", OTHER), ("foreign", RENAMED), ("strange", RENAMED), ("broken", broken)):
        (workspace / "models" / f"{name}.py").write_text(text)
    app = opened(view="Compare models", method="Gradient")
    built_in = [name for name in data.CLASSIFIERS if name.startswith("scenes:")]
    assert app.selectbox(key="other").options == ["models/alike.py", *built_in]
    said = [c.value for c in app.caption if c.value.startswith("Not offered: ")]
    assert len(said) == 2
    (foreign,) = [text for text in said if "foreign" in text]
    assert foreign == "Not offered: models/foreign.py, models/strange.py. Fewer than two classes in common with scenes."
    (unreadable,) = [text for text in said if "broken" in text]
    assert "nothing_of_that_name" in unreadable
    assert any(heading.value == "Difference of the heatmaps" for heading in app.header)
    assert any(c.value.startswith("Purple: the heatmap of scenes is higher here") for c in app.caption)


def test_a_sheet_too_large_to_be_drawn_twice_says_that_it_scrolls(opened, monkeypatch) -> None:
    """Catches a phone that shows one of several columns, and no word of the others; wide screens hide the caption."""
    sentence = "2 columns: scroll sideways."
    assert sentence not in [c.value for c in opened(view="Compare models", method="Gradient").caption]
    monkeypatch.setattr("dashboard.explore.heatmaps.grid.MOST_STACKED", 1)
    assert sentence in [c.value for c in opened(view="Compare models", method="Gradient").caption]


def test_the_difference_is_of_heatmaps_that_are_scaled_first(opened) -> None:
    """Planted: the second network relies on one more place and has a thousandfold unit; only that place differs."""
    seen = ClassifiedImage("scenes", open_from_set(gallery_of("scenes", "adversarial"), "adversarial", 3))
    request = HeatmapRequest(seen.classifier, "gradient", seen.inputs, 0, 0, {})
    side = seen.inputs.shape[-1]
    left = torch.zeros(1, side, side)
    left[0, :, : side // 4] = 1.0
    both = left.clone()
    both[0, :, -side // 4 :] = 1.0
    row = tuple(Cell(request, Explanation(values, 0.0, ())) for values in (left, both * 1000))
    found = subtract_heatmaps(row, HeatmapStyle().quantile, (side, side))
    assert np.abs(found[:, : -side // 4 - 2]).max() < 1e-6
    np.testing.assert_allclose(found[:, -side // 4 + 2 :], -0.5, atol=1e-6)
    column = seen.column("")
    for pair, colour in ((row, LOWER), (row[::-1], HIGHER)):
        drawn = np.asarray(draw_difference(column, pair, HeatmapStyle().quantile), dtype=float)
        grey = np.asarray(column.seen.draw(column.seen.size(drawn.shape[1]), "L"), dtype=float)[..., None]
        place = (slice(None), slice(-20, None))
        np.testing.assert_allclose(drawn[place], (grey[place] + colour) / 2, atol=1)
        np.testing.assert_allclose(drawn[:, :200], grey[:, :200].repeat(3, 2), atol=1)


def test_the_likeliest_classes_of_both_networks_are_shown_with_their_probabilities(opened) -> None:
    """Catches one class per network, and the classes of one network twice."""
    app = opened(view="Compare models", method="Gradient", other="scenes:aware")
    assert [one.value for one in app.subheader] == ["scenes", "scenes:aware"]
    texts = [one.proto.text for one in app.get("progress")]
    assert len(texts) == 10
    assert texts[:5] != texts[5:]
    for five in (texts[:5], texts[5:]):
        shares = [float(text.split()[-1].rstrip("%")) for text in five]
        assert shares == sorted(shares, reverse=True)
        assert 20 < sum(shares) <= 100.3
