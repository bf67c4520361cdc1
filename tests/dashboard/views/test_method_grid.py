"""The grid of many methods: families, methods that do not apply, long work that asks, and how far methods agree."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr
from streamlit.testing.v1 import AppTest

from core.attribution import METHODS
from core.attribution.cost import Pace
from core.attribution.records import Family, group_methods
from dashboard.explore import heatmap_jobs
from dashboard.explore.figures import HeatmapStyle
from dashboard.explore.heatmap_jobs import HeatmapRequest
from dashboard.explore.heatmaps.agreement import draw_matrix, order_methods, tabulate_agreement
from dashboard.explore.images import ClassifiedImage
from dashboard.explore.source import open_from_set
from dashboard.explore.table import Cell, HeatmapColumn, HeatmapTable
from dashboard.shared.jobs import pool
from tests.dashboard.conftest import gallery_of
from tests.dashboard.views.conftest import settled


def press(app: AppTest, label: str) -> AppTest:
    (button,) = [one for one in app.button if one.label == label]
    return button.click().run()


@pytest.mark.parametrize("known", [True, False])
def test_all_methods_of_one_wrong_image_are_two_clicks_and_a_yes(opened, monkeypatch, known: bool) -> None:
    """Catches a grid of other images than the one shown, and minutes of work that start by themselves.

    Also before the network's speed is measured, which takes longest where the work does too.
    """
    speed = Pace(0.01, 0.02) if known else None
    monkeypatch.setattr(heatmap_jobs, "get_pace", lambda _: speed)
    app = opened(method="Gradient", image="adversarial/7")
    press(app, "All methods for this image")
    assert not app.exception
    assert app.button_group(key="view").value == "Grid"
    assert set(app.multiselect(key="methods").value) >= set(METHODS)
    shown = app.dataframe[0].value
    assert set(shown["image"]) == {"adversarial/0/000007"}
    (begin,) = [b.label for b in app.button if b.label.startswith("Compute the ")]
    assert ("about" in begin) == known
    for key, job in list(pool()._jobs.items()):
        if not job.has_ended:
            pool().cancel(key)


def test_a_family_is_chosen_by_a_click_and_what_does_not_apply_is_named(opened) -> None:
    """Catches a family that leaves another's methods, and one refusal that hides the other heatmaps."""
    app = opened(view="Grid", methods="Gradient", images="adversarial/7")
    settled(press(app, "Attention"))
    assert app.multiselect(key="methods").value == list(group_methods()[Family.ATTENTION])
    said = next(m.value for m in app.markdown if m.value.startswith("- Attention rollout: "))
    assert "Transformer attribution: " in said
    assert "Without a heatmap (2):" in [c.value for c in app.caption]
    app = opened(view="Grid", methods=["Gradient", "Attention rollout"], images="adversarial/7")
    assert app.get("imgs") or app.get("image")
    assert "Without a heatmap (1):" in [c.value for c in app.caption]
    assert app.dataframe[0].value["probability"].notna().tolist() == [True, False]


def test_the_agreement_of_methods_is_the_mean_correlation_over_the_images(opened) -> None:
    """Against SciPy; catches a mean over the wrong axis, and a missing heatmap counted as 0."""
    gallery = gallery_of("scenes", "adversarial")
    seen = [ClassifiedImage("scenes", open_from_set(gallery, "adversarial", i)) for i in (3, 9)]
    rows: dict[str, tuple[Cell, ...]] = {}
    for method in ("gradient", "grad_cam", "input_x_gradient"):
        asked = [HeatmapRequest(s.classifier, method, s.inputs, s.predicted_class, 0, {}) for s in seen]
        rows[method] = tuple(Cell(one, one.compute(lambda *_: None)) for one in asked)
    rows["grad_cam"] = (rows["grad_cam"][0], Cell(rows["grad_cam"][1].request))
    shown = HeatmapTable("", tuple(HeatmapColumn(s, None, ("",)) for s in seen), rows, "Own", HeatmapStyle())

    def correlate(a: str, b: str, k: int) -> float:
        sizes = [rows[name][k].explanation.evidence[0].abs().ravel().numpy() for name in (a, b)]
        return float(spearmanr(*sizes).statistic)

    table = tabulate_agreement(shown).set_index("method")
    assert list(table.index) == list(table.columns) == ["Gradient", "Grad-CAM", "Input x gradient"]
    both = np.mean([correlate("gradient", "input_x_gradient", k) for k in (0, 1)])
    assert table.loc["Gradient", "Input x gradient"] == table.loc["Input x gradient", "Gradient"]
    np.testing.assert_allclose(table.loc["Gradient", "Input x gradient"], both, rtol=1e-6)
    np.testing.assert_allclose(table.loc["Gradient", "Grad-CAM"], correlate("gradient", "grad_cam", 0), rtol=1e-6)
    np.testing.assert_allclose(np.diag(table), 1)


def test_the_matrix_of_agreement_writes_numbers_as_articles_do() -> None:
    """Catches a sign that is lost with the zero, a method without a heatmap that fills a row, and a name as markup."""
    names = ["A", "B", "none", "<i>"]
    values = np.array([[1, 0.254, np.nan, -0.126], [0.254, 1, np.nan, 0.9], [np.nan] * 4, [-0.126, 0.9, np.nan, 1]])
    table = order_methods(pd.DataFrame(values, columns=names).assign(method=names))
    assert list(table["method"]) in (["A", "B", "<i>"], ["<i>", "B", "A"])
    drawn = draw_matrix(table)
    cells = [re.findall(r">([^<]*)</td>", line) for line in drawn.split("<tr>")[2:]]
    assert sorted(map(sorted, cells)) == sorted(
        map(sorted, [["1", ".25", "−.13"], [".25", "1", ".90"], ["−.13", ".90", "1"]])
    )
    assert drawn.count('class="against"') == 2
    assert "&lt;i&gt;" in drawn
