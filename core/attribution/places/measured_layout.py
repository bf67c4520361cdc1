"""Measures how a layer's output holds the places of the image: which part of it changes with which of the input."""

from __future__ import annotations

from math import isnan, nan

import torch
from torch import Tensor, nn

from core.attribution.places.activations import hook_layer
from core.attribution.places.layout import Layout, best_token_layout, correlate, list_layouts, list_stripes
from core.network.classifier import Classifier
from core.network.device import chunk_size, in_chunks

DRAWS = 2
MOVED = 0.15
"""Least rise of one half's share of a layer's change when that half of the input changes."""
MIXED = 0.3
"""Least mean contrast of tokens with places: above .8 in Hiera, below .25 where attention with random weights mixes."""
STRIPED = 0.25
"""Least correlation with stripes as wide as a place: above .3 where patches overlap (Hiera), 0 in another order."""

Parts = tuple[Tensor, Tensor]
"""A layer's change with the first and with the second of two parts of the input."""


def make_probes(classifier: Classifier, count: int) -> Tensor:
    """Return inputs (count, C, H, W) of noise around the mean colour."""
    base = classifier.fill("mean")
    noise = torch.randn(count, *base.shape, generator=torch.Generator().manual_seed(0))
    return (base + noise).to(classifier.device)


def measure_layout(classifier: Classifier, layer: str, shape: torch.Size, has_tokens: bool) -> Layout | None:
    """Measure how the output, of this ``shape``, holds the places of the image; None where it does not."""
    layouts = list_layouts(shape, classifier.input_shape[1:])
    if not layouts:
        return None
    if len(layouts) == 1 and layouts[0].kind == "maps" and not has_tokens:
        return layouts[0]
    changes = _measure_halves(classifier, layer)
    if layouts[0].kind == "tokens":
        likely = best_token_layout(layouts, *map(_contrast_tokens, changes))
        layouts = [] if likely is None or not _has_its_stripes(classifier, layer, likely) else [likely]
    shifts = {layout: _weigh(layout, changes) for layout in layouts}
    if shifts and all(map(isnan, shifts.values())):  # nothing changes at all, and nothing can be said
        return layouts[0] if layouts[0].kind == "maps" else None
    best = max(shifts, key=lambda layout: shifts[layout], default=None)
    return best if best is not None and shifts[best] > MOVED else None


def mixes_places(classifier: Classifier, layer: str) -> bool:
    """Tell whether each token of an output changes about alike with every half of the input."""
    contrasts = [_contrast_tokens(halves).abs() for halves in _measure_halves(classifier, layer)]
    return all(float(one.mean()) < MIXED for one in contrasts)


def _has_its_stripes(classifier: Classifier, layer: str, layout: Layout) -> bool:
    """Tell whether unrolled tokens change with their own stripes of the input: halves do not tell neighbours apart."""
    for axis in (0, 1):
        size, side = classifier.input_shape[1 + axis], layout.grid[axis]
        for times in range(layout.unrolled):
            cells = torch.arange(size) * side // size
            changes = _measure_changes(classifier, layer, cells // 2**times % 2 == 0, axis)
            if correlate(_contrast_tokens(changes), list_stripes(layout, 2**times, axis)) < STRIPED:
                return False
    return True


def _measure_halves(classifier: Classifier, layer: str) -> tuple[Parts, Parts]:
    """Measure how a layer's output changes with the upper and lower half of the input, and the left and right."""
    upper, left = (torch.arange(size) < size // 2 for size in classifier.input_shape[1:])
    return _measure_changes(classifier, layer, upper, 0), _measure_changes(classifier, layer, left, 1)


@torch.no_grad()
def _measure_changes(classifier: Classifier, layer: str, first: Tensor, axis: int) -> Parts:
    """Measure how a layer's output changes with the rows (axis 0) or columns ``first``, and with all others.

    Float64, of `DRAWS` images each.
    """
    ones, others = torch.split(make_probes(classifier, 2 * DRAWS), DRAWS)
    first = first.to(ones.device)[:, None] if axis == 0 else first.to(ones.device)
    changed = torch.cat([ones, torch.where(first, others, ones), torch.where(first, ones, others)])
    with classifier.exclusive() as module:
        seen = in_chunks(lambda part: _read(module, layer, part), changed, chunk_size(changed[0]))
    base, one, other = (values.double().cpu() for values in torch.split(seen, DRAWS))
    return one - base, other - base


def _contrast_tokens(changes: Parts) -> Tensor:
    """Return of each token how much more it changes with the first part than with the second, from -1 to 1: (N,)."""
    return _contrast(*(change.square().sum((0, 2)) for change in changes))


def _contrast(first: Tensor, second: Tensor) -> Tensor:
    return (first - second) / (first + second).clamp(min=torch.finfo(torch.float64).tiny)


def _weigh(layout: Layout, changes: tuple[Parts, Parts]) -> float:
    """Return how much larger the share of the change in a half of the layer is when that half of the input changes.

    The smaller of both axes; NaN where nothing changes at all.
    """
    shifts = [1.0]
    for axis, halves in zip((2, 3), changes, strict=True):
        energies = [layout.to_maps(half).square().transpose(axis, 0).flatten(1).sum(1) for half in halves]
        if len(energies[0]) > 1:
            shares = [energy[: len(energy) // 2].sum() / energy.sum() for energy in energies]
            shifts.append(float(shares[0] - shares[1]))
    return nan if any(map(isnan, shifts)) else min(shifts)


def _read(module: nn.Module, layer: str, inputs: Tensor) -> Tensor:
    kept: list[Tensor] = []
    with hook_layer(module.get_submodule(layer), lambda _, __, value: kept.append(value.clone())):
        module(inputs)
    return kept[-1]
