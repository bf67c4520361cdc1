from __future__ import annotations

import pytest
import torch
from torch import nn

from core.attribution.common import output_gradient
from core.attribution.gradients import smoothgrad as family
from core.attribution.gradients.smoothgrad import smoothgrad, vargrad
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.network.device import stream
from tests.core.networks import SIDE, awkward, pictures, unit


def seeded(seed: int = 5) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def loops(classifier, images, targets, samples, noise, seed):
    """The gradients (B, n, C, H, W) one forward pass at a time, by the papers' words."""
    found = []
    for x, target in zip(images, targets, strict=True):
        deviation = noise * float(x.max() - x.min())
        copies = [x + deviation * torch.randn(x.shape, generator=stream(seed, i)) for i in range(samples)]
        found.append(torch.cat([output_gradient(classifier, copy[None], torch.tensor([target])) for copy in copies]))
    return torch.stack(found).double()


def test_mean_error_and_variance_agree_with_loops():
    """Slow re-implementation: explicit samples, torch's own mean and variance."""
    classifier, images = awkward(), pictures(2)
    images[1] *= 0.3  # another range, so another noise
    mean = smoothgrad(classifier, images, [0, 2], generator=seeded(), samples=7, noise=0.2)
    spread = vargrad(classifier, images, [0, 2], generator=seeded(), samples=7, noise=0.2)
    gradients = loops(classifier, images, [0, 2], 7, 0.2, mean.certificates[0].seed)
    torch.testing.assert_close(mean.map.double(), gradients.sum(2).mean(1), rtol=1e-4, atol=1e-5)
    expected = gradients.sum(2).std(1) / 7**0.5
    torch.testing.assert_close(mean.error.double(), expected, rtol=1e-4, atol=1e-5)
    assert mean.certificates[1].standard_error == pytest.approx(float(expected[1].max()), rel=1e-4)
    torch.testing.assert_close(spread.map.double(), gradients.var(1).sum(1), rtol=1e-4, atol=1e-5)


class Square(nn.Module):
    """f(x) = sum a x^2 over all inputs: the gradient 2 a x is linear in the noise."""

    def __init__(self, a: torch.Tensor) -> None:
        super().__init__()
        self.a = nn.Parameter(a)

    def forward(self, x):
        f = (self.a * x * x).flatten(1).sum(1)
        return torch.stack([f, -f], 1)


def test_closed_forms_on_a_quadratic_function():
    """Mean 2 sum_c a_c x_c; variance sum_c (2 a_c sd)^2; standard error 2 sd sqrt(sum a_c^2 / n)."""
    a = torch.rand(3, SIDE, SIDE, generator=seeded(1)) + 0.5
    classifier, image = Classifier(Square(a), unit, name="square"), pictures(1)
    n, deviation = 3000, 0.1 * float(image.max() - image.min())
    mean = smoothgrad(classifier, image, [0], generator=seeded(), samples=n, noise=0.1)
    spread = vargrad(classifier, image, [0], generator=seeded(), samples=n, noise=0.1)
    error = 2 * deviation * (a.square().sum(0) / n).sqrt()
    torch.testing.assert_close(mean.error[0], error, rtol=0.08, atol=0)
    # 144 pixels: the root mean square of the standardised deviations is 1 within 0.06.
    off = (mean.map[0] - (2 * a * image[0]).sum(0)) / error
    assert 0.8 < float(off.square().mean().sqrt()) < 1.2
    torch.testing.assert_close(spread.map[0], (2 * a * deviation).square().sum(0), rtol=0.1, atol=0)


def test_a_linear_network_has_no_noise():
    network = nn.Sequential(nn.Flatten(), nn.Linear(3 * SIDE * SIDE, 2))
    classifier = Classifier(network, unit, name="linear")
    explanation = smoothgrad(classifier, pictures(1), [1], samples=5)
    expected = network[1].weight[1].detach().view(3, SIDE, SIDE).sum(0)
    torch.testing.assert_close(explanation.map[0], expected, rtol=1e-5, atol=1e-7)
    assert float(explanation.error.max()) < 1e-6
    assert float(vargrad(classifier, pictures(1), [1], samples=5).map.max()) < 1e-12


@pytest.mark.parametrize("method", [smoothgrad, vargrad])
def test_neither_chunks_nor_a_full_memory_change_the_map(method, monkeypatch):
    """Running out of memory in the middle of a batch must neither lose a noisy copy nor count one twice."""
    classifier, images = awkward(), pictures(2)
    expected = method(classifier, images, [0, 1], generator=seeded(), samples=9).map
    calls = []

    def greedy(classifier, inputs, targets):
        calls.append(len(inputs))
        if len(inputs) > 2 and len(calls) % 2 == 0:
            raise torch.OutOfMemoryError("out of memory")
        return output_gradient(classifier, inputs, targets)

    monkeypatch.setattr(family, "output_gradient", greedy)
    found = method(classifier, images, [0, 1], generator=seeded(), samples=9).map
    assert calls[:2] == [9, 9]
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)


def test_another_seed_gives_another_map():
    classifier, images = awkward(), pictures(1)
    maps = [smoothgrad(classifier, images, [0], generator=seeded(k), samples=4).map for k in (1, 2)]
    assert float((maps[0] - maps[1]).abs().max()) > 1e-3


@pytest.mark.parametrize(
    ("bad", "text"),
    [
        ({"samples": 1}, "samples=1: SmoothGrad needs at least 2"),
        ({"noise": 0.0}, "noise=0.0: SmoothGrad needs a share"),
        ({"noise": float("nan")}, "noise=nan"),
    ],
)
def test_bad_parameters_name_the_culprit(bad, text):
    with pytest.raises(ForetellError, match=text):
        smoothgrad(awkward(), pictures(1), [0], **bad)
