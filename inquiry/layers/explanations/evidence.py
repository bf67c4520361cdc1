"""The question `evidence` of `inquiry.layers`: do the pixels that heatmaps favour carry the prediction?"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import torch
from scipy.stats import t as student
from torch import Tensor

from core.attribution import METHODS
from core.attribution.records import cost_of
from core.errors import ForetellError
from core.faithfulness.curves import Substrate
from core.faithfulness.erasure import log_odds_erasure
from core.names import format_name
from core.network.device import stream
from core.types import Progress
from inquiry.files.chosen_methods import open_methods
from inquiry.layers.costs import PlannedQuestion, Work
from inquiry.layers.inspection import LayerInspection
from inquiry.layers.record import TableWords, Topic, layer_question
from study import plots

BLOCK = 8
"""Images whose results are saved at a time."""
LEAST = 3
"""Images from which a mean has an interval."""


def plot_evidence(table: pd.DataFrame) -> go.Figure:
    """Draw the fall of the log-odds by method, and of as many random pixels."""
    own = table[["method", "change", "change_low", "change_high"]].assign(pixels="by heatmap")
    own.columns = ["method", "change", "low", "high", "pixels"]
    chance = table["random"]
    random = pd.DataFrame({"method": table["method"], "change": chance, "low": chance, "high": chance})
    both = pd.concat([own, random.assign(pixels="random pixels")])
    both["method"] = ["<br>".join(textwrap.wrap(format_name(name), 14)) for name in both["method"]]
    return plots.intervals(both, x="method", y="change", by="pixels", title="Log-odds lost")


def explain_by_each_method(planned: PlannedQuestion, given: Mapping[str, Any]) -> Work | None:
    """Compute two heatmaps of each image by each method; unknown where the cost of one method is."""
    each = [cost_of(name.strip(), {}, planned.classifier) for name in given["methods"].split(",")]
    known = [one for one in each if one is not None]
    twice = 2 * planned.image_count
    every = Work(twice * sum(one.forwards for one in known), twice * sum(one.gradients for one in known))
    return every if len(known) == len(each) else None


@layer_question(
    topic=Topic.EXPLANATIONS,
    asks="heatmaps tested by erasure",
    reading=(
        "Fall of the log-odds of the prediction without the pixels that a heatmap favours, with 95% "
        "intervals, next to that without as many random pixels."
    ),
    publications={"Shrikumar et al. 2017": "https://arxiv.org/abs/1704.02685"},
    lists={"methods": tuple(METHODS)},
    table=TableWords(
        headings={"change": "Log-odds lost", "random": "By random pixels"},
        shares="pixels",
        codes={"method": format_name},
    ),
    figure=plot_evidence,
    cost=explain_by_each_method,
)
def evidence(
    inspected: LayerInspection,
    progress: Progress,
    *,
    methods: str = "input_x_gradient,integrated_gradients,deeplift,guided_backpropagation",
    share: float = 0.2,
    substrate: Substrate = "mean",
) -> pd.DataFrame:
    """Measure how far the log-odds of the prediction against the second class fall without the pixels that favour it.

    Shrikumar et al. 2017 (arXiv:1704.02685), section 4.1: by each heatmap method, the pixels in which the prediction's
    heatmap exceeds that of the second likeliest class most are replaced by the ``substrate``. ``change`` is the mean
    fall over images with its 95% interval; ``random`` that of as many random pixels of each image; ``above_random``
    their paired difference, with its interval; ``pixels`` the share replaced.

    Parameters
    ----------
    methods
        Heatmap methods to compare, separated by commas in a command.
    share
        Largest share of the pixels that is replaced.
    """
    named = [name.strip() for name in methods.split(",")]
    opened = open_methods(named, Path.cwd())
    inputs, network = inspected.inputs, inspected.classifier
    if len(inputs) < LEAST:
        raise ForetellError(f"{len(inputs)} images: an interval needs {LEAST} or more.")
    order = network.logits(inputs).argsort(1, descending=True)[:, :2]
    rows = []
    for name, method in opened.items():

        def erase_evidence(block: range, method=method) -> dict[str, np.ndarray]:  # type: ignore[no-untyped-def]
            chosen = list(block)
            x, (own, other) = inputs[chosen], order[chosen].T.tolist()
            maps = [method(network, x, k, generator=inspected.generator()).map for k in (own, other)]
            erasure = log_odds_erasure(network, x, own, other, maps[0], maps[1], share=share, substrate=substrate)
            random = _draw_pixels(erasure.erased, maps[0].shape, inspected.request.seed, block)
            control = log_odds_erasure(
                network, x, own, other, random, torch.zeros_like(random), share=share, substrate=substrate
            )
            columns = {
                "before": erasure.before,
                "change": erasure.change,
                "random": control.change,
                "erased": erasure.erased,
            }
            return {key: value.numpy() for key, value in columns.items()}

        what = f"erasing evidence by {name}"
        erasure = inspected.compute_blocks(erase_evidence, len(inputs), BLOCK, progress, what, name)
        size = inputs[0, 0].numel()
        more = erasure["change"] - erasure["random"]
        own = [erasure["before"].mean(), *_mean(erasure["change"]), erasure["random"].mean(), *_mean(more)]
        rows.append([name, *own, erasure["erased"].mean() / size, len(inputs)])
    limits = ["change", "change_low", "change_high", "random", "above_random", "above_low", "above_high"]
    return pd.DataFrame(rows, columns=["method", "log_odds", *limits, "pixels", "images"])


def _draw_pixels(counts: Tensor, shape: torch.Size, seed: int, block: range) -> Tensor:
    """Draw heatmaps (B, H, W) that are above 0 at ``counts`` random pixels of each image, and 0 elsewhere."""
    drawn = torch.zeros(shape)
    for row, (count, image) in enumerate(zip(counts.tolist(), block, strict=True)):
        drawn[row].view(-1)[torch.randperm(drawn[row].numel(), generator=stream(seed, image))[:count]] = 1.0
    return drawn


def _mean(values: np.ndarray) -> tuple[float, float, float]:
    """Compute the mean and its 95% interval (Student)."""
    mean, half = values.mean(), student.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return float(mean), float(mean - half), float(mean + half)
