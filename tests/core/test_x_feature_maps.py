"""Contrastive excitation backpropagation of x-features, against loops over parents and children, and closed forms."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from core.attribution.relevance.excitation import LOSING, WINNING, trace_excitation
from core.concepts.x_feature_maps import start_search, trace_x_features
from core.concepts.x_features import XFeatures
from core.errors import ForetellError
from core.network.classifier import Classifier
from tests.core.networks import raw

X = torch.tensor([[1.0, -2.0, 3.0], [0.5, 2.0, -1.0]]).view(2, 1, 1, 3)


class Small(nn.Module):
    """Of a row of three pixels, maps ``low`` (2, 1, 3), ``high`` (3, 1, 2), and two classes by their means."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.low = nn.Conv2d(1, 2, 1), nn.ReLU(inplace=True)
        self.second, self.high = nn.Conv2d(2, 3, (1, 2)), nn.ReLU(inplace=True)
        self.head = nn.Linear(3, 2)
        for i, parameter in enumerate(self.parameters()):
            nn.init.normal_(parameter, generator=torch.Generator().manual_seed(i))
        self.requires_grad_(False)
        self.first.bias.fill_(2.0)
        self.second.bias.fill_(3.0)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.high(self.second(self.low(self.first(x)))).mean((2, 3)))


def plant(*layers: Tensor, rectified: bool = False) -> XFeatures:
    n, s = len(layers[-1]), layers[0].shape[1]
    shape = torch.zeros(s, n), torch.zeros(s), torch.ones(s)
    return XFeatures(tuple(one.double() for one in layers), rectified, torch.ones(n), 0.0, *shape, 0.0)


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def list_winners(weights: Tensor, activations: Tensor, probabilities: Tensor) -> Tensor:
    """Marginal winning probabilities one layer down, one parent and one child at a time (Zhang et al., eq. 3 and 4)."""
    below = [0.0] * len(activations)
    for parent, probability in zip(weights.tolist(), probabilities.tolist(), strict=True):
        excites = [max(w, 0) * a for w, a in zip(parent, activations.tolist(), strict=True)]
        for child, value in enumerate(excites):
            below[child] += probability * value / sum(excites) if sum(excites) else 0.0
    return torch.tensor(below)


def write_matrix(weight: Tensor, places: int) -> Tensor:
    """The convolution with weights (O, I, 1, k) of a row as a matrix (O (places - k + 1), I places)."""
    outside, inside, _, width = weight.shape
    matrix = torch.zeros(outside, places - width + 1, inside, places)
    for place in range(places - width + 1):
        matrix[:, place, :, place : place + width] = weight[:, :, 0]
    return matrix.flatten(2).flatten(0, 1)


def search(network: Small, x: Tensor, layers: tuple[Tensor, ...], i: int) -> Tensor:
    """The heatmap of an x-feature over the three places of ``low``, with one hidden layer in the encoder."""
    low = network.low(network.first(x[None])).flatten()
    high = network.high(network.second(network.low(network.first(x[None])))).flatten()
    means = high.view(3, 2).mean(1)
    hidden = (layers[0] @ means).relu()
    one = torch.ones(1)
    top = [list_winners(sign * layers[1][i : i + 1], hidden, one) for sign in (1, -1)]
    channels = list_winners(layers[0], means, top[0] - top[1])
    places = list_winners(torch.eye(3).repeat_interleave(2, 1) / 2, high, channels)
    return list_winners(write_matrix(network.second.weight, 3), low, places).view(2, 3).sum(0)


def test_agrees_with_a_slow_search_from_the_x_feature() -> None:
    """Catches a contrast of another layer of the encoder, x-features that are mixed up, and places without weights."""
    network, layers = Small(), (draw(4, 3, seed=3), draw(2, 4, seed=4))
    found = trace_x_features(Classifier(network, raw, name="small"), X, plant(*layers), "high", "low")
    expected = torch.stack([torch.stack([search(network, x, layers, i) for i in range(2)]) for x in X])
    torch.testing.assert_close(found[:, :, 0], expected, rtol=1e-5, atol=1e-6)
    assert float(expected.abs().amax((1, 2)).min()) > 0.05
    assert float((expected[:, 0] - expected[:, 1]).abs().max()) > 0.02


def test_in_its_own_layer_it_is_the_evidence_for_less_that_against_each_as_a_share() -> None:
    """Closed form, of w A over channels and places. Catches a start below the layer, and shares of the whole."""
    network, weights = Small(), draw(2, 3, seed=6)
    maps = network.high(network.second(network.low(network.first(X))))
    evidence = torch.einsum("ns,mshw->mnshw", weights, maps)
    sums = [part / part.sum((2, 3, 4), keepdim=True) for part in (evidence.clamp(min=0), evidence.clamp(max=0))]
    found = trace_x_features(Classifier(network, raw, name="small"), X, plant(weights), "high", "high")
    torch.testing.assert_close(found, torch.nan_to_num(sums[0]).sum(2) - torch.nan_to_num(sums[1]).sum(2))


def test_probability_is_conserved_down_to_the_lower_layer() -> None:
    """Each search ends somewhere, so its heatmap sums to 1 and a contrast to 0. Catches biases that take a share."""
    network = Small()
    network.second.weight.abs_()  # every unit is excited by some
    classifier, x_features = Classifier(network, raw, name="small"), plant(draw(4, 3).abs(), draw(2, 4, seed=4))
    for first, sign in ((WINNING, 1), (LOSING, 1)):
        heatmaps = trace_excitation(
            classifier, X, "high", lambda maps, rule=first: start_search(x_features, maps, rule).transpose(0, 1), "low"
        )
        torch.testing.assert_close(heatmaps.sum((2, 3)), torch.full((2, 2), float(sign)))
        assert float(heatmaps.min()) >= 0
    contrast = trace_x_features(classifier, X, x_features, "high", "low")
    torch.testing.assert_close(contrast.sum((2, 3)), torch.zeros(2, 2), rtol=0, atol=1e-6)
    assert float(contrast.abs().amax((2, 3)).min()) > 0.01


def test_a_rectified_x_feature_that_is_0_has_no_winners() -> None:
    """Catches heatmaps of images that do not have the x-feature: the same weights, negated, are 0 where it is not."""
    weights = draw(1, 3, seed=6)
    both = torch.cat([weights, -weights])
    found = trace_x_features(Classifier(Small(), raw, name="small"), X, plant(both, rectified=True), "high", "low")
    free = trace_x_features(Classifier(Small(), raw, name="small"), X, plant(both), "high", "low")
    means = Small().high(Small().second(Small().low(Small().first(X)))).mean((2, 3))
    positive = (means @ both.T > 0)[:, :, None, None]
    assert positive.sum() == 2
    torch.testing.assert_close(found, torch.where(positive, free, 0.0))


def test_a_layer_without_places_is_traced_to_one_with_places() -> None:
    """As the source does from its first dense layer. Catches a layer (B, K) that is refused or misread."""
    network = nn.Sequential(nn.Conv2d(1, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 2))
    network[0].weight.data.fill_(1.0)
    network[0].bias.data.fill_(3.0)
    network[3].weight.data.copy_(draw(4, 6).abs())
    classifier = Classifier(network.requires_grad_(False), raw, name="dense")
    found = trace_x_features(classifier, X, plant(torch.eye(4)), "4", "1")
    low = network[1](network[0](X)).flatten(1)
    expected = [[list_winners(network[3].weight[k : k + 1], one, torch.ones(1)) for k in range(4)] for one in low]
    expected = torch.stack([torch.stack(row) for row in expected]).view(2, 4, 2, 3).sum(2)
    torch.testing.assert_close(found[:, :, 0], expected)


def test_networks_without_rules_and_layers_above_are_refused() -> None:
    """Catches a heatmap that leaves out what has no rule, and an error of PyTorch for a layer that comes later."""

    class Curved(Small):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x.sinh())

    x_features = plant(draw(2, 3))
    with pytest.raises(ForetellError, match=r"curved computes sinh\(\), for which .* no rule. Use gradient times"):
        trace_x_features(Classifier(Curved(), raw, name="curved"), X, x_features, "high", "low")
    with pytest.raises(ForetellError, match="'high' of small is not below 'low', where the search starts"):
        trace_x_features(Classifier(Small(), raw, name="small"), X, plant(draw(2, 2)), "low", "high")
