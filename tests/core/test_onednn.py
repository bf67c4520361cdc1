"""1 x 1 convolutions and linear layers under `Onednn` against torch's own in float64."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from core.attribution import common
from core.attribution.common import gradient_and_logits
from core.network.classifier import Classifier
from core.network.cpu import Onednn, _Convolution, _Linear, convolve, multiply
from tests.core.networks import pictures, unit
from tests.core.tokens import torchvision_vit


def answers(layer, x, mode):
    x = x.clone().requires_grad_()
    if mode is None:
        found = layer(x)
    else:
        with mode:
            found = layer(x)
    (gradient,) = torch.autograd.grad((found * torch.arange(found.numel()).view_as(found)).sum() / found.numel(), x)
    return found, gradient


def given_to_onednn(layer, x):
    with Onednn():
        form = type(layer(x.requires_grad_()).grad_fn).__name__
    return form in {f"{own.__name__}Backward" for own in (_Convolution, _Linear)}


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_values_and_gradients_are_those_of_float64(bias, layout):
    layer = nn.Conv2d(5, 7, 1, bias=bias).requires_grad_(False)
    x = pictures(4)[:, :1].expand(-1, 5, -1, -1) * torch.arange(1, 6).view(5, 1, 1)
    x = x.contiguous(memory_format=layout)
    assert given_to_onednn(layer, x.clone())
    found = answers(layer, x, Onednn())
    expected = answers(layer.double(), x.double(), None)
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine.double(), theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "options",
    [{"kernel_size": 3}, {"stride": 2}, {"padding": 1}, {"groups": 3}, {"dtype": torch.float64}],
    ids=lambda options: next(iter(options)),
)
def test_other_convolutions_stay_with_torch(options):
    """Catches steps that are dropped on the way: these would give other values or another size."""
    layer = nn.Conv2d(3, 6, **({"kernel_size": 1} | options)).requires_grad_(False)
    x = pictures(2).to(layer.weight.dtype)
    assert not given_to_onednn(layer, x.clone())
    for mine, theirs in zip(answers(layer, x, Onednn()), answers(layer, x, None), strict=True):
        assert torch.equal(mine, theirs)


@pytest.fixture
def faster(monkeypatch):
    """Let oneDNN be the faster way, whatever this processor is."""
    monkeypatch.setattr(common, "is_onednn_faster", lambda *_: True)


def test_gradients_of_networks_are_asked_under_it(monkeypatch, faster):
    """Catches a way to gradients that leaves it out: one convolution forwards, one back."""
    convolution, asked = torch.mkldnn_convolution, []

    def count_call(*given):
        asked.append(given)
        return convolution(*given)

    monkeypatch.setattr(torch, "mkldnn_convolution", count_call)
    network = nn.Sequential(nn.Conv2d(3, 4, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2))
    gradient_and_logits(Classifier(network, unit, name="pointwise"), pictures(2), torch.tensor([0, 1]))
    assert len(asked) == 2


def test_without_the_undocumented_name_torch_computes_the_same(monkeypatch):
    """Catches a release of PyTorch without ``mkldnn_convolution`` that ends every gradient in an AttributeError."""
    layer, x = nn.Conv2d(3, 6, 1).requires_grad_(False), pictures(2)
    expected = answers(layer, x, None)
    monkeypatch.delattr(torch, "mkldnn_convolution")
    assert not given_to_onednn(layer, x.clone())
    for mine, theirs in zip(answers(layer, x, Onednn()), expected, strict=True):
        assert torch.equal(mine, theirs)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(9, 5), (2, 9, 5), (2, 3, 4, 5)], ids=len)
@pytest.mark.parametrize("transposed", [False, True])
def test_linear_layers_have_values_and_gradients_of_float64(bias, shape, transposed):
    """Catches weights that are not transposed on the way back, and strides that are not read."""
    layer = nn.Linear(5, 7, bias=bias).requires_grad_(False)
    x = torch.randn(shape)
    x = x.transpose(0, 1).contiguous().transpose(0, 1) if transposed else x
    assert given_to_onednn(layer, x.clone())
    expected = answers(copy.deepcopy(layer).double(), x.double(), None)
    for mine, theirs in zip(answers(layer, x, Onednn()), expected, strict=True):
        torch.testing.assert_close(mine.double(), theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "x", [torch.randn(5), torch.randn(0, 5), torch.randn(2, 5).double()], ids=["1-D", "none", "double"]
)
def test_other_linear_layers_stay_with_torch(x):
    layer = nn.Linear(5, 3).to(x.dtype).requires_grad_(False)
    assert not given_to_onednn(layer, x.clone())


def test_linear_layers_without_the_undocumented_name_are_torchs(monkeypatch):
    """Catches a release of PyTorch without ``_linear_pointwise`` that ends every gradient in an AttributeError."""
    layer, x = nn.Linear(3, 6).requires_grad_(False), torch.randn(2, 3)
    monkeypatch.setattr(torch.ops, "mkldnn", object())
    assert not given_to_onednn(layer, x)


def test_every_linear_layer_of_a_transformer_goes_both_ways_by_onednn(monkeypatch, faster):
    """Catches attention that hides its layers: 4 in each of 3 blocks and the head, forwards and back."""
    asked = []
    for step in ("forward", "backward"):
        own = getattr(_Linear, step)
        monkeypatch.setattr(_Linear, step, staticmethod(lambda *given, own=own: asked.append(own) or own(*given)))
    classifier = torchvision_vit()
    gradient_and_logits(classifier, torch.rand(2, *classifier.input_shape), torch.tensor([0, 1]))
    assert len(asked) == 2 * (4 * 3 + 1)


def test_products_with_weights_are_those_of_float64_and_keep_their_gradient():
    """Catches a weight that is transposed once too often, and a product that stops a gradient."""
    x, weight = torch.randn(2, 9, 5), torch.randn(7, 5)
    found = multiply(x, weight)
    torch.testing.assert_close(found.double(), x.double() @ weight.double().T, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(multiply(found, weight.T), found @ weight, rtol=1e-5, atol=1e-5)
    x.requires_grad_()
    (gradient,) = torch.autograd.grad(multiply(x, weight).sum(), x)
    torch.testing.assert_close(gradient, weight.sum(0).expand_as(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "given",
    [
        {"padding": 1},
        {"padding": (1,), "stride": 2},
        {"padding": (2, 1), "stride": (1, 2), "dilation": 2},
        {"dilation": (2,), "groups": 3},
        {},
    ],
)
def test_a_convolution_takes_what_torch_takes(given):
    """Catches one number for both directions, as in ``conv2d(x, weight, padding=1)``, which oneDNN refuses."""
    x, weight = torch.randn(2, 6, 9, 8), torch.randn(3, 6 // given.get("groups", 1), 3, 3)
    found = convolve({"input": x, "weight": weight, **given})
    torch.testing.assert_close(found, nn.functional.conv2d(x, weight, **given), rtol=1e-5, atol=1e-4)
