"""Activations of a layer for many images."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from core.attribution.places.activations import hook_layer
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.network.device import chunk_size, in_chunks
from core.types import Progress, silent
from core.units.unit import Unit, find_layer_shape, outputs_of


def maps_of(classifier: Classifier, inputs: Tensor, layer: str, *, progress: Progress = silent) -> Tensor:
    """Compute a layer's outputs (N, K, h, w), float32 on the CPU, for inputs (N, C, H, W); (N, K, 1, 1) without places.

    Raises
    ------
    ForetellError
        No such layer (with the nearest), or one without channels as in `core.units.unit.Unit`.
    """
    find_layer_shape(classifier, Unit(0, layer))
    done = 0

    def read(part: Tensor) -> Tensor:
        nonlocal done
        with torch.no_grad(), outputs_of(classifier, layer) as (module, kept):
            module(part.to(classifier.device, copy=True))
            maps = kept[0].float().cpu()
        done += len(part)
        progress(done, len(inputs), f"reading {layer}")
        return maps if maps.ndim == 4 else maps[:, :, None, None]

    return in_chunks(read, inputs, chunk_size(inputs[0], classifier.device))


def means_of(classifier: Classifier, inputs: Tensor, layer: str, *, progress: Progress = silent) -> Tensor:
    """Return `maps_of`, each channel's mean over its places: (N, K)."""
    return maps_of(classifier, inputs, layer, progress=progress).mean((2, 3))


def compute_logits_with(classifier: Classifier, inputs: Tensor, layer: str, maps: Tensor) -> Tensor:
    """Compute logits (N, classes), on the CPU, for inputs (N, C, H, W) with these outputs (N, K, h, w) of a layer.

    Raises
    ------
    ForetellError
        The layer runs more than once, or its outputs have another shape.
    """
    logits = []
    for rows in torch.split(torch.arange(len(inputs)), chunk_size(inputs[0], classifier.device)):
        given, runs = maps[rows].to(classifier.device), 0

        def replace(_: nn.Module, __: Any, output: Tensor, given: Tensor = given) -> Tensor:
            nonlocal runs
            runs += 1
            if runs > 1 or output.shape != given.shape:
                raise ForetellError(
                    f"The outputs of {layer} of {classifier.name} cannot be replaced: it runs more than once or has no "
                    "feature maps (B, K, h, w). Choose another layer."
                )
            return given.to(output.dtype)

        with classifier.exclusive() as module, torch.no_grad(), hook_layer(module.get_submodule(layer), replace):
            logits.append(module(inputs[rows].to(classifier.device, copy=True)).float().cpu())
    return torch.cat(logits)
