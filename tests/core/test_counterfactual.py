"""Counterfactuals against a search of all sets of cells, and against networks whose decisive places are known."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn

from core.errors import ForetellError
from core.network.classifier import Classifier
from core.robustness.counterfactual import find_counterfactual, find_smallest
from data.scenes.interventions import other_contexts
from data.scenes.splits import picture
from study.network.sources import open_classifier

SIDE, GRID = 12, 3


def classifier_of(module: nn.Module) -> Classifier:
    def transforms(image: Image.Image) -> Tensor:
        return torch.from_numpy(np.array(image.resize((SIDE, SIDE)))).permute(2, 0, 1).float() / 255

    return Classifier(module, transforms, name="cells")


class Adds(nn.Module):
    """The second class's logit is the weighted sum of the cells' means, from -1; the first's is 0."""

    def __init__(self, weights: list[float], bias: float = -1.0) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.tensor(weights, dtype=torch.float32).reshape(1, GRID, GRID))
        self.bias = bias

    def forward(self, x: Tensor) -> Tensor:
        means = nn.functional.avg_pool2d(x.mean(1, keepdim=True), SIDE // GRID)[:, 0]
        said = (means * self.weights).sum((1, 2)) + self.bias
        return torch.stack([torch.zeros_like(said), said], 1)


class Multiplies(Adds):
    """The fourth cell adds most alone; the second and the sixth together add more than all others."""

    def forward(self, x: Tensor) -> Tensor:
        means = nn.functional.avg_pool2d(x.mean(1, keepdim=True), SIDE // GRID)[:, 0].flatten(1)
        said = 0.5 * means[:, 3] + 0.1 * (means[:, 1] + means[:, 5]) + 2 * means[:, 1] * means[:, 5] + self.bias
        return torch.stack([torch.zeros_like(said), said], 1)


def images() -> tuple[Tensor, Tensor]:
    return torch.zeros(3, SIDE, SIDE), torch.ones(3, SIDE, SIDE)


def smallest(classifier: Classifier) -> int:
    """The size of the smallest set of cells that changes the prediction, by trying them all."""
    inputs, other = images()
    for size in range(1, GRID**2 + 1):
        tried = []
        for cells in combinations(range(GRID**2), size):
            mixed = inputs.clone()
            for cell in cells:
                row, column = divmod(cell, GRID)
                place = slice(4 * row, 4 * row + 4), slice(4 * column, 4 * column + 4)
                mixed[:, place[0], place[1]] = other[:, place[0], place[1]]
            tried.append(mixed)
        if (classifier.logits(torch.stack(tried)).argmax(1) == 1).any():
            return size
    raise AssertionError


@pytest.mark.parametrize(
    "weights",
    [
        [0.1, 0.9, 0, 0, 0.4, 0, 0, -0.5, 0.3],
        [0.3] * 9,
        [2, 0, 0, 0, 0, 0, 0, 0, 0],
        [-0.1, -0.1, 0.6, -0.1, 0.5, 0.3, 0, 0, 0],
    ],
)
def test_where_cells_only_add_the_search_finds_the_smallest_set(weights: list[float]) -> None:
    """Against every set of cells; where the logit is a sum, greedy is exact. Catches a wrong cell or a wrong place."""
    classifier = classifier_of(Adds(weights))
    inputs, other = images()
    found = find_counterfactual(classifier, inputs, other, grid=GRID)
    assert len(found.cells) == smallest(classifier)
    taken = [weights[k] for k in found.cells]
    assert taken == sorted(weights, reverse=True)[: len(taken)]  # the strongest first
    assert (found.old, found.new, int(found.after.argmax())) == (0, 1, 1)
    said = -1 + sum(weights[k] for k in found.cells)
    assert float(found.after[1].logit()) == pytest.approx(said, abs=1e-4)


def test_no_cell_of_the_result_can_be_left_out() -> None:
    """Catches a search that keeps what it took on the way: it begins with a cell that the two that count replace."""
    classifier = classifier_of(Multiplies([0.0] * 9))
    found = find_counterfactual(classifier, *images(), grid=GRID)
    assert sorted(found.cells) == [1, 5]
    assert smallest(classifier) == 2


def test_as_many_random_cells_say_how_special_the_cells_are() -> None:
    """Catches a comparison with another number of cells: only sets with the one decisive cell change anything."""
    classifier = classifier_of(Adds([0, 0, 0, 0, 2, 0, 0, 0, 0]))
    found = find_counterfactual(classifier, *images(), grid=GRID, places=300)
    assert found.cells == (4,)
    changed = float((found.as_many.argmax(1) == 1).float().mean())
    assert abs(changed - 1 / 9) < 0.06  # 300 draws: a standard error of .018
    assert torch.equal(found.as_many, find_counterfactual(classifier, *images(), grid=GRID, places=300).as_many)


def test_what_cannot_be_exchanged_is_refused() -> None:
    classifier = classifier_of(Adds([1.0] * 9))
    inputs, other = images()
    with pytest.raises(ForetellError, match="choose an image with another prediction"):
        find_counterfactual(classifier, inputs, inputs, grid=GRID)
    with pytest.raises(ForetellError, match="different shapes"):
        find_counterfactual(classifier, inputs, other[:, 1:], grid=GRID)
    with pytest.raises(ForetellError, match="cells per side"):
        find_counterfactual(classifier, inputs, other, grid=1)


def test_between_two_contexts_only_the_context_is_exchanged() -> None:
    """The planted cause: two scenes that differ in nothing but the context. Catches cells of another place."""
    classifier = open_classifier("scenes", Path.cwd(), "cpu")
    scene = picture("adversarial", 0, 3)
    inputs = classifier.preprocess(scene.image)
    old = int(classifier.probabilities(inputs[None])[0].argmax())
    drawn = [classifier.preprocess(other.image) for other in other_contexts(scene)]
    other = next(x for x in drawn if int(classifier.probabilities(x[None])[0].argmax()) != old)
    found = find_counterfactual(classifier, inputs, other)
    assert int(found.after.argmax()) == found.new != old
    assert 0 < len(found.cells) < 49
    height, width = scene.mask.shape
    for row, column in (divmod(cell, 7) for cell in found.cells):
        rows, columns = (slice(-(-k * n // 7), -(-(k + 1) * n // 7)) for k, n in ((row, height), (column, width)))
        assert not scene.mask[rows, columns].all()
    changed = (found.composite != inputs).any(0)
    assert changed.any()
    assert not (changed & (inputs == other).all(0)).any()


def test_of_several_images_the_one_that_needs_the_fewest_cells_is_taken() -> None:
    """By hand: at .5 per cell and a bias of -1 a white image needs 3 cells, and a brighter one 2.

    Catches the first image taken, and an image with the same prediction that is searched.
    """
    classifier = classifier_of(Adds([0.5] * 9))
    inputs, white = images()
    index, found = find_smallest(classifier, inputs, torch.stack([inputs, white, 1.5 * white, white]), grid=GRID)
    assert (index, len(found.cells), found.new) == (2, 2, 1)
    assert len(found.as_many) > 0
    with pytest.raises(ForetellError, match="give an image with another prediction"):
        find_smallest(classifier, inputs, inputs[None], grid=GRID)


def test_of_as_many_cells_the_surer_change_is_taken() -> None:
    """By hand: two cells each, and a logit of -1 + 2 * .5 * 1.5 against -1 + 2 * .5 * 1.9."""
    classifier = classifier_of(Adds([0.5] * 9))
    inputs, white = images()
    assert find_smallest(classifier, inputs, torch.stack([1.5 * white, 1.9 * white]), grid=GRID)[0] == 1


class Listed(nn.Module):
    """The logits of each set of exchanged cells are listed; a set that is not has those of the first class."""

    def __init__(self, logits: dict[tuple[int, ...], list[float]]) -> None:
        super().__init__()
        self.listed = {frozenset(cells): said for cells, said in logits.items()}
        self.weight = nn.Parameter(torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        exchanged = nn.functional.avg_pool2d(x.mean(1, keepdim=True), SIDE // GRID)[:, 0].flatten(1) > 0.5
        sets = [frozenset(torch.nonzero(one)[:, 0].tolist()) for one in exchanged]
        every = frozenset(range(GRID**2))
        others = {every: [0.0, 1.0, 0.0]}
        return torch.tensor([(self.listed | others).get(one, [5.0, 0.0, 0.0]) for one in sets])


def test_a_cell_that_only_another_made_necessary_is_left_out_too() -> None:
    """By hand: without cell 1 the set {0, 2, 3} remains, and then cell 0 is not needed. Catches a single pass."""
    logits = {(0,): -1.0, (0, 1): -0.8, (0, 1, 2): -0.5, (0, 1, 2, 3): 1.0, (0, 2, 3): 1.0, (2, 3): 1.0}
    classifier = classifier_of(Listed({cells: [0.0, said, -9.0] for cells, said in logits.items()}))
    assert sorted(find_counterfactual(classifier, *images(), grid=GRID).cells) == [2, 3]
