"""A region that is replaced, against a network whose answer depends on one known patch only."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn.functional import softmax

from core.attribution.baselines import baselines
from core.errors import ForetellError
from core.faithfulness.region import replace_region
from core.network.classifier import Classifier

SIDE = 16
PATCH = (slice(2, 6), slice(3, 9))


class ReadsAPatch(nn.Module):
    """Two logits: the sum of the patch, and 0."""

    def forward(self, x: Tensor) -> Tensor:
        seen = x[:, :, PATCH[0], PATCH[1]].sum((1, 2, 3))
        return torch.stack([seen, torch.zeros_like(seen)], 1)


@pytest.fixture
def classifier() -> Classifier:
    def transforms(image: Image.Image) -> Tensor:
        return torch.from_numpy(np.array(image.resize((SIDE, SIDE)))).permute(2, 0, 1).float() / 255

    return Classifier(ReadsAPatch(), transforms, ["much", "little"], name="reads a patch")


def region_of(rows: slice, columns: slice) -> Tensor:
    region = torch.zeros(SIDE, SIDE, dtype=torch.bool)
    region[rows, columns] = True
    return region


@pytest.mark.parametrize("substrate", ["black", "blur", "noise"])
def test_the_prediction_without_the_patch_is_the_closed_form(classifier: Classifier, substrate: str) -> None:
    """Catches a fill outside the region, or none inside: the logit is the sum over the patch."""
    x = torch.rand(3, SIDE, SIDE) / 40
    found = replace_region(classifier, x, region_of(*PATCH), substrate=substrate, seed=3)  # type: ignore[arg-type]
    fill = baselines(classifier, x[None], substrate, 3)[0]
    for probabilities, source in ((found.before, x), (found.after, fill)):
        logit = source[:, PATCH[0], PATCH[1]].sum()
        torch.testing.assert_close(probabilities, softmax(torch.stack([logit, torch.tensor(0.0)]), 0))
    assert found.share == pytest.approx(24 / 256)
    assert torch.equal(found.replaced[:, 6:], x[:, 6:])


def test_elsewhere_is_the_same_shape_in_other_places(classifier: Classifier) -> None:
    """Catches a comparison with the region itself: next to the patch, only places that overlap it change anything."""
    x = torch.full((3, SIDE, SIDE), 0.02)
    found = replace_region(classifier, x, region_of(*PATCH), substrate="black", places=200)
    logits = found.elsewhere.logit()[:, 0]
    lost = (found.before.logit()[0] - logits) / (3 * 0.02)  # pixels of the patch that were replaced
    torch.testing.assert_close(lost, lost.round(), atol=1e-3, rtol=0)
    assert len(logits) == 200
    assert lost.max() < 24
    assert (lost == 0).float().mean() > 0.3
    # Over all 255 moves around the image the overlap is (24 * 24 - 24) / 255 on average; 200 draws err by about .3.
    assert abs(float(lost.mean()) - (24 * 24 - 24) / 255) < 1.2


def test_the_same_seed_gives_the_same_places(classifier: Classifier) -> None:
    x = torch.rand(3, SIDE, SIDE) / 40
    one, same, other = (replace_region(classifier, x, region_of(*PATCH), seed=s).elsewhere for s in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_a_region_that_is_none_is_refused(classifier: Classifier) -> None:
    x = torch.rand(3, SIDE, SIDE)
    with pytest.raises(ForetellError, match="empty"):
        replace_region(classifier, x, torch.zeros(SIDE, SIDE, dtype=torch.bool))
    with pytest.raises(ForetellError, match="pixels"):
        replace_region(classifier, x, torch.ones(SIDE, 3, dtype=torch.bool))
