from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from core.attribution.gradients.plain import input_x_gradient
from core.attribution.relevance.attn_lrp import attn_lrp
from core.attribution.relevance.lrp import lrp_0, lrp_alpha_beta, lrp_composite, lrp_epsilon, lrp_gamma, lrp_z_plus
from core.attribution.relevance.network import Composite, Relevance, relevance_of_inputs
from core.attribution.relevance.rules import AlphaBeta, Epsilon, Flat, Gamma, ZBox
from core.errors import ForetellError
from core.loading import import_torchvision
from core.network.classifier import Classifier
from tests.core.networks import SIDE, awkward, pictures, raw, unit

X = torch.tensor([1.0, 2.0, 3.0]).view(1, 1, 1, 3)
ZERO = Epsilon(0.0)


class Simple(nn.Module):
    """captum's SimpleLRPModel: weights 2, ReLU, weights 3, no biases."""

    def __init__(self, corner: float = 2.0) -> None:
        super().__init__()
        self.linear, self.last = nn.Linear(3, 3, bias=False), nn.Linear(3, 2, bias=False)
        with torch.no_grad():
            self.linear.weight.fill_(2.0)[0, 0] = corner
            self.last.weight.fill_(3.0)

    def forward(self, x):
        return self.last(torch.relu(self.linear(x.flatten(1))))


def toy(network: nn.Module) -> Classifier:
    return Classifier(network, raw, name="toy")


def relevance(module, x, composite, target=0):
    bounds = (torch.full_like(x, -3.0), torch.full_like(x, 3.0))
    targets = torch.full((len(x),), target)
    found, logits = relevance_of_inputs(module, x, targets, Relevance("net", "lrp", composite), bounds)
    return found, logits[:, target]


def test_published_numbers():
    """captum 0.9.0, tests/attr/test_lrp.py: epsilon, gamma and alpha 1 beta 0 on its simple model."""
    assert lrp_epsilon(toy(Simple()), X, [0], epsilon=0.0).map.flatten().tolist() == pytest.approx([18, 36, 54])
    found, _ = relevance(Simple(-2.0), X, Composite(Gamma(0.25), ZERO, first=Gamma(1.0)))
    assert found.flatten().tolist() == pytest.approx([28 / 3, 104 / 3, 52], rel=1e-6)
    assert lrp_z_plus(toy(Simple(-2.0)), X, [0]).map.flatten().tolist() == pytest.approx([12, 33.6, 50.4], rel=1e-6)


class Skip(nn.Module):
    """f = sum of W x + x: the residual sum shares in proportion."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3, bias=False)
        with torch.no_grad():
            self.linear.weight.copy_(torch.tensor([[1.0, 2, 0], [0, 1, 1], [3, 0, 0]]))

    def forward(self, x):
        x = x.flatten(1)
        y = self.linear(x)
        y += x
        total = y.sum(1, keepdim=True)
        return torch.cat([total, -total], 1)


def test_a_residual_sum_shares_in_proportion_and_not_twice():
    """W x = (5, 5, 3) beside x = (1, 2, 3): f = 19, and input i gets what it contributes both ways."""
    found = lrp_0(toy(Skip()), X, [0]).map.flatten()
    assert found.tolist() == pytest.approx([1 + 4 * 1, 2 + 3 * 2, 3 + 1 * 3], rel=1e-6)


class F1(nn.Module):
    """relu(h) with h = relu(x1) - 1 - relu(x2) one linear unit (Sundararajan et al. 2017, figure 7)."""

    def __init__(self) -> None:
        super().__init__()
        self.h = nn.Linear(2, 1)
        with torch.no_grad():
            self.h.weight.copy_(torch.tensor([[1.0, -1.0]]))
            self.h.bias.fill_(-1.0)

    def forward(self, x):
        f = torch.relu(self.h(torch.relu(x.flatten(1)[:, :2])))
        return torch.cat([f, -f], 1)


class F2(nn.Module):
    """The same function: relu(k) with k = relu(x1 - 1) - relu(x2)."""

    def forward(self, x):
        x = x.flatten(1)
        f = torch.relu(torch.relu(x[:, :1] - 1) - torch.relu(x[:, 1:2]))
        return torch.cat([f, -f], 1)


def test_functionally_equal_networks_get_the_published_relevance():
    """At (3, 1): (1.5, -.5) and (2, -1): LRP depends on the implementation."""
    x = torch.tensor([3.0, 1.0, 0.0]).view(1, 1, 1, 3)
    maps = [lrp_0(toy(network), x, [0], bias="left_out").map.flatten().tolist() for network in (F1(), F2())]
    assert maps[0] == pytest.approx([1.5, -0.5, 0], abs=1e-6)
    assert maps[1] == pytest.approx([2, -1, 0], abs=1e-6)


def test_lrp_0_is_input_x_gradient():
    """On ReLU and linear layers with biases, to 1e-12 in float64; in float32 through the method."""
    classifier, images = awkward(), pictures(3)
    expected = input_x_gradient(classifier, images, [0, 1, 2])
    found = lrp_0(classifier, images, [0, 1, 2])
    torch.testing.assert_close(found.map, expected.map, rtol=1e-4, atol=1e-5 * float(expected.map.abs().max()))
    with classifier.exclusive() as module:
        module = module.double()
        x = images.double().requires_grad_()
        (gradient,) = torch.autograd.grad(module(x.clone())[:, 1].sum(), x)
        double, _ = relevance(module, x.detach(), Composite(ZERO, ZERO, other=ZERO), target=1)
    difference = (double - (x * gradient).detach()).abs().max() / (x * gradient).abs().max()
    assert float(difference.detach()) < 1e-12


@pytest.mark.parametrize("method", [lrp_0, lrp_gamma, lrp_z_plus, lrp_composite])
def test_without_biases_the_map_sums_to_the_logit(method):
    explanation = method(awkward(), pictures(3), [0, 1, 2], bias="left_out")
    for certificate in explanation.certificates:
        assert certificate.conservation == pytest.approx(1, abs=2e-3)


class UnitLength(nn.Module):
    """A head on embeddings of norm 1, as CLIP's; ``written_out``: divided by a norm that is a constant."""

    def __init__(self, *, written_out: bool = False) -> None:
        super().__init__()
        self.embed, self.head = (nn.Linear(*shape, bias=False) for shape in ((3 * SIDE**2, 7), (7, 3)))
        for parameter in self.parameters():
            nn.init.normal_(parameter, generator=seeded())
        self.written_out = written_out

    def forward(self, x):
        y = self.embed(x.flatten(1)).relu()
        return self.head(y / y.detach().square().sum(-1, keepdim=True).sqrt() if self.written_out else F.normalize(y))


@pytest.mark.parametrize("method", [lrp_0, lrp_epsilon, lrp_gamma, lrp_z_plus, lrp_alpha_beta, lrp_composite, attn_lrp])
def test_a_norm_of_1_passes_relevance_on(method):
    """Catches a norm through which relevance flows or is lost (Ali et al. 2022: what normalises is a constant)."""
    networks = (Classifier(UnitLength(written_out=written), unit, name="unit") for written in (False, True))
    found, expected = (method(network, pictures(3), [0, 1, 2]) for network in networks)
    torch.testing.assert_close(found.map, expected.map, rtol=1e-4, atol=1e-6 * float(expected.map.abs().max()))
    if method in (lrp_0, lrp_gamma, attn_lrp, lrp_composite):
        for certificate in found.certificates:
            assert certificate.conservation == pytest.approx(1, abs=2e-3)


def test_a_large_epsilon_absorbs_everything():
    certificate = lrp_epsilon(awkward(), pictures(1), [0], epsilon=1e6).certificates[0]
    assert abs(certificate.conservation) < 1e-4


class Trained(Relevance):
    """Wrong on purpose: residual sums pass everything both ways, as a rule for modules alone would let them."""

    def linear(self, x, layer, value):
        return value() if layer.kind == "other" and x.ndim == 5 else super().linear(x, layer, value)


@pytest.mark.parametrize(("name", "blocks"), [("resnet18", 8), ("resnet50", 16)])
def test_conservation_on_an_unmodified_resnet(name, blocks):
    """Sum R / f within 1e-3 of 1 with zero biases; without sharing at the residual sums it is 2^blocks."""
    network = resnet(name)
    x = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(1))
    composite = Composite(Epsilon(1e-6), AlphaBeta(1, 0), bias_absorbs=False)
    found, logits = relevance(network, x, composite)
    torch.testing.assert_close(found.sum((1, 2, 3)) / logits, torch.ones(2), rtol=0, atol=1e-3)
    bounds = (torch.full_like(x, -3.0), torch.full_like(x, 3.0))
    doubled, _ = relevance_of_inputs(network, x, torch.zeros(2).long(), Trained("net", "lrp", composite), bounds)
    ratio = doubled.sum((1, 2, 3)) / logits
    torch.testing.assert_close(ratio, torch.full((2,), 2.0**blocks), rtol=1e-3, atol=0)


def resnet(name):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return import_torchvision().models.get_model(name, weights=None).eval()


COMPOSITES = {
    "EpsilonPlusFlat": Composite(Epsilon(1e-6), AlphaBeta(1, 0), Flat()),
    "EpsilonGammaBox": Composite(Epsilon(1e-6), Gamma(0.25), ZBox()),
    "EpsilonAlpha2Beta1": Composite(Epsilon(1e-6), AlphaBeta(2, 1)),
}


@pytest.mark.parametrize("name", COMPOSITES)
def test_agrees_with_zennit_on_a_resnet(name):
    """zennit with its residual canonizer, which rewrites the network for the time; ours runs it as it is."""
    import_torchvision()
    from zennit import composites
    from zennit.attribution import Gradient
    from zennit.torchvision import ResNetCanonizer

    network = resnet("resnet18")
    with torch.no_grad():
        for layer in network.modules():
            if isinstance(layer, nn.BatchNorm2d):
                layer.bias.uniform_(-0.2, 0.2, generator=torch.Generator().manual_seed(2))
    x = torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(1)) * 6 - 3
    found, logits = relevance(network, x, COMPOSITES[name])
    options = {"low": -3.0, "high": 3.0} if name == "EpsilonGammaBox" else {}
    composite = getattr(composites, name)(canonizers=[ResNetCanonizer()], **options)
    start = torch.zeros(2, 1000)
    start[:, 0] = logits
    with Gradient(network, composite) as attributor:
        _, expected = attributor(x, start)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-4 * float(expected.abs().max()))


@pytest.mark.parametrize(
    "name", ["vgg16", "mobilenet_v2", "densenet121", "efficientnet_b0", "convnext_tiny", "vit_b_16"]
)
def test_it_runs_on_an_unmodified_network(name):
    """The logits it explains are the network's own; the composite keeps the sum where every sum has a positive part."""
    network, side = lively(name)
    x = torch.randn(1, 3, side, side, generator=seeded())
    found, logits = relevance(network, x, Composite(Epsilon(1e-6), Gamma(0.25), Flat(), bias_absorbs=False))
    with torch.no_grad():
        own = network(x)[:, 0]
    torch.testing.assert_close(logits, own, rtol=1e-5, atol=1e-6)
    assert torch.isfinite(found).all()
    assert float(found.std()) > 0


def seeded():
    return torch.Generator().manual_seed(4)


def lively(name):
    """An untrained network with the statistics of what it sees, biases and a head that is not 0; a side it takes."""
    network, generator = resnet(name), seeded()
    side = 224 if name == "vit_b_16" else 32 if name == "vgg16" else 64
    if name == "vit_b_16":
        network.encoder.layers = network.encoder.layers[:3]  # of twelve alike
    norms = [layer for layer in network.modules() if isinstance(layer, nn.BatchNorm2d)]
    with torch.no_grad():
        for layer in network.modules():
            if isinstance(layer, nn.BatchNorm2d):
                layer.bias.normal_(0, 0.1, generator=generator)
                layer.momentum = 1.0
                layer.train()
            if isinstance(layer, nn.Linear) and not layer.weight.any():
                layer.weight.normal_(0, 0.05, generator=generator)
        if norms:
            network(torch.randn(4, 3, side, side, generator=generator))
    return network.eval(), side


def test_the_first_rule_is_for_the_layer_the_image_enters():
    """Flat in the first layer: all pixels of a dense first layer get the same, also behind a normalisation."""

    class Normalising(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(3, 4), nn.Linear(4, 2)

        def forward(self, x):
            x = (x - 0.5).div_(0.2)
            return self.second(torch.relu(self.first(torch.flatten(x, 1))))

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        classifier = toy(Normalising())
    found = lrp_composite(classifier, X, [0], first="flat").map.flatten()
    assert float(found.std()) < 1e-6 < float(found.abs().mean())


def test_unknown_calls_are_refused_by_name():
    class Sorting(nn.Module):
        def forward(self, x):
            return torch.sort(x.flatten(1), 1)[0]

    class Shifty(nn.Module):
        def forward(self, x):
            return torch.zeros(len(x), 2) + x.flatten(1).detach()[:, :2]

    with pytest.raises(ForetellError, match=r"toy computes sort\(\), for which lrp_0 has no rule. Use"):
        lrp_0(toy(Sorting()), X, [0])
    with pytest.raises(ForetellError, match="does not trace to the input"):
        lrp_0(toy(Shifty()), X, [0])


@pytest.mark.parametrize(
    ("method", "parameters", "sentence"),
    [
        (lrp_epsilon, {"epsilon": -1.0}, "epsilon=-1.0: give 0 or more"),
        (lrp_gamma, {"gamma": -1.0}, "gamma=-1.0"),
        (lrp_alpha_beta, {"alpha": 2.0, "beta": 0.5}, "alpha - beta must be 1"),
        (lrp_composite, {"alpha": 1.0, "beta": 1.0}, "alpha - beta must be 1"),
    ],
)
def test_bad_parameters_are_refused(method, parameters, sentence):
    with pytest.raises(ForetellError, match=sentence):
        method(awkward(), pictures(1), [0], **parameters)


def test_compiled_parts_are_refused():
    network = nn.Sequential(nn.Flatten(), nn.Linear(3 * SIDE * SIDE, 2))
    with torch.random.fork_rng(devices=[]):
        classifier = Classifier(torch.jit.trace(network, torch.zeros(1, 3, SIDE, SIDE)), unit, name="scripted")
    with pytest.raises(ForetellError, match="TorchScript or compiled parts"):
        lrp_0(classifier, pictures(1), [0])


def test_a_sum_of_the_opposite_sign_is_told_as_such():
    """x - 2 at x = 1 with the bias absorbing: relevance 1 of the logit -1 ("Only -100.0% of the logit ...")."""
    network = nn.Sequential(nn.Flatten(), nn.Linear(3, 1))
    nn.init.constant_(network[1].weight, 1 / 3)
    nn.init.constant_(network[1].bias, -2.0)
    image = torch.ones(1, 1, 1, 3)
    certificate = lrp_0(Classifier(network, lambda _: image[0], name="bias"), image, [0]).certificates[0]
    assert certificate.conservation == pytest.approx(-1)
    assert certificate.warnings == ("This heatmap sums to 1 times the logit, with the opposite sign. Use lrp_gamma.",)
