"""Erasure between two classes: do the heatmaps identify the pixels that favour one class over the other?

Shrikumar, Greenside & Kundaje 2017 (arXiv:1704.02685), section 4.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from core.attribution.baselines import baselines
from core.attribution.common import prepare_inputs
from core.errors import ForetellError
from core.faithfulness.curves import Substrate
from core.faithfulness.ranking import fitting, ranks
from core.network.classifier import Classifier


@dataclass(frozen=True)
class Erasure:
    """Effect of erasing the pixels that favour one class over another.

    Attributes
    ----------
    share, substrate
        The settings it was made with.
    erased
        (B,) int64: pixels erased; fewer than allowed where fewer favour the class.
    before, after
        (B,) float64: log-odds of the class against the other, in the whole image and in what is left.
    """

    share: float
    substrate: str
    erased: Tensor
    before: Tensor
    after: Tensor

    @property
    def change(self) -> Tensor:
        """Log-odds lost, (B,) float64: large for faithful heatmaps."""
        return self.before - self.after


def log_odds_erasure(
    classifier: Classifier,
    images: Tensor,
    targets: Sequence[int],
    others: Sequence[int],
    maps: Tensor,
    other_maps: Tensor,
    *,
    share: float = 0.2,
    substrate: Substrate = "mean",
) -> Erasure:
    """Measure the log-odds of a class against another lost by erasing the pixels that favour it most.

    Pixels go by decreasing ``maps - other_maps`` (B, H, W), the maps of ``targets`` and ``others``; only those above
    0, and at most ``share`` of the image, rounded to whole pixels. Each image is compared with one ``substrate``.

    Raises
    ------
    ForetellError
        Heatmaps that do not fit the images or are not finite; a class against itself; a share out of range.
    """
    if not 0 < share <= 1:
        raise ForetellError(f"share={share}: give the share of pixels that may be erased, above 0 and up to 1.")
    inputs, classes = prepare_inputs(classifier, images, targets)
    _, against = prepare_inputs(classifier, images, others)
    if bool((classes == against).any()):
        raise ForetellError("A class has no odds against itself: give two different classes for each image.")
    favour = fitting(maps, inputs).double() - fitting(other_maps, inputs).double()
    budget = int(share * favour[0].numel() + 0.5)
    gone = (ranks(favour) < budget) & (favour > 0)
    left = torch.where(gone[:, None], baselines(classifier, inputs, substrate, 0), inputs)
    before, after = (_log_odds(classifier, seen, classes, against) for seen in (inputs, left))
    return Erasure(share, substrate, gone.sum((1, 2)), before, after)


def _log_odds(classifier: Classifier, inputs: Tensor, classes: Tensor, against: Tensor) -> Tensor:
    logits = classifier.logits(inputs).double()
    one, other = (logits.gather(1, chosen[:, None])[:, 0] for chosen in (classes, against))
    return one - other
