"""Counterfactuals in Explore: which image is offered, what is drawn, and what is said."""

from __future__ import annotations

import numpy as np
import torch
from PIL import Image
from streamlit.testing.v1 import AppTest

from core.drawing.rendering import mark_cells
from core.robustness.counterfactual import Counterfactual, find_counterfactual
from core.types import silent
from dashboard.explore.heatmaps.counterfactual import (
    list_other_classes,
    make_counterfactual_task,
)
from dashboard.shared import cache
from inquiry.counterfactuals.counterfactuals import describe_counterfactual
from tests.dashboard.conftest import gallery_of
from tests.dashboard.views.conftest import settled

NAMES = ["fish", "boat", "bird"]


def make_result(cells: tuple[int, ...]) -> Counterfactual:
    many = torch.tensor([[0.1, 0.9, 0.0], [0.8, 0.2, 0.0], [0.1, 0.2, 0.7]])
    before, after = torch.tensor([0.9, 0.1, 0.0]), torch.tensor([0.3, 0.6, 0.1])
    return Counterfactual(4, cells, 0, 1, before, after, torch.zeros(3, 8, 8), many)


def test_the_sentence_is_of_these_numbers() -> None:
    """Catches exchanged classes, and draws counted that change the prediction to a third class."""
    assert describe_counterfactual(make_result((5, 6)), NAMES) == (
        "With 2 cells of 16 exchanged, the AI predicts boat (60%) and no longer fish (90%). None of them can be left "
        "out. As many cells at random change the prediction to boat in 1 of 3 draws."
    )
    assert describe_counterfactual(make_result((5,)), NAMES).startswith("With 1 cell of 16")


def test_the_drawn_cells_are_those_of_the_result_also_of_a_wide_image() -> None:
    """Catches rows drawn as columns: cell 6 of 4 by 4 is in the second row, third from the left."""
    drawn = np.asarray(mark_cells(Image.new("RGB", (320, 160), "white"), (6,), 4).convert("L"), dtype=int)
    assert drawn.shape == (160, 320)
    bright = drawn > 250
    rows, columns = np.nonzero(bright)
    assert (rows.min() // 40, rows.max() // 40, columns.min() // 80, columns.max() // 80) == (1, 1, 2, 2)
    assert bright.mean() > 0.9 * (1 / 16) * 0.8


def test_each_other_class_has_its_most_confident_image() -> None:
    """Against a slow search. Catches the class of the image itself on offer."""
    gallery = gallery_of("scenes", "adversarial")
    found = gallery.predictions
    offered = list_other_classes(gallery, int(found.predicted[0]))
    assert gallery.categories[int(found.predicted[0])] not in offered
    for name, i in offered.items():
        same = [j for j in range(len(found.predicted)) if gallery.categories[found.predicted[j]] == name]
        assert i in same
        assert found.probability[i] == max(found.probability[j] for j in same)


def test_a_link_shows_the_counterfactual_of_this_image(opened) -> None:
    """The printed sentence against a search made here. Catches another image, another class or another seed."""
    gallery, classifier = gallery_of("scenes", "adversarial"), cache.load_classifier("scenes")
    predicted = int(gallery.predictions.predicted[9])
    name, i = next(iter(list_other_classes(gallery, predicted).items()))
    inputs, other = (classifier.preprocess(gallery.images.open(k)) for k in (9, i))
    made_here, another = (find_counterfactual(classifier, inputs, other, seed=seed) for seed in (3, 4))
    by_task = make_counterfactual_task(classifier, inputs, other, 3).compute(silent)
    assert torch.equal(by_task.as_many, made_here.as_many)
    assert not torch.equal(by_task.as_many, another.as_many)
    app: AppTest = settled(opened(method="Gradient", image="adversarial/9", counterfactual=name, seed="3").run())
    said = describe_counterfactual(made_here, list(classifier.categories))
    assert said in [one.value for one in app.markdown]
