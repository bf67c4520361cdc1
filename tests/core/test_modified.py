from __future__ import annotations

import copy
import types

import pytest
import torch
from captum.attr import Deconvolution, GuidedBackprop, GuidedGradCam
from torch import nn
from torch.nn import functional as F

from core.attribution.gradients.modified import deconvnet, guided_backpropagation, guided_grad_cam
from core.attribution.gradients.plain import gradient
from core.attribution.gradients.rectifiers import Rectifiers
from core.attribution.maps.cam import grad_cam
from core.errors import ForetellError
from core.network.classifier import Classifier
from tests.core.networks import SIDE, awkward, pictures, unit
from tests.core.test_cam import ARANGE, resnet, toy_b  # noqa: F401 - a fixture
from tests.core.test_contracts import assert_same, snapshot

METHODS = {"deconvnet": deconvnet, "guided": guided_backpropagation}
both = pytest.mark.parametrize("rule", list(METHODS))

# The rules

WRITTEN = {
    "module": nn.ReLU(),
    "module in place": nn.ReLU(inplace=True),
    "relu6": nn.ReLU6(),
    "relu6 in place": nn.ReLU6(inplace=True),
    "F.relu": F.relu,
    "F.relu in place": lambda z: F.relu(z, inplace=True),
    "F.relu_": F.relu_,
    "F.relu6": F.relu6,
    "F.hardtanh": lambda z: F.hardtanh(z, 0.0, 9.0),
    "keyword": lambda z: torch.relu(input=z),
    "torch.relu": torch.relu,
    "torch.relu_": torch.relu_,
    "Tensor.relu": lambda z: z.relu(),
    "Tensor.relu_": lambda z: z.relu_(),
    "clamp": lambda z: z.clamp(min=0),
    "clip": lambda z: torch.clip(z, 0, 9),
    "clamp_min_": lambda z: z.clamp_min_(0),
    "torch.maximum": lambda z: torch.maximum(z, torch.zeros_like(z)),
    "Tensor.maximum": lambda z: z.maximum(torch.zeros(())),
    "torch.max": lambda z: torch.max(z, torch.zeros(1)),
}
TABLE = {"gradient": [1.0, -1.0, 0.0, 0.0], "deconvnet": [1.0, 0.0, 1.0, 0.0], "guided": [1.0, 0.0, 0.0, 0.0]}


def passed(written, rule, z, g):
    """What a ReLU makes of the gradient g, its input and its output."""
    leaf = torch.tensor(z, requires_grad=True)
    before = leaf.clone()
    if rule == "gradient":
        after = written(before)
    else:
        with Rectifiers(rule) as rectifiers:
            after = written(before)
        assert rectifiers.met == 1
    return torch.autograd.grad(after, leaf, torch.tensor(g))[0].tolist(), before.tolist(), after.tolist()


@pytest.mark.parametrize("rule", list(TABLE))
@pytest.mark.parametrize("name", list(WRITTEN))
def test_the_truth_table_of_the_rules_however_a_relu_is_written(name, rule):
    """Springenberg et al. 2014, figure 1; in place stays in place."""
    found, before, after = passed(WRITTEN[name], rule, [2.0, 2.0, -3.0, -3.0], [1.0, -1.0, 1.0, -1.0])
    assert found == TABLE[rule]
    assert after == [2.0, 2.0, 0.0, 0.0]
    in_place = "in place" in name or name.endswith("_")
    assert before == (after if in_place else [2.0, 2.0, -3.0, -3.0])


@pytest.mark.parametrize("name", ["relu6", "relu6 in place", "F.relu6"])
def test_above_its_ceiling_relu6_is_as_shut_as_below_0(name):
    found = {rule: passed(WRITTEN[name], rule, [7.0, 7.0], [1.0, -1.0]) for rule in METHODS}
    assert found["guided"][0] == [0.0, 0.0]
    assert found["deconvnet"][0] == [1.0, 0.0]
    assert found["guided"][2] == [6.0, 6.0]


@pytest.mark.parametrize(
    "function",
    [
        F.hardtanh,
        F.leaky_relu,
        lambda z: z.clamp(min=-1),
        lambda z: torch.maximum(z, torch.ones_like(z)),
        lambda z: torch.max(z, 0, keepdim=True).values * z,
        lambda z: z.clamp(max=1),
        lambda z: z.clamp(min=torch.zeros(2)),
        lambda z: z.mul(3).long().clamp(min=0) * z,
    ],
)
def test_what_is_no_relu_keeps_its_own_gradient(function):
    leaf = torch.tensor([0.7, -0.7], requires_grad=True)
    with Rectifiers("guided") as rectifiers:
        inside = function(leaf)
    assert rectifiers.met == 0
    outside = function(leaf)
    assert inside.dtype == outside.dtype
    weights = torch.tensor([-1.0, -1.0])
    assert torch.equal(torch.autograd.grad(inside, leaf, weights)[0], torch.autograd.grad(outside, leaf, weights)[0])


# Published numbers


@pytest.mark.parametrize("inplace", [False, True])
@pytest.mark.parametrize(
    ("method", "expected"),
    [
        (guided_backpropagation, [[0, 1, 1, 1], [1, 3, 3, 2], [1, 3, 3, 2], [1, 2, 2, 1]]),
        (deconvnet, [[2, 3, 3, 1], [3, 5, 5, 2], [3, 5, 5, 2], [1, 2, 2, 1]]),
        # Rows of guided backpropagation times [[0, 4], [28, 32.5]] enlarged bilinearly: corners, edges 1/4 and 3/4.
        (guided_grad_cam, None),
    ],
)
def test_toy_b(method, expected, inplace):
    """captum tests/attr: test_guided_backprop.py, test_deconvolution.py; guided Grad-CAM by hand."""
    layer = {"layer": "relu1"} if method is guided_grad_cam else {}
    found = method(toy_b(inplace=inplace), ARANGE, [0], **layer).map[0]
    if expected is None:
        assert found[0].tolist() == pytest.approx([0.0, 1.0, 3.0, 4.0], abs=1e-4)
        assert found[3].tolist() == pytest.approx([28.0, 2 * 29.125, 2 * 31.375, 32.5], abs=1e-4)
    else:
        assert found.tolist() == expected


# Another package


def plain(*, functional: bool = False, seed: int = 0) -> Classifier:
    """Three ReLUs, each its own module that is not in place (what captum needs), or all functional."""

    class Functional(nn.Module):
        def forward(self, x):
            return F.relu(x)

    def activation():
        return Functional() if functional else nn.ReLU()

    network = nn.Sequential(
        nn.Conv2d(3, 6, 3, padding=1),
        activation(),
        nn.Conv2d(6, 6, 3, stride=2),
        activation(),
        nn.Flatten(),
        nn.Linear(150, 16),
        activation(),
        nn.Linear(16, 3),
    )
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.normal_(std=0.3, generator=generator)
    return Classifier(network, unit, name="plain")


def captums(classifier, images, targets, theirs, **options):
    with classifier.exclusive() as module:
        found = theirs(copy.deepcopy(module)).attribute(images.clone().requires_grad_(), target=targets, **options)
    return found.sum(1).detach()


@pytest.mark.filterwarnings("ignore:Setting backward hooks on ReLU activations")
@pytest.mark.parametrize(("ours", "theirs"), [(deconvnet, Deconvolution), (guided_backpropagation, GuidedBackprop)])
def test_agrees_with_captum_where_captum_is_right_and_not_where_relus_are_functional(ours, theirs):
    """captum changes the modules that are `nn.ReLU`: of functional ReLUs it gives the plain gradient."""
    images, targets = pictures(3), [0, 1, 2]
    found = ours(plain(), images, targets).map
    torch.testing.assert_close(found, captums(plain(), images, targets, theirs), rtol=1e-4, atol=1e-5)
    functional = plain(functional=True)
    torch.testing.assert_close(ours(functional, images, targets).map, found, rtol=1e-5, atol=1e-6)
    silently = captums(functional, images, targets, theirs)
    torch.testing.assert_close(silently, gradient(functional, images, targets).map, rtol=1e-4, atol=1e-5)
    assert float((silently - found).abs().max()) > 0.1 * float(found.abs().max())


@pytest.mark.filterwarnings("ignore:Setting backward hooks on ReLU activations")
def test_guided_grad_cam_agrees_with_captum():
    classifier, images, targets = plain(), pictures(3), [0, 1, 2]

    def theirs(module):
        return GuidedGradCam(module, module[3])

    expected = captums(classifier, images, targets, theirs, interpolate_mode="bilinear")
    assert float(expected.abs().max()) > 1e-3
    found = guided_grad_cam(classifier, images, targets, layer="3").map
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_guided_grad_cam_is_the_product_on_an_awkward_network():
    classifier, images = awkward(), pictures(3)
    parts = [m(classifier, images, [0, 1, 2]).map for m in (guided_backpropagation, grad_cam)]
    found = guided_grad_cam(classifier, images, [0, 1, 2]).map
    torch.testing.assert_close(found, parts[0] * parts[1], rtol=1e-5, atol=1e-7)


def test_guided_grad_cam_of_nothing_warns():
    classifier = plain()
    with classifier.exclusive() as module, torch.no_grad():
        module[7].weight[0].zero_()
    certificate = guided_grad_cam(classifier, pictures(1), [0], layer="3").certificates[0]
    assert certificate.parameters == {"layer": "3"}
    assert "Guided backpropagation and layer '3' do not overlap" in certificate.warnings[0]


# Slow re-implementations


def spread(block, x):
    """A basic block of a ResNet with two ReLUs of its own and an addition that is not in place."""
    y = block.bn2(block.conv2(block.relu1(block.bn1(block.conv1(x)))))
    return block.relu2(y + (x if block.downsample is None else block.downsample(x)))


def with_hooks(network: nn.Module, rule: str) -> nn.Module:
    """A deep copy whose every ReLU is used once, with the rule as a hook on each."""
    network = copy.deepcopy(network)
    network.relu = nn.ReLU()
    for stage in (network.layer1, network.layer2, network.layer3, network.layer4):
        for block in stage:
            block.relu, block.relu1, block.relu2 = None, nn.ReLU(), nn.ReLU()
            block.forward = types.MethodType(spread, block)

    def change(_, incoming, outgoing):
        return ((incoming if rule == "guided" else outgoing)[0].clamp(min=0),)

    relus = [m for m in network.modules() if isinstance(m, nn.ReLU)]
    assert len(relus) == 17
    for relu in relus:
        relu.register_full_backward_hook(change)
    return network


@both
def test_a_resnet_agrees_with_hooks_on_a_copy_and_stays_as_it_is(rule, resnet):  # noqa: F811
    """Shared ReLUs in place and `+=`, which hooks on the network itself get wrong."""
    images, targets = F.interpolate(pictures(2), 64), [0, 3]
    with resnet.exclusive() as module:
        before = snapshot(module)
        hooked = with_hooks(module, rule)
        with Rectifiers(rule) as rectifiers, torch.no_grad():
            assert torch.equal(module(images), module(images))
            inside = module(images)
        assert rectifiers.met == 3 * 17
        torch.testing.assert_close(inside, module(images).detach(), rtol=0, atol=0)
    found = METHODS[rule](resnet, images, targets).map
    with resnet.exclusive() as module:
        assert_same(before, snapshot(module))
    leaf = images.clone().requires_grad_()
    (expected,) = torch.autograd.grad(hooked(leaf)[[0, 1], targets].sum(), leaf)
    assert float(expected.abs().max()) > 1e-6
    torch.testing.assert_close(found, expected.sum(1), rtol=1e-3, atol=1e-4 * float(expected.abs().max()))


@both
def test_an_awkward_network_agrees_with_the_chain_rule_by_hand(rule):
    """`Awkward` backwards, step by step: first the last ReLU, at the end the factor 1.5."""
    classifier, images = awkward(), pictures(2)
    found = METHODS[rule](classifier, images, [2, 0]).map

    def back(z, g):
        return g.clamp(min=0) * ((z > 0) if rule == "guided" else 1)

    with classifier.exclusive() as n, torch.no_grad():
        scale = (n.bn.weight / (n.bn.running_var + n.bn.eps).sqrt())[:, None, None]
        z1 = n.bn(n.conv1(images * 1.5))
        z2 = n.conv2(z1.relu()) + z1.relu()
        z3 = z2.relu() - 0.1
        g = n.head.weight[[2, 0]][:, :, None, None].expand_as(z3) / SIDE**2
        g = back(z2, back(z3, g))
        g = g + F.conv_transpose2d(g, n.conv2.weight, padding=1)
        expected = F.conv_transpose2d(back(z1, g) * scale, n.conv1.weight, padding=1).sum(1) * 1.5
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)


class Forking(nn.Module):
    """What no tracer follows: a branch on the numbers of the batch."""

    def __init__(self, activation: nn.Module) -> None:
        super().__init__()
        self.conv, self.activation, self.head = nn.Conv2d(3, 4, 3), activation, nn.Linear(4, 2)

    def forward(self, x):
        x = self.conv(x)
        if float(x.detach().sum()) > 1e9:
            x = -x
        return self.head(self.activation(x).mean((2, 3)))


def test_a_network_that_no_tracer_follows_is_explained_all_the_same():
    network = Forking(nn.ReLU())
    with torch.no_grad():
        network.head.weight.abs_()  # something speaks for the class
    assert float(guided_backpropagation(Classifier(network, unit, name="f"), pictures(1), [0]).map.std()) > 0


# What does not apply


@pytest.mark.parametrize("method", [deconvnet, guided_backpropagation, guided_grad_cam])
def test_a_network_without_relus_is_refused(method):
    smooth = Classifier(Forking(nn.GELU()), unit, name="smooth")
    text = rf"^smooth has no ReLU \(it has gelu\), and {method.__name__} changes.*integrated_gradients"
    with pytest.raises(ForetellError, match=text):
        method(smooth, pictures(1), [0])
    linear = Classifier(Forking(nn.Identity()), unit, name="linear")
    with pytest.raises(ForetellError, match=r"^linear has no ReLU, and"):
        method(linear, pictures(1), [0])


def in_itself(network: nn.Module) -> nn.Module:
    network.compile()
    return network


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated", "ignore::DeprecationWarning")
@pytest.mark.parametrize("wrap", [torch.jit.script, torch.compile, in_itself], ids=["TorchScript", "compiled", "self"])
def test_relus_that_cannot_be_seen_are_said(wrap):
    """Half of the ReLUs unseen would give a map that is neither."""
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2))
    hidden = Classifier(nn.Sequential(network, nn.ReLU()), unit, name="hidden")
    with hidden.exclusive() as module:
        module[0] = wrap(network)
    with pytest.raises(ForetellError, match=r"^hidden has TorchScript or compiled parts.*uncompiled.*smoothgrad"):
        deconvnet(hidden, pictures(1), [0])


@pytest.mark.parametrize("method", [deconvnet, guided_backpropagation, guided_grad_cam])
def test_other_activations_are_named_in_the_certificate(method):
    mixed = Classifier(Forking(nn.Sequential(nn.ReLU(inplace=True), nn.SiLU(inplace=True))), unit, name="mixed")
    certificate = method(mixed, pictures(1), [0]).certificates[0]
    assert certificate.warnings[0] == "Only ReLUs are changed; other activations keep their own gradient: silu."
    assert deconvnet(awkward(), pictures(1), [0]).certificates[0].warnings == ()
