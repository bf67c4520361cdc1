"""Crafted queries: planted worlds in which one image, or the right images, disclose what others do not."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from core.errors import ForetellError
from core.training.crafting import (
    LEVELS,
    CraftingSettings,
    Network,
    _soften,
    craft_queries,
    craft_single_queries,
    encode_networks,
)
from core.training.metamodel import OUTPUTS, MetamodelSettings, encode_outputs, train_metamodels

NETWORKS, CLASSES, FOLDS, COUNTS = 60, 4, 3, (3, 2)
SHAPE = (1, 4, 4)
PARTS = torch.arange(NETWORKS) % FOLDS


def draw(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def draw_networks(strength: float, noise: float) -> tuple[list[Network], Tensor]:
    """Linear networks to whose weights each value of an attribute adds its own, and a bias of their own that hides it.

    All have weights in common, by which a grey image is of the last class.
    """
    generator = draw(1)
    values = torch.stack([torch.randint(count, (NETWORKS,), generator=generator) for count in COUNTS], 1)
    added = [strength * torch.randn(count, CLASSES, 16, generator=generator) for count in COUNTS]
    weights = sum(matrices[values[:, a]] for a, matrices in enumerate(added))
    biases = noise * torch.randn(NETWORKS, CLASSES, generator=generator)
    return [_make_network(weight, bias) for weight, bias in zip(weights, biases, strict=True)], values


def _make_network(weight: Tensor, bias: Tensor) -> Network:
    return lambda images: (images.flatten(1) - 0.5) @ weight.T + bias


def craft_single(networks: list[Network], values: Tensor, epochs: int = 30) -> Tensor:
    left_out = torch.stack([fold == PARTS for fold in range(FOLDS)])
    start = torch.full((2, *SHAPE), 0.5)
    return craft_single_queries(networks, values, left_out, start, CraftingSettings(epochs), generator=draw(2))


def craft(networks: list[Network], values: Tensor, start: Tensor, output: str = "prob", epochs: int = 20) -> Tensor:
    return craft_queries(networks, values, COUNTS, PARTS, start, output, CraftingSettings(epochs),
                         MetamodelSettings(16, 60, FOLDS), floor=-12.0, generator=draw(2))  # type: ignore[arg-type] # fmt: skip


def measure_accuracy(networks: list[Network], values: Tensor, queries: Tensor, output: str) -> float:
    """Of metamodels about networks that were left out, of their attributes and of crafting."""
    features = encode_networks(networks, queries.flatten(0, 1), FOLDS, output, -12.0)  # type: ignore[arg-type]
    settings = MetamodelSettings(16, 60, FOLDS)
    trained = train_metamodels(features, values, COUNTS, settings, generator=draw(3), parts=PARTS)
    correct = [own.argmax(1) == values[:, a] for a, own in enumerate(trained.held_out)]
    return float(torch.stack(correct).float().mean())


def test_the_predicted_class_of_one_crafted_image_is_the_value() -> None:
    """Eq. 2, of networks that were left out: near 1 where the grey image that was started from is at chance.

    Catches images that belong to another attribute, and loss that is not about the value.
    """
    networks, values = draw_networks(strength=3.0, noise=0.5)
    queries = craft_single(networks, values)
    assert queries.shape == (FOLDS, 2, *SHAPE)
    top = torch.stack([network(queries.flatten(0, 1)).argmax(1).view(FOLDS, 2) for network in networks])
    own = top[torch.arange(NETWORKS), PARTS]
    assert (own == values).float().mean(0).min() > 0.9
    grey = torch.stack([network(torch.full((1, *SHAPE), 0.5)).argmax(1) for network in networks])
    assert (grey == values).float().mean() < 0.5


def test_crafted_images_disclose_what_grey_ones_hide() -> None:
    """Eq. 3: faint images, behind the networks' own biases, are read near chance, and crafted ones better.

    Whatever is disclosed. Catches images that are not crafted at all, and a gradient that leads away.
    """
    networks, values = draw_networks(strength=1.0, noise=1.0)
    start = 0.5 + 0.02 * torch.randn(6, *SHAPE, generator=draw(4))
    for output, least in (("prob", 0.8), ("ranking", 0.7), ("bottom-1", 0.7), ("top-1", 0.7)):
        before = measure_accuracy(networks, values, start.expand(FOLDS, *start.shape), output)
        after = measure_accuracy(networks, values, craft(networks, values, start, output), output)
        assert before < 0.6, output
        assert after > least, output


def test_networks_that_are_left_out_have_no_say() -> None:
    """The attributes of a part change no image that is crafted without it, to the last bit, and change the others.

    Catches held-out networks in the loss, whose accuracy would be too high.
    """
    networks, values = draw_networks(strength=1.0, noise=0.5)
    turned = values.clone()
    turned[PARTS == 1] = (turned[PARTS == 1] + 1) % torch.tensor(COUNTS)
    start = torch.rand(2, *SHAPE, generator=draw(5))
    pairs = [
        [craft_single(networks, each, epochs=3) for each in (values, turned)],
        [craft(networks, each, start, epochs=4) for each in (values, turned)],
    ]
    for one, two in pairs:
        assert [torch.equal(one[fold], two[fold]) for fold in range(FOLDS)] == [False, True, False]


def test_crafted_images_can_be_stored() -> None:
    """The document's constraint: values from 0 to 1. Catches images that are left between two steps or outside."""
    networks, values = draw_networks(strength=3.0, noise=0.5)
    for queries in (craft_single(networks, values), craft(networks, values, torch.rand(2, *SHAPE, generator=draw(5)))):
        assert queries.min() == 0 or queries.max() == 1  # the bounds are reached, so that they are put to the test
        assert 0 <= queries.min() <= queries.max() <= 1
        torch.testing.assert_close(queries * LEVELS, (queries * LEVELS).round(), rtol=0, atol=1e-4)
        assert not queries.requires_grad


def test_a_class_has_the_gradient_of_probabilities() -> None:
    """Closed form, d p_k / d z_j = p_k ((k = j) - p_j). Catches a class without a gradient, and soft values."""
    logits = torch.tensor([[[1.0, 0.0, -2.0]]], requires_grad=True)
    found = _soften(logits, "top-1", -12.0)
    torch.testing.assert_close(found.detach(), one_hot(torch.tensor([0]), 3).float())
    found[0, 1].backward()
    p = logits.detach().softmax(2)[0, 0]
    torch.testing.assert_close(logits.grad[0, 0], p[1] * (torch.tensor([0.0, 1.0, 0.0]) - p))
    soft = _soften(logits.detach(), "prob", -2.0)
    torch.testing.assert_close(soft[0], p.log().clamp(min=-2))


def test_the_lowest_class_has_the_gradient_of_negated_logits() -> None:
    """Closed form, d q_k / d z_j = -q_k ((k = j) - q_j), q being the softmax of -z. Catches the highest class."""
    logits = torch.tensor([[[1.0, 0.0, -2.0]]], requires_grad=True)
    lowest = _soften(logits, "bottom-1", -12.0)
    torch.testing.assert_close(lowest.detach(), one_hot(torch.tensor([2]), 3).float())
    lowest[0, 2].backward()
    q = (-logits.detach()).softmax(2)[0, 0]
    torch.testing.assert_close(logits.grad[0, 0], -q[2] * (torch.tensor([0.0, 0.0, 1.0]) - q))


def test_a_ranking_has_the_gradient_of_expected_places() -> None:
    """Closed form: the place of k is the sum over j of s(z_j - z_k), s the logistic function, with the slope s (1 - s).

    Catches places that count from the lowest class, and a slope for the class itself.
    """
    logits = torch.tensor([[[1.0, 0.0, -2.0]]], requires_grad=True)
    places = _soften(logits, "ranking", -12.0)
    torch.testing.assert_close(places.detach(), torch.tensor([[0.0, 0.5, 1.0]]))
    places[0, 1].backward()
    s = torch.tensor([1.0, -2.0]).sigmoid()
    slopes = s * (1 - s) / 2
    torch.testing.assert_close(logits.grad[0, 0], torch.stack([slopes[0], -slopes.sum(), slopes[1]]))


def test_each_metamodel_has_the_features_of_its_own_images() -> None:
    """Against one network and one part after the other. Catches images that are mixed up between parts."""
    networks, _ = draw_networks(strength=1.0, noise=0.5)
    queries = torch.rand(FOLDS, 2, *SHAPE, generator=draw(6))
    for output in OUTPUTS:
        found = encode_networks(networks, queries.flatten(0, 1), FOLDS, output, -12.0)
        for fold, r in ((0, 3), (2, 41)):
            log_p = networks[r](queries[fold]).log_softmax(1)
            expected = encode_outputs(log_p, log_p.argsort(1, descending=True), output)
            torch.testing.assert_close(found[fold, r], expected)


def test_what_cannot_be_crafted_is_refused() -> None:
    networks, values = draw_networks(strength=1.0, noise=0.5)
    with pytest.raises(ForetellError, match="An attribute with 5 values cannot be read off one prediction among 4"):
        craft_single(networks, values + 2, epochs=1)
    with pytest.raises(ForetellError, match="epochs=1 cannot be divided into 2 rounds"):
        craft(networks, values, torch.rand(2, *SHAPE), epochs=1)
