"""The record of a training against closed forms, planted classes and labels that nothing can be learned from."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from core.errors import ForetellError
from core.network.classifier import Classifier
from core.robustness.boundary import critical_samples
from core.training.modifications import MODIFICATIONS, Examples, Limits, modify_examples
from core.training.record import (
    TrainingSettings,
    compute_gini,
    list_epochs,
    measure_loss_sensitivity,
    record_training,
)
from core.training.spectrum import LearnedWaves, draw_waves, project, record_waves

SIDE, CLASSES = 8, 4
SETTINGS = TrainingSettings(epochs=40, batch=32, rate=5e-3, steps=4, cut=1.5)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def classifier_of(module: nn.Module) -> Classifier:
    def transforms(image) -> Tensor:
        return torch.from_numpy(np.array(image.resize((SIDE, SIDE)))).permute(2, 0, 1).float() / 255

    return Classifier(module, transforms, name="tiny")


def perceptron() -> Classifier:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return classifier_of(nn.Sequential(nn.Flatten(), nn.Linear(3 * SIDE**2, 64), nn.ReLU(), nn.Linear(64, CLASSES)))


def examples(count: int, seed: int, *, waves: int = 1, noise: float = 0.05) -> Examples:
    """Noise, and in it for each class one direction of a wave of so many cycles: class and frequency are known."""
    draws = seeded(seed)
    labels = torch.arange(count) % CLASSES
    place = 2 * math.pi * waves * torch.arange(SIDE) / SIDE
    shapes = torch.stack(
        [
            wave.expand(SIDE, SIDE)
            for wave in (place.cos()[None], -place.cos()[None], place.cos()[:, None], -place.cos()[:, None])
        ]
    )
    grain = noise * torch.randn(count, 3, SIDE, SIDE, generator=draws)
    inputs = (0.5 + 0.2 * shapes[labels][:, None] + grain).clamp(0, 1)
    return Examples(inputs, labels, labels)


LIMITS = Limits(torch.arange(CLASSES), torch.zeros(3, SIDE, SIDE), torch.ones(3, SIDE, SIDE))


# Measures


def test_the_gini_coefficient_is_that_of_its_definition() -> None:
    """Expected: 0, (n - 1)/n, and half the relative mean absolute difference over all pairs."""
    assert compute_gini(torch.full((9,), 3.0)) == pytest.approx(0)
    assert compute_gini(torch.zeros(5)) == 0
    one = torch.zeros(8)
    one[3] = 2
    assert compute_gini(one) == pytest.approx(7 / 8)
    values = torch.rand(30, generator=seeded(), dtype=torch.float64) ** 3
    pairs = (values[:, None] - values[None]).abs().mean()
    assert compute_gini(values) == pytest.approx(float(pairs / (2 * values.mean())))


def test_the_loss_sensitivity_of_a_linear_network_is_the_closed_form() -> None:
    """Expected: ‖Wᵀ(p − y)‖₁ for each image alone. Catches a mean over the batch and a gradient of the logit."""
    linear = nn.Linear(3 * SIDE**2, CLASSES)
    shown = examples(6, 1)
    found = measure_loss_sensitivity(classifier_of(nn.Sequential(nn.Flatten(), linear)), shown)
    with torch.no_grad():
        wrong = linear(shown.inputs.flatten(1)).softmax(1) - torch.eye(CLASSES)[shown.labels]
        expected = (wrong @ linear.weight).abs().sum(1)
    torch.testing.assert_close(found, expected.double(), rtol=1e-4, atol=1e-6)


def test_critical_samples_of_a_linear_network_are_those_of_the_closed_form() -> None:
    """Expected: of two classes, another prediction is within r if and only if |margin| ≤ r ‖w‖₁, in the max-norm."""
    linear = nn.Linear(3 * SIDE**2, 2)
    images = 0.5 + 0.2 * torch.rand(60, 3, SIDE, SIDE, generator=seeded())
    with torch.no_grad():
        w = linear.weight[1] - linear.weight[0]
        linear.bias[1] = linear.bias[0] - (images.flatten(1) @ w).median()
        margin = images.flatten(1) @ w + linear.bias[1] - linear.bias[0]
    radius = float(margin.abs().median() / w.abs().sum())
    found = critical_samples(
        classifier_of(nn.Sequential(nn.Flatten(), linear)), images, radius=radius, steps=30, noise=0.0, pixels=False
    )
    near = margin.abs() <= radius * w.abs().sum()
    clear = (margin.abs() - radius * w.abs().sum()).abs() > 1e-4
    assert 20 < int(near.sum()) < 40
    assert torch.equal(found.critical[clear], near[clear])


def test_epochs_are_measured_ever_more_rarely() -> None:
    assert list_epochs(1) == [0, 1]
    assert list_epochs(40) == [0, 1, 2, 4, 8, 16, 32, 40]


# Modifications


def test_labels_are_corrupted_with_their_probability_and_held_out_ones_never() -> None:
    """Expected: of labels drawn again one in K stays. Catches labels that all change, and changed held-out labels."""
    many = Examples(torch.zeros(4000, 3, 1, 1), torch.arange(4000) % CLASSES, torch.arange(4000) % CLASSES)
    for kind, share in (("true", 0.0), ("corrupted", 0.3), ("random_labels", 1.0)):
        training, held_out = modify_examples(kind, many, many, replace(LIMITS, share=0.3), seeded())
        changed = float((training.labels != many.labels).float().mean())
        assert changed == pytest.approx(share * (1 - 1 / CLASSES), abs=0.03)
        assert torch.equal(training.true, many.true)
        assert torch.equal(held_out.labels, many.labels)


def test_pixels_are_moved_alike_or_in_each_image_in_another_way() -> None:
    """Catches a permutation of its own for held-out images, one that is shared, and channels that part."""
    shown, held = examples(5, 2), examples(3, 3)
    moved, moved_held = modify_examples("shuffled", shown, held, LIMITS, seeded())
    columns, back = (one.inputs.permute(2, 3, 0, 1).flatten(0, 1).flatten(1) for one in (moved, shown))
    order = [int((back == column).all(1).nonzero()) for column in columns]
    assert sorted(order) == list(range(SIDE**2))
    assert order != list(range(SIDE**2))
    assert torch.equal(moved_held.inputs, held.inputs.flatten(2)[..., order].view_as(held.inputs))
    scattered, scattered_held = modify_examples("random_pixels", shown, held, LIMITS, seeded())
    for own, others in ((shown, scattered), (held, scattered_held)):
        for image, other in zip(own.inputs, others.inputs, strict=True):
            assert {tuple(p) for p in image.flatten(1).T.tolist()} == {tuple(p) for p in other.flatten(1).T.tolist()}
    ways = [
        [int((pixel == image.flatten(1).T).all(1).nonzero()) for pixel in other.flatten(1).T]
        for image, other in zip(shown.inputs, scattered.inputs, strict=True)
    ]
    assert len({tuple(way) for way in ways}) == 5


def test_gaussian_pixels_have_the_moments_of_the_training_images_and_nothing_else() -> None:
    """Catches one moment for all channels, pixels brighter than white, and noise that keeps some of the image."""
    inputs = 0.5 + torch.tensor([0.02, 0.05, 0.1]).view(1, 3, 1, 1) * torch.randn(60, 3, 8, 8, generator=seeded(1))
    own = Examples(inputs + 0.1 * torch.eye(3)[0].view(1, 3, 1, 1), torch.zeros(60), torch.zeros(60))
    drawn, held_out = modify_examples("gaussian", own, own, LIMITS, seeded(2))
    for one in (drawn, held_out):
        expected, found = (torch.stack(torch.std_mean(x.inputs, (0, 2, 3))) for x in (own, one))
        torch.testing.assert_close(found, expected, atol=0.01, rtol=0)
        assert abs(float(np.corrcoef(one.inputs.flatten(), own.inputs.flatten())[0, 1])) < 0.8
        centred = (one.inputs - one.inputs.mean((0, 2, 3), keepdim=True)).flatten()
        assert abs(float((centred * (inputs - 0.5).flatten()).mean())) < 1e-3
    bright = replace(own, inputs=own.inputs + 0.45)
    assert float(modify_examples("gaussian", bright, own, LIMITS, seeded())[0].inputs.max()) == 1


# The record


@pytest.mark.parametrize(("waves", "learned", "other"), [(1, "coarse", "fine"), (3, "fine", "coarse")])
def test_what_can_be_learned_is_learned_in_its_own_frequencies(waves: int, learned: str, other: str) -> None:
    """Planted: the class is a wave below or above the cut. Catches bands that are exchanged."""
    last = record_training(
        perceptron(), examples(64, 1, waves=waves), examples(64, 2, waves=waves), SETTINGS, generator=seeded()
    )[-1]
    assert last.training == last.training_true == last.held_out == 64
    assert getattr(last, learned) == 64
    assert getattr(last, other) <= 32


def test_random_labels_are_memorised_and_say_nothing_of_other_images() -> None:
    """Expected: training accuracy 1 and held-out accuracy of chance, 16 of 64 within four standard deviations.

    Catches a network that is never trained, and a record of the true labels in place of those trained on.
    """
    true, other = examples(64, 1, noise=0.2), examples(64, 2, noise=0.2)
    shown, held = modify_examples("random_labels", true, other, LIMITS, seeded())
    moments = record_training(perceptron(), shown, held, replace(SETTINGS, epochs=120), generator=seeded())
    first, last = moments[0], moments[-1]
    assert (first.epoch, last.epoch) == (0, 120)
    assert first.training < 32
    assert last.training == 64
    assert last.training_true == int((shown.labels == shown.true).sum())
    assert last.held_out <= 16 + 4 * 3.5
    easy = record_training(perceptron(), true, held, SETTINGS, generator=seeded())[-1]
    assert easy.held_out > 56
    assert last.critical > easy.critical + 8


def test_a_training_repeats_itself_and_leaves_the_network_as_it_was() -> None:
    """Catches draws from the process's own stream, and weights that are shared with the network."""
    network, shown = perceptron(), examples(16, 1)
    before = network.logits(shown.inputs)
    short = replace(SETTINGS, epochs=2)
    first = record_training(network, shown, shown, short, generator=seeded())
    torch.rand(7)
    assert record_training(network, shown, shown, short, generator=seeded()) == first
    assert record_training(network, shown, shown, short, generator=seeded(1)) != first
    torch.testing.assert_close(network.logits(shown.inputs), before, atol=0, rtol=0)


def test_the_first_sensitivity_is_that_of_the_network_and_later_ones_are_means() -> None:
    """Expected: with a learning rate of almost 0 the network stays the same, and so does the mean over moments."""
    shown = examples(16, 1)
    moments = record_training(perceptron(), shown, shown, replace(SETTINGS, epochs=3, rate=1e-9), generator=seeded())
    assert {round(moment.sensitivity, 4) for moment in moments} == {round(moments[0].sensitivity, 4)}
    assert moments[0].sensitivity > 0


def test_what_cannot_be_trained_is_refused() -> None:
    """Catches a record of nothing, a loss of nan that goes on, and a modification that is not there."""
    shown = examples(8, 1)
    for given in ({"epochs": 0}, {"batch": 1}, {"rate": 0.0}):
        with pytest.raises(ForetellError, match="a training has at least 1 epoch"):
            record_training(perceptron(), shown, shown, replace(SETTINGS, **given), generator=seeded())
    one = Examples(shown.inputs[:1], shown.labels[:1], shown.true[:1])
    with pytest.raises(ForetellError, match="8 training and 1 held-out images: give at least 2"):
        record_training(perceptron(), shown, one, SETTINGS, generator=seeded())
    with pytest.raises(ForetellError, match="no longer a number at a learning rate of 1e"):
        record_training(perceptron(), shown, shown, replace(SETTINGS, rate=1e30), generator=seeded())
    with pytest.raises(ForetellError, match=r"no modification 'inverted'.*true, corrupted"):
        modify_examples("inverted", shown, shown, LIMITS, seeded())
    with pytest.raises(ForetellError, match=r"corrupted=1.5 is not a share"):
        modify_examples("corrupted", shown, shown, replace(LIMITS, share=1.5), seeded())
    assert len(MODIFICATIONS) == 6


# Waves


def test_waves_and_their_shares_are_those_of_the_fourier_transform() -> None:
    """Expected: |t̂(k)| = N/2 at each frequency and 0 elsewhere; shares of scaled and shifted waves in closed form."""
    frequencies = (2, 5, 9)
    target = draw_waves(frequencies, 64, seeded())
    strength = torch.fft.rfft(target.double()).abs()
    expected = torch.zeros(33, dtype=torch.float64)
    expected[list(frequencies)] = 32
    torch.testing.assert_close(strength, expected, atol=1e-4, rtol=0)
    torch.testing.assert_close(project(target, target, frequencies), torch.ones(3, dtype=torch.float64))
    spectrum = torch.fft.rfft(target.double())
    spectrum[2] *= 0.25
    spectrum[5] *= 1j  # a quarter of a wave later: nothing of the target's
    spectrum[9] *= -1
    found = project(torch.fft.irfft(spectrum), target, frequencies)
    torch.testing.assert_close(found, torch.tensor([0.25, 0, -1], dtype=torch.float64), atol=1e-5, rtol=0)
    with pytest.raises(ForetellError, match="64 points tell frequencies from 1 to 31 apart"):
        draw_waves((32,), 64, seeded())


def test_low_frequencies_are_learned_first() -> None:
    """Rahaman et al. 2019: the order of the frequencies. Catches shares of another wave, and an untrained network."""
    found = record_waves((1, 4, 8), generator=seeded(), points=64, width=64, depth=3, steps=800, rate=2e-3)
    order = found.order
    assert None not in order[:2]
    assert order[0] < order[1]
    assert order[2] is None or order[1] < order[2]
    assert float(found.shares[0].abs().max()) < 0.5
    assert found.steps[0] == 0
    assert found.steps[-1] == 800


def test_the_order_is_the_first_step_with_half_of_a_wave() -> None:
    shares = torch.tensor([[0.1, 0.0], [0.5, 0.2], [0.9, 0.4]])
    assert LearnedWaves((1, 2), (0, 10, 20), shares).order == [10, None]
