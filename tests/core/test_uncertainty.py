"""Samplers and measures against enumeration, closed forms and the values of the text's sections."""

from __future__ import annotations

import itertools
import math
from functools import partial

import numpy as np
import pytest
import torch
from scipy.stats import kstest
from torch import nn
from torch.nn import functional as F

from core.errors import ForetellError
from core.network.classifier import Classifier
from core.teaching.kfac import fit_prior, with_bias
from core.teaching.probabilistic import sample_heads
from core.uncertainty import SAMPLERS, noise
from core.uncertainty.draws import LEVELS, Draws, count_dropped_levels, enlargement
from core.uncertainty.last_layer import laplace
from core.uncertainty.passes import explain_refusal
from core.uncertainty.samplers import (
    additive_noise,
    drop_connect,
    inserted_dropout,
    mc_dropout,
    multiplicative_noise,
)
from tests.core.networks import Awkward, awkward, pictures, raw, unit

X = (1.0, 2.0, 3.0)

M = torch.tensor([[1.0, -1.0, 0.5], [2.0, 1.0, -1.0]])
"""Two outputs: the first is the example of the text, the second gives it a covariance."""


def seeded(seed: int = 5) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


class OneLayer(nn.Module):
    def __init__(self, dropout: nn.Module | None = None) -> None:
        super().__init__()
        self.dropout = dropout or nn.Identity()
        self.linear = nn.Linear(3, 2, bias=False)
        self.linear.weight.data = M.clone()

    def forward(self, x):
        return self.linear(self.dropout(x.flatten(1)))


def one_layer(dropout: nn.Module | None = None) -> Classifier:
    return Classifier(OneLayer(dropout), raw, name="one layer")


def moments_of(samples):
    return samples[0].double().mean(0), torch.from_numpy(np.cov(samples[0].double().numpy().T))


def close(found, expected, deviations: float = 5.0, samples: int = 10_000):
    """Within so many standard errors of a mean or a (nearly normal) variance of that size."""
    size = max(1.0, float(expected.abs().max()))
    assert float((found - expected).abs().max()) < deviations * size * math.sqrt(2 / samples)


INPUT = torch.tensor(X).view(1, 1, 1, 3)


def covariance(variance_of_factor: float):
    """M^T diag(x^2) M times the variance of the factor."""
    return variance_of_factor * M.double() @ torch.diag(torch.tensor(X).double() ** 2) @ M.double().T


def test_mc_dropout_agrees_with_the_enumeration_of_its_masks():
    """All 8 inverted masks of x = (1, 2, 3): mean .5 and variance 7.25 of the first output."""
    outputs = torch.stack(
        [2 * torch.tensor(m) * torch.tensor(X) @ M.T for m in itertools.product((0.0, 1.0), repeat=3)]
    )
    assert outputs[:, 0].mean() == 0.5
    assert outputs[:, 0].var(correction=0) == 7.25
    mean, spread = moments_of(mc_dropout(one_layer(nn.Dropout(0.5)), INPUT, passes=10_000, generator=seeded()))
    close(mean, outputs.mean(0).double(), 5)
    close(spread, torch.from_numpy(np.cov(outputs.T.numpy(), bias=True)), 8)


@pytest.mark.parametrize("p", [0.1, 0.37])
def test_inserted_dropout_has_the_covariance_of_inverted_dropout(p):
    """p / (1 - p) M^T diag(x^2) M, off the diagonal too."""
    mean, spread = moments_of(inserted_dropout(one_layer(), INPUT, passes=10_000, rate=p, generator=seeded()))
    close(mean, (M @ torch.tensor(X)).double())
    close(spread, covariance(p / (1 - p)), 8)


def test_drop_connect_has_the_same_variances_and_no_covariance():
    p = 0.3
    mean, spread = moments_of(drop_connect(one_layer(), INPUT, passes=10_000, rate=p, generator=seeded()))
    close(mean, (M @ torch.tensor(X)).double())
    close(spread, torch.diag(covariance(p / (1 - p)).diagonal()), 8)


def test_multiplicative_and_additive_noise():
    """alpha M^T diag(x^2) M with mean x M, and alpha |x|^2 I."""
    alpha = 0.25
    mean, spread = moments_of(
        multiplicative_noise(one_layer(), INPUT, passes=10_000, variance=alpha, generator=seeded())
    )
    close(mean, (M @ torch.tensor(X)).double())
    close(spread, covariance(alpha), 8)
    _, spread = moments_of(additive_noise(one_layer(), INPUT, passes=10_000, variance=alpha, generator=seeded()))
    close(spread, alpha * 14.0 * torch.eye(2).double(), 8)


def test_a_channels_places_are_dropped_one_by_one():
    """Two places of one channel are uncorrelated (Gal 2016, section 3.4.1); under nn.Dropout2d they are one."""

    class Places(nn.Module):
        def __init__(self, after: nn.Module) -> None:
            super().__init__()
            self.conv, self.after = nn.Conv2d(1, 1, 1, bias=False), after
            self.conv.weight.data.fill_(1.0)

        def forward(self, x):
            return self.after(self.conv(x)).flatten(1)

    ones = torch.ones(1, 1, 1, 3)
    apart = inserted_dropout(Classifier(Places(nn.Identity()), raw, name="places"), ones, passes=20_000, rate=0.4)[0]
    assert abs(np.corrcoef(apart[:, 0], apart[:, 1])[0, 1]) < 0.03
    channel = mc_dropout(Classifier(Places(nn.Dropout2d(0.4)), raw, name="channels"), ones, passes=50)[0]
    assert torch.equal(channel[:, 0], channel[:, 1])
    assert 0 < float((channel[:, 0] == 0).float().mean()) < 1


def test_noise_is_on_the_product_with_the_weights_and_not_on_the_bias():
    """unfold(x) (W diag(e)) + b by hand, with the same draws."""
    conv = nn.Conv2d(3, 4, 3, padding=1).double()
    x = torch.rand(1, 3, 5, 5, generator=seeded(1)).double()
    with noise.Noise(noise.InsertedDropout(0.3), Draws(9, [0, 1])), torch.no_grad():
        found = conv(x)
    kept = torch.stack(list(Draws(9, [0, 1]).draw_kept((4, 5, 5), 0.3)))
    with torch.no_grad():
        columns = F.unfold(x, 3, padding=1)[0].T @ conv.weight.view(4, -1).T
    expected = columns.T.view(1, 4, 5, 5) * kept * enlargement(0.3) + conv.bias.view(-1, 1, 1)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("strided", [False, True])
@pytest.mark.parametrize("kind", [noise.InsertedDropout(1e-9), noise.DropConnect(1e-9), noise.AdditiveNoise(1e-20)])
def test_a_convolutions_product_is_torchs_own(kind, strided):
    """Catches an argument or the bias lost on the way to the faster convolution, whatever the size of its filters."""
    for size, groups in ((1, 1), (3, 1), (3, 4)):
        conv = nn.Conv2d(8, 8, size, 2 if strided else 1, size // 2, groups=groups, dilation=1 if size == 1 else 2)
        x = torch.randn(3, 8, 9, 9, generator=seeded()).contiguous(memory_format=torch.channels_last)
        with noise.Noise(kind, Draws(9, [0, 1, 2])), torch.inference_mode():
            found = conv(x)
        torch.testing.assert_close(found, conv(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("rate", [0.1, 0.37, 0.9])
def test_masks_are_independent_draws_of_their_rate(rate):
    """Catches words cut or used twice: the share, and correlations of places, passes and calls, in s.e."""
    draws = Draws(3, range(8))
    calls = [torch.stack(list(draws.draw_kept((250, 401), rate))).flatten(1).double() for _ in range(2)]
    size, share = calls[0].numel(), count_dropped_levels(rate) / LEVELS
    assert abs(share - rate) <= 0.5 / LEVELS
    assert set(calls[0].unique().tolist()) == {0.0, 1.0}
    assert abs(float((calls[0] == 0).double().mean()) - share) < 5 * (share * (1 - share) / size) ** 0.5
    independent(*((drawn - (1 - share)) / (share * (1 - share)) ** 0.5 for drawn in calls))


def independent(z, again):
    """Draws (passes, n) of mean 0 and variance 1 of two calls: no correlation of places, passes or calls, in s.e."""
    spectrum = torch.fft.rfft(z).abs().square()
    every_lag = torch.fft.irfft(spectrum, z.shape[1])[:, 1:] / z.shape[1]
    assert float(every_lag.abs().max()) < 7 / z.shape[1] ** 0.5
    between = (z @ z.T / z.shape[1]).fill_diagonal_(0)
    assert float(between.abs().max()) < 5 / z.shape[1] ** 0.5
    assert abs(float((z * again).mean())) < 5 / z.numel() ** 0.5


def test_normal_numbers_are_independent_draws_of_a_normal_distribution():
    """scipy's Kolmogorov-Smirnov test of 800,000, and moments to 5 s.e.; catches a table that is cut or shifted."""
    draws = Draws(3, range(8))
    calls = [torch.stack(list(draws.draw_normal((250, 401)))).flatten(1).double() for _ in range(2)]
    size = calls[0].numel()
    assert kstest(calls[0].flatten().numpy(), "norm").pvalue > 1e-3
    for power, (expected, variance) in {1: (0, 1), 2: (1, 2), 4: (3, 96)}.items():
        assert abs(float((calls[0] ** power).mean()) - expected) < 5 * (variance / size) ** 0.5
    assert 4 < float(calls[0].abs().max()) < 4.33
    independent(*calls)


def test_what_is_kept_is_enlarged_by_the_probability_as_drawn():
    """Catches a mean off by the rounding of the rate to whole levels, and a division by 0 beside rate 1."""
    for rate in (0.1, 1 / 3, 1e-9, 0.9999999):
        assert enlargement(rate) * (LEVELS - count_dropped_levels(rate)) == LEVELS
    kept = torch.stack(list(Draws(1, [0]).draw_kept((400_000,), 0.9999999)))
    assert 0 < int(kept.sum()) < 40


NOISES = [name for name in SAMPLERS if name != "laplace"]


@pytest.mark.parametrize("sampler", NOISES)
def test_no_noise_gives_the_networks_own_logits_and_leaves_it_as_it_was(sampler):
    classifier, images = awkward(), pictures(3)
    before = {key: value.clone() for key, value in classifier._module.state_dict().items()}
    quiet = {"variance": 1e-30} if "noise" in sampler else {"rate": 1e-9}
    found = SAMPLERS[sampler](classifier, images, passes=2, **quiet)
    expected = classifier.logits(images)[:, None].expand(-1, 2, -1)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    after = classifier._module.state_dict()
    assert all(torch.equal(before[key], after[key]) for key in before)
    assert not any(module.training for module in classifier._module.modules())


@pytest.mark.parametrize("sampler", NOISES)
def test_passes_differ_and_depend_on_nothing_but_the_seed(sampler, monkeypatch):
    """Not on the memory, the pictures beside one, or how many passes follow; batch norms stay in evaluation mode."""
    classifier, images = awkward(), pictures(3)
    whole = SAMPLERS[sampler](classifier, images, passes=12, generator=seeded())
    assert len(torch.unique(whole[0], dim=0)) == 12
    alone = SAMPLERS[sampler](classifier, images[1:2], passes=7, generator=seeded())
    torch.testing.assert_close(alone[0], whole[1, :7], rtol=1e-5, atol=1e-5)
    monkeypatch.setattr("core.uncertainty.passes.chunk_size", lambda _: 2)
    small = SAMPLERS[sampler](classifier, images, passes=12, generator=seeded())
    torch.testing.assert_close(small, whole, rtol=1e-5, atol=1e-5)
    other = SAMPLERS[sampler](classifier, images, passes=12, generator=seeded(6))
    assert not torch.allclose(other, whole, atol=1e-2)


@pytest.mark.parametrize("sampler", NOISES)
def test_what_comes_before_the_noise_is_computed_once(sampler):
    """Counted at the first convolution, and the same logits as a network that cannot share it gives."""
    seen: list[int] = []

    class Counted(Awkward):
        def forward(self, x):
            seen.append(len(x))
            return super().forward(x)

    class Counting(Counted):
        def forward(self, x):
            return super().forward(x).view(len(x), -1)  # sees how many pictures it was given

    last = {} if sampler == "mc_dropout" else {"last": 1}
    found = {}
    for build in (Counted, Counting):
        network = build()
        network.load_state_dict(awkward()._module.state_dict())
        classifier = Classifier(network, unit, name=build.__name__)
        seen.clear()
        found[build] = SAMPLERS[sampler](classifier, pictures(2), passes=20, **last, generator=seeded())
        assert sum(seen) == ((1 + 2 + 1 + 2) if build is Counted else (1 + 2 + 1 + 40)), build
    torch.testing.assert_close(found[Counted], found[Counting], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("sampler", NOISES)
def test_a_network_that_cuts_images_into_windows(sampler, monkeypatch):
    """Catches masks for pictures where a layer sees windows: each pass is one, whatever is asked beside it."""

    class Windows(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(0)
                self.inner, self.dropout, self.head = nn.Linear(12, 5), nn.Dropout(0.3), nn.Linear(5, 3)

        def forward(self, x):
            windows = x.unflatten(2, (-1, 2)).unflatten(4, (-1, 2)).permute(0, 2, 4, 1, 3, 5).flatten(0, 2).flatten(1)
            seen = self.dropout(self.inner(windows).relu())
            return self.head(seen.view(len(x), -1, 5).mean(1))

    classifier, image = Classifier(Windows(), unit, name="windows"), pictures(1)
    whole = SAMPLERS[sampler](classifier, image, passes=9, generator=seeded())[0]
    assert len(torch.unique(whole, dim=0)) == 9
    monkeypatch.setattr("core.uncertainty.passes.chunk_size", lambda _: 4)
    torch.testing.assert_close(SAMPLERS[sampler](classifier, image, passes=9, generator=seeded())[0], whole)


@pytest.mark.parametrize("sampler", [drop_connect, additive_noise])
def test_noisy_weights_are_the_same_for_each_image_and_for_all_at_once(sampler):
    """All layers by their number go picture by picture, and 0 goes pass by pass: two orders of the same draws."""
    classifier, images = awkward(), pictures(3)
    one_by_one = sampler(classifier, images, passes=12, last=99, generator=seeded())
    together = sampler(classifier, images, passes=12, generator=seeded())
    torch.testing.assert_close(one_by_one, together, rtol=1e-5, atol=1e-5)


def test_the_last_layers_alone():
    """With the noise on the last layer only, the logits' distribution is that layer's: p/(1-p) sum (w x)^2."""
    classifier, images = awkward(), pictures(1)
    found = inserted_dropout(classifier, images, passes=20_000, rate=0.2, last=1, generator=seeded())[0].double()
    features, head = classifier.features(images)[0].double(), classifier.head
    expected = 0.25 * (head[:, :-1] * features).square().sum(1)
    torch.testing.assert_close(found.var(0), expected, rtol=0.06, atol=1e-6)


def test_what_cannot_be_asked_says_so():
    """Catches a table of no doubt at all from noise that was none, or a stack."""
    with pytest.raises(ForetellError, match=r"has no dropout.*Inserted dropout works"):
        mc_dropout(one_layer(), INPUT)
    with pytest.raises(ForetellError, match="no dropout with a rate above 0"):
        mc_dropout(one_layer(nn.Dropout(0.0)), INPUT)
    assert "no dropout with a rate above 0" in explain_refusal(one_layer(), mc_dropout)
    assert explain_refusal(one_layer(nn.Dropout(0.1)), mc_dropout) == ""
    assert explain_refusal(one_layer(), inserted_dropout) == ""
    with pytest.raises(ForetellError, match="use at least 2"):
        mc_dropout(awkward(), pictures(1), passes=1)
    with pytest.raises(ForetellError, match=r"rate=1\.0 is out of range"):
        inserted_dropout(awkward(), pictures(1), rate=1.0)
    with pytest.raises(ForetellError, match="variance=-1 gives no noise"):
        additive_noise(awkward(), pictures(1), variance=-1)
    for without in (partial(inserted_dropout, rate=0.0), partial(drop_connect, rate=0.0)):
        with pytest.raises(ForetellError, match=r"rate=0\.0 is out of range"):
            without(awkward(), pictures(1))
    for without in (multiplicative_noise, additive_noise):
        with pytest.raises(ForetellError, match=r"variance=0\.0 gives no noise"):
            without(awkward(), pictures(1), variance=0.0)
    with pytest.raises(ForetellError, match="takes images"):
        drop_connect(awkward(), INPUT)
    with pytest.raises(ForetellError, match="alpha_dropout"):
        mc_dropout(one_layer(nn.Sequential(nn.Dropout(0.5), nn.AlphaDropout(0.5))), INPUT)
    scripted = Classifier(torch.jit.script(OneLayer(nn.Dropout(0.5)).eval()), raw, name="scripted")
    with pytest.raises(ForetellError, match="TorchScript"):
        mc_dropout(scripted, INPUT)


def test_laplace_has_the_moments_of_sampled_last_layers():
    """20,000 answers of one picture against 20,000 draws of the whole weight matrix; what is alone stays the same."""
    classifier, images = awkward(), pictures(60)
    prior = fit_prior(classifier.head, [classifier.features(images)], damping=0.01)
    found = laplace(classifier, images[:2], passes=20_000, prior=prior, generator=seeded())
    z = with_bias(classifier.features(images[:1]))[0]
    drawn = torch.stack([head @ z for head in sample_heads(prior, 20_000, seeded(7))])
    close(found[0].double().mean(0), drawn.mean(0), 5, 20_000)
    spread, expected = np.cov(found[0].double().numpy().T), np.cov(drawn.numpy().T)
    assert np.abs(spread - expected).max() < 0.05 * np.abs(expected).max()
    alone = laplace(classifier, images[1:2], passes=3, prior=prior, generator=seeded())
    torch.testing.assert_close(alone[0], found[1, :3], rtol=1e-5, atol=1e-5)
    with pytest.raises(ForetellError, match="give --prior FILE"):
        laplace(classifier, images[:1])
    with pytest.raises(ForetellError, match="was not fitted to awkward"):
        laplace(awkward(seed=1), images[:1], prior=prior)
