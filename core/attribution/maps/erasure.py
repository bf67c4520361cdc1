"""Representation erasure: set a unit of a layer to 0 and measure how far the surprise (-log p) of the class rises.

Li, Monroe & Jurafsky 2016 (arXiv:1612.08220).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from core.attribution.common import prepare_inputs
from core.attribution.cost import Cost
from core.attribution.method import Query, heatmap_method
from core.attribution.places.activations import hook_layer, refuse_unknown
from core.attribution.places.layout import Layout
from core.attribution.places.place import LayerName, enlarge_maps, find_layout, read_mean_maps, select_place
from core.attribution.records import Family
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.network.device import chunk_size, in_chunks
from core.types import Explanation, Progress, silent

INPUT = "input"
"""Name of the network's input as a layer of `channel_importance`."""

CERTAIN = 1e-3
"""A surprise this small (a probability above 99.9%) makes every relative difference large."""


def _erase_each_place(settings: Mapping[str, Any], classifier: Classifier) -> Cost:
    return Cost(forwards=read_mean_maps(classifier, settings["layer"]).shape[2:].numel())


@heatmap_method(family=Family.FEATURE_MAPS, cost=_erase_each_place)
def erasure(query: Query, *, layer: LayerName = "") -> Explanation:
    """Measure the relative rise of -log p of the class when all features of one location are set to 0.

    Li et al. 2016 (arXiv:1612.08220), eq. 1 for one image: with the surprise S = -log p(c | x), a place has
    (S without it - S) / S. The sign is turned so that evidence for the class is positive: in the paper, S less S
    without, what hurts when erased is negative. Erased are all channels of ``layer`` at one place at a time; the
    coarse heatmap is enlarged to the image. Of a layer that runs more than once, the last run is erased. Costs a
    forward pass for each place: 49 for 7 x 7. `channel_importance` erases channels.
    """
    layer, layout = select_place(query.classifier, layer)
    units = Units.of(query.classifier, layer, "place")
    coarse, surprises = relative_surprise(query.classifier, query.inputs, query.classes, units, query.progress)
    maps = enlarge_maps(coarse.view(-1, *layout.grid).float(), query.inputs)
    return query.explain(maps, [_facts(layer, surprise) for surprise in surprises.tolist()])


def _facts(layer: str, surprise: float) -> dict[str, Any]:
    warnings: tuple[str, ...] = ()
    if surprise < CERTAIN:
        warnings = (
            "The classifier is almost certain of this class, and the heatmap is relative to its tiny surprise: compare "
            "locations within this heatmap, not with other heatmaps.",
        )
    return {"parameters": {"layer": layer, "surprise": surprise}, "warnings": warnings}


def channel_importance(
    classifier: Classifier,
    images: Tensor,
    targets: Sequence[int],
    layer: str = INPUT,
    *,
    progress: Progress = silent,
) -> Tensor:
    """Compute I(d) of each channel of a layer, (K,) float64: the mean relative rise of the surprise over images.

    Li et al. 2016 (arXiv:1612.08220), eq. 1, its sign turned as in `erasure`. A channel is an index of the second axis
    of the layer's output (B, K, ...), a feature map or one number of a linear layer; of tokens and of outputs with
    channels last, of the last axis. ``layer="input"`` erases the channels of the network's input. Costs K forward
    passes an image.

    Raises
    ------
    ForetellError
        No such layer (with the nearest), or one whose output is no tensor (B, K, ...).
    """
    inputs, classes = prepare_inputs(classifier, images, targets)
    units = Units.of(classifier, layer, "channel")
    return relative_surprise(classifier, inputs, classes, units, progress)[0].mean(0)


@dataclass(frozen=True)
class Units:
    """Units of a layer's output to erase: one place across the channels, or one channel at all places.

    ``shape`` is that of the output (K, ...) in the last of ``runs`` in a forward pass, and ``layout`` how it holds the
    places of the image: a channel of tokens is erased in the class token too.
    """

    layer: str
    kind: Literal["place", "channel"]
    shape: torch.Size
    runs: int
    layout: Layout | None = None

    @classmethod
    def of(cls, classifier: Classifier, layer: str, kind: Literal["place", "channel"]) -> Units:
        """Find the units of the layer of that name by running it once."""
        if layer == INPUT:
            return cls(layer, kind, torch.Size(classifier.input_shape), 1)
        outputs: list[Any] = []
        with classifier.exclusive() as module, torch.no_grad():
            refuse_unknown(classifier, module, layer)
            with hook_layer(module.get_submodule(layer), lambda _, __, output: outputs.append(output)):
                module(classifier.fill("mean")[None].to(classifier.device))
        if not outputs or not isinstance(outputs[-1], Tensor) or outputs[-1].ndim < 2:
            raise ForetellError(
                f"Layer {layer!r} of {classifier.name} gives no tensor (B, K, ...): choose another one."
            )
        return cls(layer, kind, outputs[-1].shape[1:], len(outputs), find_layout(classifier, layer))

    @property
    def count(self) -> int:
        """The number of units."""
        if self.kind == "channel":
            return self.shape[0 if self._channel_axis == 1 else -1]
        return self.shape[1:].numel() if self.layout is None else self.layout.grid[0] * self.layout.grid[1]

    @property
    def _channel_axis(self) -> int:
        return 1 if self.layout is None else self.layout.channel_axis

    def without(self, output: Tensor, chosen: Tensor) -> Tensor:
        """Return a copy of output (n, ...) whose row i has unit chosen[i] set to 0."""
        erased = output.clone(memory_format=torch.contiguous_format)
        rows, chosen, layout = torch.arange(len(output)), chosen.to(output.device), self.layout
        if self.kind == "channel":
            erased.movedim(self._channel_axis, 1)[rows, chosen] = 0
        elif layout is not None and layout.kind == "tokens":
            erased[rows, layout.order[chosen.cpu()].to(output.device)] = 0
        else:
            maps = erased if layout is None else layout.to_maps(erased)
            maps.flatten(2)[rows, :, chosen] = 0
        return erased


def relative_surprise(
    classifier: Classifier, inputs: Tensor, targets: Tensor, units: Units, progress: Progress
) -> tuple[Tensor, Tensor]:
    """Return (S without a unit - S) / S of each image and unit, (B, units), and S itself, (B,); both float64."""
    whole = surprise(classifier.logits(inputs), targets)
    if bool((whole < torch.finfo(torch.float32).tiny).any()):
        raise ForetellError(
            f"{classifier.name} is so certain of a class that its surprise rounds to 0, to which nothing is relative: "
            "use occlusion."
        )
    without: list[Tensor] = []
    for x, target in zip(inputs, targets.tolist(), strict=True):
        for part in torch.split(torch.arange(units.count), chunk_size(x, classifier.device)):
            logits = compute_erased_logits(classifier, x, units, part)
            without.append(surprise(logits, torch.full((len(part),), target)))
            progress(sum(map(len, without)), len(inputs) * units.count, "erased units")
    rises = torch.cat(without).view(len(inputs), -1) - whole[:, None]
    return rises / whole[:, None], whole


def surprise(logits: Tensor, targets: Tensor) -> Tensor:
    """Return -log p of the target, (n,) float64, from logits (n, K); exact also where p rounds to 1."""
    logits = logits.double()
    others = logits.scatter(1, targets[:, None], -torch.inf).logsumexp(1)
    return F.softplus(others - logits.gather(1, targets[:, None])[:, 0], threshold=100)


def compute_erased_logits(classifier: Classifier, x: Tensor, units: Units, chosen: Tensor) -> Tensor:
    """Compute logits (n, K), on the CPU, of one input (C, H, W) with each of the units ``chosen`` (n,) erased."""
    if units.layer == INPUT:
        return classifier.logits(units.without(x.expand(len(chosen), -1, -1, -1), chosen))

    def forward(part: Tensor) -> Tensor:
        runs = 0

        def erase(_: nn.Module, __: Any, output: Tensor) -> Tensor | None:
            nonlocal runs
            runs += 1
            return units.without(output, part) if runs == units.runs else None

        layer = units.layer
        with classifier.exclusive() as module, torch.no_grad(), hook_layer(module.get_submodule(layer), erase):
            logits: Tensor = module(x.to(classifier.device).repeat(len(part), 1, 1, 1))
        return logits.float().cpu()

    return in_chunks(forward, chosen, chunk_size(x, classifier.device))
