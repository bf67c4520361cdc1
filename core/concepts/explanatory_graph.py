"""An explanatory graph: parts that the channels of a layer detect, and the parts of the layer above they go with.

Zhang et al. 2018, Interpreting CNN Knowledge via an Explanatory Graph (arXiv:1708.01785). A channel's activations in an
image are F(x) = max(f_x, 0) dots at the places p_x, which a mixture of its parts V explains:

    log P = Σ_images Σ_x F(x) log Σ_V P(V) P(p_x | V),    P(p_x | V) = γ Π_{V' in E_V} N(p_x | μ_V'→V, δ²)^λ,

and γτ for "no part". μ_V'→V = μ_V + p_V' − μ_V': where a parent V' is found away from its usual place, the part is
expected as far away from its own. p_V is the place with the largest F(x) P(p_x | V). A part of the top layer has no
parent, and is expected at μ_V in all images.

With λ = 1/|E_V| the product is a normal density around μ_V + s, where s is the parents' mean shift, times
exp(−v/2δ²), v being the variance of their shifts: parents that disagree explain little. The source says of P(V) only
that it is a prior; here it is 1/(N+1) for the N parts of a channel and for "no part". β of F(x) = β max(f_x, 0) would
multiply the whole likelihood, so each channel's F sum to 1 in the mean image instead. γ is 1, and the step of an EM
algorithm, which has a closed form, replaces the source's ascent on μ at a rate. Places are (x, y), in units of the
image's longer side.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from core.errors import ForetellError
from core.types import Progress, silent

SETTLED = 1e-6
"""Rise of the likelihood in a sweep, in nats an activation, below which the search ends."""
GAINED = 1e-9
"""Least relative rise of the likelihood for which a part gets other parents."""


@dataclass(frozen=True)
class GraphSettings:
    """What an explanatory graph is learned with. The source prints no values: these are ours.

    Attributes
    ----------
    parts
        Of each channel.
    parents
        M, of each part, at most; 0 for none.
    spread
        δ, in units of the image's longer side.
    background
        τ: the density of activations that belong to no part, where those of a part integrate to 1.
    sweeps
        T, at most.
    """

    parts: int = 2
    parents: int = 2
    spread: float = 0.1
    background: float = 0.5
    sweeps: int = 30


@dataclass(frozen=True)
class GraphLayer:
    """The parts of a layer: K channels with N parts each, part j being of channel j // N.

    Attributes
    ----------
    usual
        μ (K·N, 2): x and y.
    parents
        E_V: numbers of parts of the layer above; empty for parts that are expected at the same place in all images.
    likelihood
        log P after each sweep, divided by Σ F: nats of an activation.
    """

    usual: Tensor
    parents: tuple[tuple[int, ...], ...]
    settings: GraphSettings
    likelihood: tuple[float, ...] = ()


@dataclass(frozen=True)
class FoundParts:
    """Where the parts of a layer are in I images.

    Attributes
    ----------
    places
        p_V (I, V, 2).
    shifts
        p_V − μ_V (I, V, 2).
    """

    places: Tensor
    shifts: Tensor


def list_places(height: int, width: int) -> Tensor:
    """Return the centres (h·w, 2) of a layer's cells, row by row."""
    longer = max(height, width)
    y, x = torch.meshgrid(torch.arange(height) + 0.5, torch.arange(width) + 0.5, indexing="ij")
    return torch.stack([x, y], -1).reshape(-1, 2).double() / longer


def normalise_activations(maps: Tensor) -> Tensor:
    """Return F (I, K, h·w) of outputs (I, K, h, w): not negative, each channel's sum being 1 in the mean image."""
    active = maps.double().clamp(min=0).flatten(2)
    return active / active.sum(2).mean(0).clamp(min=1e-12)[:, None]


def choose_channels(maps: Tensor, own: Tensor, others: Tensor, count: int) -> tuple[int, ...]:
    """Choose the channels of outputs (N, K, h, w) that respond to the images ``own`` most, compared with ``others``.

    By the difference of the mean positive activations, in standard deviations over both.
    """
    means = torch.stack([one.clamp(min=0).mean((1, 2)) for one in maps]).double()  # a large layer is not copied whole
    spread = means[torch.cat([own, others])].std(0, correction=0)
    differences = (means[own].mean(0) - means[others].mean(0)) / spread.clamp(min=1e-12)
    differences[means[own].sum(0) == 0] = -torch.inf
    order = differences.argsort(descending=True, stable=True)[:count]
    return tuple(int(channel) for channel in order if differences[channel] > -torch.inf)


def learn_layer(
    maps: Tensor,
    above: FoundParts | None,
    settings: GraphSettings | None = None,
    *,
    generator: torch.Generator | None = None,
    progress: Progress = silent,
) -> GraphLayer:
    """Learn the parts of a layer's outputs (I, K, h, w), and their parents among the parts found in the layer above.

    The likelihood never falls from sweep to sweep.

    Raises
    ------
    ForetellError
        A setting out of its range, fewer than 2 images, a layer without places, or a channel that is nowhere active.
    """
    chosen = settings or GraphSettings()
    check_settings(chosen)
    _check_maps(maps, chosen)
    activations, places = normalise_activations(maps), list_places(*maps.shape[2:])
    draws = generator or torch.Generator().manual_seed(0)
    start = torch.multinomial(activations.sum(0) + 1e-12, chosen.parts, replacement=False, generator=draws)
    usual = places[start.flatten()]
    layer = GraphLayer(usual, ((),) * len(usual), chosen)
    for sweep in range(1, chosen.sweeps + 1):
        layer = _move(layer, activations, places, above)
        if above is not None and chosen.parents:
            layer = _choose_parents(layer, activations, places, above)
        reached = float(compute_likelihoods(layer, activations, places, above).sum() / activations.sum())
        layer = replace(layer, likelihood=(*layer.likelihood, reached))
        progress(sweep, chosen.sweeps, "learning parts")
        if sweep > 1 and layer.likelihood[-1] - layer.likelihood[-2] < SETTLED:
            break
    return layer


def find_parts(layer: GraphLayer, maps: Tensor, above: FoundParts | None) -> FoundParts:
    """Find each part in outputs (I, K, h, w): at the largest F(x) P(p_x | V); where all F are 0, where expected."""
    activations, places = normalise_activations(maps), list_places(*maps.shape[2:])
    density = compute_densities(layer, places, above, len(maps))
    weighed = activations.repeat_interleave(layer.settings.parts, 1) * density
    best = places[weighed.argmax(2)]
    expected = layer.usual + _mean_shifts(layer.parents, above, len(maps))[0]
    positions = torch.where((weighed.amax(2) > 0)[..., None], best, expected)
    return FoundParts(positions, positions - layer.usual)


def compute_densities(layer: GraphLayer, places: Tensor, above: FoundParts | None, images: int) -> Tensor:
    """Compute P(p_x | V) (I, V, h·w)."""
    shifts, variances = _mean_shifts(layer.parents, above, images)
    return _compute_density(places, layer.usual + shifts, variances, layer.settings.spread)


def _compute_density(places: Tensor, centres: Tensor, variances: Tensor, spread: float) -> Tensor:
    """Compute densities (..., h·w) around centres (..., 2)."""
    squares = (places - centres[..., None, :]).square().sum(-1) + variances[..., None]
    return torch.exp(-squares / (2 * spread**2)) / (2 * math.pi * spread**2)


def compute_likelihoods(layer: GraphLayer, activations: Tensor, places: Tensor, above: FoundParts | None) -> Tensor:
    """Compute log P (I, K) of the activations (I, K, h·w) of each image and channel, in nats."""
    images, channels, _ = activations.shape
    density = compute_densities(layer, places, above, images)
    mixed = density.view(images, channels, layer.settings.parts, -1).sum(2)
    return _sum_logs(activations, mixed, layer.settings)


def _sum_logs(activations: Tensor, mixed: Tensor, settings: GraphSettings) -> Tensor:
    """Sum F log Σ_V P(V) P(p_x | V) over places, from the sum of the parts' densities (..., h·w)."""
    return (activations * torch.log((mixed + settings.background) / (settings.parts + 1))).sum(-1)


def compute_shares(layer: GraphLayer, activations: Tensor, places: Tensor, above: FoundParts | None) -> Tensor:
    """Compute P(V | p_x) (I, V, h·w)."""
    images, channels, _ = activations.shape
    density = compute_densities(layer, places, above, images)
    mixed = density.view(images, channels, layer.settings.parts, -1).sum(2) + layer.settings.background
    return density / mixed.repeat_interleave(layer.settings.parts, 1)


def _move(layer: GraphLayer, activations: Tensor, places: Tensor, above: FoundParts | None) -> GraphLayer:
    """Move every part to the mean of its activations, each image's less the shift that its parents explain."""
    weights = compute_shares(layer, activations, places, above)
    weights = weights * activations.repeat_interleave(layer.settings.parts, 1)
    shifts, _ = _mean_shifts(layer.parents, above, len(activations))
    total = weights.sum((0, 2)).clamp(min=1e-300)
    mean = torch.einsum("ivx,xc->vc", weights, places) - torch.einsum("iv,ivc->vc", weights.sum(2), shifts)
    moved = mean / total[:, None]
    return replace(layer, usual=torch.where((weights.sum((0, 2)) > 1e-12)[:, None], moved, layer.usual))


def _mean_shifts(parents: Sequence[tuple[int, ...]], above: FoundParts | None, images: int) -> tuple[Tensor, Tensor]:
    """Return the parents' mean shift (I, V, 2) for each part, and the variance (I, V) of their shifts."""
    means = torch.zeros(images, len(parents), 2, dtype=torch.double)
    variances = torch.zeros(images, len(parents), dtype=torch.double)
    for part, own in enumerate(parents):
        if own and above is not None:
            shifts = above.shifts[:, list(own)]
            means[:, part] = shifts.mean(1)
            variances[:, part] = shifts.var(1, correction=0).sum(-1)
    return means, variances


def _choose_parents(layer: GraphLayer, activations: Tensor, places: Tensor, above: FoundParts) -> GraphLayer:
    """Choose the parents of each part in turn: the source's greedy strategy, which adds one after another.

    They replace the present ones only where the likelihood is higher, and none at all is offered too.
    """
    for part in range(len(layer.usual)):
        own = activations[:, part // layer.settings.parts]
        others = _sum_other_parts(layer, part, places, above)
        best = layer.parents[part]
        reach = float(_judge(layer, part, [best], own, places, above, others)[0])
        chosen: tuple[int, ...] = ()
        offered: list[tuple[int, ...]] = [()]
        while offered:
            reached = _judge(layer, part, offered, own, places, above, others)
            chosen = offered[int(reached.argmax())]
            if float(reached.max()) > reach + GAINED * abs(reach):
                reach, best = float(reached.max()), chosen
            more = range(above.places.shape[1]) if len(chosen) < layer.settings.parents else ()
            offered = [(*chosen, other) for other in more if other not in chosen]
        layer = replace(layer, parents=(*layer.parents[:part], best, *layer.parents[part + 1 :]))
    return layer


def _sum_other_parts(layer: GraphLayer, part: int, places: Tensor, above: FoundParts) -> Tensor:
    """Sum the densities (I, h·w) of the other parts of a part's channel."""
    n = layer.settings.parts
    first = part // n * n
    own = replace(layer, usual=layer.usual[first : first + n], parents=layer.parents[first : first + n])
    density = compute_densities(own, places, above, len(above.places))
    return density.sum(1) - density[:, part - first]


def _judge(
    layer: GraphLayer,
    part: int,
    offered: Sequence[tuple[int, ...]],
    activations: Tensor,
    places: Tensor,
    above: FoundParts,
    others: Tensor,
) -> Tensor:
    """Compute log P (C,) of a channel's activations (I, h·w) with each of C sets of parents for one of its parts."""
    shifts, variances = _mean_shifts(offered, above, len(activations))
    density = _compute_density(places, layer.usual[part] + shifts, variances, layer.settings.spread)
    return _sum_logs(activations[:, None], density + others[:, None], layer.settings).sum(0)


def check_settings(settings: GraphSettings) -> None:
    """Refuse settings that are out of their range."""
    for name, low in {"parts": 1, "parents": 0, "sweeps": 1}.items():
        if getattr(settings, name) < low:
            raise ForetellError(f"{name}={getattr(settings, name)}: give a whole number of at least {low}.")
    for name in ("spread", "background"):
        value = getattr(settings, name)
        if not (math.isfinite(value) and value > 0):
            raise ForetellError(f"{name}={value}: give a number above 0.")


def _check_maps(maps: Tensor, settings: GraphSettings) -> None:
    if len(maps) < 2 or maps.shape[2:].numel() < max(2, settings.parts):
        raise ForetellError(
            f"A graph of parts is learned from 2 or more images and {settings.parts} or more places, and here are "
            f"{len(maps)} and {maps.shape[2:].numel()}: give more images, or a layer with more places."
        )
    if not bool((maps.clamp(min=0).flatten(2).sum(2).sum(0) > 0).all()):
        raise ForetellError("A channel is 0 in all images: leave it out, or give images to which it responds.")
