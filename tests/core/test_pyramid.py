"""Spatial pyramids against slow loops and the pyramid match of the paper; machines against their definition."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from torch import Tensor

from core.concepts.deconvolution import (
    DeconvolutionSettings,
    LayerStack,
    decompose,
    draw_filters,
    project_strongest,
    reconstruct,
)
from core.concepts.pyramid import (
    build_pyramids,
    describe_patches,
    find_words,
    intersect_histograms,
    learn_words,
    list_descriptors,
    pool_pyramid,
    select_whole,
)
from core.concepts.support_vectors import classify_by_kernel
from core.errors import ForetellError


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def draw_words(images: int, words: int, height: int, width: int, seed: int = 0) -> Tensor:
    """A word at most places, none at some."""
    drawn = torch.randint(-1, words, (images, height, width), generator=generator(seed))
    return torch.stack([(drawn == word).float() for word in range(words)], 1)


def count_in_cells(found: Tensor, side: int) -> np.ndarray:
    """Histograms (W, side, side) of one image's words, place by place."""
    words, height, width = found.shape
    counts = np.zeros((words, side, side))
    for word in range(words):
        for row in range(height):
            for column in range(width):
                counts[word, row * side // height, column * side // width] += float(found[word, row, column])
    return counts


def test_pyramids_are_the_counts_of_each_cell_with_the_weights_of_the_paper() -> None:
    """Against loops over places; weights 1/4, 1/4, 1/2 of three levels. Catches rows that are taken for columns."""
    found = draw_words(2, 3, 9, 7)
    pooled = pool_pyramid(found, 3)
    assert pooled.shape == (2, 3 * 21)
    for one, own in zip(found, pooled, strict=True):
        sides = ((1, 0.25), (2, 0.25), (4, 0.5))
        slow = [weight * count_in_cells(one, side).ravel() / float(one.sum()) for side, weight in sides]
        np.testing.assert_allclose(own.numpy(), np.concatenate(slow), rtol=1e-6)


@pytest.mark.parametrize("levels", [1, 2, 4])
def test_the_intersection_of_pyramids_is_the_pyramid_match(levels: int) -> None:
    """Lazebnik et al. 2006, eq. 2: I^L + sum 2^-(L-l) (I^l - I^(l+1)), from counts of their own.

    Catches weights of another level, and one level too few.
    """
    a, b = draw_words(1, 3, 8, 8)[0], draw_words(1, 3, 8, 8, seed=1)[0]
    shares = [[count_in_cells(one, 2**level) / float(one.sum()) for level in range(levels)] for one in (a, b)]
    matches = [float(np.minimum(one, other).sum()) for one, other in zip(*shares, strict=True)]
    last = levels - 1
    kappa = matches[last] + sum((matches[k] - matches[k + 1]) / 2 ** (last - k) for k in range(last))
    pooled = pool_pyramid(torch.stack([a, b]), levels)
    kernel = intersect_histograms(pooled, pooled)
    assert float(kernel[0, 1]) == pytest.approx(kappa, rel=1e-6)
    assert kernel.diagonal().tolist() == pytest.approx([1, 1])
    whole = intersect_histograms(*[select_whole(pooled, levels)] * 2)
    assert float(whole[0, 1]) == pytest.approx(matches[0], rel=1e-6)


def test_the_intersection_kernel_is_the_product_of_unary_codes() -> None:
    """Closed form: of counts, min(a, b) is the product of a and b ones in a row. Catches sums over images."""
    counts = torch.tensor([[3, 0, 2], [1, 4, 2], [0, 0, 0], [5, 1, 0]])
    codes = (torch.arange(5) < counts[..., None]).flatten(1).float()
    kernel = intersect_histograms(counts.float(), counts[:2].float())
    assert torch.equal(kernel, codes @ codes[:2].T)
    assert kernel.tolist() == [[5, 3], [3, 7], [0, 0], [3, 2]]


def test_a_patch_is_described_by_the_signed_means_of_its_quarters() -> None:
    """Against loops. Catches signs that cancel, a stride in the wrong direction, quarters of another patch."""
    maps = torch.randn(2, 3, 13, 11, generator=generator())
    described = describe_patches(maps)
    assert described.shape == (2, 24, 3, 2)
    for row, column in ((0, 0), (1, 1), (2, 0)):
        patch = maps[1, :, 2 * row : 2 * row + 8, 2 * column : 2 * column + 8]
        slow = sorted(
            float(part[k, i : i + 4, j : j + 4].mean())
            for part in (patch.clamp(min=0), (-patch).clamp(min=0))
            for k in range(3)
            for i in (0, 4)
            for j in (0, 4)
        )
        assert sorted(described[1, :, row, column].tolist()) == pytest.approx(slow, abs=1e-6)
    with pytest.raises(ForetellError, match="7 x 9 places are smaller than a patch"):
        describe_patches(torch.zeros(1, 2, 7, 9))


def test_planted_words_are_learned_and_found() -> None:
    """Descriptors around three directions. Catches words by length, and a word at an empty patch."""
    directions = torch.eye(3, 6)
    noise = 0.02 * torch.randn(90, 6, generator=generator())
    lengths = torch.linspace(1, 3, 90)[:, None]
    drawn = lengths * (directions.repeat(30, 1) + noise)
    words = learn_words(drawn, 3, 0)
    order = words.centres[:, :3].argmax(1)
    assert sorted(order.tolist()) == [0, 1, 2]
    described = torch.zeros(1, 6, 1, 4)
    for place, word in enumerate((2, 0, 1)):
        described[0, :, 0, place] = 9 * directions[word]
    found = find_words(described, words)
    assert [int(order[int(column.argmax())]) for column in found[0, :, 0, :3].T] == [2, 0, 1]
    assert found.sum((0, 1, 2)).tolist() == [1, 1, 1, 0]
    with pytest.raises(ForetellError, match="no visual words to learn"):
        learn_words(drawn[:0], 3, 0)


def test_a_patch_with_little_contrast_is_not_one_with_much() -> None:
    """Catches descriptors that are all scaled to one length."""
    strong, weak = torch.tensor([1.0, 0, 0]).repeat(50, 1), torch.tensor([0.02, 0, 0]).repeat(50, 1)
    words = learn_words(torch.cat([strong, weak]), 2, 0)
    assert words.typical == pytest.approx(0.51)
    assert sorted(words.centres[:, 0].tolist()) == pytest.approx([0.02 / 0.51, 1], abs=1e-6)


def test_words_come_from_training_images_and_several_maps_are_averaged() -> None:
    """Catches words of held-out images, and maps of an image that are summed before they are described."""
    maps = torch.randn(6, 2, 2, 12, 12, generator=generator())
    maps[4] += 50
    built = build_pyramids(maps.__getitem__, 6, 4, words=5, levels=2, generator=generator(3))
    fewer = build_pyramids(maps.__getitem__, 4, 4, words=5, levels=2, generator=generator(3))
    torch.testing.assert_close(built[:4], fewer)
    each = [
        build_pyramids(lambda b, k=k: maps[b] if b != 5 else maps[b, k : k + 1], 6, 4, words=5, levels=2,
                       generator=generator(3))[5]
        for k in range(2)
    ]  # fmt: skip
    torch.testing.assert_close(built[5], (each[0] + each[1]) / 2)


@pytest.mark.parametrize("penalty", [0.1, 5.0, 100.0])
def test_machines_are_those_of_the_squared_hinge_loss(penalty: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against a search for w and b in the images' own coordinates. Catches another loss, and a bias that is free."""
    monkeypatch.setattr("core.concepts.support_vectors.PENALTIES", (penalty,))
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    x = rng.normal(size=(60, 4)) + 0.8 * np.eye(3, 4)[y] + 2
    other = np.hstack([rng.normal(size=(400, 4)) + 2, np.ones((400, 1))])
    machines = [minimize(weigh_hinge, np.zeros(5), args=(x, np.where(y == k, 1, -1), penalty)).x for k in range(3)]
    said, chosen = classify_by_kernel(x @ x.T, other[:, :4] @ x.T, y, 0)
    assert chosen == penalty
    assert (said == (other @ np.stack(machines, 1)).argmax(1)).mean() > 0.99  # some are all but between two classes


def weigh_hinge(w: np.ndarray, x: np.ndarray, signs: np.ndarray, penalty: float) -> float:
    """|w|^2 / 2 + C sum max(0, 1 - y f(x))^2, with the bias as the last weight."""
    return float(w @ w / 2 + penalty * (np.maximum(0, 1 - signs * (x @ w[:-1] + w[-1])) ** 2).sum())


def test_the_price_is_chosen_out_of_fold() -> None:
    """Labels of which a fifth is wrong, and images that are each distinct: a high price fits them all, in vain.

    A rare class that is near the other needs one. Catches a choice by the training images themselves.
    """
    true = np.repeat([1.0, -1.0], 45)
    told = np.where(np.arange(90) % 5 == 0, -true, true) > 0
    kernel = 0.5 * np.outer(true, true) + 0.05 * np.eye(90)
    said, chosen = classify_by_kernel(kernel, kernel - 0.05 * np.eye(90), told.astype(np.int64), 0)
    assert chosen == 0.1
    assert (said == (true > 0)).all()
    rare = np.array([1] * 10 + [0] * 80)
    weak = 0.01 * np.outer(2 * rare - 1, 2 * rare - 1)
    assert classify_by_kernel(weak, weak, rare, 0)[1] > 0.1


def test_the_strongest_activations_are_projected_one_by_one() -> None:
    """R is linear: the projections of all activations sum to that of the layer, each with its own image's switches.

    Catches switches of another image, activations by sign, and the image's pixels in place of feature maps.
    """
    settings = (DeconvolutionSettings(4, size=3, epochs=2), DeconvolutionSettings(3, size=3, epochs=2, weight=1.0))
    lower = draw_filters(3, settings[0], generator())
    stack = LayerStack((lower, draw_filters(2, settings[1], generator(1))), settings)
    y = torch.randn(3, 3, 12, 12, generator=generator(2))
    found = decompose(y, stack)
    z = found.activations[1][2]
    every = project_strongest(found, stack, 1, 2, z.numel())
    assert len(every) == int((z != 0).sum()) > 3
    assert every.shape[1:] == found.activations[0].shape[1:]
    rebuilt = reconstruct(every, stack.filters[:1], []).sum(0)
    torch.testing.assert_close(rebuilt, found.rebuilt[1][2], rtol=1e-4, atol=1e-5)
    few = project_strongest(found, stack, 1, 2, 3)
    torch.testing.assert_close(few, every[:3])
    switches = [found.switches[0].only(slice(2, 3))]
    for sign in (1, -1):
        turned = replace(found, activations=(found.activations[0], sign * found.activations[1]))
        alone = torch.zeros_like(z).flatten()
        alone[z.abs().argmax()] = sign * z.flatten()[z.abs().argmax()]
        expected = reconstruct(alone.view(1, *z.shape), stack.filters, switches)
        strongest = reconstruct(project_strongest(turned, stack, 1, 2, 1), stack.filters[:1], [])
        torch.testing.assert_close(strongest, expected, rtol=1e-4, atol=1e-5)
    assert torch.equal(project_strongest(found, stack, 0, 1, 5)[0], found.activations[0][1])


def test_a_decomposition_goes_on_from_the_layers_that_are_known() -> None:
    """Against all layers at once. Catches a layer that is left out or taken twice."""
    settings = (DeconvolutionSettings(4, size=3, epochs=1), DeconvolutionSettings(3, size=3, epochs=1))
    stack = LayerStack(
        (draw_filters(3, settings[0], generator()), draw_filters(2, settings[1], generator(1))), settings
    )
    y = torch.randn(2, 3, 12, 12, generator=generator(2))
    whole, first = decompose(y, stack), decompose(y, LayerStack(stack.filters[:1], settings[:1]))
    after = decompose(y, stack, first)
    assert len(after.activations) == 2
    assert torch.equal(after.activations[1], whole.activations[1])
    assert after.activations[0] is first.activations[0]


def test_empty_images_have_empty_pyramids() -> None:
    """Catches a division by the number of words where there is none, and descriptors of nothing."""
    assert pool_pyramid(torch.zeros(1, 2, 4, 4), 2).tolist() == [[0] * 10]
    assert len(list_descriptors(torch.zeros(1, 3, 2, 2))) == 0
