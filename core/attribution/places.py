"""Layers of a network whose outputs keep the locations of the input, and a test whether a layer does."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from core.attribution.activations import hook_layer, refuse_unknown
from core.classifier import Classifier
from core.errors import ForetellError

DRAWS = 2
MOVED = 0.15
"""How much more of a layer's change must lie in a half of it for changes in that half of the input."""
SAME = 1e-3
ROUNDED = 2.0
"""Places by which strides and paddings may change the proportions of a layer."""
TOKENS, MAPS = 3, 4
"""Axes of outputs (B, places, K) and (B, K, h, w)."""

_selected_layers: WeakKeyDictionary[Classifier, dict[str, str]] = WeakKeyDictionary()


class _Output(NamedTuple):
    """A module's output (of its last run) and how many parameters are its own."""

    name: str
    shape: torch.Size
    parameters: int


def select_layer(classifier: Classifier, name: str) -> str:
    """Return ``name`` if it keeps places apart; for ``""`` the last layer that does and that everything passes through.

    Any module of the network counts as a layer, its blocks too: the last block of a ResNet, not one of its branches.

    Raises
    ------
    ForetellError
        No such layer (with the nearest), one whose output is no (B, K, h, w) whose h and w are places of the image, or
        a network whose last layers hold their places as a list of tokens.
    """
    classifier = classifier.copied_from or classifier  # with other weights the layers are the same
    known = _selected_layers.setdefault(classifier, {})
    if name not in known:
        with classifier.exclusive() as module:
            known[name] = _check_named_layer(classifier, module, name) if name else _last(classifier, module)
    return known[name]


def _check_named_layer(classifier: Classifier, module: nn.Module, name: str) -> str:
    refuse_unknown(classifier, module, name)
    outputs = _outputs(classifier, module)
    found = [output for output in outputs if output.name == name]
    if not found or not _is_map(found[0].shape):
        raise ForetellError(
            f"Layer {name!r} of {classifier.name} gives no feature maps (B, K, h, w) of more than one place, which "
            "this needs. Choose a layer before the pooling, such as the last convolution."
        )
    if not _keeps_places(classifier, module, found[0], outputs):
        raise _no_places(classifier, found[0])
    return name


def _last(classifier: Classifier, module: nn.Module) -> str:
    outputs = _outputs(classifier, module)
    if _sum(outputs, TOKENS) > _sum(outputs, MAPS):
        raise ForetellError(
            f"{classifier.name} holds the places of an image as a list of tokens, as vision transformers do, and "
            "not as feature maps (B, K, h, w), which this needs. Use a method that needs no layer, such as smoothgrad, "
            "occlusion or bayesian_teaching."
        )
    for output in reversed([one for one in outputs if _is_map(one.shape)]):
        if _all_passes_through(classifier, module, output):
            if _keeps_places(classifier, module, output, outputs):
                return output.name
            raise _no_places(classifier, output)
    raise ForetellError(
        f"{classifier.name} has no layer with feature maps (B, K, h, w) that everything passes through, which this "
        "needs. Use a method that needs none, such as smoothgrad or bayesian_teaching."
    )


def _sum(outputs: list[_Output], axes: int) -> int:
    return sum(one.parameters for one in outputs if len(one.shape) == axes)


def _no_places(classifier: Classifier, output: _Output) -> ForetellError:
    return ForetellError(
        f"Layer {output.name!r} of {classifier.name} gives {tuple(output.shape)}, but its last two axes are not the "
        "places of the image. Its heatmap would be meaningless. Choose a "
        "layer that gives (B, K, h, w), or a method that needs none, such as smoothgrad or bayesian_teaching."
    )


def _is_map(shape: torch.Size) -> bool:
    return len(shape) == MAPS and shape[2:].numel() > 1


def _outputs(classifier: Classifier, module: nn.Module) -> list[_Output]:
    """Return the outputs that are tensors of one image, in the order the modules finish."""
    found: dict[str, _Output] = {}

    def noting(name: str, own: int) -> Any:
        def note(_: nn.Module, __: Any, output: Any) -> None:
            found.pop(name, None)
            if isinstance(output, Tensor) and len(output) == 1:
                found[name] = _Output(name, output.shape, own)

        return note

    with ExitStack() as hooks, torch.no_grad():
        for name, part in module.named_modules():
            if name:
                own = sum(p.numel() for p in part.parameters(recurse=False))
                hooks.enter_context(hook_layer(part, noting(name, own)))
        module(classifier.fill("mean")[None].to(classifier.device))
    return list(found.values())


def _probes(classifier: Classifier, count: int) -> Tensor:
    """Return inputs (count, C, H, W) of noise around the mean colour."""
    base = classifier.fill("mean")
    noise = torch.randn(count, *base.shape, generator=torch.Generator().manual_seed(0))
    return (base + noise).to(classifier.device)


@torch.no_grad()
def _all_passes_through(classifier: Classifier, module: nn.Module, output: _Output) -> bool:
    """Tell whether the logits of another image are all that follows from the layer's output for that image."""
    one, other = torch.split(_probes(classifier, 2), 1)
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
        found = module(one)
    scale = max(float(expected.abs().max()), 1e-6)
    return bool((found - expected).abs().max() <= SAME * scale)


def _keeps_places(classifier: Classifier, module: nn.Module, output: _Output, outputs: list[_Output]) -> bool:
    """Tell whether the last two axes of a layer's output are places of the image.

    They have its proportions. Where other axes have them too, or the network has lists of tokens, as many as an axis of
    its attention, the layer is tried.
    """
    first, *rest = output.shape[1:]
    if not _in_proportion(classifier, *rest):
        return False
    unsure = _in_proportion(classifier, first, rest[0]) or any(len(one.shape) == TOKENS for one in outputs)
    return not unsure or _follows_places(classifier, module, output)


def _in_proportion(classifier: Classifier, height: int, width: int) -> bool:
    _, high, wide = classifier.input_shape
    return abs(height - width * high / wide) <= ROUNDED


@torch.no_grad()
def _follows_places(classifier: Classifier, module: nn.Module, output: _Output) -> bool:
    """Tell whether changes in one half of the input show more in that half of the layer's output than in the other."""
    ones, others = torch.split(_probes(classifier, 2 * DRAWS), DRAWS)
    shifts = []
    for axis in (2, 3):
        if output.shape[axis] == 1:
            continue
        first = torch.arange(ones.shape[axis]) < ones.shape[axis] // 2
        first = first.to(ones.device).view([-1 if k == axis else 1 for k in range(ones.ndim)])
        changed = torch.cat([ones, torch.where(first, others, ones), torch.where(first, ones, others)])
        base, *halves = torch.split(_read(module, output.name, changed), DRAWS)
        shares = []
        for half in halves:
            energy = (half - base).double().square().transpose(axis, 0).flatten(1).sum(1)
            shares.append(energy[: len(energy) // 2].sum() / energy.sum())
        shifts.append(float(shares[0] - shares[1]))
    return all(not shift <= MOVED for shift in shifts)  # NaN: nothing changes at all, and nothing can be said


def _read(module: nn.Module, layer: str, inputs: Tensor) -> Tensor:
    kept: list[Tensor] = []
    with hook_layer(module.get_submodule(layer), lambda _, __, value: kept.append(value.clone())):
        module(inputs)
    return kept[-1]
