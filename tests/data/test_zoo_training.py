"""How networks of the zoo are trained: what can be checked in closed form."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from data.scenes.classifier import SceneNet, normalise
from data.scenes.classifier import build as build_scenes
from data.scenes.generator import USUAL_SHARE
from data.scenes.shapes import CATEGORIES
from data.scenes.zoo import bayesian, federated, prototypes, words
from data.scenes.zoo.material import Images, draw_scene, stack
from data.scenes.zoo.store import read_card


def test_one_step_of_every_client_is_one_full_step() -> None:
    """Catches an average that ignores how many images a client has.

    Expected (McMahan et al. 2017, section 2): with one epoch, all images in one batch and every client, averaging is a
    step of gradient descent on all images. Batch norms keep their statistics, as those of a batch are not additive.
    """
    whole = SceneNet().double().eval()
    x, labels = torch.randn(12, 3, 32, 32, dtype=torch.float64), torch.arange(12)
    states = []
    for part in (slice(0, 2), slice(2, 5), slice(5, 12)):
        local = copy.deepcopy(whole)
        federated.train_client(local, [(x[part], labels[part])], 0.1, 1)
        states.append(local.state_dict())
    averaged = federated.average(states, [2, 3, 7])
    loss = cross_entropy(whole(x), labels)
    for parameter, gradient in zip(
        whole.parameters(), torch.autograd.grad(loss, list(whole.parameters())), strict=True
    ):
        parameter.data -= 0.1 * gradient
    for key, value in whole.state_dict().items():
        torch.testing.assert_close(averaged[key], value, atol=1e-10, rtol=0)


def test_clients_share_no_context() -> None:
    """Catches clients that see the same scenes."""
    contexts = torch.arange(10).repeat(7)
    clients = federated.divide(Images(torch.zeros(70, 3, 1, 1), contexts, contexts))
    assert sorted(int(i) for client in clients for i in client) == list(range(70))
    seen = [set(contexts[client].tolist()) for client in clients]
    assert [len(one) for one in seen] == [2] * 5
    assert len(set.union(*seen)) == 10


def test_similarity_is_the_papers() -> None:
    """Expected: log((d² + 1)/(d² + ε)) by hand (Chen et al. 2019); it falls with distance, from log(1/ε + 1 - ...)."""
    squared = torch.tensor([0.0, 1.0, 9.0], dtype=torch.float64)
    by_hand = [np.log(1 / 1e-4), np.log(2 / 1.0001), np.log(10 / 9.0001)]
    torch.testing.assert_close(prototypes.similarity(squared), torch.tensor(by_hand, dtype=torch.float64))


def test_distances_are_those_between_patches_and_prototypes() -> None:
    """Expected: differences one by one, in place of the convolution."""
    network = prototypes.PrototypeNet().eval()
    x = torch.randn(2, 3, 96, 96)
    with torch.no_grad():
        patches, found = network.describe(x), network.distances(x)
        for j in (0, 41, 79):
            slow = (patches - network.prototypes[j][:, None, None]).square().sum(1)
            torch.testing.assert_close(found[:, j], slow, atol=1e-4, rtol=1e-4)


def test_every_prototype_is_a_patch_of_its_training_image() -> None:
    """Catches prototypes that training moved after the push, and a card that names another patch."""
    torch.set_num_threads(1)
    network: Any = prototypes.build()
    named = read_card("prototypes")["training"]["prototypes"]
    assert len({one["training_image"] for one in named}) == len(named) == len(network.prototypes)
    scenes = [draw_scene("training", 0, USUAL_SHARE, one["training_image"]) for one in named]
    with torch.no_grad():
        patches = network.describe(normalise(stack([np.asarray(scene.image) for scene in scenes])))
    for j, (one, scene) in enumerate(zip(named, scenes, strict=True)):
        assert scene.label == one["category"] == list(CATEGORIES)[j // prototypes.PER_CLASS]
        torch.testing.assert_close(network.prototypes[j], patches[j, :, one["row"], one["column"]], atol=2e-5, rtol=0)


def test_a_patch_is_a_part_of_the_image() -> None:
    """Catches a further convolution, whose patches are most of the image.

    Expected: the side grows by 2 px times the product of the strides before each 3 x 3 convolution, which is
    1 + 2 (1 + 2 + 4 + 4 + 8) = 39 px.
    """
    network: Any = prototypes.build()
    x = torch.randn(4, 3, 96, 96, generator=torch.Generator().manual_seed(0)).requires_grad_()
    network.describe(x)[:, :, 6, 6].sum().backward()
    reached = torch.nonzero(x.grad.abs().sum((0, 1)))  # type: ignore[union-attr]
    assert (reached.amax(0) - reached.amin(0) + 1).tolist() == [39, 39]


def test_training_starts_from_the_built_in_network() -> None:
    """Catches fresh convolutions, and prototypes that start as patches of another category."""
    labels = torch.arange(16).repeat(2)
    images = Images(
        stack([np.asarray(draw_scene("training", 0, USUAL_SHARE, i).image) for i in range(32)]), labels, labels
    )
    assert [draw_scene("training", 0, USUAL_SHARE, i).label for i in (0, 15, 16)] == [
        list(CATEGORIES)[k] for k in (0, 15, 0)
    ]
    network = prototypes.start_from_built_in(images, torch.Generator().manual_seed(0))
    x = normalise(images.pixels)
    built_in: Any = build_scenes()
    with torch.no_grad():
        torch.testing.assert_close(network.features(x), built_in.features[:5](x), atol=0, rtol=0)
        patches = network.describe(x).flatten(2)
    for j, prototype in enumerate(network.prototypes.detach()):
        away = (patches[labels == j // 5] - prototype[:, None]).square().sum(1)
        assert away.min() < 1e-10, j


def test_the_costs_of_clusters_are_the_papers() -> None:
    """Catches the nearest prototype of another category in place of the own one, and a cost with the wrong sign.

    Expected: the loss of the paper (section 2.2) image by image, with the distances of all patches one by one.
    """
    network = prototypes.PrototypeNet().eval()
    x, labels = torch.randn(4, 3, 96, 96, generator=torch.Generator().manual_seed(0)), torch.tensor([3, 15, 0, 3])
    index = torch.tensor([2, 0, 1])
    total = 0.0
    with torch.no_grad():
        loss = prototypes.make_loss(network, labels)(x[index], index)
        for i in index.tolist():
            patches = network.describe(x[i : i + 1])[0].flatten(1).T
            away = torch.stack([(patches - prototype).square().sum(1).min() for prototype in network.prototypes])
            own, logits = torch.arange(80) // 5 == labels[i], network(x[i : i + 1])[0]
            total += float(-logits.log_softmax(0)[labels[i]] + 0.8 * away[own].min() - 0.08 * away[~own].min())
    assert float(loss) == pytest.approx(total / 3, rel=1e-4)


def test_prototypes_are_projected_onto_the_nearest_patches() -> None:
    """Catches patches of another category, one image for two prototypes, and rows for columns.

    Expected: the distances of all patches one by one, prototype after prototype.
    """
    labels = torch.arange(16).repeat(6)
    pixels = torch.randint(0, 255, (96, 3, 96, 96), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    images, network = Images(pixels, labels, labels), prototypes.PrototypeNet().eval()
    before = network.prototypes.detach().clone()
    with torch.no_grad():
        patches = network.describe(normalise(pixels)).permute(0, 2, 3, 1)
    named, taken = prototypes.push(network, images), set()
    for j, one in enumerate(named):
        away = (patches - before[j]).square().sum(3)
        allowed = [i for i in range(96) if labels[i] == j // 5 and i not in taken]
        image, row, column = one["training_image"], one["row"], one["column"]
        assert image in allowed
        assert away[image, row, column] <= away[allowed].min() + 1e-5
        torch.testing.assert_close(network.prototypes[j].detach(), patches[image, row, column], atol=1e-5, rtol=0)
        taken.add(image)


def test_words_are_softly_assigned_by_whitened_distance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a bias or a mean that is missing in the convolution.

    Expected: softmax of minus β times the squared distance of whitened patches, patch by patch, without a convolution.
    """
    for name, value in (("WORDS", 5), ("PATCHES", 400)):
        monkeypatch.setattr(words, name, value)
    seen: dict[str, torch.Tensor] = {}
    search = words.find_centres
    monkeypatch.setattr(words, "find_centres", lambda *given: seen.setdefault("centres", search(*given)))
    pixels = torch.randint(0, 255, (8, 3, 96, 96), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    images = Images(pixels, torch.zeros(8), torch.zeros(8))
    network = words.WordsNet()
    words._set_words(network, images, torch.Generator().manual_seed(1))
    patches = words._sample_patches(images, torch.Generator().manual_seed(1)).double()
    values, vectors = np.linalg.eigh(np.cov(patches.numpy().T))
    whiten = vectors @ np.diag(1 / np.sqrt(values + words.RIDGE)) @ vectors.T
    x = normalise(pixels[:1])
    histogram = np.zeros(5)
    for row in range(0, 89, 4):
        for column in range(0, 89, 4):
            patch = x[0, :, row : row + 8, column : column + 8].flatten().double().numpy()
            point = (patch - patches.mean(0).numpy()) @ whiten
            away = words.SHARPNESS * ((point - seen["centres"].numpy()) ** 2).sum(1)
            histogram += np.exp(-(away - away.min())) / np.exp(-(away - away.min())).sum() / 23**2
    with torch.no_grad():
        np.testing.assert_allclose(network.describe(x)[0].numpy() ** 2, histogram, atol=2e-3)


def test_centres_of_separate_clusters_are_their_means() -> None:
    """Catches sums that are divided by another cluster's size."""
    generator = torch.Generator().manual_seed(0)
    points = torch.cat([torch.randn(n, 2, generator=generator) + 100 * k for k, n in enumerate((30, 50, 20))])
    centres = words.find_centres(
        points[torch.randperm(100, generator=generator)], 3, 10, torch.Generator().manual_seed(2)
    )
    expected = torch.stack([part.mean(0) for part in points.split([30, 50, 20])])
    torch.testing.assert_close(centres[centres[:, 0].argsort()], expected, atol=1e-4, rtol=0)


def test_dropout_draws_differ_and_the_plain_prediction_does_not() -> None:
    """Catches dropout that is left on, batch norms that learn from the draws, and draws that are all the same."""
    network = bayesian.build()
    pixels = stack([np.asarray(draw_scene("standard", 1_000_003, USUAL_SHARE, i).image) for i in range(4)])
    before = copy.deepcopy(network.state_dict())
    draws = bayesian.draw(network, pixels)
    assert draws.std(0).max() > 0.01
    assert not any(module.training for module in network.modules() if isinstance(module, nn.Dropout))
    for key, value in network.state_dict().items():
        torch.testing.assert_close(value, before[key], atol=0, rtol=0)
    entropy = lambda p: torch.special.entr(p).sum(-1)  # noqa: E731
    assert (entropy(draws.mean(0)) >= entropy(draws).mean(0) - 1e-5).all()


def test_the_relevance_of_pixels_sums_to_the_logit() -> None:
    """In float64 to 1e-12, and patch by patch against a loop. Catches a lost bias, and patches of another place."""
    network: Any = words.build().double()
    x = normalise(torch.rand(2, 3, 96, 96, generator=torch.Generator().manual_seed(0))).double()
    targets = torch.tensor([3, 11])
    found = network.explain(x, targets)
    logits = network(x)[[0, 1], targets]
    assert found.shape == (2, 96, 96)
    assert (found.sum((1, 2)) - logits).abs().max() < 1e-12
    assert (network.relate_words(x, targets).sum(1) - logits).abs().max() < 1e-12
    assigned, slow = network.assign(network.words(x[:1]))[0], torch.zeros(96, 96, dtype=torch.double)
    adds = network.head.weight[3] * (assigned.mean((1, 2)) + words.FLOOR).sqrt() + network.head.bias[3] / 512
    for row in range(23):
        for column in range(23):
            share = (adds * assigned[:, row, column] / assigned.sum((1, 2))).sum()
            slow[4 * row : 4 * row + 8, 4 * column : 4 * column + 8] += share / 64
    torch.testing.assert_close(found[0], slow, atol=1e-12, rtol=0)
