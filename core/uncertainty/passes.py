"""Many forward passes under noise, as few and as large as the memory allows."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from core.attribution.common import refuse_shape
from core.attribution.rectifiers import hides_calls
from core.classifier import Classifier
from core.device import chunk_size, draw_seed, in_chunks
from core.errors import ForetellError
from core.types import Progress
from core.uncertainty.draws import Draws
from core.uncertainty.noise import DROPOUTS, Kind, Noise
from core.uncertainty.strength import refuse_last

TOLERANCE = 1e-4
"""Largest difference of logits, relative to the largest, between one picture's passes made together and apart."""


def with_noisy_values(
    classifier: Classifier,
    images: Tensor,
    kind: Kind,
    passes: int,
    generator: torch.Generator | None,
    progress: Progress,
    *,
    last: int = 0,
) -> Tensor:
    """Logits (B, T, K) of T passes with noise on values, in the ``last`` calls it meets (0: in all).

    What comes before the first noisy value is the same in all passes and is computed once: there one picture stands
    for all, and broadcasts with the T noisy ones after it. A network that cannot take that (it is tried) gets T copies.
    """
    inputs, seed = checked(classifier, images, passes, generator)
    with classifier.differentiable() as module, torch.inference_mode():
        first = _first(classifier, module, inputs[:1], kind, seed, last)
        chunk, together = _tried(module, inputs[:1], kind, seed, first)
        found = []
        for i, x in enumerate(inputs):

            def some(rows: Tensor, x: Tensor = x[None]) -> Tensor:
                given = x if together else x.expand(len(rows), -1, -1, -1)
                return _once(module, given.clone(memory_format=classifier.layout), kind, seed, rows.tolist(), first)[0]

            found.append(in_chunks(some, torch.arange(passes), chunk).float().cpu())
            progress(i + 1, len(inputs), "asking again under noise")
    return torch.stack(found)


def with_noisy_weights(
    classifier: Classifier,
    images: Tensor,
    kind: Kind,
    passes: int,
    generator: torch.Generator | None,
    progress: Progress,
    *,
    last: int = 0,
) -> Tensor:
    """Logits (B, T, K) of T passes with noise on the weights of the ``last`` layers (0: of all), one draw for each."""
    inputs, seed = checked(classifier, images, passes, generator)
    with classifier.exclusive() as module, torch.inference_mode():
        first = _first(classifier, module, inputs[:1], kind, seed, last)
        found = []
        for row in range(passes):

            def some(x: Tensor, row: int = row) -> Tensor:
                return _once(module, x.clone(), kind, seed, [row], first)[0]

            found.append(in_chunks(some, inputs, chunk_size(inputs[0])).float().cpu())
            progress(row + 1, passes, "asking again under noise")
    return torch.stack(found, 1)


def checked(
    classifier: Classifier, images: Tensor, passes: int, generator: torch.Generator | None
) -> tuple[Tensor, int]:
    """Images (B, C, H, W) on the network's device and the seed of all passes, or what is wrong in a sentence."""
    refuse_shape(classifier, images)
    if passes < 2:
        raise ForetellError(f"passes={passes}: uncertainty is how far answers are apart, so ask at least twice.")
    return images.to(classifier.device), draw_seed(generator or torch.Generator().manual_seed(0))


def _once(
    module: nn.Module, inputs: Tensor, kind: Kind, seed: int, rows: Sequence[int], first: int
) -> tuple[Tensor, Noise]:
    with Noise(kind, Draws(seed, rows), first) as noise:
        logits: Tensor = module(inputs)
    return logits, noise


def _first(classifier: Classifier, module: nn.Module, x: Tensor, kind: Kind, seed: int, last: int) -> int:
    """How many calls that the noise meets come before the ``last`` (0: all), or the sentence that it meets none."""
    if hides_calls(module):
        raise ForetellError(
            f"{classifier.name} has TorchScript or compiled parts, into which no noise can be put. Load it uncompiled, "
            "or use laplace."
        )
    refuse_last(last)
    _, noise = _once(module, x.clone(), kind, seed, [0], 0)
    if not noise.met:
        what = " or ".join(sorted(kind.meets)) + (" of a rate above 0" if kind.meets is DROPOUTS else "")
        raise ForetellError(
            f"{classifier.name} has no {what} to put noise on. inserted_dropout works on any network with "
            "convolutions or linear layers, laplace on any with a linear last layer."
        )
    return max(0, noise.met - last) if last else 0


def _tried(module: nn.Module, x: Tensor, kind: Kind, seed: int, first: int) -> tuple[int, bool]:
    """Passes at once, and whether one picture may stand for all before the noise."""
    rows = [0, 1]
    apart, _ = _once(module, x.expand(2, -1, -1, -1).clone(), kind, seed, rows, first)
    try:
        shared, noise = _once(module, x.clone(), kind, seed, rows, first)
        scale = max(1.0, float(apart.abs().max()))
        together = shared.shape == apart.shape and bool((shared - apart).abs().max() <= TOLERANCE * scale)
    except Exception:  # a network that counts its inputs may raise anything
        together = False
    if together and noise.smallest is not None:
        return chunk_size(noise.smallest.float()), True
    return chunk_size(x[0]), False
