"""Questions of `study.inquiry.layers` that erase: channels of a layer, and the pixels that favour a class."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
import torch
from scipy.stats import t as student
from torch import Tensor

from core.attribution.maps.erasure import Units, relative_surprise, surprise
from core.attribution.places.place import select_layer
from core.errors import ForetellError
from core.faithfulness.curves import Substrate
from core.faithfulness.erasure import log_odds_erasure
from core.network.device import stream
from core.types import Progress, silent
from study.inquiry.chosen_methods import open_methods
from study.inquiry.layers import LayerInspection
from study.workspace.blocks import Blocks

BLOCK = 8
"""Images whose results are saved at a time."""
LEAST = 3
"""Images from which a mean has an interval."""
SMALLEST = torch.finfo(torch.float32).tiny
"""A -log p below this rounds to 0."""


def importance(
    inspected: LayerInspection, progress: Progress, *, of: Literal["prediction", "label"] = "prediction"
) -> pd.DataFrame:
    """Measure how much each channel of a layer matters: the relative rise of -log p without it.

    -log p is the negative log-likelihood of the class: the ``prediction``, or the image's ``label``. Li et al. 2016
    (arXiv:1612.08220), eq. 1, its sign turned so that above 0 the channel supports the class. ``importance`` is the
    mean over images, with its standard error; ``median`` is less moved by images of which the network is almost
    certain. Images whose -log p rounds to 0 are left out; ``images`` counts the rest. The layer ``input`` has the
    channels of the network's input.

    Parameters
    ----------
    of
        Class whose negative log-likelihood (-log p) is measured: the prediction, or the image's label.
    """
    inputs, classes = _choose_images(inspected, of)
    sure = surprise(inspected.classifier.logits(inputs), classes) < SMALLEST
    inputs, classes = inputs[~sure], classes[~sure]
    if not len(inputs):
        raise ForetellError(
            f"{inspected.classifier.name} is so certain of all these images that their -log p rounds to 0, to which "
            "nothing is relative: use the question deletion."
        )
    tables = []
    for layer in inspected.request.layers or [select_layer(inspected.classifier, "")]:
        units = Units.of(inspected.classifier, layer, "channel")

        def erase_channels(block: range, units: Units = units) -> dict[str, np.ndarray]:
            rows = list(block)
            rises, _ = relative_surprise(inspected.classifier, inputs[rows], classes[rows], units, silent)
            return {"rises": rises.numpy()}

        kept = Blocks(inspected.parts, f"{inspected.key}.{layer}", len(inputs), BLOCK)
        rises = kept.join(erase_channels, progress, f"erasing channels of {layer}")["rises"]
        columns = {"layer": layer, "channel": range(units.count), "importance": rises.mean(0)}
        columns |= {"error": _errors(rises), "median": np.median(rises, 0), "images": len(rises)}
        tables.append(pd.DataFrame(columns))
        kept.forget()
    return pd.concat(tables, ignore_index=True)


def _choose_images(inspected: LayerInspection, of: str) -> tuple[Tensor, Tensor]:
    """Return inputs and the class of each: its prediction, or its label where that is a class of the network."""
    if of == "prediction":
        return inspected.inputs, inspected.classifier.logits(inspected.inputs).argmax(1)
    classes = torch.from_numpy(inspected.classes)
    return inspected.inputs[classes >= 0], classes[classes >= 0]


def _errors(values: np.ndarray) -> np.ndarray:
    """Compute the standard error of the mean of each column; NaN of one row."""
    spread = values.std(0, ddof=1) if len(values) > 1 else np.full(values.shape[1], np.nan)
    return np.asarray(spread / np.sqrt(len(values)))


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

        kept = Blocks(inspected.parts, f"{inspected.key}.{name}", len(inputs), BLOCK)
        erasure = kept.join(erase_evidence, progress, f"erasing evidence by {name}")
        size = inputs[0, 0].numel()
        more = erasure["change"] - erasure["random"]
        own = [erasure["before"].mean(), *_mean(erasure["change"]), erasure["random"].mean(), *_mean(more)]
        rows.append([name, *own, erasure["erased"].mean() / size, len(inputs)])
        kept.forget()
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
