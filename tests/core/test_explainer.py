"""The explainer network: its filter loss by enumeration, its tracks, and what it learns of planted features."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from core.concepts.explainer import (
    Explainer,
    ExplainerSettings,
    assign_classes,
    compute_filter_losses,
    keep_places,
    make_templates,
    train_explainer,
)
from core.errors import ForetellError
from core.layers.layers import compute_logits_with, maps_of
from tests.core.scenes import scene_net

TAU, ALPHA = 0.7, 0.4
QUICK = ExplainerSettings(steps=100, batch=32, rate=5e-2, share_rate=5e-2)


def draws(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def enumerate_terms(x: np.ndarray) -> tuple[list[list[float]], list[float], float]:
    """p(x | T) of outputs (B, 2, 2) for the four places and "nowhere", log p(x), and MI: loops over everything."""
    cells = [(i, j) for i in range(2) for j in range(2)]
    scale, likely = x.sum((1, 2)).mean(), []
    for mu in [*cells, None]:
        fits = []
        for image in x:
            trace = 0.0
            for i, j in cells:
                away = 0 if mu is None else abs(i - mu[0]) + abs(j - mu[1])
                trace += image[i, j] / scale * (-TAU if mu is None else TAU * max(1 - 4 * away / 2, -1))
            fits.append(math.exp(trace))
        likely.append([fit / sum(fits) for fit in fits])
    prior = [ALPHA / 4] * 4 + [1 - ALPHA]
    whole = [math.log(sum(p * row[b] for p, row in zip(prior, likely, strict=True))) for b in range(len(x))]
    mi = sum(
        p * share * (math.log(share) - whole[b])
        for p, row in zip(prior, likely, strict=True)
        for b, share in enumerate(row)
    )
    return likely, whole, mi


def test_the_filter_loss_and_its_gradient_are_those_of_the_enumeration() -> None:
    """Expected: -MI by its definition, and the source's gradient, -p(T) t/scale p(x|T) log(p(x|T)/p(x)) for one T.

    Catches a prior of another template, and images of other classes that are pulled to a place.
    """
    x = torch.rand(5, 2, 2, 2, generator=draws(), dtype=torch.float64).requires_grad_()
    own = torch.tensor([[True, True, False, True, False], [True] * 5])
    templates = make_templates(2, 2, TAU).double()
    found = compute_filter_losses(x, templates, ALPHA, own)
    (gradient,) = torch.autograd.grad(found.sum(), x)
    for k in range(2):
        one = x[:, k].detach().numpy()
        likely, whole, mi = enumerate_terms(one)
        assert found[k].item() == pytest.approx(-mi, rel=1e-6)
        for b in range(5):
            at = int(one[b].argmax()) if own[k, b] else 4
            p = ALPHA / 4 if at < 4 else 1 - ALPHA
            weight = p * likely[at][b] * (math.log(likely[at][b]) - whole[b]) / one.sum((1, 2)).mean()
            expected = -weight * templates[at].view(2, 2)
            torch.testing.assert_close(gradient[b, k], expected, rtol=1e-5, atol=1e-9)


def test_without_the_interpretable_track_the_layer_is_what_the_ordinary_one_gives() -> None:
    """At p = 0 the explainer starts as the identity, whatever the other track does. Catches tracks that are swapped."""
    maps = torch.rand(6, 3, 4, 4, generator=draws()) * torch.tensor([1.0, 50.0, 0.02]).view(1, 3, 1, 1)
    network = Explainer(maps).eval()
    network.weight.data.fill_(-math.inf)
    network.interpretable.weight.data.normal_(generator=draws(1))
    assert float(network.share) == 0
    torch.testing.assert_close(network(maps)[0], maps, rtol=1e-4, atol=1e-6)
    network.ordinary.weight.data.zero_()
    assert not network(maps)[0].any()


def test_only_what_is_near_a_maximum_passes_the_interpretable_track() -> None:
    """By hand: β = 4 and n = 4 leave 1 at the maximum and 0 next to it. At p = 1 nothing else is restored."""
    maps = torch.rand(6, 3, 4, 4, generator=draws()) + 0.1
    network = Explainer(maps).eval()
    network.weight.data.fill_(math.inf)
    highest = maps == maps.amax((2, 3), keepdim=True)
    torch.testing.assert_close(network(maps)[0], maps * highest, rtol=1e-4, atol=1e-6)
    wide = keep_places(torch.ones(1, 1, 8, 8), make_templates(8, 8, 1.0)[:-1].clamp(min=0))
    assert wide[0, 0, :3, :3].tolist() == [[1, 0.5, 0], [0.5, 0, 0], [0, 0, 0]]


def plant(local: bool) -> tuple[Tensor, Tensor]:
    """Four channels that respond at one place to images of their own class, or everywhere to all, as seeds have it."""
    classes = torch.arange(64) % 4
    maps = torch.zeros(64, 4, 4, 4)
    places = torch.randint(16, (64,), generator=draws(3))
    if local:
        maps.view(64, 4, 16)[torch.arange(64), classes, places] = 1.0
    else:
        maps = torch.rand(64, 4, 4, 4, generator=draws(4))
    return maps, classes


def test_p_is_high_where_features_detect_one_part_each_already() -> None:
    """Catches a p that does not depend on the layer, and one that is bought by the scale of a track."""
    shares, errors = [], []
    for local in (True, False):
        maps, classes = plant(local)
        trained = train_explainer(maps, classes, QUICK, generator=draws())
        scaled = train_explainer(maps * 1024, classes, QUICK, generator=draws())
        assert trained.share == pytest.approx(scaled.share, abs=1e-2)
        shares.append(trained.share)
        errors.append(float((trained.restore(maps) - maps).square().mean() / maps.square().mean()))
    assert shares[0] > 0.85 > shares[1] + 0.1
    assert errors[0] < 0.05 < errors[1]
    bought = train_explainer(*plant(False), replace(QUICK, eta=0.0), generator=draws())
    assert bought.share < shares[1]


def test_features_tell_more_about_places_than_their_channels() -> None:
    """Planted: a part at one place, and noise everywhere. Catches a filter loss of the wrong sign."""
    maps, classes = plant(local=True)
    noisy = maps + 1.2 * torch.rand(maps.shape, generator=draws(5))
    trained = train_explainer(noisy, classes, QUICK, generator=draws())
    templates = make_templates(4, 4, QUICK.tau)
    before, after = (compute_filter_losses(one, templates, 0.5).sum() for one in (noisy, trained.read_features(noisy)))
    assert after < before - 1
    assert trained.losses[-1][0] < 0.3  # and the layer is still restored


def test_channels_are_assigned_the_class_they_respond_to_most() -> None:
    """By hand. Catches sums in place of means, which favour frequent classes."""
    maps = torch.tensor([1.0, 1.0, 1.0, 2.0]).view(4, 1, 1, 1).expand(4, 1, 2, 2)
    assert assign_classes(maps, torch.tensor([7, 7, 7, 3])).tolist() == [3]


def test_logits_follow_the_outputs_that_replace_a_layers() -> None:
    """Expected: the network's own logits with its own outputs, and its last bias where nothing passes."""
    network = scene_net()
    inputs = torch.randn(3, 3, 96, 96, generator=draws())
    maps = maps_of(network, inputs, "features")
    found = compute_logits_with(network, inputs, "features", maps)
    torch.testing.assert_close(found, network.logits(inputs), rtol=1e-3, atol=1e-4)
    nothing = compute_logits_with(network, inputs, "features", torch.zeros_like(maps))
    with network.exclusive() as module:
        torch.testing.assert_close(nothing, module.head.bias.detach().expand(3, -1).float())
    with pytest.raises(ForetellError, match=r"features of .* cannot be replaced"):
        compute_logits_with(network, inputs, "features", maps[:, :5])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"filters": -1.0}, "filters=-1.0: give a number of 0 or more"),
        ({"eta": math.nan}, "eta=nan: give a number of 0 or more"),
        ({"tau": 0.0}, "tau=0.0: give a number above 0"),
        ({"present": 1.0}, "present=1.0: give a number between 0 and 1"),
        ({"steps": 0}, "steps=0: give a whole number of at least 1"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, float], message: str) -> None:
    with pytest.raises(ForetellError, match=message):
        train_explainer(*plant(local=True), ExplainerSettings(**settings))  # type: ignore[arg-type]


def test_layers_without_places_are_refused() -> None:
    with pytest.raises(ForetellError, match="4 or more places, and here are 9 and 1"):
        train_explainer(torch.rand(9, 3, 1, 1), torch.zeros(9))
    with pytest.raises(ForetellError, match="not finite"):
        train_explainer(torch.full((9, 3, 4, 4), math.nan), torch.zeros(9))
