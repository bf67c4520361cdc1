"""What has to hold of a heatmap whose evidence was planted, by kind of method, and what follows for a cell.

Which checks apply to a method is stated here, before any heatmap is made. Limits are round numbers: they are chosen by
what a wrong heatmap would give, not by what the engine gives.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from torch import Tensor

from benchmarks.definitions import shrink
from benchmarks.planted import mark_quarter
from core.errors import ForetellError
from core.types import Explanation

Plant = Literal["image", "layer", "tokens", "none"]
EXACT, MOST = 0.999, 0.5
"""Least share of a heatmap in the quarter that alone counts: of methods without noise, and of others (chance: 0.25)."""
SAME = 1e-3
"""Largest difference from a definition, of the definition's largest value."""
INCOMPLETE = 0.05
"""Largest residual of a sum, of what it explains: above it the engine owes a warning too."""
LARGEST = 100.0
"""Largest sum of a heatmap's absolute values, of what it explains: parts that cancel may be larger, not by orders."""
LEAK = 1e-4
"""Largest value in a quarter that cannot count, of the largest value anywhere."""
SHIFT = 1e-3
"""Largest difference of a heatmap from the one of the shifted image, of its range."""


@dataclass(frozen=True)
class Plan:
    """How one method is run and checked.

    Attributes
    ----------
    plant
        The network: one that sees a quarter of the image, one that is blind to a quarter of a layer, one whose tokens
        have no positions, or one as it is.
    settings
        What differs from the method's defaults.
    place
        Least share of the heatmap in the seen quarter, or None.
    baseline
        The heatmap must sum to what the logit changes by from this one; empty where the method claims no sum.
    defined
        Whether the heatmap must be that of `benchmarks.definitions`.
    """

    plant: Plant
    settings: Mapping[str, Any] = field(default_factory=dict)
    place: float | None = None
    baseline: str = ""
    defined: bool = False


CELLS = {"grid": 4}
"""Cells a side: the seen quarter is four whole cells."""
PLANS: dict[str, Plan] = {
    "gradient": Plan("image", place=EXACT, defined=True),
    "input_x_gradient": Plan("image", place=EXACT, defined=True),
    "integrated_gradients": Plan("image", place=EXACT, baseline="black"),
    "expected_gradients": Plan("image", {"samples": 20}, place=EXACT),
    "smoothgrad": Plan("image", {"samples": 10}, place=EXACT),
    "vargrad": Plan("image", {"samples": 10}, place=EXACT),
    "deconvnet": Plan("image", place=EXACT),
    "guided_backpropagation": Plan("image", place=EXACT),
    "lrp_0": Plan("image", place=EXACT, defined=True),
    "lrp_epsilon": Plan("image", place=EXACT),
    "lrp_gamma": Plan("image", place=EXACT),
    "lrp_alpha_beta": Plan("image", place=EXACT),
    "lrp_z_plus": Plan("image", place=EXACT),
    "lrp_composite": Plan("image", place=EXACT),
    "attn_lrp": Plan("image", place=EXACT),
    "taylor_decomposition": Plan("image", place=EXACT),
    "deeplift": Plan("image", place=EXACT, baseline="black"),
    "deep_shap": Plan("image", {"samples": 4}, place=EXACT),
    "excitation_backpropagation": Plan("layer"),
    "contrastive_excitation": Plan("layer"),
    "cam": Plan("none", defined=True),
    "grad_cam": Plan("layer", defined=True),
    "grad_cam_plus_plus": Plan("layer", defined=True),
    "guided_grad_cam": Plan("image", place=EXACT),
    "layer_cam": Plan("layer", defined=True),
    "score_cam": Plan("layer", defined=True),
    "attention_rollout": Plan("tokens"),
    "transformer_attribution": Plan("tokens"),
    "bayesian_teaching": Plan("image", place=MOST),
    "occlusion": Plan("image", place=EXACT),
    "erasure": Plan("layer", defined=True),
    "extremal_perturbation": Plan("image", place=MOST),
    "meaningful_perturbation": Plan("image", place=MOST),
    "prediction_difference": Plan("image", {"samples": 3}, place=EXACT),
    "rise": Plan("image", place=MOST),
    "sobol": Plan("image", {"designs": 8} | CELLS, place=EXACT),
    "hsic": Plan("image", {"samples": 256} | CELLS, place=MOST),
    "shapley_exact": Plan("image", {"grid": 2}, place=EXACT, baseline="mean"),
    "shapley_sampling": Plan("image", {"pairs": 8} | CELLS, place=EXACT, baseline="mean"),
    "kernel_shap": Plan("image", {"samples": 512} | CELLS, place=MOST, baseline="mean"),
    "lime": Plan("image", {"samples": 512} | CELLS, place=MOST),
    "anchors": Plan("image", {"samples": 2000} | CELLS, place=MOST),
}
ALIGNED = ("occlusion", "prediction_difference")
"""Methods whose windows are an eighth of the image, one next to the other, so that none is seen in part."""
BLIND_TO_QUARTER = ("excitation_backpropagation", "contrastive_excitation", "layer_cam", "erasure")
"""Methods of a layer by which a place that nothing behind the layer reads has the value 0."""


@dataclass(frozen=True)
class Finding:
    """Whether one check holds, and the number it looked at."""

    check: str
    holds: bool
    value: float


def check_place(evidence: Tensor, least: float, error: Tensor | None = None) -> Finding:
    """Check that at least a share of a heatmap (H, W), of squares less the variance of their noise, is in the quarter.

    The squares of an estimate are too large by its variance, ``error`` squared, on average. Absolute values would not
    do: noise adds up over the three quarters that do not count.
    """
    size = evidence.double().square() - (0 if error is None else error.double().square())
    total = float(size.sum())
    share = float(size[mark_quarter(len(size))].sum()) / total if total > 0 else math.nan
    return Finding("place", share >= least, share)


def check_blind(evidence: Tensor, side: int) -> Finding:
    """Check that the ``side`` x ``side`` places of a heatmap (H, W) are 0 in the upper right quarter, and not all."""
    coarse = shrink(evidence, side).abs()
    largest = float(coarse.max())
    leak = float(coarse[mark_quarter(side)].max()) / largest if largest else math.nan
    return Finding("blind place", leak <= LEAK, leak)


def check_definition(evidence: Tensor, expected: Tensor) -> Finding:
    """Check that a heatmap is the one its definition gives, and not empty."""
    largest = float(expected.abs().max())
    off = float((evidence.double() - expected).abs().max()) / largest if largest else math.nan
    return Finding("definition", off <= SAME, off)


def check_sum(evidence: Tensor, change: float) -> Finding:
    """Check that a heatmap sums to the change of the logit that it explains."""
    off = abs(float(evidence.double().sum()) - change) / abs(change) if change else math.nan
    return Finding("sum", off <= INCOMPLETE, off)


def check_size(evidence: Tensor, change: float) -> Finding:
    """Check that a heatmap's absolute values sum to no more than `LARGEST` times the change that it explains."""
    times = float(evidence.double().abs().sum()) / abs(change) if change else math.nan
    return Finding("size", times <= LARGEST, times)


def check_shift(evidence: Tensor, shifted: Tensor, side: int, places: int) -> Finding:
    """Check that the heatmap of an image rolled down by whole patches is the image's heatmap, rolled down."""
    one, other = shrink(evidence, side), shrink(shifted, side)
    extent = float(one.max() - one.min())
    off = float((one.roll(places, 0) - other).abs().max()) / extent if extent else math.nan
    return Finding("shift", off <= SHIFT, off)


def judge(explain: Callable[[], tuple[Explanation, list[Finding]]]) -> dict[str, Any]:
    """Return the row of a cell: ``right``, ``refused``, ``warned`` or ``wrong``.

    A heatmap that fails a check is ``warned`` where its certificate has a warning, else ``wrong``; so is an exception
    that is no `ForetellError`.
    """
    try:
        explanation, findings = explain()
    except ForetellError as error:
        return {"status": "refused", "sentence": str(error)}
    except Exception as error:  # a crash is a result too
        return {"status": "wrong", "sentence": f"stops: {type(error).__name__}: {str(error).splitlines()[0][:160]}"}
    warnings = list(explanation.certificates[0].warnings)
    right = all(one.holds for one in findings) and bool(findings)
    status = "right" if right else "warned" if warnings else "wrong"
    values = {one.check: None if math.isnan(one.value) else float(f"{one.value:.3g}") for one in findings}
    failed = [one.check for one in findings if not one.holds]
    return {"status": status, "checks": values, "failed": failed, "warnings": warnings}
