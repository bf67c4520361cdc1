"""Many references to measure from: random, or a user's own."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

import torch
from torch import Tensor

from core.attribution.baselines import colour, noise
from core.errors import ForetellError
from core.network.classifier import Classifier

ReferenceSource = Annotated[
    Literal["colours", "noise"],
    "References: images of one random colour each, so that no colour counts as nothing, or of random pixels (noise).",
]
Pick = Callable[[torch.Generator], Tensor]
"""Draws one reference (C, H, W)."""
SOURCES: Mapping[str, Callable[[Classifier, torch.Generator], Tensor]] = {"colours": colour, "noise": noise}


def picker(classifier: Classifier, source: ReferenceSource, references: Tensor | None) -> Pick:
    """Return a function that draws from the source, or from the user's own references."""
    if references is None:
        return lambda generator: SOURCES[source](classifier, generator)
    if tuple(references.shape[1:]) != classifier.input_shape or not len(references):
        raise ForetellError(
            f"References {tuple(references.shape)} are no inputs of {classifier.name}: "
            f"give (N, {', '.join(map(str, classifier.input_shape))}) with N of at least 1."
        )
    own = references.detach().to("cpu", torch.float32)
    return lambda generator: own[int(torch.randint(len(own), (), generator=generator))]


def describe_references(source: ReferenceSource, references: Tensor | None) -> dict[str, Any]:
    """Describe the references in the certificate: their source, or their number and SHA-256."""
    if references is None:
        return {"source": source}
    own = references.detach().to("cpu", torch.float32).contiguous()
    return {"references": len(own), "references_sha256": hashlib.sha256(own.numpy().tobytes()).hexdigest()}
