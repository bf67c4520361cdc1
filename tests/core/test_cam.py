from __future__ import annotations

import pytest
import torch
from captum.attr import LayerGradCam
from captum.testing.helpers.basic_models import BasicModel_ConvNet_One_Conv
from torch import nn
from torch.nn import functional as F

from core.attribution import METHODS
from core.attribution.maps.cam import cam, grad_cam, grad_cam_plus_plus, layer_cam
from core.attribution.maps.score_cam import score_cam
from core.attribution.places.activations import activation_and_gradient
from core.attribution.places.place import select_layer
from core.loading import import_torchvision
from core.network.classifier import Classifier
from tests.core.networks import SIDE, awkward, pictures, unit
from tests.core.test_contracts import ATTENTION, CHEAP, assert_same, snapshot

ARANGE = torch.arange(16.0).view(1, 1, 4, 4)

FEW = {
    "score_cam": {"layer": "layer1"},
    "prediction_difference": {"window": 16, "stride": 16},
    "occlusion": {"window": 16, "stride": 16},
}
"""Settings with few passes through a network of the usual size."""


def toy_b(*, inplace: bool = False) -> Classifier:
    return Classifier(BasicModel_ConvNet_One_Conv(inplace=inplace), lambda image: torch.zeros(1, 4, 4), name="toy B")


class Pooled(nn.Module):
    """Convolution, ReLU, halved twice in size, averaged, one linear layer: CAM's own architecture."""

    def __init__(self, *, inplace: bool = False, functional: bool = False) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 5, 3, padding=1, stride=2)
        self.relu = nn.Identity() if functional else nn.ReLU(inplace=inplace)
        self.functional = functional
        self.head = nn.Linear(5, 3)

    def forward(self, x):
        x = self.relu(self.conv(x))
        return self.head((F.relu(x, inplace=True) if self.functional else x).mean((2, 3)))


def pooled(seed: int = 0, **kinds: bool) -> Classifier:
    network, generator = Pooled(**kinds), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.normal_(std=0.5, generator=generator)
    return Classifier(network, unit, name="pooled")


def coarse(found: torch.Tensor, factor: int = 2) -> torch.Tensor:
    """The map (B, h, w) whose bilinear enlargement by ``factor`` is ``found``, by least squares on each side."""
    side = found.shape[1] // factor
    enlarge = F.interpolate(torch.eye(side)[None], side * factor, mode="linear")[0].T
    back = torch.linalg.pinv(enlarge)
    return back @ found @ back.T


# Published and closed-form numbers


@pytest.mark.parametrize("inplace", [False, True])
@pytest.mark.parametrize(
    ("layer", "expected"), [("conv1", [[11.25, 13.5], [20.25, 22.5]]), ("relu1", [[0.0, 4.0], [28.0, 32.5]])]
)
def test_toy_b_grad_cam(layer, expected, inplace):
    """captum tests/attr/layer/test_grad_cam.py; in place, what follows conv1 must not overwrite what it said."""
    found = grad_cam(toy_b(inplace=inplace), ARANGE, [0], layer=layer, sign="signed").map
    torch.testing.assert_close(coarse(found)[0], torch.tensor(expected), rtol=1e-4, atol=1e-4)


def test_the_map_is_enlarged_bilinearly_with_half_pixel_centres():
    """Along a row 0, 4 becomes 0, 1, 3, 4: the corners of the enlarged map keep the coarse map's numbers."""
    found = grad_cam(toy_b(), ARANGE, [0], layer="relu1").map[0]
    torch.testing.assert_close(found[0], torch.tensor([0.0, 1.0, 3.0, 4.0]), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(found[-1, [0, 3]], torch.tensor([28.0, 32.5]), rtol=1e-5, atol=0)


@pytest.mark.parametrize("functional", [False, True])
def test_cam_averages_to_the_logit_and_grad_cam_is_cam_over_the_places(functional):
    """Zhou et al. 2016: mean of the map + bias = logit. Selvaraju et al. 2017: alpha_k = w_k / (h w)."""
    classifier, images = pooled(functional=functional), pictures(3)
    found = cam(classifier, images, [0, 1, 2]).map
    # Enlarging by a whole factor keeps the mean.
    biases = classifier.head[[0, 1, 2], -1].float()
    logits = classifier.logits(images)[range(3), range(3)]
    torch.testing.assert_close(found.mean((1, 2)) + biases, logits, rtol=1e-4, atol=1e-5)
    if not functional:  # there the last module stands before the ReLU
        places = (SIDE // 2) ** 2
        gradients = grad_cam(classifier, images, [0, 1, 2], sign="signed").map
        torch.testing.assert_close(gradients * places, found, rtol=1e-4, atol=1e-5)


def test_positive_is_the_relu_of_the_coarse_map():
    classifier, images = pooled(), pictures(3)
    signed, positive = (grad_cam(classifier, images, [0, 1, 2], sign=s).map for s in ("signed", "positive"))
    assert float(signed.min()) < -1e-3
    torch.testing.assert_close(coarse(positive), coarse(signed).relu(), rtol=1e-3, atol=1e-6)


# Slow re-implementations


def score(network: Pooled, activation: torch.Tensor, target: int) -> torch.Tensor:
    """The logit of one picture as a function of its activation (K, h, w)."""
    return network.head(activation.mean((1, 2)))[target]


def test_grad_cam_plus_plus_is_eq_19_with_the_derivatives_taken():
    """Y = exp(S): second and third derivatives by autograd, place by place, as in eq. 10 before it is simplified."""
    classifier, images = pooled(seed=2), pictures(1, seed=3)
    found = coarse(grad_cam_plus_plus(classifier, images, [1]).map)[0].double()
    with classifier.exclusive() as module:
        network = module.double()
        a = network.relu(network.conv(images.double()))[0].detach().requires_grad_()
        value = score(network, a, 1)
        (first,) = torch.autograd.grad(value.exp(), a, create_graph=True)
        weights = torch.zeros(len(a), dtype=torch.float64)
        for k in range(len(a)):
            for i in range(a.shape[1]):
                for j in range(a.shape[2]):
                    (row,) = torch.autograd.grad(first[k, i, j], a, create_graph=True)
                    (third,) = torch.autograd.grad(row[k, i, j], a, retain_graph=True)
                    y2, y3 = float(row[k, i, j].detach()), float(third[k, i, j])
                    alpha = y2 / (2 * y2 + float(a[k].detach().sum()) * y3)
                    weights[k] += alpha * max(float(first[k, i, j].detach()), 0)
        network.float()
    expected = torch.einsum("k,khw->hw", weights / float(value.detach().exp()), a.detach()).relu()
    assert float(expected.max()) > 1e-3
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-6)


def test_layer_cam_agrees_with_loops():
    """Jiang et al. 2021, eq. 5 to 7, in a layer whose gradients differ from place to place."""
    classifier, images = awkward(), pictures(1)
    found = layer_cam(classifier, images, [2], layer="bn").map[0]
    with classifier.exclusive() as network:
        a = network.bn(network.conv1(images * 1.5)).detach().requires_grad_()
        x = network.relu(a.clone())
        y = network.conv2(x) + x
        value = network.head(F.relu(F.relu(y) - 0.1).mean((2, 3)))[0, 2]
        (gradient,) = torch.autograd.grad(value, a)
    a = a.detach()[0]
    expected = torch.zeros(SIDE, SIDE)
    for k in range(len(a)):
        for i in range(SIDE):
            for j in range(SIDE):
                expected[i, j] += max(float(gradient[0, k, i, j]), 0) * float(a[k, i, j])
    torch.testing.assert_close(found, expected.relu(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("layer", "fill"), [("relu", "mean"), ("relu", "black"), ("conv", "mean")])
def test_score_cam_agrees_with_loops(layer, fill):
    """Wang et al. 2020, algorithm 1, one channel at a time; the dead channel has no mask and no weight."""
    classifier, images = pooled(seed=2), pictures(2, seed=3)
    with classifier.exclusive() as module, torch.no_grad():
        module.conv.weight[1].zero_()
        module.conv.bias[1] = 0.5
        activations = module.conv(images) if layer == "conv" else module.relu(module.conv(images))
    found = coarse(score_cam(classifier, images, [1, 2], layer=layer, sign="signed", fill=fill).map)
    origin = classifier.fill(fill)
    for picture, (x, a, target) in enumerate(zip(images, activations, [1, 2], strict=True)):
        gains = {}
        for k in (0, 2, 3, 4):
            large = F.interpolate(a[k][None, None], SIDE, mode="bilinear")[0, 0]
            mask = (large - large.min()) / (large.max() - large.min())
            logits = classifier.logits(torch.stack([origin + mask * (x - origin), origin]))[:, target]
            gains[k] = float(logits[0] - logits[1])
        total = sum(torch.tensor(gain).exp() for gain in gains.values())
        expected = sum(torch.tensor(gain).exp() / total * a[k] for k, gain in gains.items())
        torch.testing.assert_close(found[picture], expected, rtol=1e-3, atol=1e-5)


def test_score_cam_asks_nothing_about_a_dead_channel(monkeypatch):
    """One prediction for each channel that says something, here 4 of 5: the dead one would be seen in vain."""
    from core.attribution.maps import score_cam as module_of_score_cam

    classifier, asked = pooled(seed=2), []
    with classifier.exclusive() as module, torch.no_grad():
        module.conv.weight[1].zero_()
    whole = module_of_score_cam.iterate_masked_scores

    def counting(classifier, images, targets, masks, **options):
        asked.extend(len(block) for block in masks)
        return whole(classifier, images, targets, masks, **options)

    monkeypatch.setattr(module_of_score_cam, "iterate_masked_scores", counting)
    score_cam(classifier, pictures(1), [0])
    assert sum(asked) == 4


@pytest.mark.parametrize("chunk", [1, 3])
def test_the_chunk_does_not_change_the_map_of_score_cam(chunk, monkeypatch):
    classifier, images = awkward(), pictures(2)
    expected = score_cam(classifier, images, [0, 1]).map
    steps = []
    monkeypatch.setattr("core.attribution.maps.score_cam.chunk_size", lambda *_: chunk)
    found = score_cam(classifier, images, [0, 1], progress=lambda *report: steps.append(report[:2])).map
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)
    assert steps[-1] == (16, 16)
    assert len(steps) == 2 * -(-8 // chunk)


def test_score_cam_of_a_layer_that_says_one_thing_everywhere_is_0_and_warns():
    classifier = pooled()
    with classifier.exclusive() as module, torch.no_grad():
        module.conv.weight.zero_()
    explanation = score_cam(classifier, pictures(1), [0])
    assert not explanation.map.any()
    assert "Nothing in layer 'relu'" in explanation.certificates[0].warnings[0]


# Another package


@pytest.mark.parametrize("layer", ["conv1", "bn", "conv2", "drop"])
def test_grad_cam_agrees_with_captum_on_an_awkward_network(layer):
    classifier, images = awkward(), pictures(2)
    with classifier.exclusive() as module:
        theirs = LayerGradCam(lambda x: module(x.clone()), module.get_submodule(layer)).attribute(
            images.clone().requires_grad_(), target=[0, 2], attr_dim_summation=True
        )
    ours = grad_cam(classifier, images, [0, 2], layer=layer, sign="signed").map
    torch.testing.assert_close(ours, theirs[:, 0].detach().float(), rtol=1e-4, atol=1e-6)


# Layers


class Aliased(nn.Module):
    """What the layer said is changed in place, and so is the memory it was said in, once it is no longer needed."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 1)
        self.same = nn.Identity()
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        h = self.conv(x)
        s = self.same(h)
        s += 5
        y = F.relu(s)
        h.zero_()
        return self.head(2 * y.mean((2, 3)))


@pytest.mark.parametrize("layer", ["conv", "same"])
def test_in_place_operations_after_a_layer_do_not_change_what_it_said(layer):
    """Closed form: activation conv(x), gradient 2 w / (H W) where conv(x) > -5."""
    network = Aliased()
    with torch.no_grad():
        network.conv.weight.mul_(10)
    classifier, images = Classifier(network, unit, name="aliased"), pictures(2)
    activation, gradient, _ = activation_and_gradient(classifier, images, torch.tensor([0, 1]), layer)
    said = F.conv2d(images, network.conv.weight, network.conv.bias).detach()
    assert 0.001 < float((said <= -5).float().mean()) < 0.5
    torch.testing.assert_close(activation, said, rtol=1e-5, atol=1e-5)
    expected = network.head.weight.detach()[[0, 1]][:, :, None, None] * 2 / SIDE**2 * (said > -5)
    torch.testing.assert_close(gradient, expected, rtol=1e-5, atol=1e-8)


def test_the_last_block_is_the_default_not_one_of_its_branches():
    class Branches(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.left, self.right = nn.Conv2d(3, 2, 1), nn.Conv2d(3, 2, 1)

        def forward(self, x):
            return torch.cat([self.left(x), self.right(x)], 1)

    network = nn.Sequential(Branches(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2))
    assert select_layer(Classifier(network, unit, name="branches"), "") == "0"


# A network as people have them


@pytest.fixture(scope="module")
def resnet() -> Classifier:
    import_torchvision()
    from torchvision.models import resnet18

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = resnet18(weights=None, num_classes=4)

    def transforms(image):
        return F.interpolate(unit(image)[None], 64)[0]

    return Classifier(network, transforms, name="resnet18")


@pytest.mark.parametrize("name", [name for name in METHODS if name not in ATTENTION])
def test_every_method_runs_on_a_resnet_and_leaves_it_alone(name, resnet):
    images = F.interpolate(pictures(2), 64)
    with resnet.exclusive() as module:
        before = snapshot(module)
    parameters = {k: min(v, 64) if isinstance(v, int) else v for k, v in CHEAP.get(name, {}).items()}
    explanation = METHODS[name](resnet, images, [0, 3], **{**parameters, **FEW.get(name, {})})
    with resnet.exclusive() as module:
        assert_same(before, snapshot(module))
    assert explanation.map.shape == (2, 64, 64)
    assert torch.isfinite(explanation.map).all()
    if "cam" in name:
        assert explanation.certificates[0].parameters["layer"] == ("layer1" if name in FEW else "layer4")


def test_cam_averages_to_the_logit_of_a_resnet(resnet):
    images = F.interpolate(pictures(2), 64)
    found = cam(resnet, images, [0, 3]).map.mean((1, 2))
    logits = resnet.logits(images)[[0, 1], [0, 3]] - resnet.head[[0, 3], -1].float()
    torch.testing.assert_close(found, logits, rtol=1e-3, atol=1e-4)
