"""Meaningful perturbation: learn the smallest smooth part of the image whose deletion removes the class.

Fong & Vedaldi 2017 (arXiv:1704.03296).
"""

from __future__ import annotations

from collections.abc import Mapping
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
from core.network.device import stream
from core.network.masked import Output
from core.types import Explanation

NEEDED = Sign("part of what has to go to lose {}", None, "_needed")

GRID = 28
"""Cells a side of the paper's mask, of 8 px each."""

BETA = 3
"""The power of the total variation: steep edges cost more than wide ones."""

RATE = 0.1
"""Adam's step, as in the paper."""

DISCS = 15
"""Sizes tried for the disc that the search starts from."""
SUPPRESSED = 0.99
"""The first mask is the smallest disc that removes this share of what the reference removes."""


def _fit_mask(settings: Mapping[str, Any], _: Classifier) -> Cost:
    return Cost(forwards=DISCS, gradients=settings["iterations"])


@heatmap_method(family=Family.PERTURBATION, sign=NEEDED, cost=_fit_mask)
def meaningful_perturbation(
    query: Query,
    *,
    iterations: Iterations = 300,
    grid: int = 0,
    sparsity: float = 0.08,
    smoothness: float = 0.28,
    jitter: float = 0.02,
    reference: Reference = "blur",
    output: Output = "probability",
) -> Explanation:
    """Find the smallest smooth deletion that removes the class: the deleted share of each pixel, from 0 to 1.

    Fong & Vedaldi 2017 (arXiv:1704.03296), eq. 5, the deletion game: a coarse mask, enlarged bilinearly, fades the
    image into the ``reference`` and minimises output + ``sparsity`` x deleted share + ``smoothness`` x total variation
    / grid. The weights are the paper's 1e-4 and 1e-2 per cell of its 28 x 28. Each step shifts the mask at random; the
    first mask is a disc in the middle, as small as it deletes the class. Costs ``iterations`` forward and backward
    passes an image. The certificate's parameters hold the output before (``whole``) and after (``deleted``), that of
    the ``empty`` reference, and the deleted ``share``.

    Parameters
    ----------
    grid
        Cells per side of the mask before it is enlarged; 0 is 28, or one per px of a smaller image.
    sparsity
        Weight of the deleted share of the image: the higher, the less is deleted.
    smoothness
        Weight of the mask's total variation: the higher, the smoother its edges.
    jitter
        Largest random shift of the mask in each step, as a share of the image's shorter side.
    """
    if iterations < 1 or sparsity < 0 or smoothness < 0 or not 0 <= jitter < 0.5:
        raise ForetellError(
            f"iterations={iterations}, sparsity={sparsity}, smoothness={smoothness}, jitter={jitter}: give at least 1 "
            "iteration, weights of 0 or more and a jitter from 0 to below 0.5."
        )
    classifier, inputs, classes, seed = query.classifier, query.inputs, query.classes, query.seed
    size = classifier.input_shape[1:]
    cells = grid or min(GRID, *size)
    if not 2 <= cells <= min(size):
        raise ForetellError(f"grid={grid} is out of range: give 2 to {min(size)} cells a side.")
    reach = round(jitter * min(size))
    references = baselines(classifier, inputs, reference, seed)
    maps, facts = [], []
    parameters = {
        "iterations": iterations,
        "grid": cells,
        "sparsity": sparsity,
        "smoothness": smoothness,
        "jitter": jitter,
        "reference": reference,
        "output": output,
    }
    for k, (x, origin) in enumerate(zip(inputs, references, strict=True)):
        game = FadedImage(classifier, x, origin, int(classes[k]), output)

        def cost(mask: Tensor, i: int, game: FadedImage = game) -> Tensor:
            return game.pull(shift_mask(full_size(mask, size), *_shift(reach, seed, i))) + regular(
                mask, sparsity, smoothness
            )

        def report(done: int, k: int = k) -> None:
            query.progress(k * iterations + done, len(inputs) * iterations, "deletions")

        mask = full_size(descend(first_disc(game, cells), cost, iterations, RATE, report), size)
        maps.append(1 - mask)
        facts.append({"seed": seed} | _collect_facts(game, mask, parameters))
    return query.explain(torch.stack(maps), facts)


def regular(mask: Tensor, sparsity: float, smoothness: float) -> Tensor:
    """Compute a mask's own cost: its deleted share and its total variation, sum |difference|^3, over n; (n, n)."""
    steps = torch.cat([mask.diff(dim=0).flatten(), mask.diff(dim=1).flatten()])
    return sparsity * (1 - mask).mean() + smoothness * steps.abs().pow(BETA).sum() / len(mask)


def _shift(reach: int, seed: int, step: int) -> tuple[int, int]:
    down, right = torch.randint(-reach, reach + 1, (2,), generator=stream(seed, step)).tolist()
    return down, right


def shift_mask(mask: Tensor, down: int, right: int) -> Tensor:
    """Return the mask (H, W) moved by some px; its edge follows."""
    reach = max(abs(down), abs(right))
    padded = F.pad(mask[None, None], (reach,) * 4, mode="replicate")[0, 0]
    height, width = mask.shape
    return padded[reach - down : reach - down + height, reach - right : reach - right + width]


def first_disc(game: FadedImage, grid: int) -> Tensor:
    """Find the smallest central disc, (grid, grid) of 0 within and 1 around, that deletes 99% of what can be."""
    centre = (torch.arange(grid) + 0.5) / grid - 0.5
    distance = (centre[:, None].square() + centre.square()).sqrt()
    discs = (distance > torch.linspace(0.05, 0.75, DISCS)[:, None, None]).float()
    empty, whole = game.ends
    left = game.scores(full_size(discs, game.size)) - empty
    enough = (left <= (1 - SUPPRESSED) * (whole - empty)).nonzero()
    return discs[int(enough[0])] if len(enough) else discs[-1]


def _collect_facts(game: FadedImage, mask: Tensor, parameters: dict[str, Any]) -> dict[str, Any]:
    empty, whole = game.ends
    deleted = float(game.scores(mask[None])[0])
    warnings: tuple[str, ...] = ()
    if not whole - deleted > (whole - empty) / 2 > 0:
        warnings = (
            f"The deletion takes the class's {game.output} from {whole:.3g} to {deleted:.3g}, the reference alone to "
            f"{empty:.3g}: the heatmap shows no part that the class needs. Try another reference or less sparsity.",
        )
    facts = {"whole": whole, "deleted": deleted, "empty": empty, "share": float((1 - mask).mean())}
    return {"parameters": parameters | facts, "warnings": warnings}
