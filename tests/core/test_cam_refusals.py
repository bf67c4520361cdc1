"""Where methods of class activation maps do not apply, and what they warn of."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from core.attribution.maps.cam import cam, grad_cam, grad_cam_plus_plus, layer_cam
from core.errors import ForetellError
from core.network.classifier import Classifier
from tests.core.networks import SIDE, awkward, pictures, unit
from tests.core.test_cam import Pooled, pooled

LAYERED = [grad_cam, grad_cam_plus_plus, layer_cam]


class Idle(Pooled):
    """Has a layer that runs and goes nowhere."""

    def __init__(self) -> None:
        super().__init__()
        self.idle = nn.Conv2d(3, 2, 1)

    def forward(self, x):
        self.idle(x)
        return super().forward(x)


def flat() -> Classifier:
    network = nn.Sequential(nn.Flatten(), nn.Linear(3 * SIDE * SIDE, 2))
    return Classifier(network, unit, name="flat")


def unpooled() -> Classifier:
    network = nn.Sequential(nn.Conv2d(3, 2, 1), nn.Flatten(), nn.Linear(2 * SIDE * SIDE, 2))
    return Classifier(network, unit, name="unpooled")


def no_head() -> Classifier:
    network = nn.Sequential(nn.Conv2d(3, 2, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return Classifier(network, unit, name="headless")


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: grad_cam(awkward(), pictures(1), [0], layer="convv2"), "awkward has no layer 'convv2'. .*'conv2'"),
        (lambda: layer_cam(awkward(), pictures(1), [0], layer="head"), "Layer 'head' of awkward gives no feature maps"),
        (lambda: grad_cam(flat(), pictures(1), [0]), "flat has no layer with feature maps .* Use a method"),
        (lambda: grad_cam(Classifier(Idle(), unit, name="i"), pictures(1), [0], layer="idle"), "No gradient of i"),
        (lambda: cam(unpooled(), pictures(1), [0]), "unpooled does not end in global .* Use grad_cam"),
        (lambda: cam(no_head(), pictures(1), [0]), "headless does not end in global .* Use grad_cam"),
        (lambda: grad_cam_plus_plus(negative(), pictures(1), [0]), "grad_cam_plus_plus divides by 0 or less"),
    ],
)
def test_what_cannot_be_explained_is_said(make, text):
    with pytest.raises(ForetellError, match=text):
        make()


def negative() -> Classifier:
    """Features of about -100 each that raise the first logit."""
    network = nn.Sequential(nn.Conv2d(3, 1, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1, 2))
    with torch.no_grad():
        network[0].bias.fill_(-100)
        network[3].weight.fill_(1)
    return Classifier(network, unit, name="negative")


@pytest.mark.parametrize("method", LAYERED)
def test_a_map_of_nothing_warns(method):
    """All weights of the class negative, all activations positive: nothing speaks for it."""
    classifier = pooled()
    with classifier.exclusive() as module, torch.no_grad():
        module.head.weight[0].abs_().neg_()
    certificates = method(classifier, pictures(1), [0]).certificates
    (warning,) = certificates[0].warnings
    assert warning.startswith("This heatmap is empty: it is 0 everywhere")
    assert "Nothing in layer 'relu' is evidence for this class" in warning
    assert method(awkward(), pictures(1), [0], layer="bn", sign="signed").certificates[0].warnings == ()
