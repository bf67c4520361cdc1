from __future__ import annotations

import pytest
import torch
from torch import nn

from core.attribution.gradients import gradient, integrated_gradients
from core.classifier import Classifier
from tests.core.networks import ToyA, awkward, pictures, raw

X = torch.tensor([20.0, 50.0, 30.0]).view(1, 1, 1, 3)


def toy(network: nn.Module) -> Classifier:
    return Classifier(network, raw, name="toy")


def test_toy_a_closed_forms():
    """captum tests/attr: gradient (4, 4, 4); integrated gradients in closed form 3.9 x from baseline 0."""
    classifier = toy(ToyA())
    assert gradient(classifier, X, [0]).map.flatten().tolist() == [4.0, 4.0, 4.0]
    # The kinks at s = 10 and s = -1 lie at alpha = .1 and before 0: with 200 midpoints none is cut.
    explanation = integrated_gradients(classifier, X, [0], steps=200)
    torch.testing.assert_close(explanation.map.flatten(), torch.tensor([78.0, 195.0, 117.0]), rtol=1e-6, atol=0)
    assert abs(explanation.certificates[0].completeness) < 1e-6


def test_completeness_residual_tells_a_coarse_rule():
    """With one step the midpoint gradient is 4 everywhere: the sum is 400 where the difference is 390."""
    certificate = integrated_gradients(toy(ToyA()), X, [0], steps=1).certificates[0]
    assert certificate.completeness == pytest.approx(10 / 390, rel=1e-6)


class Minimum(nn.Module):
    """min(x1, x2) of the first two inputs, as a ReLU network: x1 - relu(x1 - x2)."""

    def forward(self, x):
        x1, x2 = x[:, 0, 0, 0], x[:, 0, 0, 1]
        f = x1 - torch.relu(x1 - x2)
        return torch.stack([f, -f], 1)


class MinimumOtherwise(nn.Module):
    """The same function by another network: x2 - relu(x2 - x1)."""

    def forward(self, x):
        x1, x2 = x[:, 0, 0, 0], x[:, 0, 0, 1]
        f = x2 - torch.relu(x2 - x1)
        return torch.stack([f, -f], 1)


def test_implementation_invariance():
    """min(3, 1): all on the smaller (Sundararajan et al. 2017), whichever network computes it."""
    x = torch.tensor([3.0, 1.0, 0.0]).view(1, 1, 1, 3)
    for network in (Minimum(), MinimumOtherwise()):
        assert integrated_gradients(toy(network), x, [0]).map.flatten().tolist() == pytest.approx([0, 1, 0])


def test_agrees_with_captum_on_an_awkward_network():
    from captum.attr import IntegratedGradients, Saliency

    classifier, images = awkward(), pictures(2)
    with classifier.exclusive() as module:

        def forward(x):
            return module(x.clone())

        theirs = Saliency(forward).attribute(images.clone(), target=[0, 2], abs=False).sum(1)
        ours = gradient(classifier, images, [0, 2]).map
        torch.testing.assert_close(ours, theirs.float(), rtol=1e-4, atol=1e-6)
        baseline = classifier.fill("black")[None].expand(2, -1, -1, -1)
        theirs = IntegratedGradients(forward).attribute(
            images.clone(), baseline, target=[0, 2], n_steps=32, method="riemann_middle"
        )
    ours = integrated_gradients(classifier, images, [0, 2], steps=32).map
    torch.testing.assert_close(ours, theirs.sum(1).float(), rtol=1e-4, atol=1e-5)
