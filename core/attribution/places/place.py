"""Layers of a network whose outputs keep the locations of the input, and a test whether a layer does."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Annotated, Any, NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from core.attribution.places.activations import (
    Reading,
    activation_and_gradient,
    hook_layer,
    refuse_script,
    refuse_unknown,
)
from core.attribution.places.layout import EXTRA, MAPS, TOKENS, Layout
from core.attribution.places.measured_layout import make_probes, measure_layout, mixes_places
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.network.gradients import differentiate

SAME = 1e-3


class Place(NamedTuple):
    """A layer that keeps places, and how its output holds them."""

    layer: str
    layout: Layout


class _Output(NamedTuple):
    """A module's output (of its last run) and how many parameters are its own."""

    name: str
    shape: torch.Size
    parameters: int


_selected: WeakKeyDictionary[Classifier, dict[str, Place]] = WeakKeyDictionary()
_layouts: WeakKeyDictionary[Classifier, dict[str, Layout | None]] = WeakKeyDictionary()
_seen: WeakKeyDictionary[Classifier, list[_Output]] = WeakKeyDictionary()


LayerName = Annotated[
    str, "Layer that the heatmap is computed from; by default the last one that keeps places of the image apart."
]


def select_layer(classifier: Classifier, name: str) -> str:
    """Return ``name`` if it keeps places apart; for ``""`` the last layer that does and that everything passes through.

    Any module of the network counts as a layer, its blocks too: the last block of a ResNet, not one of its branches.
    In a vision transformer that reads its class token, nothing of the last block's other tokens reaches the logits:
    then it is the output of the block before.

    Raises
    ------
    ForetellError
        No such layer (with the nearest), or one whose output holds no places of the image: as (B, K, h, w),
        (B, h, w, K), or tokens (B, N, K).
    """
    return select_place(classifier, name).layer


def select_place(classifier: Classifier, name: str) -> Place:
    """Return `select_layer` and how that layer's output holds the places of the image."""
    classifier = classifier.copied_from or classifier  # with other weights the layers are the same
    known = _selected.setdefault(classifier, {})
    if name not in known:
        with classifier.exclusive() as module:
            if name:
                refuse_unknown(classifier, module, name)
            for part in [module.get_submodule(name)] if name else module.modules():
                refuse_script(part)
            output = _check_named_layer(classifier, name) if name else _last(classifier, module)
        known[name] = known[output.layer] = output
    return known[name]


def find_layout(classifier: Classifier, layer: str) -> Layout | None:
    """Find where the output of the module ``layer`` holds the places of the image; None where nowhere.

    They have its proportions. Feature maps of which only the last two axes have them are taken as they are, unless the
    network has lists of tokens, as many as an axis of its attention; anything else is measured.
    """
    classifier = classifier.copied_from or classifier
    known = _layouts.setdefault(classifier, {})
    if layer not in known:
        matches = [output for output in _outputs(classifier) if output.name == layer]
        has_tokens = any(len(one.shape) == TOKENS for one in _outputs(classifier))
        known[layer] = measure_layout(classifier, layer, matches[0].shape, has_tokens) if matches else None
    return known[layer]


def read_maps(classifier: Classifier, inputs: Tensor, targets: Tensor, layer: str) -> Reading:
    """Compute `activation_and_gradient` of a layer that `select_layer` returned, as feature maps (B, K, h, w)."""
    layout = select_place(classifier, layer).layout
    read = activation_and_gradient(classifier, inputs, targets, layer)
    return Reading(
        layout.to_maps(read.activation).contiguous(), layout.to_maps(read.gradient).contiguous(), read.logits
    )


def enlarge_maps(coarse: Tensor, inputs: Tensor) -> Tensor:
    """Enlarge (B, h, w) to (B, H, W)."""
    size = list(inputs.shape[2:])
    return F.interpolate(coarse[:, None], size, mode="bilinear", align_corners=False)[:, 0]


def read_mean_maps(classifier: Classifier, layer: str) -> Tensor:
    """Compute the feature maps (1, K, h, w) of a layer for an image in the mean colour; ``""`` is the default layer."""
    shown = classifier.fill("mean")[None]
    return read_maps(classifier, shown, torch.zeros(1, dtype=torch.long), select_layer(classifier, layer)).activation


def _check_named_layer(classifier: Classifier, name: str) -> Place:
    matches = [output for output in _outputs(classifier) if output.name == name]
    if not matches or not _has_places(matches[0].shape):
        raise ForetellError(
            f"Layer {name!r} of {classifier.name} gives no feature maps (B, K, h, w) of more than one place, no "
            "(B, h, w, K) and no tokens (B, N, K), one of which this needs. Choose a layer before the pooling, such as "
            "the last convolution or the output of a block."
        )
    layout = find_layout(classifier, name)
    if layout is None:
        raise _no_places(classifier, matches[0])
    if not _reaches_logits(classifier, name, layout):
        raise ForetellError(
            f"Nothing of the places in layer {name!r} of {classifier.name} reaches the logits: behind it only the "
            "class token is read. Choose the layer before, or leave the layer out."
        )
    return Place(name, layout)


def _last(classifier: Classifier, module: nn.Module) -> Place:
    outputs = _outputs(classifier)
    tokens_count_most = _sum(outputs, TOKENS) > _sum(outputs, MAPS)
    unread = _find_unread_tokens(classifier, module, outputs)
    without_places: _Output | None = None
    for output in reversed([one for one in outputs if _has_places(one.shape)]):
        if output.name in unread or not _all_passes_through(classifier, module, output):
            continue
        layout = find_layout(classifier, output.name)
        # A last axis of 1 is that of a pooling: its channels look like tokens.
        if layout is None and output.shape[-1] > 1 and (len(output.shape) == MAPS or tokens_count_most):
            without_places = without_places or output
        if layout is not None and _reaches_logits(classifier, output.name, layout):
            if without_places is not None:
                raise _no_places(classifier, without_places, output.name)
            return Place(output.name, layout)
    if without_places is not None:
        raise _no_places(classifier, without_places)
    raise ForetellError(
        f"{classifier.name} has no layer with feature maps (B, K, h, w), (B, h, w, K) or tokens (B, N, K) that "
        "everything passes through, which this needs. Use a method that needs none, such as smoothgrad or "
        "bayesian_teaching."
    )


def _sum(outputs: list[_Output], axes: int) -> int:
    return sum(one.parameters for one in outputs if len(one.shape) == axes)


def _no_places(classifier: Classifier, output: _Output, before: str = "") -> ForetellError:
    """Return the refusal of a layer; ``before`` is the last layer that has places."""
    choice = (
        f"Give the layer {before!r}, the last that has them,"
        if before
        else ("Choose a layer that gives (B, K, h, w), (B, h, w, K) or tokens (B, N, K),")
    )
    why = "no axes of it are the places of the image"
    if len(output.shape) == TOKENS and mixes_places(classifier, output.name):
        why = "each of its tokens depends on the whole image alike, as behind attention without a residual connection"
    return ForetellError(
        f"Layer {output.name!r} of {classifier.name} gives {tuple(output.shape)}, but {why}. Its heatmap would be "
        f"meaningless. {choice} or a method that needs none, such as smoothgrad or bayesian_teaching."
    )


def _has_places(shape: torch.Size) -> bool:
    """Tell whether an output can have more than one place."""
    if len(shape) == MAPS:
        return shape[2:].numel() > 1 and shape[1:3].numel() > 1
    return len(shape) == TOKENS and shape[1] > 1


def _outputs(classifier: Classifier) -> list[_Output]:
    """Return the outputs of one image, as `hook_layer` reads them, in the order the modules finish."""
    if classifier not in _seen:
        with classifier.exclusive() as module:
            _seen[classifier] = _list_outputs(classifier, module)
    return _seen[classifier]


def _list_outputs(classifier: Classifier, module: nn.Module) -> list[_Output]:
    outputs: dict[str, _Output] = {}

    def noting(name: str, own: int) -> Any:
        def note(_: nn.Module, __: Any, output: Any) -> None:
            outputs.pop(name, None)
            if isinstance(output, Tensor) and output.ndim and len(output) == 1:
                outputs[name] = _Output(name, output.shape, own)

        return note

    with ExitStack() as hooks, torch.no_grad():
        for name, part in module.named_modules():
            if name and not isinstance(part, torch.jit.ScriptModule):
                own = sum(p.numel() for p in part.parameters(recurse=False))
                hooks.enter_context(hook_layer(part, noting(name, own)))
        module(classifier.fill("mean")[None].to(classifier.device))
    return list(outputs.values())


@torch.no_grad()
def _all_passes_through(classifier: Classifier, module: nn.Module, output: _Output) -> bool:
    """Tell whether the logits of another image are all that follows from the layer's output for that image."""
    one, other = torch.split(make_probes(classifier, 2), 1)
    kept: list[Tensor] = []
    layer = module.get_submodule(output.name)
    with hook_layer(layer, lambda _, __, value: kept.append(value.clone())):
        expected = module(other.clone())
    runs = 0

    def replace(_: nn.Module, __: Any, ___: Any) -> Tensor | None:
        nonlocal runs
        runs += 1
        return kept[-1].clone() if runs == len(kept) else None

    with hook_layer(layer, replace):
        returns = module(one)
    scale = max(float(expected.abs().max()), 1e-6)
    return bool((returns - expected).abs().max() <= SAME * scale)


def _find_unread_tokens(classifier: Classifier, module: nn.Module, outputs: list[_Output]) -> set[str]:
    """Return the layers of tokens of which only a few reach the logits: the class token and its like.

    One pass for all layers; those of a network without gradients are tried one by one.
    """
    names = [one.name for one in outputs if len(one.shape) == TOKENS and _has_places(one.shape)]
    kept: dict[str, Tensor] = {}

    def keeping(name: str) -> Any:
        def keep(_: nn.Module, __: Any, output: Tensor) -> Tensor:
            kept[name] = output
            return output.clone()  # what changes it in place must not change what is kept

        return keep

    try:
        with ExitStack() as hooks, torch.enable_grad():
            for name in names:
                hooks.enter_context(hook_layer(module.get_submodule(name), keeping(name)))
            logit = module(make_probes(classifier, 1).requires_grad_().clone())[0, 0]
        gradients = differentiate(logit, list(kept.values()), allow_unused=True) if kept else ()
    except RuntimeError:
        return set()
    unread = set()
    for name, gradient in zip(kept, gradients, strict=True):
        read = 0 if gradient is None else int(gradient[0].any(1).sum())
        if 0 < read <= min(EXTRA, len(kept[name][0]) // 2):
            unread.add(name)
    return unread


def _reaches_logits(classifier: Classifier, layer: str, layout: Layout) -> bool:
    """Tell whether logits depend on a layer's places, and not on its class token alone."""
    if not layout.prefix + layout.suffix:
        return True
    targets = torch.zeros(1, dtype=torch.long)
    try:
        gradient = activation_and_gradient(classifier, make_probes(classifier, 1).cpu(), targets, layer).gradient
    except ForetellError:  # no gradients at all: a matter of the method
        return True
    return bool(layout.select_places(gradient).any()) or not bool(gradient.any())
