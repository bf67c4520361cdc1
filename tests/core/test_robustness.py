"""Attacks, margins and frequencies against closed forms of linear networks, published values and brute force."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.stats import norm
from torch import nn

from core.errors import ForetellError
from core.network.classifier import Classifier
from core.robustness import ATTACKS
from core.robustness.attacks import fgsm, langevin, pgd
from core.robustness.bands import band_margins, dct_bands
from core.robustness.boundary import critical_samples, directions_between, margins
from core.robustness.box import around
from core.robustness.frequencies import accuracy_by_radius, components
from tests.core.networks import SIDE, awkward, pictures, unit
from tests.core.scenes import answered, scene_net


def seeded(seed: int = 5) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


class Linear(nn.Module):
    """Logits W x + b of all values of a picture."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None = None) -> None:
        super().__init__()
        self.head = nn.Linear(weight.shape[1], weight.shape[0])
        self.head.weight.data, self.head.bias.data = weight.clone(), torch.zeros(len(weight)) if bias is None else bias

    def forward(self, x):
        return self.head(x.flatten(1))


def row(size: int):
    """Transforms to inputs (1, 1, size) that are no pictures."""
    return lambda _: torch.zeros(1, 1, size)


def test_fgsm_on_the_published_example():
    """x = (2, -9, 9, 1, -3), radius .1, label 1 -> (2, -8.9, 9, 1, -3) for a loss that only the second value moves."""
    weight = torch.zeros(2, 5)
    weight[1, 1] = -1.0
    network = Classifier(Linear(weight), row(5), name="published")
    x = torch.tensor([2.0, -9.0, 9.0, 1.0, -3.0]).view(1, 1, 1, 5)
    found = fgsm(network, x, [1], radius=0.1, pixels=False)
    torch.testing.assert_close(found.images.flatten(), torch.tensor([2.0, -8.9, 9.0, 1.0, -3.0]))


SIZE = 100
"""d of the exercise."""


def robust_and_not():
    """f1 looks at d weak features, f2 at the strong one; logits (-w x, w x)."""
    weak = torch.cat([torch.zeros(1), torch.full((SIZE,), 1 / SIZE)])
    strong = torch.cat([torch.ones(1), torch.zeros(SIZE)])
    return [
        Classifier(Linear(torch.stack([-w, w])), row(SIZE + 1), ["-1", "+1"], name=name)
        for name, w in (("f1", weak), ("f2", strong))
    ]


def test_the_more_accurate_of_two_classifiers_is_the_one_that_can_be_fooled():
    """Accuracies Phi(3) = .9987 and .9975, by simulation; within .15 of (1, .1, ...) f1 is fooled and f2 is not."""
    rng = np.random.default_rng(0)
    y = rng.choice([-1, 1], 20_000)
    first = np.where(rng.random(20_000) < 0.9975, y, -y)
    weak = rng.normal(3 / SIZE**0.5 * y[:, None], 1, (20_000, SIZE))
    x = torch.tensor(np.column_stack([first, weak]), dtype=torch.float32).view(-1, 1, 1, SIZE + 1)
    f1, f2 = robust_and_not()
    for network, expected in ((f1, norm.cdf(3)), (f2, 0.9975)):
        right = (network.logits(x).argmax(1).numpy() == (y > 0)).mean()
        assert right == pytest.approx(expected, abs=4 * (expected * (1 - expected) / 20_000) ** 0.5)
    point = torch.tensor([1.0] + [0.1] * SIZE).view(1, 1, 1, -1)
    fooling = fgsm(f1, point, [1], radius=0.15, pixels=False)
    assert bool(fooling.fooled)
    torch.testing.assert_close(fooling.images.flatten(), torch.tensor([1.0] + [-0.05] * SIZE))
    for attack in ATTACKS:
        assert not ATTACKS[attack](f2, point, [1], radius=0.15, pixels=False).fooled
        assert ATTACKS[attack](f1, point, [1], radius=0.15, pixels=False).fooled


@pytest.mark.parametrize("attack", ATTACKS)
def test_what_is_found_is_in_the_box_is_a_image_and_is_called_something_else(attack):
    """Checked by the network asked anew; the strongest attack finds at least as much as one step does."""
    network = scene_net()
    images, targets = answered(network, 12)
    found = ATTACKS[attack](network, images, targets, radius=0.02, generator=seeded())
    box = around(network, images, 0.02)
    assert bool(((found.images >= box.low - 1e-6) & (found.images <= box.high + 1e-6)).all())
    white = network.preprocess(Image.new("RGB", (300, 300), (255, 255, 255)))
    assert bool((found.images >= network.fill("black") - 1e-5).all())
    assert bool((found.images <= white + 1e-5).all())
    again = network.logits(found.images).argmax(1)
    assert torch.equal(again, found.predictions)
    assert torch.equal(again != torch.tensor(targets), found.fooled)
    assert int(found.fooled.sum()) >= int(fgsm(network, images, targets, radius=0.02).fooled.sum())
    assert found.fooled.any()


def test_a_search_is_repeated_bit_for_bit_and_another_seed_is_another():
    network = scene_net()
    images, targets = answered(network, 4)
    for attack in (langevin, pgd):
        one, same, other = (
            attack(network, images, targets, radius=0.001, steps=3, generator=seeded(seed)) for seed in (1, 1, 2)
        )
        assert torch.equal(one.images, same.images)
        assert not torch.equal(one.images, other.images)


def test_where_the_gradient_is_zero_noise_finds_the_way():
    """f = relu(x - 1) is flat at 0: FGSM stays, Langevin search crosses to the other class's side."""

    class Flat(nn.Module):
        def forward(self, x):
            rise = (x.flatten(1)[:, :1] - 0.05).relu()
            return torch.cat([0.01 - rise, rise], 1)

    network = Classifier(Flat(), row(2), name="flat")
    x = torch.zeros(1, 1, 1, 2)
    assert not fgsm(network, x, [0], radius=0.2, pixels=False).fooled
    assert langevin(network, x, [0], radius=0.2, pixels=False, generator=seeded()).fooled


def test_margins_of_a_linear_network_in_closed_form():
    """|(w_1 - w_0) x + b| / |P (w_1 - w_0)|: anywhere, along one direction, and in a plane; infinite across."""
    weight = torch.tensor([[0.0, 0.0, 0.0], [3.0, 4.0, 0.0]])
    network = Classifier(Linear(weight, torch.tensor([0.0, -1.0])), row(3), name="linear")
    images = torch.tensor([[0.0, 0, 0], [1, 1, 5]]).view(2, 1, 1, 3)
    gaps = torch.tensor([1.0, 6.0]).double()
    axes = torch.eye(3).view(3, 1, 1, 3)
    for directions, size in ((None, 5.0), (axes[:1], 3.0), (axes[1:2], 4.0), (axes, 5.0), (7 * axes[1:], 4.0)):
        torch.testing.assert_close(margins(network, images, directions), gaps / size, rtol=3e-4, atol=0)
    assert margins(network, images, axes[2:]).isinf().all()


def test_margins_of_a_linear_network_by_band_in_closed_form():
    """|w x + b| / |w_band|, w_band by an explicit basis of cosines: a band of other waves, or not orthonormal ones."""
    weight = torch.zeros(2, 2 * 6 * 8)
    weight[1] = torch.randn(96, generator=seeded())
    classifier = Classifier(Linear(weight, torch.tensor([0.0, -30.0])), lambda _: torch.zeros(2, 6, 8), name="linear")
    images = torch.randn(3, 2, 6, 8, generator=seeded(1))
    gaps = (images.flatten(1) @ weight[1] - 30.0).abs().double()
    found = band_margins(classifier, images, 3)
    w = weight[1].view(2, 6, 8).double().numpy()
    left = np.linalg.norm(w) ** 2
    for k in range(3):
        across = (0, 3, 5, 8)
        square = 0.0
        for u in range(2 * k, 2 * k + 2):
            for v in range(across[k], across[k + 1]):
                wave = np.outer(
                    np.cos(np.pi * u * (2 * np.arange(6) + 1) / 12), np.cos(np.pi * v * (2 * np.arange(8) + 1) / 16)
                )
                square += ((w * wave).sum((1, 2)) ** 2).sum() / (wave**2).sum()
        left -= square
        torch.testing.assert_close(found[:, k], gaps / square**0.5, rtol=3e-4, atol=0)
    assert left > 0  # what is off the diagonal belongs to no band
    whole = band_margins(classifier, images, 1)
    torch.testing.assert_close(whole[:, 0], margins(classifier, images), rtol=1e-6, atol=0)
    bands = dct_bands((2, 6, 8), 3)
    assert [(band.low, band.high, band.dimension) for band in bands] == [(0, 1.5, 12), (1.5, 2.5, 8), (2.5, 4, 12)]
    with pytest.raises(ForetellError, match="bands=7: give 1 to 6"):
        dct_bands((2, 6, 8), 7)


def test_margins_warn_of_nothing():
    """Catches logits turned into numbers with their graph, of which torch warns (once in a process, unless asked)."""
    layer = Linear(torch.tensor([[0.0, 0.0], [3.0, 4.0]]), torch.tensor([0.0, -1.0]))
    network = Classifier(layer, row(2), name="linear")
    always = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            margins(network, torch.zeros(1, 1, 1, 2))
    finally:
        torch.set_warn_always(always)


def test_margins_of_a_bent_network_are_met_and_not_far_from_the_least():
    """The answer changes at the margin and not before, along DeepFool's direction; 2,000 random ones find none nearer
    than half of it."""
    network, images = awkward(), pictures(3)
    found = margins(network, images)
    answers = network.logits(images).argmax(1)
    for i, margin in enumerate(found.tolist()):
        noise = torch.randn(2000, *images.shape[1:], generator=seeded(i))
        noise *= 0.5 * margin / noise.flatten(1).norm(dim=1)[:, None, None, None]
        assert bool((network.logits(images[i] + noise).argmax(1) == answers[i]).all())
        assert 0 < margin < 20


def test_directions_that_tell_classes_apart_cross_sooner_than_random_ones():
    """On the scenes: differences of pictures of two classes against as many random directions."""
    network = scene_net()
    images, answers = answered(network, 48)
    labels = [k % 16 for k in range(48)]
    apart = directions_between(images, labels, 0, 6)
    rand = torch.randn(apart.shape, generator=seeded())
    chosen = images[[k for k in range(48) if labels[k] == answers[k]][:4]]
    near, far = margins(network, chosen, apart), margins(network, chosen, rand)
    assert float(near.median()) < float(far.median())
    with pytest.raises(ForetellError, match="no image of class 77"):
        directions_between(images, labels, 0, 77)


def test_critical_samples_are_counted_with_their_interval():
    """Wilson's interval by its formula; more samples are critical in a larger box."""
    network = scene_net()
    images, _ = answered(network, 16)
    small, large = (critical_samples(network, images, radius=r, steps=5, generator=seeded()) for r in (0.0005, 0.03))
    assert small.ratio <= large.ratio
    n, p, z = 16, large.ratio, norm.ppf(0.975)
    middle, half = p + z * z / (2 * n), z * (p * (1 - p) / n + z * z / (4 * n * n)) ** 0.5
    assert large.interval == pytest.approx(((middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n)))
    assert int(large.critical.sum()) == round(16 * large.ratio)


def test_components_add_up_and_are_those_of_the_spectrum():
    """Waves of 2 and 5 cycles: radius 3 parts them exactly; the energies add up (Parseval)."""
    place = torch.arange(SIDE) / SIDE * 2 * np.pi
    coarse, fine = (2 * place).sin().expand(SIDE, SIDE), (5 * place).cos().expand(SIDE, SIDE).T
    image = (0.3 + coarse + fine).expand(1, 3, SIDE, SIDE)
    low, high = components(image, 3)
    torch.testing.assert_close(low, (0.3 + coarse).expand(1, 3, SIDE, SIDE), rtol=0, atol=1e-5)
    torch.testing.assert_close(high, fine.expand(1, 3, SIDE, SIDE), rtol=0, atol=1e-5)
    noise = pictures(2)
    for radius in (0, 2.5, 5, 9):
        low, high = components(noise, radius)
        torch.testing.assert_close(low + high, noise)
        assert float(low.square().sum() + high.square().sum()) == pytest.approx(float(noise.square().sum()), rel=1e-4)
    torch.testing.assert_close(components(noise, 0)[0], noise.mean((2, 3), keepdim=True).expand_as(noise))


def test_accuracy_by_radius_is_that_of_the_parts():
    network = scene_net()
    images, labels = answered(network, 10)
    found = accuracy_by_radius(network, images, labels, [0, 8, 100])
    for k, radius in enumerate((0, 8, 100)):
        for part, accuracy in zip(components(images, radius), (found.low[k], found.high[k]), strict=True):
            right = np.mean([int(network.logits(x[None]).argmax()) == y for x, y in zip(part, labels, strict=True)])
            assert float(accuracy) == pytest.approx(right)
    assert found.whole == 1.0 == float(found.low[2])


def test_what_cannot_be_searched_says_so():
    network = awkward()
    with pytest.raises(ForetellError, match="radius=0 is not a share"):
        fgsm(network, pictures(1), [0], radius=0)
    with pytest.raises(ForetellError, match="at least one step"):
        pgd(network, pictures(1), [0], steps=0)
    with pytest.raises(ForetellError, match="Target 9 is not a class"):
        langevin(network, pictures(1), [9])
    with pytest.raises(ForetellError, match="are not"):
        margins(network, pictures(1), torch.ones(2, 3))
    with pytest.raises(ForetellError, match="one label per image"):
        accuracy_by_radius(Classifier(Linear(torch.ones(2, 3 * SIDE**2)), unit, name="x"), pictures(2), [0], [1])
