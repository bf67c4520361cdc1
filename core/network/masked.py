"""The masked-forward engine: images x masks -> the classifier's predictions, streamed.

Every method that asks "what would it predict if it saw only this part?" builds on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Literal

import torch
from torch import Tensor

from core.network.classifier import Classifier
from core.network.device import chunk_size, send, shares_passes

Output = Annotated[Literal["logit", "probability"], "Output of the class that is explained: its logit or probability."]
Fill = Annotated[Literal["mean", "black"], "Colour of masked parts: the data's mean colour, or black."]
Chunk = Annotated[int, "Images per forward pass, 0 for as many as memory allows. It changes speed, never the heatmap."]


def iterate_masked_logits(
    classifier: Classifier,
    images: Tensor,
    masks: Iterable[Tensor],
    *,
    fill: Tensor,
    chunk: int | None = None,
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield for each block of masks the classifier's logits for each masked image.

    Parameters
    ----------
    images
        (B, C, H, W) inputs of the network.
    masks
        Blocks (n, H, W) with values in [0, 1]; every image gets the same masks, so that images and classes
        compare under common random numbers.
    fill
        (C, H, W) or (C, 1, 1), what is shown where the mask is 0, in the network's input space. The masked image is
        ``fill + m * (x - fill)``: under the linear normalisation this is the product m * x of the paper for
        black fill.
    chunk
        Masked images per forward pass; the memory budget's by default.

    Yields
    ------
    block, logits
        (n, H, W) float32 where the masks are, and (B, n, K) float64 on the network's device.
    """
    chunk, device = chunk or chunk_size(images[0], classifier.device), classifier.device
    differences, neutral = send(images - fill, device), send(fill, device)
    # A chunk at a time, as the masked images of a block can be more than the budget of a forward pass.
    width = min(len(images), chunk) if shares_passes(device) else 1
    for block in masks:
        predictions, parts = [], torch.split(send(block, device), max(1, chunk // width))
        for some in torch.split(differences, width):
            shown = ((some * part[:, None, None] + neutral).flatten(0, 1) for part in parts)
            logits = [classifier.logits(pairs, chunk=chunk, keep=True) for pairs in shown]
            predictions.append(torch.cat([one.view(-1, len(some), one.shape[1]).transpose(0, 1) for one in logits], 1))
        # float64: in float32 the softmax of a confident network underflows to zeros, which have no weight.
        yield block, torch.cat(predictions).double()


def iterate_masked_scores(
    classifier: Classifier,
    images: Tensor,
    targets: Tensor,
    masks: Iterable[Tensor],
    *,
    fill: Tensor,
    output: Output,
    chunk: int | None = None,
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield `iterate_masked_logits` of the targets (B,) alone: (n, H, W) float32 and (B, n) float64 for each block."""
    targets = send(targets, classifier.device)
    for block, logits in iterate_masked_logits(classifier, images, masks, fill=fill, chunk=chunk):
        yield block, select_output(logits, targets[:, None].expand(-1, len(block)), output)


def scores(classifier: Classifier, inputs: Tensor, targets: Tensor, output: Output) -> Tensor:
    """Compute f(x) (B,) float64 of whole inputs (B, C, H, W) for targets (B,): `iterate_masked_scores` unmasked."""
    return select_output(classifier.logits(inputs).double(), targets, output)


def select_output(logits: Tensor, targets: Tensor, output: Output) -> Tensor:
    """Return the output of the target class: logits (..., K) and targets (...) -> (...)."""
    predictions = logits.softmax(-1) if output == "probability" else logits
    return predictions.gather(-1, send(targets, logits.device)[..., None])[..., 0]
