"""What a layer says and how the target's logit hangs on it, leaving the network as it was."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from core.classifier import Classifier
from core.errors import ForetellError

Hook = Callable[[nn.Module, Any, Any], Tensor | None]


def chosen_layer(classifier: Classifier, name: str) -> str:
    """``name`` if the network has such a layer; for ``""`` the last one to finish that keeps places apart.

    Any module of the network counts as a layer, its blocks too: the last block of a ResNet, not one of its branches.

    Raises
    ------
    ForetellError
        No such layer (with the nearest), or one whose output is no (B, K, h, w) with more than one place.
    """
    with classifier.exclusive() as module:
        known = [known for known, _ in module.named_modules() if known]
        if name:
            refuse_unknown(classifier, module, name)
        spatial = _spatial_layers(classifier, module, [name] if name else known)
    if spatial:
        return spatial[-1]
    if name:
        raise ForetellError(
            f"Layer {name!r} of {classifier.name} gives no maps (B, K, h, w) of more than one place, which class "
            "activation maps need. Choose a layer before the pooling, such as the last convolution."
        )
    raise ForetellError(
        f"{classifier.name} has no layer that gives maps (B, K, h, w), which class activation maps need. "
        "Use a method that needs none, such as smoothgrad or bayesian_teaching."
    )


def refuse_unknown(classifier: Classifier, module: nn.Module, name: str) -> None:
    """The sentence, with the nearest names, for a layer that the network does not have."""
    known = [known for known, _ in module.named_modules() if known]
    if name not in known:
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
        hint = f"Did you mean {' or '.join(map(repr, near))}?" if near else f"It has: {', '.join(known)}."
        raise ForetellError(f"{classifier.name} has no layer {name!r}. {hint}")


def _spatial_layers(classifier: Classifier, module: nn.Module, names: list[str]) -> list[str]:
    """Those of ``names`` whose output is (B, K, h, w) with more than one place, in the order they finish."""
    found: list[str] = []

    def noting(name: str) -> Hook:
        def note(_: nn.Module, __: Any, output: Any) -> None:
            if isinstance(output, Tensor) and output.ndim == 4 and output.shape[2:].numel() > 1:
                found.append(name)

        return note

    with ExitStack() as hooks, torch.no_grad():
        for name in names:
            hooks.enter_context(hooked(module.get_submodule(name), noting(name)))
        module(classifier.fill("mean")[None].to(classifier.device))
    return found


class Reading(NamedTuple):
    """Output A of a layer, d logit[target] / d A, both (B, K, h, w), and the logits (B, K); float32 on the CPU."""

    activation: Tensor
    gradient: Tensor
    logits: Tensor


@contextmanager
def hooked(layer: nn.Module, hook: Hook) -> Iterator[None]:
    handle = layer.register_forward_hook(hook)
    try:
        yield
    finally:
        handle.remove()


def activation_and_gradient(classifier: Classifier, inputs: Tensor, targets: Tensor, layer: str) -> Reading:
    """What ``layer`` says of inputs (B, C, H, W); of a layer that runs more than once, the last run."""
    kept: list[Tensor] = []

    def keep(_: nn.Module, __: Any, output: Tensor) -> Tensor:
        # What follows gets a copy: an in-place ReLU would else overwrite what is kept. No graph is built below the
        # layer: the gradient ends here.
        kept[:] = [output.detach().clone().requires_grad_()]
        torch.set_grad_enabled(True)
        return kept[0].clone()

    with classifier.exclusive() as module, torch.no_grad(), hooked(module.get_submodule(layer), keep):
        logits = module(inputs.to(classifier.device, copy=True))
        chosen = logits.gather(1, targets.to(classifier.device)[:, None]).sum()
        (gradient,) = torch.autograd.grad(chosen, kept, allow_unused=True) if chosen.requires_grad else (None,)
    if gradient is None:
        raise unreached(classifier, layer)
    return Reading(*(values.detach().float().cpu() for values in (kept[0], gradient, logits)))


def unreached(classifier: Classifier, layer: str) -> ForetellError:
    """What to say of a layer that the target's logit does not hang on."""
    return ForetellError(f"No gradient of {classifier.name} reaches its layer {layer!r}. Choose another layer.")
