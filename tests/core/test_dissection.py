"""What single units of a layer are about: agreement with concepts, and what deleting them costs."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from core.errors import ForetellError
from core.layers.deletion import delete_units
from core.layers.dissection import dissect
from core.network.classifier import Classifier
from tests.core.test_representation import drawn

# Dissection


def slow_agreement(maps, masks, top):
    """Bau et al. 2017, section 2, a pixel at a time as it were."""
    found = np.zeros((maps.shape[1], masks.shape[1]))
    for k in range(maps.shape[1]):
        values = np.sort(maps[:, k].numpy().ravel())[::-1]
        threshold = values[int(top * len(values))]
        large = F.interpolate(maps[:, k : k + 1], masks.shape[2:], mode="bilinear", align_corners=False)[:, 0]
        lit = large.numpy() > threshold
        for m in range(masks.shape[1]):
            concept = masks[:, m].numpy()
            found[k, m] = (lit & concept).sum() / (lit | concept).sum()
    return found


def test_agreement_is_that_of_the_paper():
    maps = torch.randn(20, 3, 6, 5, generator=drawn())
    masks = torch.rand(20, 4, 24, 20, generator=drawn(1)) > 0.8
    found = dissect(maps, masks, list("abcd"), top=0.05)
    np.testing.assert_allclose(found.agreement.numpy(), slow_agreement(maps, masks, 0.05), atol=1e-12)


def test_a_planted_detector_is_found_and_noise_is_not():
    masks = torch.zeros(40, 2, 32, 32, dtype=torch.bool)
    for i in range(40):  # "dog" in every second picture, "cat" in the others, an eighth of the picture
        row = int(torch.randint(0, 24, (1,), generator=drawn(i)))
        masks[i, i % 2, row : row + 8, 8:24] = True
    dog = masks[:, :1].float() + 0.01 * torch.randn(40, 1, 32, 32, generator=drawn(1))
    maps = torch.cat([dog, torch.randn(40, 1, 32, 32, generator=drawn(2))], 1)
    found = dissect(maps, masks, ["dog", "cat"], top=0.0625)
    assert found.best[1][0] == 0
    assert float(found.agreement[0, 0]) > 0.99
    assert found.detects.tolist() == [True, False]
    with pytest.raises(ForetellError, match="is none: give more images"):
        dissect(maps[:1, :, :4, :4], masks[:1], ["dog", "cat"])
    with pytest.raises(ForetellError, match="for 1 names"):
        dissect(maps, masks, ["dog"])


# Deletion


class Sum(nn.Module):
    """Logits of the picture's mean colours through two features, one for each class."""

    def __init__(self) -> None:
        super().__init__()
        self.features, self.head = nn.Linear(3, 2, bias=False), nn.Linear(2, 2, bias=False)
        with torch.no_grad():
            self.features.weight.copy_(torch.tensor([[1.0, 0, 0], [0, 1, 0]]))
            self.head.weight.copy_(torch.tensor([[2.0, 0], [0, 1]]))

    def forward(self, x):
        return self.head(self.features(x.mean((2, 3))))


def coloured(image):
    return torch.from_numpy(np.asarray(image).copy()).float().permute(2, 0, 1) / 255


def test_deleting_a_unit_costs_its_class_the_closed_form():
    """Logits 2 r and g: without unit 0 class 0 keeps 1 / (1 + exp(g)) of 1 / (1 + exp(g - 2 r))."""
    colours = torch.tensor([[0.9, 0.2, 0], [0.5, 0.1, 0], [0.1, 0.8, 0], [0.0, 0.6, 0]])
    inputs = colours[:, :, None, None].expand(4, 3, 2, 2)
    found = delete_units(Classifier(Sum(), coloured, name="sum"), inputs, torch.tensor([0, 0, 1, 1]), "features")
    r, g = colours[:2, 0].double(), colours[:2, 1].double()
    drops = torch.sigmoid(2 * r - g) - torch.sigmoid(-g)
    assert float(found.drop[0, 0]) == pytest.approx(float(drops.mean()), rel=1e-6)
    assert float(found.error[0, 0]) == pytest.approx(float(drops.std() / 2**0.5), rel=1e-6)
    assert float(found.drop[1, 0]) < 0 < float(found.drop[1, 1])  # unit 1 speaks against class 0
    assert found.whole.tolist() == [1, 1]
    assert found.accuracy.tolist() == [[0, 1], [1, 0]]
    with pytest.raises(ForetellError, match="two or more images of each class"):
        delete_units(Classifier(Sum(), coloured, name="sum"), inputs, torch.tensor([0, 0, 0, 1]), "features")
