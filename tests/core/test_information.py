"""Information in layers against closed forms: normal variables, certain and noisy labels, and features of noise."""

from __future__ import annotations

from math import log2, sqrt

import numpy as np
import pytest
import torch

from core.errors import ForetellError
from core.layers.information import compute_input_information, compute_label_information


def draw(seed: int, count: int, noise: float) -> tuple[torch.Tensor, torch.Tensor, float]:
    """Normal inputs x (N, 4), features h = A x + noise (N, 6), and I(x; h) = log2 det(I + A C A' / noise^2) / 2."""
    generator = torch.Generator().manual_seed(seed)
    spread = torch.tensor([3.0, 2.0, 1.0, 0.5])
    x = torch.randn(count, 4, generator=generator) * spread
    a = torch.randn(6, 4, generator=generator)
    h = x @ a.T + noise * torch.randn(count, 6, generator=generator)
    signal = (a * spread**2) @ a.T / noise**2
    return x, h, float(torch.logdet(torch.eye(6) + signal)) / (2 * np.log(2))


@pytest.mark.parametrize("noise", [0.5, 2.0])
def test_normal_inputs_have_the_information_of_the_closed_form(noise: float) -> None:
    """Catches natural logarithms, a missing half, and residuals that the fit has seen."""
    x, h, exact = draw(1, 6000, noise)
    found = compute_input_information(h, x, components=4)
    assert abs(found.bits - exact) < 4 * found.error + 0.02
    assert found.error < 0.1


def test_the_standard_error_is_that_of_repeated_draws() -> None:
    """Against 60 new samples. Catches an error of the sum, or of another number of images."""
    z = []
    for seed in range(60):
        x, h, exact = draw(seed, 400, 1.0)
        found = compute_input_information(h, x, components=4)
        z.append((found.bits - exact) / found.error)
    assert 0.7 < np.std(z) < 1.6  # the fit of the other half adds to it
    assert abs(np.mean(z)) < 1.5


def test_features_of_noise_tell_nothing() -> None:
    """Catches decoders judged on the images that they were fitted to: 200 features fit 150 images exactly."""
    generator = torch.Generator().manual_seed(0)
    noise, x = torch.randn(300, 200, generator=generator), torch.randn(300, 12, generator=generator)
    labels = torch.randint(4, (300,), generator=generator)
    assert abs(compute_input_information(noise, x).bits) < 0.3  # and a decoder that fits noise loses many
    assert compute_label_information(noise, labels).bits < 0.05


def test_certain_labels_have_the_bits_of_their_entropy_and_no_more() -> None:
    """Closed form: ln K for labels that the features name, of 1/2, 1/4 and 1/4 of the images 1.5 bits."""
    labels = torch.tensor([0, 0, 1, 2] * 100)
    features = 40 * torch.eye(3)[labels] + torch.randn(400, 3, generator=torch.Generator().manual_seed(2))
    found = compute_label_information(features, labels)
    assert found.most == pytest.approx(1.5)
    assert 1.35 < found.bits <= 1.5


def test_a_noisy_label_has_the_information_of_its_channel() -> None:
    """Closed form: a label turned over in a tenth of the images, 1 - H(.1) bits; a linear probe reads it exactly."""
    generator = torch.Generator().manual_seed(3)
    labels = torch.arange(4000) % 2
    heard = labels ^ (torch.rand(4000, generator=generator) < 0.1)
    exact = 1 + 0.1 * log2(0.1) + 0.9 * log2(0.9)
    found = compute_label_information(heard[:, None].double(), labels)
    assert abs(found.bits - exact) < 4 * found.error
    assert found.error == pytest.approx(sqrt(0.09) * (log2(0.9) - log2(0.1)) / sqrt(4000), rel=0.1)


def test_too_few_images_are_refused() -> None:
    with pytest.raises(ForetellError, match="at least 32 images, not 20"):
        compute_input_information(torch.randn(20, 3), torch.randn(20, 5))
