"""Extremal perturbations: the smooth mask of a given area that maximises the output of the class.

Fong, Patrick & Vedaldi 2019 (arXiv:1910.08485).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from core.attribution.baselines import baselines
from core.attribution.cost import Cost
from core.attribution.method import Query, heatmap_method
from core.attribution.perturbation.learned_masks import FadedImage, Iterations, Reference, descend, full_size
from core.attribution.records import Family
from core.attribution.signs import Sign
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.network.masked import Output
from core.types import Explanation

KEPT = Sign("part of the area that alone keeps {}", None, "_enough")

GRID = 32
"""Cells a side, of 7 px at 224 px: a spot of one cell is then about 40 px wide."""

REACH = 5
"""Reach of a cell's spot, in cells: there it has come down to 2%."""

TEMPERATURE = 1 / 20
"""Temperature of the smooth maximum."""

FIRST, LAST = 1.0, 3000.0
"""The weight of the area, from the first step to the last: the class chooses the place before the area binds."""

RATE = 0.05
"""Step of Adam: half the way from 1/2 to an end takes five."""


def _fit_each_area(settings: Mapping[str, Any], _: Classifier) -> Cost:
    return Cost(gradients=settings["iterations"] * len(settings["areas"].split(",")))


@heatmap_method(family=Family.PERTURBATION, sign=KEPT, cost=_fit_each_area)
def extremal_perturbation(
    query: Query,
    *,
    areas: str = "0.1",
    iterations: Iterations = 300,
    grid: int = 0,
    reference: Reference = "blur",
    output: Output = "logit",
) -> Explanation:
    """Optimise the smooth mask of a given area for the largest output of the target; average over several areas.

    Fong, Patrick & Vedaldi 2019 (arXiv:1910.08485), eq. 4, the preservation game: the mask m maximises output(m) -
    weight x mean((sorted m - template)^2), the template being 0 but for the share ``areas`` of ones.
    Smooth by construction: m is the smooth maximum (eq. 6 and 7, temperature 1/20) of the spots of the cells, then
    enlarged bilinearly. Unlike the paper, the image fades into the ``reference`` and is not blurred by degrees, Adam
    descends, and the weight grows from 1 to 3,000. Costs ``iterations`` forward and backward passes an image and area.
    The certificate's parameters hold, for each area, the one ``reached`` (above 1/2) and the output ``kept``, and that
    of the ``whole`` image and of the ``empty`` reference.

    Parameters
    ----------
    areas
        Area of the mask as a share of the image; several, such as 0.05,0.1,0.2, are learned one by one and averaged.
    grid
        Cells per side of the mask before it is enlarged; 0 is 32, or one per px of a smaller image.
    """
    shares = _areas(areas)
    if iterations < 1:
        raise ForetellError(f"iterations={iterations}: extremal perturbations need at least 1 iteration.")
    classifier, inputs, classes = query.classifier, query.inputs, query.classes
    size = classifier.input_shape[1:]
    cells = grid or min(GRID, *size)
    if not 2 <= cells <= min(size):
        raise ForetellError(f"grid={grid} is out of range: give 2 to {min(size)} cells a side.")
    parameters = {
        "areas": shares,
        "iterations": iterations,
        "grid": cells,
        "reference": reference,
        "output": output,
    }
    maps, facts, done = [], [], 0
    total = len(inputs) * len(shares) * iterations

    def report(_: int) -> None:
        nonlocal done
        done += 1
        query.progress(done, total, "masks of an area")

    for x, origin, target in zip(inputs, baselines(classifier, inputs, reference, 0), classes.tolist(), strict=True):
        game = FadedImage(classifier, x, origin, target, output)
        masks = torch.stack([_mask(game, share, cells, iterations, report) for share in shares])
        maps.append(masks.mean(0))
        facts.append(_collect_facts(game, masks, parameters))
    return query.explain(torch.stack(maps), facts)


def _areas(areas: str) -> list[float]:
    try:
        shares = [float(part) for part in str(areas).split(",")]
    except ValueError:
        shares = []
    if not shares or not all(0 < share < 1 for share in shares):
        raise ForetellError(f"areas={areas!r}: give shares of the image between 0 and 1, such as '0.05,0.1,0.2'.")
    return shares


def _mask(game: FadedImage, share: float, grid: int, iterations: int, report: Callable[[int], None]) -> Tensor:
    """Return the mask (H, W) of one area."""
    spots = Spots(grid)

    def cost(values: Tensor, step: int) -> Tensor:
        return objective(game, spots, values, share, area_weight(step, iterations))

    values = descend(torch.full((grid, grid), 0.5), cost, iterations, RATE, report)
    return full_size(spots.join_spots(values), game.size)


def area_weight(step: int, iterations: int) -> float:
    """Return the weight of the area at a step: FIRST to LAST, by the same factor each time."""
    return float(FIRST * (LAST / FIRST) ** (step / max(1, iterations - 1)))


def objective(game: FadedImage, spots: Spots, values: Tensor, share: float, weight: float) -> Tensor:
    """Return a number with the gradient of eq. 4, as a cost, with respect to the cells' values (grid, grid)."""
    mask = spots.join_spots(values)
    return weight * off_area(mask, share) - game.pull(full_size(mask, game.size))


def off_area(mask: Tensor, share: float) -> Tensor:
    """Compute R_a of eq. 4 per cell, mean((sorted mask - template)^2): 0 for ones on this share, zeros elsewhere."""
    ones = max(1, round(share * mask.numel()))
    template = torch.zeros(mask.numel())
    template[-ones:] = 1
    return (mask.flatten().sort(stable=True).values - template).square().mean()


@dataclass(frozen=True)
class Spots:
    """Cells (grid, grid) each drawn as a smooth spot, the spots joined by a smooth maximum."""

    grid: int

    @cached_property
    def heights(self) -> Tensor:
        """The spot's height at each of the 11 x 11 cells around it, one after the other."""
        offset = torch.arange(-REACH, REACH + 1.0)
        distance = (offset[:, None].square() + offset.square()).sqrt()
        return torch.exp(-(distance - 1).clamp(min=0).square() / 4).flatten()

    @cached_property
    def outside(self) -> Tensor:
        """The places around each cell that lie outside the grid, (121, grid^2) bool."""
        return self._around(torch.ones(self.grid, self.grid)) == 0

    def join_spots(self, values: Tensor) -> Tensor:
        """Return smax_v k(u - v) values(v) at each cell u, (grid, grid)."""
        spots = self.heights[:, None] * self._around(values)
        weights = (spots / TEMPERATURE).masked_fill(self.outside, -torch.inf).softmax(0)
        return (weights * spots).sum(0).view(self.grid, self.grid)

    def _around(self, values: Tensor) -> Tensor:
        return F.unfold(values[None, None], 2 * REACH + 1, padding=REACH)[0]


def _collect_facts(game: FadedImage, masks: Tensor, parameters: dict[str, Any]) -> dict[str, Any]:
    (empty, whole), kept = game.ends, game.scores(masks).tolist()
    reached = (masks > 0.5).float().mean((1, 2)).tolist()
    facts = {"reached": reached, "kept": kept, "whole": whole, "empty": empty}
    warnings = [
        f"Through the mask of area {share:g} the class's {game.output} is {score:.3g}, of the whole image it is "
        f"{whole:.3g}, of the reference {empty:.3g}: the mask does not show what the class needs. Try "
        f"{'a larger area' if whole > empty else 'another reference'}."
        for share, score in zip(parameters["areas"], kept, strict=True)
        if not score - empty > (whole - empty) / 2 > 0
    ] + [
        f"The mask of area {share:g} has an area of {area:.2g}. Try more iterations."
        for share, area in zip(parameters["areas"], reached, strict=True)
        if abs(area - share) > share / 4
    ]
    return {"parameters": parameters | facts, "warnings": tuple(warnings)}
