from __future__ import annotations

import pytest
import torch
from torch import nn

from core.attribution.relevance.excitation import contrastive_excitation, excitation_backpropagation
from core.errors import ForetellError
from core.network.classifier import Classifier
from tests.core.networks import raw


class Small(nn.Module):
    """Maps (2, 1, 3) of a row of three pixels, a hidden layer of four units, two classes."""

    def __init__(self) -> None:
        super().__init__()
        self.maps, self.hidden, self.head = nn.Conv2d(1, 2, 1), nn.Linear(6, 4), nn.Linear(4, 2)
        self.relu = nn.ReLU()
        for parameter in self.parameters():
            nn.init.normal_(parameter, generator=torch.Generator().manual_seed(40 + parameter.numel()))

    def forward(self, x):
        return self.head(torch.relu(self.hidden(self.relu(self.maps(x)).flatten(1))))


X = torch.tensor([[1.0, -2.0, 3.0], [0.5, 2.0, -1.0]]).view(2, 1, 1, 3)


def winners(weights, activations, probabilities):
    """Marginal winning probabilities one layer down, one parent and one child at a time (eq. 3 and 4)."""
    below = [0.0] * len(activations)
    for parent, probability in enumerate(probabilities):
        excitatory = [max(w, 0) * a for w, a in zip(weights[parent], activations, strict=True)]
        for child, value in enumerate(excitatory):
            below[child] += probability * value / sum(excitatory) if sum(excitatory) else 0.0
    return below


def slow(network, x, target, contrast):
    """The map over the three pixels, summed over the channels of the maps."""
    maps = torch.relu(network.maps(x[None])).flatten()
    hidden = torch.relu(network.hidden(maps)).tolist()
    head = network.head.weight.tolist()
    top = winners([head[target]], hidden, [1.0])
    if contrast:
        against = winners([[-w for w in head[target]]], hidden, [1.0])
        top = [a - b for a, b in zip(top, against, strict=True)]
    return torch.tensor(winners(network.hidden.weight.tolist(), maps.tolist(), top)).view(2, 3).sum(0)


@pytest.mark.parametrize("target", [0, 1])
@pytest.mark.parametrize(("method", "contrast"), [(excitation_backpropagation, False), (contrastive_excitation, True)])
def test_agrees_with_a_slow_search_from_the_top(method, contrast, target):
    network = Small().requires_grad_(False)
    expected = torch.stack([slow(network, x, target, contrast) for x in X])
    found = method(Classifier(network, raw, name="small"), X, [target] * 2, layer="relu").map[:, 0]
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
    assert float(expected.abs().max()) > 0.1


def test_probability_is_found_again_and_the_contrast_has_none_left():
    """One winner starts: all it is among is 1 in the end, less the units that nothing excites; a contrast sums to 0."""
    network = Small().requires_grad_(False)
    with torch.no_grad():
        for layer in (network.hidden, network.head):
            layer.weight[:, ::2] = layer.weight[:, ::2].abs()  # every unit is excited by some
        network.head.weight[:, 1] = -1.0  # and something speaks against every class
        network.maps.weight.abs_()
        network.maps.bias.fill_(3.0)
        network.hidden.bias.fill_(5.0)
    classifier = Classifier(network, raw, name="small")
    kept = excitation_backpropagation(classifier, X, [0, 1], layer="relu").map
    torch.testing.assert_close(kept.sum((1, 2)), torch.ones(2), rtol=1e-5, atol=0)
    assert float(kept.min()) >= 0
    rest = contrastive_excitation(classifier, X, [0, 1], layer="relu").map
    torch.testing.assert_close(rest.sum((1, 2)), torch.zeros(2), rtol=0, atol=1e-5)


def test_a_head_that_is_not_linear_has_no_contrast():
    class Pooled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.maps = nn.Conv2d(1, 2, 1)
            nn.init.ones_(self.maps.weight)  # with random weights both maps can be zero on these images

        def forward(self, x):
            return torch.relu(self.maps(x)).mean((2, 3))

    classifier = Classifier(Pooled(), raw, name="pooled")
    assert float(excitation_backpropagation(classifier, X, [0, 1]).map.abs().max()) > 0
    with pytest.raises(ForetellError, match="pooled does not end in one linear layer"):
        contrastive_excitation(classifier, X, [0, 1])
