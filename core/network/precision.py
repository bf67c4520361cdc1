"""Predictions with fewer digits than float32, for networks whose logits they hardly change."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from core.errors import ForetellError
from core.network.classifier import Classifier
from core.network.examination import probe_inputs

PRECISIONS = {"bfloat16": torch.bfloat16, "float16": torch.float16}
TOLERANCE = 0.02
"""Largest change of a logit, as a share of the distance between an image's largest and smallest logit."""


def lower_precision(classifier: Classifier, given: Sequence[str]) -> None:
    """Predict with the last precision of ``given`` from now on, if the network's logits allow it.

    Convolutions and products of matrices then take their factors in fewer bits (PyTorch's autocast): several times
    faster on a GPU, slower on most CPUs. Gradients stay float32.

    Raises
    ------
    ForetellError
        An unknown precision, or logits of probe images that change by more than `TOLERANCE`.
    """
    name = given[-1]
    if name not in PRECISIONS:
        raise ForetellError(f"precision={name} is unknown. Use bfloat16 or float16; without it, float32.")
    inputs = probe_inputs(classifier)
    exact, display = classifier.logits(inputs), classifier.name
    classifier.predict_in(PRECISIONS[name])
    moved = float((classifier.logits(inputs) - exact).abs().max() / (exact.amax(1) - exact.amin(1)).max())
    if not moved <= TOLERANCE:
        raise ForetellError(
            f"In {name}, logits of {display} change by {moved:.1%} of their range; at most {TOLERANCE:.0%} is "
            f"allowed. Leave out precision={name}."
        )
