"""Paths from a baseline to an image, and the gradient integrated along them. `PATHS` names every path.

Friedman 2004 (doi:10.1007/s001820400173); Sundararajan, Taly & Yan 2017 (arXiv:1703.01365), section 3: whatever the
way, the heatmap sums to f(x) - f(baseline).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from core.attribution.baselines import BLUR, blur_inputs
from core.attribution.common import output_gradient
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.network.device import chunk_size, in_common_passes, send

Quadrature = Literal["midpoint", "gauss_legendre"]
PathName = Literal["straight", "blur"]
Path = Callable[[Tensor, Tensor, Tensor], Tensor]
"""``path(start, end, positions)``: the points (n, C, H, W) of a way from ``start`` to ``end`` (C, H, W) at
``positions`` (n,) in [0, 1], which are on the CPU; continuous, and at its ends where it says."""


def straight(start: Tensor, end: Tensor, positions: Tensor) -> Tensor:
    """Change all pixels together: the only path that treats equal pixels alike (Sundararajan et al. 2017, th. 1)."""
    return start + send(positions.to(start.dtype), start.device)[:, None, None, None] * (end - start)


def into_focus(start: Tensor, end: Tensor, positions: Tensor) -> Tensor:  # noqa: ARG001 - the start follows from the end
    """Go from the blurred image to the image, so that no new colour or edge appears on the path.

    Xu, Venugopalan & Sundararajan 2020 (arXiv:2004.03383), section 3; the blur's standard deviation falls evenly from
    that of the baseline ``"blur"``.
    """
    deviations = (1 - positions) * BLUR * max(end.shape[1:])
    return torch.cat(
        [blur_inputs(end[None], deviation) if deviation else end[None] for deviation in deviations.tolist()]
    )


PATHS: Mapping[str, Path] = {"straight": straight, "blur": into_focus}


def select_path(name: str, baseline: str) -> Path:
    """Return the path of that name, or raise an error if it does not begin at ``baseline``."""
    if name == "blur" and baseline != "blur":
        raise ForetellError(
            f'path="blur" begins at the blurred image, not at the baseline {baseline!r}: give baseline="blur" too.'
        )
    return PATHS[name]


def along(
    classifier: Classifier,
    path: Path,
    starts: Tensor,
    ends: Tensor,
    targets: Tensor,
    quadrature: str,
    steps: int,
    report: Callable[[int], None] = lambda _: None,
) -> Tensor:
    """Sum over the ``steps`` of a quadrature rule of gradient times movement, summed over the channels.

    Each step goes as far along the path as its point has weight, so that the movements add up to ``end - start`` and a
    linear network is explained exactly, whatever the path and the rule.

    Parameters
    ----------
    starts, ends
        (B, C, H, W) each; on an accelerator the points of all images share passes.
    report
        Called after each pass with its number of points.

    Returns
    -------
    (B, H, W) float32 on the CPU.
    """
    device = classifier.device
    # In float32 a bound's rounding is added to one step and taken from the next: it moves the sum no more than a digit.
    precision = torch.float64 if device.type == "cpu" else torch.float32
    starts, ends = (send(values.to(precision), device) for values in (starts, ends))
    points, bounds = _rule(quadrature, steps)
    total = torch.zeros_like(starts, dtype=torch.float64, memory_format=torch.contiguous_format)

    def locate(positions: Tensor, those: slice) -> Tensor:
        ways = [path(*pair, positions) for pair in zip(starts[those], ends[those], strict=True)]
        return ways[0][:, None] if len(ways) == 1 else torch.stack(ways, 1)

    def add(rows: slice, those: slice) -> None:
        movements = locate(bounds[rows.start : rows.stop + 1], those).diff(dim=0)
        seen = locate(points[rows], those).float()
        gradients = output_gradient(classifier, seen.flatten(0, 1), targets[those].repeat(len(seen)))
        total[those] += (gradients.view_as(seen) * movements).sum(0)
        report(seen.shape[:2].numel())

    in_common_passes(add, steps, len(starts), chunk_size(ends[0].float(), device), device)
    return total.sum(1).float().cpu()


def _rule(quadrature: str, steps: int) -> tuple[Tensor, Tensor]:
    """Return points (steps,) in [0, 1] and bounds (steps + 1,) of the steps they represent, from 0 to 1; float64."""
    if quadrature == "midpoint":
        bounds = torch.arange(steps + 1, dtype=torch.float64) / steps
        return (bounds[1:] + bounds[:-1]) / 2, bounds
    nodes, weights = (torch.from_numpy(array) for array in np.polynomial.legendre.leggauss(steps))
    bounds = torch.cat([torch.zeros(1), (weights / 2).cumsum(0)])
    bounds[-1] = 1  # exactly, whatever the rounding of the sum
    return (nodes + 1) / 2, bounds
