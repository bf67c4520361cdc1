"""Activation maximisation: images that drive a unit as high as they can, from several starts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from core.errors import ForetellError
from core.network.classifier import Classifier
from core.network.device import draw_seed, stream
from core.types import Progress, silent
from core.units import PARAMETERISATIONS
from core.units.display import convert_to_colours
from core.units.maco import measure_spectrum
from core.units.parameterisations import Canvas
from core.units.unit import Unit, find_layer_shape, response

Parameterisation = Literal["fourier", "maco", "pixels"]


@dataclass(frozen=True)
class MaximisedImages:
    """Images made for a unit, one from each of S starts.

    Attributes
    ----------
    unit, parameterisation, seed
        What they were made for, how, and from which draws.
    images
        (S, C, H, W) float32 in the network's input space.
    shown
        (S, H, W, 3) uint8, the same as colours; what ``"pixels"`` or ``"maco"`` drew beyond black or white is cut off.
    activations
        (S,) float32: the unit's activation for each image as it is.
    trace
        (S, steps) float32: its activation before each step for what it was shown, which ``"fourier"`` moves a little;
        the mean over the crops of ``"maco"``.
    importance
        (S, H, W) float32, of ``"maco"``: the absolute gradient of each pixel, summed over the steps; else None.
    magnitude
        (C, H, W // 2 + 1) float32, of ``"maco"``: of each wave, see `core.units.maco.measure_spectrum`; else None.
    warnings
        Sentences a user must read before believing the images.
    """

    unit: Unit
    parameterisation: str
    seed: int
    images: Tensor
    shown: Tensor
    activations: Tensor
    trace: Tensor
    importance: Tensor | None
    magnitude: Tensor | None
    warnings: tuple[str, ...]


def maximise(
    classifier: Classifier,
    unit: Unit,
    *,
    images: Iterable[Tensor] = (),
    generator: torch.Generator | None = None,
    progress: Progress = silent,
    parameterisation: Parameterisation = "fourier",
    starts: int = 4,
    steps: int = 256,
    rate: float | None = None,
) -> MaximisedImages:
    """Make images that drive ``unit`` up, by ``steps`` steps of gradient ascent from each of ``starts`` random ones.

    ``"pixels"`` after Erhan et al. 2009, ``"fourier"`` after Olah et al. 2017 (doi:10.23915/distill.00007), see
    `core.units.parameterisations`; ``"maco"`` after Fel et al. 2023 (arXiv:2306.06805), which needs blocks of
    ``images`` (n, C, H, W), see `core.units.maco`. ``rate`` None is the usual one of each.

    Several starts, because each ends at a local maximum: what they share is the unit's, what they do not is the
    start's. Each has a random stream of its own: more starts leave the first as they are.

    Raises
    ------
    ForetellError
        No such unit; starts, steps or rate out of range; inputs that cannot be shown as images; no image for
        ``"maco"``.
    """
    if starts < 1 or steps < 1:
        raise ForetellError(f"starts={starts}, steps={steps}: an image needs at least 1 of each.")
    if rate is not None and not 0 < rate < float("inf"):
        raise ForetellError(f"rate={rate}: give a step above 0, such as 0.05.")
    find_layer_shape(classifier, unit)
    seed = draw_seed(generator or torch.Generator().manual_seed(0))
    make = PARAMETERISATIONS[parameterisation]
    measured = (measure_spectrum(classifier, images, progress),) if make.READS_IMAGES else ()
    rendered, traces, importances, stuck = [], [], [], []
    for start in range(starts):
        canvas: Canvas = make(classifier, stream(seed, start), rate or make.RATE, *measured)
        values, moved = [], False
        for step in range(steps):
            value, climbed = _step(classifier, unit, canvas)
            values.append(value)
            moved = moved or climbed
            progress(start * steps + step + 1, starts * steps, "steps")
        rendered.append(canvas.render_image().detach()[0].cpu())
        traces.append(values)
        importances += [] if canvas.importance is None else [canvas.importance]
        stuck += [] if moved else [start]
    made = torch.stack(rendered)
    return MaximisedImages(
        unit,
        parameterisation,
        seed,
        made,
        convert_to_colours(classifier, made),
        _measure_activations(classifier, unit, made),
        torch.tensor(traces),
        torch.stack(importances) if importances else None,
        measured[0].abs() if measured else None,
        _warnings(stuck),
    )


def _step(classifier: Classifier, unit: Unit, canvas: Canvas) -> tuple[float, bool]:
    """Take one step; return the unit's activation before it, and whether there was a gradient."""
    with classifier.gradients(), torch.enable_grad():
        value = response(classifier, unit, canvas.render_view()).mean()
        return float(value.detach()), canvas.climb(value)


def _measure_activations(classifier: Classifier, unit: Unit, images: Tensor) -> Tensor:
    with classifier.exclusive(), torch.no_grad():
        activations = [response(classifier, unit, one[None].to(classifier.device)).cpu() for one in images]
    return torch.cat(activations).float()


def _warnings(stuck: list[int]) -> tuple[str, ...]:
    if not stuck:
        return ()
    return (
        f"No gradient was found from start {', '.join(map(str, stuck))}, and nothing drawn: that image is random. "
        "Choose the layer before the ReLU, or more starts.",
    )
