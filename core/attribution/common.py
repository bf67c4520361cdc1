"""Functions that several methods share: checked targets, gradients without side effects, residuals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from core.errors import ForetellError
from core.network.classifier import Classifier
from core.network.cpu import Onednn
from core.network.device import chunk_size, in_chunks, send
from core.network.gradients import differentiate
from core.network.timing import is_onednn_faster
from core.types import Progress


def prepare_inputs(classifier: Classifier, images: Tensor, targets: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Return images (B, C, H, W) as a float32 copy and targets (B,) as indices, or raise an error."""
    refuse_shape(classifier, images)
    if len(targets) != len(images):
        raise ForetellError(f"{len(images)} images but {len(targets)} targets: give one target per image.")
    known = len(classifier.categories)
    for target in targets:
        if not 0 <= target < known:
            raise ForetellError(
                f"Target {target} is not a class of {classifier.name}: it has classes 0 to {known - 1}."
            )
    return images.detach().to("cpu", torch.float32, copy=True), torch.tensor(list(targets))


def refuse_shape(classifier: Classifier, images: Tensor) -> None:
    """Return the error for images that are not the network's inputs (B, C, H, W)."""
    if images.ndim != 4 or tuple(images.shape[1:]) != classifier.input_shape:
        raise ForetellError(
            f"{classifier.name} takes images (B, {', '.join(map(str, classifier.input_shape))}), "
            f"not {tuple(images.shape)}. Make its transforms give one size, and use classifier.preprocess."
        )


def output_gradient(classifier: Classifier, inputs: Tensor, targets: Tensor) -> Tensor:
    """Compute d logit[target] / d input, (B, C, H, W) float32, on the device of the inputs."""
    return gradient_and_logits(classifier, inputs, targets)[0]


def gradient_and_logits(classifier: Classifier, inputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Compute `output_gradient` and the logits (B, K) of the same pass, float32, on the device of the inputs."""
    device = inputs.device
    inputs = send(inputs.detach(), classifier.device).to(memory_format=classifier.layout).requires_grad_()
    targets = send(targets, classifier.device)
    with (
        classifier.differentiable() as network,
        torch.enable_grad(),
        _find_faster_way(classifier, network, inputs, targets),
    ):
        gradient, logits = _differentiate_logits(network, inputs, targets)
    return gradient.float().contiguous().to(device), logits.detach().float().to(device)


def _differentiate_logits(network: nn.Module, inputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    # A clone is no leaf, so that a network may begin with an in-place operation.
    logits = network(inputs.clone())
    (gradient,) = differentiate(logits.gather(1, targets[:, None]).sum(), inputs)
    return gradient, logits


def _find_faster_way(
    classifier: Classifier, network: nn.Module, inputs: Tensor, targets: Tensor
) -> AbstractContextManager[object]:
    """Return what gradients are computed in: oneDNN's own programs where this processor is faster with them."""
    if classifier.device.type != "cpu":
        return nullcontext()

    def differentiate_one(way: Callable[[], AbstractContextManager[object]]) -> None:
        with way():
            _differentiate_logits(network, inputs[:1].detach().requires_grad_(), targets[:1])

    ways = (partial(differentiate_one, way) for way in (nullcontext, Onednn))
    return Onednn() if is_onednn_faster(f"gradient of {classifier.architecture}", *ways) else nullcontext()


def in_parts(
    compute: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]],
    inputs: Tensor,
    targets: Tensor,
    device: torch.device,
    progress: Progress,
    what: str,
) -> tuple[Tensor, Tensor]:
    """Compute heatmaps and logits, as many inputs at a time as ``device`` takes, reporting progress after each part.

    ``compute`` gets its part on ``device``, and what it returns there is moved to the CPU, all at the end: of gradients
    (B, C, H, W) that it sums over the channels only the sums travel, and the processor waits once for any number of
    parts. A heatmap takes a fraction of the memory of its pass meanwhile.
    """
    done, heard = 0, []

    def part(rows: Tensor) -> Tensor:
        nonlocal done
        maps, logits = compute(send(inputs[rows], device), send(targets[rows], device))
        heard.append(logits)
        done += len(rows)
        progress(done, len(inputs), what)
        return maps

    maps = in_chunks(part, torch.arange(len(inputs)), chunk_size(inputs[0], device))
    return maps.cpu(), torch.cat(heard).cpu()


INCOMPLETE = 0.05
"""Share of the change by which a heatmap's sum may miss it without a warning."""
MANY = 2.0
"""Share of the change from which on it is said as a multiple."""


def shortfall(missed: float | None, remedy: str) -> tuple[str, ...]:
    """Return the warning of a heatmap whose `residual` is large, with what helps; else nothing."""
    if missed is None or abs(missed) <= INCOMPLETE:
        return ()
    by = f"{abs(missed):.0%} of that change" if abs(missed) < MANY else f"{abs(missed):.2g} times that change"
    return (f"The sum of this heatmap misses the change it explains by {by}. {remedy}",)


def complete(maps: Tensor, changes: Tensor, remedy: str) -> list[dict[str, Any]]:
    """Return what the certificates of heatmaps (B, H, W) say of their sums, which are to be ``changes`` (B,)."""
    missed = [residual(m, 0.0, change) for m, change in zip(maps, changes.tolist(), strict=True)]
    return [{"completeness": one, "warnings": shortfall(one, remedy)} for one in missed]


def residual(attribution: Tensor, start: float, end: float) -> float | None:
    """Return (sum of the heatmap - (f(x) - f(baseline))) / |f(x) - f(baseline)|; None where the difference is 0."""
    difference = end - start
    return (float(attribution.double().sum()) - difference) / abs(difference) if difference else None
