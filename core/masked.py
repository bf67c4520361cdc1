"""The one masked-forward engine: pictures x masks -> the classifier's answers, streamed.

Every method that asks "what would it say if it saw only this part?" stands on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor

from core.classifier import Classifier
from core.device import chunk_size


def masked_probabilities(
    classifier: Classifier,
    images: Tensor,
    masks: Iterable[Tensor],
    *,
    fill: Tensor,
    chunk: int | None = None,
) -> Iterator[tuple[Tensor, Tensor]]:
    """For each block of masks, the classifier's answer to each masked picture.

    Parameters
    ----------
    images
        (B, C, H, W) inputs of the network.
    masks
        Blocks (n, H, W) with values in [0, 1]; every picture gets the same masks, so that pictures and classes
        compare under common random numbers.
    fill
        (C, H, W) or (C, 1, 1), what stands where the mask is 0, in the network's input space. The masked picture is
        ``fill + m * (x - fill)``: under the linear normalisation this is the product m * x of the paper for
        black fill.
    chunk
        Masked pictures per forward pass; the memory budget's by default.

    Yields
    ------
    block, probabilities
        (n, H, W) float32 and (B, n, K) float64.
    """
    chunk = chunk or chunk_size(images[0])
    for block in masks:
        answers = []
        for image in images:
            shown = (image - fill)[None] * block[:, None]
            logits = classifier.logits(shown.add_(fill), chunk=chunk)
            # float64: in float32 the softmax of a sure network underflows to zeros, and zeros weigh nothing.
            answers.append(logits.double().softmax(1))
        yield block, torch.stack(answers)
