"""That every call of a network is met: with rules that change nothing, the way back is the gradient."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from core.attribution.relevance.differences import Differences, contributions
from core.attribution.relevance.propagation import Mark, Propagation, mark_of, mark_tensor
from core.errors import ForetellError


class Unchanged(Propagation):
    """PyTorch's own way back, and a list of what was met."""

    def __init__(self) -> None:
        super().__init__("net", "nothing")
        self.met: list[str] = []

    def linear(self, x, layer, value):
        self.met.append(layer.kind)
        z = layer.apply(x, layer.weight)
        return z if layer.bias is None else z + layer.bias

    def pointwise(self, x, function):
        return function(x)

    def bilinear(self, function, a, b):
        self.met.append("product")
        return function(a, b)

    def divide(self, a, b):
        return a / b

    def maximum(self, function, x):
        return function(x)

    def softmax(self, x, dim):
        return mark_tensor(x.softmax(dim), Mark())

    def normalise(self, x, dims, eps):
        over = tuple(dims)
        return F.layer_norm(x, [x.shape[dim] for dim in over], eps=eps)

    def unit_norm(self, x, dim, eps):
        self.met.append("unit_norm")
        return x / x.square().sum(dim, keepdim=True).sqrt().clamp_min(eps)


def gradients(function, x):
    """The gradient of a function of (B, 4) met call by call, and PyTorch's own; what was met."""

    class Net(nn.Module):
        def forward(self, x):
            return function(x)

    propagation = Unchanged()
    leaf = x.clone().requires_grad_()
    (met,) = torch.autograd.grad(propagation.output(Net(), leaf).sum(), leaf)
    own = x.clone().requires_grad_()
    (expected,) = torch.autograd.grad(function(own.clone()).sum(), own)
    return met, expected, propagation.met


X = torch.randn(3, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
W = torch.randn(5, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def complete(function, rule):
    """Contributions of X against other rows, and the difference they are to sum to."""

    class Net(nn.Module):
        def forward(self, x):
            return function(x)

    propagation = Differences("net", "deeplift", rule)
    found, end, start = contributions(Net(), X, X.roll(1, 0) * 0.7, propagation, lambda output: output.sum(1))
    return found, (end - start).sum(1)


def in_place(x):
    y = F.linear(x, W)
    y += 2 * y
    y.mul_(2)
    y.sub_(1).relu_()
    F.dropout(y, 0.5, training=False, inplace=True)
    y = y + 0
    y[:, 0] = y[:, 1] * 3
    return y


def aliased(x):
    """An in-place call whose result is thrown away, and another name for the same tensor."""
    y = x * 2
    z = y
    y.sub_(0.1)
    F.relu(y, inplace=True)
    return z + 1


def operators(x):
    y = 1 - x
    y = 2 / (3 + y * y)
    y = -y @ W.T + x.mean(1, keepdim=True)
    return (y / 3 - 0.5) ** 2 / (1 + y.abs())


def shapes(x):
    y = torch.cat([x, x.flip(1)], 1).view(3, 2, 4).permute(0, 2, 1).contiguous()
    a, b = y.chunk(2, 1)
    return (a * b).flatten(1).sum(1, keepdim=True) * torch.where(W[:3] > 0, x, 0 * x) + x.T.t()


def products(x):
    q = x.view(3, 2, 2)
    seen = torch.softmax(torch.einsum("bij,bkj->bik", q, q), -1) @ q.transpose(1, 2)
    return F.scaled_dot_product_attention(q, q, q).flatten(1) + seen.flatten(1) + torch.bmm(q, q).flatten(1)


def norms(x):
    y = F.layer_norm(x, (4,), W[0], W[1])
    y = F.group_norm(y[:, :, None], 2, W[2], W[3])[:, :, 0]
    # Contiguous: of strided statistics PyTorch 2.13 itself gives a wrong gradient.
    mean, spread, scale, shift = W.T.contiguous()
    z = F.batch_norm(F.linear(y, W), mean, spread.abs() + 1, scale, shift)
    return F.batch_norm(z.relu(), spread, mean.abs() + 1)


def unit_norms(x):
    y = F.normalize(F.linear(x, W), dim=-1) + F.normalize(x.sum(1, keepdim=True), 2.0, 0, eps=1e3)
    return F.linear(F.normalize(y), W.T)


def pools(x):
    y = F.avg_pool1d(F.max_pool1d(x[:, None].repeat(1, 1, 3), 2), 2)
    y = F.conv_transpose1d(F.conv1d(y, W[:2, None, :3], padding="same"), W[:2, None, :2])
    y = F.interpolate(F.adaptive_avg_pool1d(y, 2), scale_factor=2)
    return y[:, 0] + x.new_zeros(3, 4) + torch.ones_like(x) + x.size(0) + float(x.shape[1])


@pytest.mark.parametrize("function", [in_place, aliased, operators, shapes, products, norms, unit_norms, pools])
def test_every_call_is_met(function):
    met, expected, _ = gradients(function, X)
    torch.testing.assert_close(met, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("function", [in_place, aliased, operators, shapes, products, norms, unit_norms, pools])
@pytest.mark.parametrize("rule", ["rescale", "reveal_cancel"])
def test_contributions_complete_through_every_call(function, rule):
    """DeepLIFT's sum is exact however a network is written; a call missed or met twice breaks it."""

    found, change = complete(function, rule)
    torch.testing.assert_close(found.sum(1), change, rtol=1e-10, atol=1e-10)


def test_batch_norms_are_folded_into_the_layer_before_them_and_nowhere_else():
    assert gradients(norms, X)[2] == ["other"] * 2 + ["dense", "dense", "other"]


def test_nothing_is_overwritten_of_what_the_network_holds():
    """The caller's tensor and the weights stay; the network's own in-place calls happen to its copies."""
    x = X.clone().requires_grad_()
    Unchanged().output(nn.ReLU(inplace=True), x)
    assert torch.equal(x.detach(), X)
    assert mark_of(x) is None


@pytest.mark.parametrize("choose", [lambda x: torch.where(x > 0, x, 2 * x), lambda x: x[x[:, 0] > 0] * 2])
def test_choices_that_depend_on_the_image_are_refused(choose):
    with pytest.raises(ForetellError, match="runs different code for the image and for its reference"):
        complete(choose, "rescale")


def test_what_is_not_known_is_refused():
    for function, what in (
        (lambda x: torch.cumsum(x, 1), r"computes cumsum\(\)"),
        (lambda x: F.normalize(x, p=1), r"computes normalize\(\) with p=1"),
        (lambda x: x[0, 0].item(), "not trace"),
    ):
        with pytest.raises(ForetellError, match=what):
            gradients(function, X)
    with pytest.raises(ForetellError, match="the batch's own statistics"):
        gradients(lambda x: F.batch_norm(x, None, None, training=True), X)
