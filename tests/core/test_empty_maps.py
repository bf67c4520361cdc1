"""Heatmaps without evidence: every method warns of one, and says what may help."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from core.attribution import METHODS
from core.attribution.gradients.plain import gradient
from core.errors import ForetellError
from core.network.classifier import Classifier
from tests.core.networks import pictures, unit
from tests.core.test_contracts import explain


class Opponent(nn.Module):
    """Red against green at every pixel, as colour-opponent cells compute it: the channels' slopes cancel."""

    def forward(self, x):
        difference = (x[:, 0] - x[:, 1]).mean((1, 2))
        return torch.stack([difference, -difference], 1)


class Dead(nn.Module):
    """A network whose ReLU is closed for every image."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.relu = nn.ReLU()
        self.head = nn.Linear(4, 3)
        nn.init.constant_(self.conv.bias, -100.0)

    def forward(self, x):
        return self.head(self.relu(self.conv(x)).mean((2, 3)))


def opponent():
    return Classifier(Opponent(), unit, ["red", "green"], name="opponent")


def test_the_largest_value_over_channels_sees_a_colour_opponent_detector():
    """Closed form: slopes 1/n, -1/n and 0 of the channels, whose sum is 0 and largest absolute value 1/n."""
    images = pictures(1)
    empty = gradient(opponent(), images, [0])
    assert not empty.map.any()
    (warning,) = empty.certificates[0].warnings
    assert warning == (
        "This heatmap is empty: it is 0 everywhere, the value of a place that is no evidence. The channels of each "
        "pixel may cancel: try channels='largest'."
    )
    found = gradient(opponent(), images, [0], channels="largest")
    torch.testing.assert_close(found.map, torch.full((1, *images.shape[2:]), 1 / images[0, 0].numel()))
    assert found.certificates[0].warnings == ()
    assert found.certificates[0].parameters == {"channels": "largest"}


@pytest.mark.parametrize("name", sorted(set(METHODS) - {"attention_rollout", "transformer_attribution"}))
def test_every_method_warns_of_an_empty_heatmap(name):
    """A dead ReLU: only the class activation maps said so."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = Classifier(Dead(), unit, ["ant", "bee", "cat"], name="dead")
    try:
        explanation = explain(name, network, pictures(1), [0])
    except ForetellError:  # in words, which the tests of the method read
        return
    if float(explanation.evidence.abs().max()) < 1e-6:
        assert any("This heatmap is empty" in one for one in explanation.certificates[0].warnings)
    else:  # a deconvnet passes every ReLU, and the areas of extremal perturbation have a size
        assert name in {"deconvnet", "extremal_perturbation"}
