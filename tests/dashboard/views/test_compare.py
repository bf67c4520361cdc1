"""Comparing two networks: which are offered, and where their heatmaps differ."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from streamlit.testing.v1 import AppTest

import data
from core.drawing.sheet import ImageItem
from core.types import Explanation, silent
from dashboard.explore.figures import HeatmapStyle
from dashboard.explore.heatmap_jobs import HeatmapRequest
from dashboard.explore.heatmaps.difference import HIGHER, LOWER, draw_difference, subtract_heatmaps
from dashboard.explore.heatmaps.sheet import GAP, SIDE, WIDE_SIDE, draw_sheet, draw_stacked_sheet
from dashboard.explore.images import ClassifiedImage
from dashboard.explore.source import open_from_set
from dashboard.explore.table import Cell, HeatmapColumn, HeatmapTable
from tests.dashboard.conftest import gallery_of
from tests.dashboard.views.conftest import OTHER, settled

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
    assert app.selectbox(key="other").options == ["alike", *built_in]
    said = [c.value for c in app.caption if c.value.startswith("Not offered: ")]
    assert len(said) == 2
    (foreign,) = [text for text in said if "foreign" in text]
    assert foreign == "Not offered: foreign, strange. Fewer than two classes in common with scenes."
    (unreadable,) = [text for text in said if "broken" in text]
    assert "nothing_of_that_name" in unreadable
    assert any(heading.value == "Difference of the heatmaps" for heading in app.header)
    assert any(c.value.startswith("Each heatmap is first divided by its own value") for c in app.caption)


def test_a_sheet_too_large_to_be_drawn_twice_says_that_it_scrolls(opened, monkeypatch) -> None:
    """Catches a phone that shows one of several columns, and no word of the others; wide screens hide the caption."""
    sentence = "2 columns: scroll sideways."
    assert sentence not in [c.value for c in opened(view="Compare models", method="Gradient").caption]
    monkeypatch.setattr("dashboard.explore.heatmaps.grid.MOST_STACKED", 1)
    assert sentence in [c.value for c in opened(view="Compare models", method="Gradient").caption]


def test_both_heatmaps_are_next_to_the_one_image(opened) -> None:
    """Catches the same image twice with the heatmaps below the screen, and a phone that shows one network's alone."""
    pair = [ClassifiedImage(name, open_from_set(gallery_of(name, "adversarial"), "adversarial", 3)) for name in PAIR]
    rows = {"gradient": tuple(Cell(request_of(seen), request_of(seen).compute(silent)) for seen in pair)}
    table = HeatmapTable(
        "", tuple(HeatmapColumn(s, None, (s.model,)) for s in pair), rows, "Own", HeatmapStyle(), is_pair=True
    )
    assert table.shares_image
    for sheet, least in ((draw_sheet(table), SIDE), (draw_stacked_sheet(table), (WIDE_SIDE - GAP) // 2)):
        drawn = [item for item in sheet.items if isinstance(item, ImageItem) and item.height > 20]
        assert len(drawn) == 3, "the image once"
        assert {item.width for item in drawn} == {least}
        first, second = drawn[-2:] if sheet.width < 400 else drawn[:2]
        assert first.y == second.y
        assert first.x + least < second.x
        assert all(0 <= item.x <= item.x + item.width <= sheet.width for item in drawn)
    assert draw_stacked_sheet(table).width <= 358  # of 390 px, with the margins of the page
    assert not replace(table, is_pair=False).shares_image


def request_of(seen: ClassifiedImage) -> HeatmapRequest:
    return HeatmapRequest(seen.classifier, "gradient", seen.inputs, seen.predicted_class, 0, {})


PAIR = ("scenes", "scenes:blind")


def test_heatmaps_of_different_classes_are_said_and_made_of_one(opened) -> None:
    """Catches the difference of two heatmaps that explain different classes, without a word of it."""
    app = opened(view="Compare models", method="Gradient", other="scenes:blind")
    first, second = (one.proto.text.split("**")[1] for one in app.get("progress")[::5])
    assert first != second
    said = f"The heatmaps explain different classes: {first} and {second}."
    assert said in [c.value for c in app.caption]
    assert app.selectbox(key="target").options[1:3] == [first, second]
    assert list_differences(app) == [f"Gradient: scenes ({first}) minus scenes:blind ({second})"]
    app = settled(app.button(key=f"explain_{second}").click().run())
    assert said not in [c.value for c in app.caption]
    assert list_differences(app) == ["Gradient: scenes minus scenes:blind"]


def list_differences(app: AppTest) -> list[str]:
    """The captions of the drawn differences."""
    captions = [one.caption for image in app.image for one in image.proto.imgs]
    return [caption.replace("\\", "") for caption in captions if " minus " in caption]


def test_a_network_is_not_compared_with_itself(opened) -> None:
    """Catches the sentence that a network of the workspace does not exist."""
    app = opened(view="Compare models", method="Gradient", classifier="scenes:blind", other="scenes:blind")
    assert "A network cannot be compared with itself. Another one is shown instead." in [w.value for w in app.warning]


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
    column = HeatmapColumn(seen, None, ("",))
    for pair, colour in ((row, LOWER), (row[::-1], HIGHER)):
        drawn = np.asarray(draw_difference(column, pair, HeatmapStyle().quantile), dtype=float)
        grey = np.asarray(seen.view.draw(seen.view.size(drawn.shape[1]), "L"), dtype=float)[..., None]
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
