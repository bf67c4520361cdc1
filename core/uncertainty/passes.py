"""Many forward passes under noise, as few and as large as the memory allows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Annotated, Any, Protocol

import torch
from torch import Tensor, nn

from core.attribution.common import refuse_shape
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.network.device import chunk_size, draw_seed, in_chunks
from core.network.interception import hides_calls
from core.parameters import join_signatures
from core.types import Progress, silent
from core.uncertainty.draws import Draws
from core.uncertainty.noise import DROPOUTS, Noise, NoiseKind
from core.uncertainty.strength import refuse_last

Passes = Annotated[int, "Number of predictions that are drawn for each image (T)."]
LastLayers = Annotated[int, "Number of layers with noise, counted from the output; 0 for all."]
TOLERANCE = 1e-4
"""Largest difference of logits, relative to the largest, between one image's passes made together and apart."""


class Sampler(Protocol):
    """A sampler as it is called: `sampler` makes one of a function that returns a kind of noise."""

    def __call__(
        self,
        classifier: Classifier,
        images: Tensor,
        *,
        passes: Passes = 100,
        generator: torch.Generator | None = None,
        progress: Progress = silent,
        last: LastLayers = 0,
        **parameters: Any,
    ) -> Tensor:
        """Compute logits (B, T, K) of T passes with noise in the ``last`` layers that it meets (0: in all)."""


def sampler(function: Callable[..., NoiseKind]) -> Sampler:
    """Make a sampler of ``function(*, ...)``, whose keyword arguments are the sampler's parameters."""

    @wraps(function)
    def sample(
        classifier: Classifier,
        images: Tensor,
        *,
        passes: Passes = 100,
        generator: torch.Generator | None = None,
        progress: Progress = silent,
        last: LastLayers = 0,
        **parameters: Any,
    ) -> Tensor:
        inputs, seed = prepare_passes(classifier, images, passes, generator)
        kind = function(**parameters)
        # Weights are changed in the network itself; noise on values has room in its faster copy.
        borrowed = classifier.exclusive() if kind.on_weights else classifier.use_fast_copy()
        with borrowed as module, torch.inference_mode():
            first = _first(classifier, module, inputs[:1], kind, seed, last)
            noisy = partial(_once, module, kind=kind, seed=seed, first=first)
            by = _by_pass if kind.on_weights and not last else _by_image
            return by(noisy, inputs.contiguous(memory_format=classifier.layout), passes, progress)

    sample.__signature__ = join_signatures(Sampler.__call__, function)  # type: ignore[attr-defined]
    sample.__annotations__ = {"passes": Passes, "last": LastLayers} | function.__annotations__
    return sample


class _Noisy(Protocol):
    def __call__(self, inputs: Tensor, *, rows: Sequence[int]) -> tuple[Tensor, Noise]:
        """Return logits of inputs (B, C, H, W) in passes ``rows``, and the noise that they ran under."""


def _by_image(noisy: _Noisy, inputs: Tensor, passes: int, progress: Progress) -> Tensor:
    """Run all passes of one image at a time, what comes before the first noisy value computed once for all of them.

    There one image serves for all, and broadcasts with the T noisy ones after it. A network that cannot take that
    (it is tried) gets T copies.
    """
    chunk, together = _probe_batching(noisy, inputs[:1])
    logits_by_image = []
    for i, x in enumerate(inputs):

        def some(rows: Tensor, x: Tensor = x[None]) -> Tensor:
            given = x if together else x.expand(len(rows), -1, -1, -1)
            return noisy(given.clone(), rows=rows.tolist())[0]

        logits_by_image.append(in_chunks(some, torch.arange(passes), chunk).float().cpu())
        progress(i + 1, len(inputs), "asking again under noise")
    return torch.stack(logits_by_image)


def _by_pass(noisy: _Noisy, inputs: Tensor, passes: int, progress: Progress) -> Tensor:
    """Run all images of one pass at a time: with noise on all weights, they share what it cost to draw."""
    logits_by_pass = []
    for row in range(passes):

        def some(x: Tensor, row: int = row) -> Tensor:
            return noisy(x.clone(), rows=[row])[0]

        logits_by_pass.append(in_chunks(some, inputs, chunk_size(inputs[0])).float().cpu())
        progress(row + 1, passes, "asking again under noise")
    return torch.stack(logits_by_pass, 1)


def prepare_passes(
    classifier: Classifier, images: Tensor, passes: int, generator: torch.Generator | None
) -> tuple[Tensor, int]:
    """Return images (B, C, H, W) on the network's device and the seed of all passes, or raise an error."""
    refuse_shape(classifier, images)
    if passes < 2:
        raise ForetellError(f"passes={passes}: uncertainty measures how far predictions differ, so use at least 2.")
    return images.to(classifier.device), draw_seed(generator or torch.Generator().manual_seed(0))


def _once(
    module: nn.Module, inputs: Tensor, *, kind: NoiseKind, seed: int, rows: Sequence[int], first: int
) -> tuple[Tensor, Noise]:
    with Noise(kind, Draws(seed, rows), first) as noise:
        logits: Tensor = module(inputs)
    return logits, noise


def explain_refusal(classifier: Classifier, sample: Sampler) -> str:
    """Return why a sampler of noise does not fit a network, found by one forward pass; empty if it fits."""
    kind = sample.__wrapped__()  # type: ignore[attr-defined]
    try:
        with classifier.use_fast_copy() as module, torch.inference_mode():
            _first(classifier, module, classifier.fill("black")[None].to(classifier.device), kind, 0, 0)
    except ForetellError as error:
        return str(error)
    except (RuntimeError, TypeError, ValueError) as error:  # a network of the user's that cannot run under this noise
        return f"{classifier.name} cannot run under this noise: {error}"
    return ""


def _first(classifier: Classifier, module: nn.Module, x: Tensor, kind: NoiseKind, seed: int, last: int) -> int:
    """Count the noisy calls before the ``last`` (0: all), or raise the error that there are none."""
    if hides_calls(module):
        raise ForetellError(
            f"{classifier.name} has TorchScript or compiled parts, which admit no noise. Load it uncompiled, "
            "or use laplace."
        )
    refuse_last(last)
    _, noise = _once(module, x.clone(), kind=kind, seed=seed, rows=[0], first=0)
    if not noise.met:
        if kind.meets is DROPOUTS:
            raise ForetellError(
                f"{classifier.name} has no dropout with a rate above 0. Inserted dropout works on any network with "
                "convolutions or linear layers."
            )
        raise ForetellError(
            f"{classifier.name} has no convolution or linear layer for this noise. Use a network that has one."
        )
    return max(0, noise.met - last) if last else 0


def _probe_batching(noisy: _Noisy, x: Tensor) -> tuple[int, bool]:
    """Return the passes at once, and whether one image may serve all before the noise."""
    rows = [0, 1]
    apart, _ = noisy(x.expand(2, -1, -1, -1).clone(), rows=rows)
    try:
        shared, noise = noisy(x.clone(), rows=rows)
        scale = max(1.0, float(apart.abs().max()))
        together = shared.shape == apart.shape and bool((shared - apart).abs().max() <= TOLERANCE * scale)
    except Exception:  # a network that counts its inputs may raise anything
        together = False
    if together and noise.smallest is not None:
        return chunk_size(noise.smallest.float()), True
    return chunk_size(x[0]), False
