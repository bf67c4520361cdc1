"""A unit of a network, and its activation for an image."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from core.attribution.places.activations import read_output, refuse_unknown
from core.attribution.places.place import find_layout
from core.errors import ForetellError
from core.network.classifier import Classifier

READING = "reading images"
"""What is reported while a set of images is read."""


@dataclass(frozen=True)
class Unit:
    """One channel of a layer, at one place or at all.

    Attributes
    ----------
    channel
        Index of the feature map; of the class where ``layer`` is ``""``, the network's logits.
    layer
        Name of any module of the network whose output is (B, K), (B, K, h, w), (B, h, w, K) or tokens of places
        (B, N, K); the last run where it runs often.
    row, column
        The place in the feature map; None for the mean over all places.
    """

    channel: int
    layer: str = ""
    row: int | None = None
    column: int | None = None


@contextmanager
def outputs_of(classifier: Classifier, layer: str) -> Iterator[tuple[nn.Module, list[Tensor]]]:
    """Return the network and a list of the output of ``layer`` after each forward pass: a copy, with its graph.

    Outputs that hold places are (B, K, h, w), however the network holds them.
    """
    kept: list[Tensor] = []
    layout = find_layout(classifier, layer) if layer else None

    def keep(_: nn.Module, __: Any, output: Any) -> None:
        kept.clear()
        output = read_output(output)
        if isinstance(output, Tensor):
            own = output.clone()  # an in-place ReLU may follow
            kept.append(own if layout is None else layout.to_maps(own))

    with classifier.exclusive() as module:
        handle = (module.get_submodule(layer) if layer else module).register_forward_hook(keep)
        try:
            yield module, kept
        finally:
            handle.remove()


def response(classifier: Classifier, unit: Unit, inputs: Tensor) -> Tensor:
    """Return the unit's activation (B,) for inputs (B, C, H, W), with its graph if gradients are on."""
    with outputs_of(classifier, unit.layer) as (module, kept):
        module(inputs.clone())
    channel = kept[0][:, unit.channel]
    if unit.row is not None and unit.column is not None:
        return channel[:, unit.row, unit.column]
    return channel.flatten(1).mean(1) if channel.ndim > 1 else channel


def find_layer_shape(classifier: Classifier, unit: Unit) -> tuple[int, ...]:
    """Find the shape (K,) or (K, h, w) of the unit's layer for one image.

    Raises
    ------
    ForetellError
        No such layer (with the nearest), one without channels as in `Unit`, no such channel or place.
    """
    with classifier.exclusive() as module:
        if unit.layer:
            refuse_unknown(classifier, module, unit.layer)
    with torch.no_grad(), outputs_of(classifier, unit.layer) as (module, kept):
        module(classifier.fill("mean")[None].to(classifier.device))
    shape = tuple(kept[0].shape[1:]) if kept else ()
    if len(shape) not in (1, 3):
        raise ForetellError(
            f"Layer {unit.layer!r} of {classifier.name} gives no channels (B, K), (B, K, h, w), (B, h, w, K) or tokens "
            "(B, N, K). Choose another layer."
        )
    if not 0 <= unit.channel < shape[0]:
        raise ForetellError(f"Layer {unit.layer!r} has channels 0 to {shape[0] - 1}, not {unit.channel}.")
    _check_place(unit, shape)
    return shape


def _check_place(unit: Unit, shape: tuple[int, ...]) -> None:
    if unit.row is None and unit.column is None:
        return
    if unit.row is None or unit.column is None:
        raise ForetellError("A place is a row and a column: give both, or neither for the mean over all places.")
    if len(shape) == 1:
        raise ForetellError(f"Layer {unit.layer!r} has no places: leave out row and column.")
    if not (0 <= unit.row < shape[1] and 0 <= unit.column < shape[2]):
        raise ForetellError(
            f"Layer {unit.layer!r} has places (0, 0) to ({shape[1] - 1}, {shape[2] - 1}), not {unit.row, unit.column}."
        )
