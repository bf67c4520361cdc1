"""Activations of a layer and gradients of the target's logit with respect to them; the network stays unchanged."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from core.errors import ForetellError
from core.network.classifier import Classifier
from core.network.device import exact_arithmetic, send
from core.network.gradients import differentiate

Hook = Callable[[nn.Module, Any, Any], Tensor | None]


def refuse_unknown(classifier: Classifier, module: nn.Module, name: str) -> None:
    """Return the error, with the nearest names, for a layer that the network does not have."""
    known = [known for known, _ in module.named_modules() if known]
    if name not in known:
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
        hint = f"Did you mean {' or '.join(map(repr, near))}?" if near else f"It has: {', '.join(known)}."
        raise ForetellError(f"{classifier.name} has no layer {name!r}. {hint}")


class Reading(NamedTuple):
    """A layer's output A, d logit[target] / d A, both (B, K, h, w), and logits (B, K); float32."""

    activation: Tensor
    gradient: Tensor
    logits: Tensor


def refuse_script(layer: nn.Module) -> None:
    """Raise the error for a layer that is TorchScript."""
    if isinstance(layer, torch.jit.ScriptModule):
        raise ForetellError(
            "The network has TorchScript parts, whose layers cannot be read. Load the network uncompiled, or use a "
            "method that needs no layer, such as smoothgrad or bayesian_teaching."
        )


def read_output(output: Any) -> Any:
    """Return a layer's output, and of a tuple, such as tokens and their attention, the first part."""
    return output[0] if type(output) is tuple and output else output


@contextmanager
def hook_layer(layer: nn.Module, hook: Hook) -> Iterator[None]:
    """Run ``hook`` whenever the layer has run; raise `refuse_script`'s error for TorchScript, which takes no hook.

    It is given, and may replace, what `read_output` returns.
    """
    refuse_script(layer)

    def run(module: nn.Module, given: Any, output: Any) -> Any:
        first = read_output(output)
        replaced = hook(module, given, first)
        return replaced if replaced is None or first is output else (replaced, *output[1:])

    handle = layer.register_forward_hook(run)
    try:
        yield
    finally:
        handle.remove()


def activation_and_gradient(classifier: Classifier, inputs: Tensor, targets: Tensor, layer: str) -> Reading:
    """Compute the output of ``layer`` for inputs (B, C, H, W), on their device.

    Of a layer that runs more than once, the last run.
    """
    kept: list[Tensor] = []

    def keep(_: nn.Module, __: Any, output: Tensor) -> Tensor:
        # What follows gets a copy: an in-place ReLU would else overwrite what is kept. No graph is built below the
        # layer: the gradient ends here.
        kept[:] = [output.detach().clone().requires_grad_()]
        torch.set_grad_enabled(True)
        return kept[0].clone()

    exclusive, exact = classifier.exclusive(), exact_arithmetic(classifier.device)
    with exclusive as module, exact, torch.no_grad(), hook_layer(module.get_submodule(layer), keep):
        logits = module(send(inputs, classifier.device, copy=True))
        chosen = logits.gather(1, send(targets, classifier.device)[:, None]).sum()
        (gradient,) = differentiate(chosen, kept, allow_unused=True) if chosen.requires_grad else (None,)
    if gradient is None:
        raise make_unreached_error(classifier, layer)
    return Reading(*(values.detach().float().to(inputs.device) for values in (kept[0], gradient, logits)))


def make_unreached_error(classifier: Classifier, layer: str) -> ForetellError:
    """Return the error for a layer on which the target's logit does not depend."""
    return ForetellError(f"No gradient of {classifier.name} reaches its layer {layer!r}. Choose another layer.")
