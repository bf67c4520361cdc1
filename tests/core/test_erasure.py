from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from core.attribution.maps.erasure import channel_importance, erasure, surprise
from core.errors import ForetellError
from core.network.classifier import Classifier
from tests.core.networks import SIDE, awkward, pictures, unit


def plain_surprise(logits: torch.Tensor, target: int) -> torch.Tensor:
    return -logits.double().log_softmax(-1)[..., target]


def pooled(places: int = 4) -> Classifier:
    """A convolution, average pooling to places x places, one linear layer."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        layers = nn.Conv2d(3, 2, 3, padding=1), nn.AdaptiveAvgPool2d(places), nn.Flatten()
        network = nn.Sequential(*layers, nn.Linear(2 * places**2, 3))
        nn.init.normal_(network[3].weight)
    return Classifier(network, unit, name="pooled")


def test_places_before_a_linear_layer_are_columns_of_its_weights():
    """Exact: erasing a place is the same as setting its weights to 0, logit by logit; 16 places of 3 x 3 px."""
    classifier, images = pooled(), pictures(2)
    found = erasure(classifier, images, [2, 0], layer="1")
    with classifier.exclusive() as module:
        weight, bias = module[3].weight.detach(), module[3].bias.detach()
        features = module[:3](images).detach()
    expected = torch.zeros(2, 16, dtype=torch.float64)
    for i, target in enumerate([2, 0]):
        whole = plain_surprise(features[i] @ weight.T + bias, target)
        for place in range(16):
            cut = weight.clone().view(3, 2, 16)
            cut[:, :, place] = 0
            without = plain_surprise(features[i] @ cut.view(3, 32).T + bias, target)
            expected[i, place] = (without - whole) / whole
        assert found.certificates[i].parameters == {"layer": "1", "surprise": pytest.approx(float(whole), rel=1e-5)}
    enlarged = F.interpolate(expected.view(2, 1, 4, 4).float(), [SIDE, SIDE], mode="bilinear", align_corners=False)
    torch.testing.assert_close(found.map, enlarged[:, 0], rtol=1e-4, atol=1e-5)


def test_channels_before_a_linear_layer_are_columns_of_its_weights():
    """Exact, and the mean over the pictures of eq. 1."""
    classifier, images, targets = awkward(), pictures(4), [0, 2, 1, 1]
    found = channel_importance(classifier, images, targets, "drop")
    features = classifier.features(images).double()
    head = classifier.head

    def surprises(features: torch.Tensor) -> torch.Tensor:
        logits = features @ head[:, :-1].T + head[:, -1]
        return torch.stack([plain_surprise(one, t) for one, t in zip(logits, targets, strict=True)])

    whole = surprises(features)
    for d in range(8):
        kept = features.clone()
        kept[:, d] = 0
        assert float(found[d]) == pytest.approx(float(((surprises(kept) - whole) / whole).mean()), rel=1e-4)


def test_numbers_of_a_linear_layer_and_the_channels_of_the_input_are_erased_too():
    classifier, images = awkward(), pictures(2)
    logits = classifier.logits(images)
    found = channel_importance(classifier, images, [1, 1], "head")
    for d in range(3):
        cut = logits.clone()
        cut[:, d] = 0
        rise = plain_surprise(cut, 1) / plain_surprise(logits, 1) - 1
        assert float(found[d]) == pytest.approx(float(rise.mean()), rel=1e-4)
    found = channel_importance(classifier, images, [1, 1])
    for d in range(3):
        grey = images.clone()
        grey[:, d] = 0
        rise = plain_surprise(classifier.logits(grey), 1) / plain_surprise(logits, 1) - 1
        assert float(found[d]) == pytest.approx(float(rise.mean()), rel=1e-4)


def test_of_a_layer_that_runs_twice_the_last_run_is_erased():
    """The forward pass of Awkward written out, with one place after another of its second ReLU set to 0."""
    classifier, image = awkward(), pictures(1)
    with classifier.exclusive() as module, torch.no_grad():
        x = F.relu(module.bn(module.conv1(image * 1.5)))
        second = F.relu(module.conv2(x) + x)
        whole = plain_surprise(module.head(F.relu(second - 0.1).mean((2, 3))), 1)
        expected = torch.zeros(SIDE, SIDE)
        for row in range(SIDE):
            for column in range(SIDE):
                cut = second.clone()
                cut[:, :, row, column] = 0
                without = plain_surprise(module.head(F.relu(cut - 0.1).mean((2, 3))), 1)
                expected[row, column] = float(without / whole - 1)
    torch.testing.assert_close(erasure(classifier, image, [1], layer="relu").map[0], expected, rtol=1e-3, atol=1e-5)


def test_the_sign_by_hand():
    """Logits (2, 0) from a feature 2: S = log(1 + exp(-2)), without it log 2; what speaks for the class is positive."""

    class Feature(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.feature = nn.Identity()

        def forward(self, x):
            one = self.feature(torch.full((len(x), 1), 2.0) + 0 * x.mean((1, 2, 3))[:, None])
            return torch.cat([one, 0 * one], 1)

    classifier = Classifier(Feature(), unit, name="feature")
    before = math.log(1 + math.exp(-2))
    (found,) = channel_importance(classifier, pictures(1), [0], "feature").tolist()
    assert found == pytest.approx((math.log(2) - before) / before, rel=1e-5)
    (against,) = channel_importance(classifier, pictures(1), [1], "feature").tolist()
    assert against == pytest.approx((math.log(2) - before - 2) / (before + 2), rel=1e-5)


def test_the_surprise_of_a_sure_classifier_does_not_round_to_zero():
    """log(1 + 2 exp(-100)); a log softmax gives 0."""
    found = surprise(torch.tensor([[100.0, 0.0, 0.0], [0.0, 1000.0, 0.0]]), torch.tensor([0, 0]))
    assert float(found[0]) == pytest.approx(2 * math.exp(-100), rel=1e-9, abs=0)
    assert float(found[1]) == pytest.approx(1000, rel=1e-9)


def scaled(factor: float) -> Classifier:
    with awkward().exclusive() as module, torch.no_grad():
        module.head.weight *= factor
        module.head.bias *= factor
    return Classifier(module, unit, name="sure")


def test_a_sure_classifier_is_warned_of_and_a_surer_one_refused():
    image = pictures(1)
    first, second = awkward().logits(image)[0].topk(2).values.tolist()
    winner = int(awkward().logits(image).argmax())
    assert erasure(awkward(), image, [(winner + 1) % 3], layer="drop").certificates[0].warnings == ()
    assert (
        "tiny surprise"
        in erasure(scaled(20 / (first - second)), image, [winner], layer="drop").certificates[0].warnings[0]
    )
    with pytest.raises(ForetellError, match="rounds to 0"):
        erasure(scaled(200 / (first - second)), image, [winner], layer="drop")


def test_no_hook_stays_behind_a_network_that_fails_midway():
    class Fails(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 2, 3)

        def forward(self, x):
            logits = self.conv(x).mean((2, 3))
            if len(x) > 1:
                raise RuntimeError("no")
            return logits

    classifier = Classifier(Fails(), unit, name="fails")
    with pytest.raises(RuntimeError, match="no"):
        erasure(classifier, pictures(1), [0], layer="conv")
    with classifier.exclusive() as module:
        assert not module.conv._forward_hooks


@pytest.mark.parametrize(
    ("layer", "says"), [("covn1", "Did you mean 'conv1'"), ("qqqq", "It has: relu, conv1"), ("", "no layer ''")]
)
def test_unknown_layers_are_refused(layer, says):
    with pytest.raises(ForetellError, match=says):
        channel_importance(awkward(), pictures(1), [0], layer)


def test_a_layer_that_does_not_run_is_refused():
    class Spare(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.spare = nn.ReLU()

        def forward(self, x):
            return x.mean((2, 3))

    with pytest.raises(ForetellError, match="gives no tensor"):
        channel_importance(Classifier(Spare(), unit, name="spare"), pictures(1), [0], "spare")
