"""Replacing a region in Explore: what was drawn, what is said, and that both are of this image and this network."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from matplotlib.path import Path as Outline
from streamlit.testing.v1 import AppTest

from core.attribution.baselines import baselines
from core.faithfulness.region import RegionEffect
from dashboard.explore.heatmaps.change import draw_change
from dashboard.explore.heatmaps.region import describe_effect, rasterise
from dashboard.shared import cache
from tests.dashboard.conftest import gallery_of
from tests.dashboard.views.conftest import settled

NAMES = ["fish", "boat"]


def test_a_box_is_filled_whichever_way_it_was_dragged() -> None:
    """Catches a box that is empty because it was dragged from the lower right."""
    for x, y in (([2, 5], [1, 3]), ([5, 2], [3, 1])):
        drawn = rasterise({"box": [{"x": x, "y": y}]}, (10, 8))
        assert drawn is not None
        assert drawn.shape == (8, 10)
        rows, columns = np.nonzero(drawn)
        assert (rows.min(), rows.max(), columns.min(), columns.max()) == (1, 3, 2, 5)


def test_a_line_is_filled_as_matplotlib_fills_it() -> None:
    """Against matplotlib's point-in-polygon; pixels that the line touches may differ. Catches exchanged axes."""
    around = [(3.0, 4.0), (40.0, 8.0), (30.0, 20.0), (12.0, 18.0)]
    drawn = rasterise({"lasso": [{"x": [x for x, _ in around], "y": [y for _, y in around]}]}, (50, 30))
    assert drawn is not None
    centres = np.stack(np.meshgrid(np.arange(50), np.arange(30)), -1).reshape(-1, 2)
    surely, perhaps = (Outline(around).contains_points(centres, radius=r).reshape(30, 50) for r in (-1.5, 1.5))
    assert (surely | perhaps).sum() > (surely & perhaps).sum() > 200
    assert drawn[surely & perhaps].all()
    assert not drawn[~(surely | perhaps)].any()


def test_nothing_drawn_is_nothing() -> None:
    assert rasterise({"points": [], "box": [], "lasso": []}, (10, 8)) is None


def test_what_is_said_is_what_was_found() -> None:
    """Catches a change compared with its sign, and the old class named as the new."""
    others = torch.tensor([[0.8, 0.2], [0.1, 0.9], [0.9, 0.1]])
    found = RegionEffect(0.25, torch.tensor([0.9, 0.1]), torch.tensor([0.3, 0.7]), others, torch.zeros(3, 2, 2))
    said = describe_effect(found, NAMES, 0)
    assert said[0] == "The AI now predicts boat (70%), no longer fish. 25% of the image is replaced."
    assert said[1] == "Probability of fish: 90.0%, then 30.0%."
    assert said[2].endswith("10.0% to 90.0%; 1 of them change it as much or more.")
    wide = RegionEffect(0.6, found.before, found.before, others, found.replaced)
    assert describe_effect(wide, NAMES, 1)[0].startswith("The AI still predicts fish (90%).")
    assert "no other place" in describe_effect(wide, NAMES, 1)[2]


def test_a_link_to_a_box_shows_the_networks_own_prediction(opened, workspace: Path) -> None:
    """The printed probability against a prediction made here; catches another image, fill or place."""
    classifier = cache.load_classifier("scenes")
    inputs = classifier.preprocess(gallery_of("scenes", "adversarial").images.open(9))
    app: AppTest = opened(method="Gradient", image="adversarial/9", region="A box", **{"region.with": "Mean colour"})
    app.slider(key="region.columns").set_value((50, 100)).run()
    app = settled(app.slider(key="region.rows").set_value((0, 50)).run())
    replaced = inputs.clone()
    height, width = replaced.shape[1:]
    place = slice(None), slice(0, height // 2), slice(width // 2, width)
    replaced[place] = baselines(classifier, inputs[None], "mean", 0)[0][place]
    before, after = classifier.probabilities(torch.stack([inputs, replaced]))
    shown = int(before.argmax())
    said = f"Probability of {classifier.categories[shown]}: {before[shown]:.1%}, then {after[shown]:.1%}."
    assert any(said in text.value for text in app.markdown)


def test_every_bar_of_a_change_has_its_number_outside() -> None:
    """Catches numbers that shrink or vanish inside their bars, and a number beyond a bar of 100% that is cut off."""
    figure = draw_change(torch.tensor([1.0, 0.0]), torch.tensor([0.2, 0.8]), ["cat", "dog"])
    assert [list(bars.text) for bars in figure.data] == [["100%", "0%"], ["20%", "80%"]]
    assert {(bars.textposition, bars.cliponaxis) for bars in figure.data} == {("outside", False)}
    assert figure.layout.xaxis.range[1] >= 1.1, "room for four letters"
