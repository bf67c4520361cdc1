"""DeepLIFT through softmax: the mean Jacobian on the line from the reference."""

from __future__ import annotations

import pytest
import torch
from scipy.integrate import quad_vec
from torch import nn

from benchmarks import checks
from core.attribution.relevance.deeplift import deep_shap, deeplift
from core.attribution.relevance.differences import Differences
from core.network.classifier import Classifier
from core.sources import load
from tests.core.scenes import answered
from tests.core.test_deeplift import Lambda, explained


def test_a_softmax_of_two_is_the_rescaled_sigmoid_of_their_difference():
    """Closed form: softmax(a, b)[0] = sigmoid(a - b), so a's multiplier is sigmoid's mean slope on the line.

    Differences of up to 150, as trained attention has, where Rescale of exp and of 1 / sum gave 1e8 and more.
    """
    weights = torch.tensor([[1.0, -2.0], [30.0, 5.0], [-40.0, 35.0], [0.0, 80.0], [0.0, 0.0]], dtype=torch.float64)
    starts = torch.tensor([[0.5, 3.0], [-20.0, 12.0], [25.0, -50.0], [0.0, -70.0], [1.0, 0.0]], dtype=torch.float64)
    softmax = Lambda(lambda x: x.softmax(1)[:, 0])
    for logits, start in zip(weights, starts, strict=True):
        x, reference = logits.view(1, 1, 1, 2), start.view(1, 1, 1, 2)
        found, change = explained(softmax, x, reference)
        far, near = logits[0] - logits[1], start[0] - start[1]
        slope = (far.sigmoid() - near.sigmoid()) / (far - near)
        expected = slope * torch.stack([logits[0] - start[0], start[1] - logits[1]])
        torch.testing.assert_close(found.flatten(), expected, rtol=1e-6, atol=1e-7)
        assert float(found.sum()) == pytest.approx(float(change), abs=1e-7)


def test_a_softmax_of_many_is_its_jacobian_integrated_adaptively():
    """The oracle: SciPy's adaptive quadrature of the Jacobian on the line, with one place that attention masks."""
    draws = torch.Generator().manual_seed(0)
    x, x0 = (20 * torch.randn(1, 1, 1, 9, generator=draws, dtype=torch.float64) for _ in range(2))
    x[..., 4] = x0[..., 4] = -torch.inf
    m = torch.randn(9, generator=draws, dtype=torch.float64)
    delta = torch.where(x == x0, 0, x - x0).flatten()

    def slope(position):
        share = (x0.flatten() + position * delta).softmax(0)
        return (share * (m - (m * share).sum())).numpy()

    expected, _ = quad_vec(slope, 0, 1, epsabs=1e-10)
    leaf = x.clone().requires_grad_()
    logits, _ = Differences("net", "deeplift", "rescale").logits(Lambda(lambda x: x.softmax(1) @ m), leaf, x0)
    (found,) = torch.autograd.grad(logits[0, 0], leaf)
    torch.testing.assert_close(found.flatten(), torch.from_numpy(expected), rtol=0, atol=1e-7)


@pytest.mark.parametrize(("method", "options"), [(deeplift, {}), (deep_shap, {"samples": 2})])
def test_on_a_trained_transformer_contributions_are_as_large_as_what_they_add_up_to(method, options):
    """Attention that training made sharp: maps up to 1e10 with residuals up to 409, without a warning."""
    network = load("data/scenes/zoo/vit.py:build")
    images, classes = answered(network, 3)
    explanation = method(network, images, classes, **options)
    for heatmap, certificate in zip(explanation.map, explanation.certificates, strict=True):
        change = float(heatmap.sum())
        assert checks.check_size(heatmap, change).value < 10  # integrated gradients: 3 to 8
        assert abs(certificate.completeness) < 4e-5
        assert certificate.warnings == ()


class WrittenOut(nn.Module):
    """Sharp attention whose softmax is written as exp and a sum, which no rule knows as a softmax."""

    def forward(self, x):
        x = x.flatten(1)
        weights = x.exp()
        share = weights / weights.sum(1, keepdim=True)
        return torch.stack([share[:, 0], share[:, 1]], 1)


@pytest.mark.parametrize(("method", "options"), [(deeplift, {}), (deep_shap, {"samples": 2})])
def test_contributions_that_nearly_cancel_or_miss_their_sum_are_warned_of(method, options):
    """No certificate of DeepLIFT said so, whatever its residual."""
    references = torch.tensor([0.0, 20.0, 22.0]).view(1, 1, 1, 3)
    network = Classifier(WrittenOut(), lambda _: references[0], name="written out")
    image = torch.tensor([-31.0, 2.0, -37.0]).view(1, 1, 1, 3)
    options = options | ({"references": references} if method is deep_shap else {"baseline": "black"})
    (certificate,) = method(network, image, [1], **options).certificates
    missed, cancels = certificate.warnings
    assert missed.startswith("The sum of this heatmap misses the change it explains by 1")
    assert "parts of either sign nearly cancel. Use integrated_gradients" in cancels
