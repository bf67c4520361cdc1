"""Each rule against a slow re-implementation, one contribution at a time, from the formulas of the papers."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from core.attribution.relevance.linear_maps import convolution, dense
from core.attribution.relevance.rules import AlphaBeta, Epsilon, Flat, Flow, Gamma, SquaredWeights, ZBox

INPUTS, OUTPUTS = 6, 4


def case(bias, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(INPUTS, generator=generator, dtype=torch.float64)
    weight = torch.randn(OUTPUTS, INPUTS, generator=generator, dtype=torch.float64)
    b = torch.randn(OUTPUTS, generator=generator, dtype=torch.float64) if bias else None
    relevance = torch.randn(OUTPUTS, generator=generator, dtype=torch.float64)
    return x, weight, b, relevance


def shared(rule, x, weight, b, relevance, bounds=None):
    z = F.linear(x[None], weight, b)
    low, high = (torch.full((1, INPUTS), end, dtype=torch.float64) for end in bounds or (0.0, 0.0))
    ends = (low, high) if bounds else None
    return rule(Flow(dense(weight, b), x[None], z, relevance[None], ends))[0]


def slow(share, x, weight, b, relevance):
    """sum_j share(contributions to j, bias j, row j) R_j, one input at a time."""
    total = [0.0] * INPUTS
    for j in range(OUTPUTS):
        c = [float(x[i] * weight[j, i]) for i in range(INPUTS)]
        bias = 0.0 if b is None else float(b[j])
        for i in range(INPUTS):
            total[i] += share(i, c, bias, weight[j].tolist()) * float(relevance[j])
    return torch.tensor(total, dtype=torch.float64)


def epsilon_share(epsilon):
    def share(i, c, bias, w):
        z = math.fsum(c) + bias
        return c[i] / (z + (epsilon if z >= 0 else -epsilon))

    return share


def gamma_share(gamma):
    def share(i, c, bias, w):
        z = math.fsum(c) + bias
        sign = 1 if z > 0 else -1
        same = [value if value * sign > 0 else 0.0 for value in [*c, bias]]
        return (c[i] + gamma * same[i]) / (z + gamma * math.fsum(same))

    return share


def alpha_beta_share(alpha, beta):
    def share(i, c, bias, w):
        up = math.fsum(max(value, 0) for value in [*c, bias])
        down = math.fsum(min(value, 0) for value in [*c, bias])
        return alpha * max(c[i], 0) / up - beta * min(c[i], 0) / down

    return share


def box_share(low, high):
    def share(i, c, bias, w):
        terms = [ci - low * max(wi, 0) - high * min(wi, 0) for ci, wi in zip(c, w, strict=True)]
        return terms[i] / math.fsum(terms)

    return share


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(
    ("rule", "share"),
    [
        (Epsilon(0.0), epsilon_share(0.0)),
        (Epsilon(0.3), epsilon_share(0.3)),
        (Gamma(0.25), gamma_share(0.25)),
        (AlphaBeta(2, 1), alpha_beta_share(2, 1)),
        (AlphaBeta(1, 0), alpha_beta_share(1, 0)),
        (AlphaBeta(0, -1), alpha_beta_share(0, -1)),
        (SquaredWeights(), lambda i, c, b, w: w[i] ** 2 / math.fsum(v**2 for v in w)),
        (Flat(), lambda i, c, b, w: 1 / INPUTS),
    ],
    ids=["zero", "epsilon", "gamma", "alpha_beta", "z_plus", "losing", "w_square", "flat"],
)
def test_a_dense_layer_shares_by_the_papers_formula(rule, share, bias):
    x, weight, b, relevance = case(bias)
    expected = slow(share, x, weight, b, relevance)
    torch.testing.assert_close(shared(rule, x, weight, b, relevance), expected, rtol=1e-11, atol=1e-12)


def test_the_box_rule_shares_by_the_papers_formula():
    x, weight, b, relevance = case(True)
    low, high = float(x.min()) - 0.5, float(x.max()) + 0.5
    found = shared(ZBox(), x, weight, b, relevance, (low, high))
    torch.testing.assert_close(found, slow(box_share(low, high), x, weight, b, relevance), rtol=1e-11, atol=1e-12)
    assert float(found.sum()) == pytest.approx(float(relevance.sum()), rel=1e-10)


@pytest.mark.parametrize(
    "rule", [Epsilon(0.1), Gamma(0.5), AlphaBeta(2, 1), SquaredWeights(), Flat()], ids=lambda rule: type(rule).__name__
)
@pytest.mark.parametrize("how", [{"stride": 2, "padding": 1}, {"dilation": 2}, {"groups": 2}, {"padding": "same"}])
def test_a_convolution_is_the_dense_layer_of_its_matrix(rule, how):
    generator = torch.Generator().manual_seed(3)
    conv = nn.Conv2d(2, 4, 3, **how).double().requires_grad_(False)
    x = torch.randn(1, 2, 6, 6, generator=generator, dtype=torch.float64)
    z = conv(x)
    unit = torch.eye(x.numel(), dtype=torch.float64).view(-1, *x.shape[1:])
    matrix = F.conv2d(unit, conv.weight, None, conv.stride, conv.padding, conv.dilation, conv.groups).flatten(1).T
    spread = conv.bias[None, :, None, None].expand_as(z).flatten()
    relevance = torch.randn(z.shape, generator=generator, dtype=torch.float64)
    layer = convolution(torch.conv2d, conv.weight, conv.bias, conv.stride, conv.padding, conv.dilation, conv.groups)
    found = rule(Flow(layer, x, z, relevance))
    if isinstance(rule, Flat):  # ones where the matrix has none would let pixels speak that are not looked at
        ones = F.conv2d(unit, torch.ones_like(conv.weight), None, *layer_options(conv)).flatten(1).T
        expected = (ones.T @ (relevance.flatten() / ones.sum(1))).view_as(x)
    else:
        expected = rule(Flow(dense(matrix, spread), x.flatten(1), z.flatten(1), relevance.flatten(1))).view_as(x)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-10)


def layer_options(conv):
    return conv.stride, conv.padding, conv.dilation, conv.groups


def test_what_a_layer_loses_has_a_closed_form():
    """Oracles: sum R = R (1 - (b +- eps) / (z +- eps)); and with alpha = beta = 1/2 of the paper's sign convention
    sum R = R (1 - b^+ / 2 z^+ - b^- / 2 z^-)."""
    x, weight, b, relevance = case(True, seed=5)
    z, epsilon = F.linear(x, weight, b), 0.2
    shift = epsilon * z.sign()
    kept = (relevance * (1 - (b + shift) / (z + shift))).sum()
    assert float(shared(Epsilon(epsilon), x, weight, b, relevance).sum()) == pytest.approx(float(kept), rel=1e-12)
    c = x * weight
    up, down = c.clamp(min=0).sum(1) + b.clamp(min=0), c.clamp(max=0).sum(1) + b.clamp(max=0)
    kept = (relevance * (1 - b.clamp(min=0) / (2 * up) - b.clamp(max=0) / (2 * down))).sum()
    assert float(shared(AlphaBeta(0.5, -0.5), x, weight, b, relevance).sum()) == pytest.approx(float(kept), rel=1e-12)


def test_an_output_of_zero_shares_nothing():
    x = torch.tensor([1.0, 1.0], dtype=torch.float64)
    weight, relevance = torch.tensor([[1.0, -1.0]], dtype=torch.float64), torch.ones(1, dtype=torch.float64)
    for rule in (Epsilon(0.0), Gamma(0.0)):
        flow = Flow(dense(weight, None), x[None], torch.zeros(1, 1).double(), relevance[None])
        assert rule(flow).tolist() == [[0.0, 0.0]]
