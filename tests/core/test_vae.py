"""The conditional VAE and the effects estimated by it, on pictures whose every cause is known."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from core.concepts import vae as module
from core.concepts.vae import (
    ConditionalVae,
    agreement,
    compute_decoded_effect,
    compute_reencoded_effect,
    encode_images,
    exchange_codes,
    fit_vae,
)
from core.errors import ForetellError
from core.network.classifier import Classifier
from tests.core.networks import SIDE, pictures, unit

N = 1200


class Mean(nn.Module):
    """P(class 0) = sigmoid(8 (mean of channel 0 - channel 1) + 4 (brightness - 1/2)): it answers to both."""

    def forward(self, x: Tensor) -> Tensor:
        channels = x.mean((2, 3))
        first = 8 * (channels[:, 0] - channels[:, 1]) + 4 * (channels[:, 2] - 0.5)
        return torch.stack([first, torch.zeros_like(first)], 1)


def world(colour: Tensor, bright: Tensor, noise: Tensor) -> Tensor:
    """Plain pictures: channel 0 or 1 lit by .1, channel 2 by the class (.8 or .2) and a hidden brightness."""
    light = (0.2 + 0.6 * bright + 0.1 * noise)[:, None, None].expand(-1, SIDE, SIDE)
    lit = [0.1 * (colour == k).float()[:, None, None].expand(-1, SIDE, SIDE) for k in (0, 1)]
    return torch.stack([*lit, light], 1)


@pytest.fixture(scope="module")
def confounded():
    """Nine in ten bright pictures have colour 0, one in ten of the dark ones: what is seen is not what is caused."""
    draws = torch.Generator().manual_seed(3)
    bright = torch.randint(2, (N,), generator=draws)
    colour = (torch.rand(N, generator=draws) > torch.where(bright == 1, 0.9, 0.1)).long()
    images = world(colour, bright, torch.randn(N, generator=draws))
    conditions = torch.stack([colour, bright], 1)
    learned = fit_vae(images, conditions, (2, 2), epochs=25, latent=2, generator=draws)
    return images, conditions, learned


def test_the_estimates_find_the_effect_and_observation_does_not(confounded):
    """Closed form of the world: both interventions drawn by hand."""
    images, conditions, learned = confounded
    classifier = Classifier(Mean(), unit, name="mean")
    draws = torch.Generator().manual_seed(5)
    noise = torch.randn(N, generator=draws)
    one, other = (world(torch.full((N,), k), conditions[:, 1], noise) for k in (0, 1))
    true = float((classifier.probabilities(one) - classifier.probabilities(other))[:, 0].mean())
    answers = classifier.probabilities(images)[:, 0]
    seen = float(answers[conditions[:, 0] == 0].mean() - answers[conditions[:, 0] == 1].mean())
    asked = (classifier, learned)
    decoded = compute_decoded_effect(*asked, conditions, 0, (0, 1), generator=draws)
    again = compute_reencoded_effect(*asked, images, conditions, 0, (0, 1), generator=draws)
    assert seen > true + 0.3
    for found in (decoded, again):
        assert float(found.value[0]) == pytest.approx(true, abs=0.06)
        assert 0 < float(found.error[0]) < 0.02
    back = compute_decoded_effect(*asked, conditions, 0, (1, 0), generator=draws)
    assert float(back.value[0]) == pytest.approx(-float(decoded.value[0]), abs=0.02)
    assert agreement(*asked, images, conditions, generator=draws) > 0.95


def test_what_the_vae_never_learned_is_said_by_the_agreement():
    """An untrained one draws the same nothing of every picture."""
    images, classifier = pictures(40), Classifier(Mean(), unit, name="mean")
    images[:20, 0] += 2
    images[20:, 1] += 2
    conditions = torch.zeros(40, 1, dtype=torch.long)
    blank = ConditionalVae((3, SIDE, SIDE), (1,)).eval()
    assert agreement(classifier, blank, images, conditions, generator=torch.Generator().manual_seed(0)) == 0.5


def test_the_bound_is_that_of_its_definition():
    """Slow re-implementation: a Gaussian whose variance is the batch's error, and the divergence of two normals."""
    net, images = ConditionalVae((3, SIDE, SIDE), (2,)), pictures(5)
    conditions = torch.tensor([[0], [1], [1], [0], [1]])
    found = module._bound(net, images, conditions, torch.Generator().manual_seed(7))
    mean, log_variance = net.encode(images, conditions)
    noise = torch.randn(mean.shape, generator=torch.Generator().manual_seed(7))
    drawn = net.decode(mean + (log_variance / 2).exp() * noise, conditions)
    sigma = float((drawn - images).square().mean() ** 0.5)
    likelihood = torch.distributions.Normal(drawn, sigma).log_prob(images).sum((1, 2, 3)).mean()
    posterior = torch.distributions.Normal(mean, (log_variance / 2).exp())
    divergence = torch.distributions.kl_divergence(posterior, torch.distributions.Normal(0, 1)).sum(1).mean()
    constant = 3 * SIDE * SIDE / 2 * (1 + torch.log(torch.tensor(2 * torch.pi)))
    assert float(found) == pytest.approx(float(divergence - likelihood - constant), rel=1e-4)


def test_rare_combinations_are_learned_as_often_as_common_ones():
    conditions = torch.tensor([[0, 0]] * 6 + [[0, 1]] * 2 + [[1, 1]])
    weights = module._evenly(conditions)
    assert weights[:6].sum() == pytest.approx(1)
    assert weights[6:8].sum() == pytest.approx(1)
    assert weights[8] == pytest.approx(1)


def test_the_same_generator_learns_the_same(confounded):
    images, conditions, _ = confounded
    twins = [
        fit_vae(images[:80], conditions[:80], (2, 2), epochs=1, generator=torch.Generator().manual_seed(1))
        for _ in range(2)
    ]
    for one, other in zip(*(twin.parameters() for twin in twins), strict=True):
        assert torch.equal(one, other)


def test_a_short_training_ends_without_a_division_by_zero():
    """Catches a rate that rises over no steps: two passes of five batches."""
    learned = fit_vae(pictures(300), torch.zeros(300, 1).long(), (1,), epochs=2, generator=torch.Generator())
    assert all(torch.isfinite(parameter).all() for parameter in learned.parameters())


def test_exchanged_codes_are_those_of_other_images(confounded):
    """Catches codes that stay with their image, and codes drawn from the prior."""
    images, conditions, learned = confounded
    own = encode_images(learned, images, conditions, torch.Generator().manual_seed(2))
    dealt = exchange_codes(learned, images, conditions, torch.Generator().manual_seed(2))
    rows = [sorted(map(tuple, codes.tolist())) for codes in (own, dealt)]
    assert rows[0] == rows[1]
    assert (own == dealt).all(1).float().mean() < 0.02


def test_conditions_that_do_not_fit_say_so():
    for conditions, sizes in (
        (torch.zeros(4, 2, dtype=torch.long), (2,)),
        (torch.full((4, 1), 2), (2,)),
        (torch.zeros(4, 1), (2,)),
    ):
        with pytest.raises(ForetellError, match="do not fit 4 images"):
            fit_vae(pictures(4), conditions, sizes, generator=torch.Generator())
    with pytest.raises(ForetellError, match="cannot be halved"):
        fit_vae(torch.zeros(4, 3, 9, 9), torch.zeros(4, 1).long(), (1,), generator=torch.Generator())
