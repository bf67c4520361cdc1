"""Counterfactuals: the few places of an image that, exchanged with another image's, change the prediction.

After Goyal et al. 2019 (arXiv:1904.07451), who exchange features of any two places; here cells of a grid are exchanged
with those in the same place, in the image itself, so that what is shown is what the network saw.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from core.errors import ForetellError
from core.network.classifier import Classifier
from core.network.device import stream
from core.types import Progress, silent

GRID = 7
PLACES = 20


@dataclass(frozen=True)
class Counterfactual:
    """Cells that change a prediction.

    Attributes
    ----------
    grid
        Cells per side.
    cells
        Numbers of the exchanged cells, row by row from 0, in the order in which the search took them.
    old, new
        Classes predicted of the image and of the other image.
    before, after
        Probabilities (K,) of the image, and with the cells exchanged.
    composite
        The input (C, H, W) with the cells exchanged.
    as_many
        Probabilities (R, K) with as many cells exchanged at random.
    """

    grid: int
    cells: tuple[int, ...]
    old: int
    new: int
    before: Tensor
    after: Tensor
    composite: Tensor
    as_many: Tensor


def find_counterfactual(
    classifier: Classifier,
    inputs: Tensor,
    other: Tensor,
    *,
    grid: int = GRID,
    places: int = PLACES,
    seed: int = 0,
    progress: Progress = silent,
) -> Counterfactual:
    """Exchange cells of an input (C, H, W) with another's until the other's class is predicted.

    In each step the cell is exchanged that adds most to the log-odds of the other image's class against the image's;
    then each cell without which the prediction stays changed is given back. No cell of the result can be left out; a
    smaller set of other cells is possible, as the search is greedy. It always ends: with every cell exchanged the
    input is the other image.

    Raises
    ------
    ForetellError
        Both images have the same predicted class, other shapes, or a grid that is finer than the input.
    """
    if inputs.shape != other.shape:
        raise ForetellError(f"The images have different shapes: {tuple(inputs.shape)} and {tuple(other.shape)}.")
    if not 1 < grid <= min(inputs.shape[1:]):
        raise ForetellError(f"grid={grid}: give 2 or more cells per side, and at most one for each pixel.")
    before, of_other = classifier.probabilities(torch.stack([inputs, other]))
    old, new = int(before.argmax()), int(of_other.argmax())
    if old == new:
        raise ForetellError(
            f"Both images are predicted to be {classifier.categories[old]}: choose an image with another prediction."
        )
    numbers = number_cells(grid, *inputs.shape[1:])

    def predict(sets: Sequence[Sequence[int]]) -> Tensor:
        return classifier.logits(torch.stack([_exchange(inputs, other, numbers, cells) for cells in sets]))

    taken = _leave_out(_add(predict, grid**2, old, new, progress), predict, new)
    composite = _exchange(inputs, other, numbers, taken)
    generator = stream(seed, 2)
    drawn = [torch.randperm(grid**2, generator=generator)[: len(taken)].tolist() for _ in range(places)]
    as_many = predict(drawn).softmax(1) if places else before.new_zeros(0, len(before))
    return Counterfactual(grid, tuple(taken), old, new, before, predict([taken]).softmax(1)[0], composite, as_many)


def find_smallest(
    classifier: Classifier,
    inputs: Tensor,
    others: Tensor,
    *,
    grid: int = GRID,
    places: int = PLACES,
    seed: int = 0,
    progress: Progress = silent,
) -> tuple[int, Counterfactual]:
    """Find which of other images (N, C, H, W) changes the prediction of one (C, H, W) with the fewest cells.

    Of several with as few cells it is the one after which the new class has the highest probability. Images with the
    same predicted class are left out.

    Raises
    ------
    ForetellError
        No image has another predicted class; or as in `find_counterfactual`.
    """
    old = int(classifier.logits(inputs[None]).argmax())
    differs = [i for i, k in enumerate(classifier.logits(others).argmax(1).tolist()) if k != old]
    if not differs:
        raise ForetellError(
            f"All other images are predicted to be {classifier.categories[old]}, as is the image itself: give an "
            "image with another prediction."
        )
    best: tuple[int, Counterfactual] | None = None
    for done, i in enumerate(differs, 1):
        counterfactual = find_counterfactual(classifier, inputs, others[i], grid=grid, places=places, seed=seed)
        if best is None or _rank(counterfactual) < _rank(best[1]):
            best = i, counterfactual
        progress(done, len(differs), "searching counterfactuals")
    assert best is not None
    return best


def _rank(counterfactual: Counterfactual) -> tuple[int, float]:
    return len(counterfactual.cells), -float(counterfactual.after[counterfactual.new])


def _add(
    predict: Callable[[Sequence[Sequence[int]]], Tensor], count: int, old: int, new: int, progress: Progress
) -> list[int]:
    """Take cell after cell, each time the one that adds most, until `new` is predicted."""
    taken: list[int] = []
    while True:
        left = [cell for cell in range(count) if cell not in taken]
        logits = predict([[*taken, cell] for cell in left])
        best = int((logits[:, new] - logits[:, old]).argmax())
        taken.append(left[best])
        progress(len(taken), count, "cells exchanged")
        if int(logits[best].argmax()) == new or len(taken) == count:
            return taken


def _leave_out(taken: list[int], predict: Callable[[Sequence[Sequence[int]]], Tensor], new: int) -> list[int]:
    """Give back each cell without which the prediction stays changed, the one taken first tried first.

    Without one cell another may become dispensable, so it tries until all that are left are needed.
    """
    while len(taken) > 1:
        kept = taken
        for cell in taken:
            rest = [one for one in kept if one != cell]
            if rest and int(predict([rest])[0].argmax()) == new:
                kept = rest
        if kept == taken:
            break
        taken = kept
    return taken


def number_cells(grid: int, height: int, width: int) -> Tensor:
    """Return the number of each pixel's cell (H, W)."""
    rows, columns = (torch.arange(n) * grid // n for n in (height, width))
    return rows[:, None] * grid + columns


def _exchange(inputs: Tensor, other: Tensor, numbers: Tensor, cells: Sequence[int]) -> Tensor:
    inside = torch.isin(numbers, torch.tensor(list(cells), dtype=numbers.dtype))
    return torch.where(inside, other, inputs)
