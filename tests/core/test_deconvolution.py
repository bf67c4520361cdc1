"""Adaptive deconvolutional networks: transposes, pooling by switches, ISTA against a lasso solver, planted filters."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import conv2d

from core.concepts.deconvolution import (
    DeconvolutionSettings,
    LayerStack,
    Switches,
    add_layer,
    decompose,
    draw_filters,
    infer,
    normalise_filters,
    pool,
    project,
    reconstruct,
    select,
    shrink,
    solve_filters,
    unpool,
)
from core.errors import ForetellError


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def draw_two_layers() -> tuple[list[Tensor], list[Switches]]:
    """Filters of two layers for images (2, 3, 9, 9), and the switches of the lower one: 5 maps, in groups of 2."""
    filters = [draw(5, 3, 3, 3), draw(4, 3, 2, 2, seed=1)]
    return filters, [pool(draw(2, 5, 11, 11, seed=2), 2, 2)[1]]


def test_projecting_is_the_transpose_of_rebuilding() -> None:
    """The definition of a transpose, ⟨R z, y⟩ = ⟨z, Rᵀ y⟩, for one and for two layers. Catches a filter that is

    turned in one of the two only, wrong margins, and switches of another layer.
    """
    filters, switches = draw_two_layers()
    y = draw(2, 3, 9, 9, seed=3)
    for top in (1, 2):
        up = project(y, filters[:top], switches[: top - 1])
        z = draw(*up.shape, seed=4)
        down = reconstruct(z, filters[:top], switches[: top - 1])
        assert down.shape == y.shape
        assert float((down * y).sum()) == pytest.approx(float((z * up).sum()), rel=1e-10)


def test_rebuilding_is_a_sum_of_convolutions() -> None:
    """Against a loop over activations, each of which adds its filter. Catches filters that are turned round."""
    f, z = draw(2, 1, 3, 3), draw(1, 2, 6, 6, seed=1)
    image = torch.zeros(1, 8, 8, dtype=torch.float64)
    for k, i, j in itertools.product(range(2), range(6), range(6)):
        image[:, i : i + 3, j : j + 3] += z[0, k, i, j] * f[k]
    # The margin on either side, which is cut off, is the filter's side less 1.
    torch.testing.assert_close(reconstruct(z, [f], [])[0], image[:, 2:-2, 2:-2])


def test_pooling_keeps_the_largest_of_each_group_with_its_sign() -> None:
    """Against a loop over groups, the last of which are not full. Catches groups of maps that are not neighbours,

    the largest value in place of the largest magnitude, and unpooling to another place.
    """
    z = draw(2, 5, 7, 4)
    p, switches = pool(z, 2, 3)
    assert p.shape == (2, 3, 3, 2)
    kept = torch.zeros_like(z)
    for b, g, i, j in itertools.product(range(2), range(3), range(3), range(2)):
        group = z[b, 2 * g : 2 * g + 2, 3 * i : 3 * i + 3, 3 * j : 3 * j + 3]
        k, row, column = np.unravel_index(int(group.abs().argmax()), group.shape)
        assert p[b, g, i, j] == group[k, row, column]
        kept[b, 2 * g + k, 3 * i + row, 3 * j + column] = group[k, row, column]
    assert torch.equal(unpool(p, switches), kept)


def test_unpooling_is_the_transpose_of_pooling() -> None:
    """U = Pᵀ for given switches (Zeiler et al. 2011): ⟨P z, p⟩ = ⟨z, U p⟩, and P U is the identity."""
    switches = pool(draw(2, 5, 7, 4), 2, 3)[1]
    z, p = draw(2, 5, 7, 4, seed=1), draw(2, 3, 3, 2, seed=2)
    assert float((select(z, switches) * p).sum()) == pytest.approx(float((z * unpool(p, switches)).sum()), rel=1e-12)
    assert torch.equal(select(unpool(p, switches), switches), p)


def test_the_soft_threshold_is_exact() -> None:
    """Closed form, by hand. Catches values that pass 0."""
    moved = shrink(torch.tensor([-3.0, -0.5, 0.0, 0.4, 2.0]), torch.tensor(0.5))
    assert moved.tolist() == [-2.5, 0, 0, 0, 1.5]


@pytest.mark.parametrize("weight", [0.3, 1.0])
def test_inference_finds_the_solution_of_the_lasso(weight: float) -> None:
    """Against coordinate descent on the matrix R, column by column. Catches a step or a threshold that is not that of

    λ/2 ‖R z - y‖² + |z|₁. The images differ in size, so each needs its own step.
    """
    filters = [draw(3, 1, 2, 2)]
    y = draw(2, 1, 5, 5, seed=1) * torch.tensor([1.0, 3.0], dtype=torch.float64).view(2, 1, 1, 1)
    found = infer(y, filters, [], weight=weight, steps=3000)
    unit = torch.eye(3 * 36, dtype=torch.float64).view(-1, 3, 6, 6)
    matrix = reconstruct(unit, filters, []).flatten(1).T.numpy()
    for b in range(2):
        expected = solve_lasso(matrix, y[b].flatten().numpy(), 1 / weight)
        np.testing.assert_allclose(found[b].flatten().numpy(), expected, atol=1e-4)
        assert 0 < np.count_nonzero(expected) < len(expected)


def solve_lasso(matrix: np.ndarray, y: np.ndarray, price: float) -> np.ndarray:
    """Minimise ½ ‖A z - y‖² + price |z|₁ by coordinate descent."""
    z, norms = np.zeros(matrix.shape[1]), (matrix**2).sum(0)
    rest = y.copy()
    for _ in range(2000):
        before = z.copy()
        for k in range(len(z)):
            rest += matrix[:, k] * z[k]
            pull = matrix[:, k] @ rest
            z[k] = np.sign(pull) * max(abs(pull) - price, 0) / norms[k]
            rest -= matrix[:, k] * z[k]
        if np.abs(z - before).max() < 1e-9:
            break
    return z


def test_filters_are_those_of_least_squares() -> None:
    """Against numpy's least squares, through a layer below. Catches a gradient through the wrong layer."""
    (below, _), switches = draw_two_layers()
    y, z = draw(2, 3, 9, 9, seed=5), draw(2, 4, 7, 7, seed=6)
    start = draw(4, 3, 2, 2, seed=7)
    found = solve_filters(z, y, start, [below], switches, steps=120)
    unit = torch.eye(start.numel(), dtype=torch.float64).view(-1, *start.shape)
    matrix = torch.stack([reconstruct(z, [below, f], switches).flatten() for f in unit], 1).numpy()
    expected = np.linalg.lstsq(matrix, y.flatten().numpy(), rcond=None)[0]
    np.testing.assert_allclose(found.flatten().numpy(), expected, rtol=1e-5, atol=1e-6)


def test_planted_filters_are_recovered() -> None:
    """Images are sparse sums of three planted filters: each is found, up to its sign and a shift.

    Catches filters that are not updated, whose agreement is that of random ones. The search is local: from
    four random starts the agreement is .74 to 1; from this one all three are found.
    """
    generator = torch.Generator().manual_seed(2)
    planted = normalise_filters(torch.randn(3, 1, 4, 4, generator=generator))
    sign = torch.randn(24, 3, 19, 19, generator=generator).sign()
    size = 1 + torch.rand(24, 3, 19, 19, generator=generator)
    z = size * sign * (torch.rand(24, 3, 19, 19, generator=generator) < 0.008)
    settings = DeconvolutionSettings(3, size=5, maps=1, side=1, weight=1.5, epochs=20, steps=10)
    stack = add_layer(LayerStack(), reconstruct(z, [planted], []), settings, generator=generator)
    agreement = measure_agreement(planted, stack.filters[0])
    assert agreement.amax(1).min() > 0.98
    assert sorted(agreement.argmax(1).tolist()) == [0, 1, 2]
    assert measure_agreement(planted, draw_filters(1, settings, generator)).max() < 0.8


def measure_agreement(planted: Tensor, learned: Tensor) -> Tensor:
    """Return the largest cosine by magnitude over shifts, (planted, learned)."""
    found = conv2d(learned, planted, padding=planted.shape[-1] - 1).abs().amax((2, 3))
    return found.T / learned.flatten(1).norm(dim=1)


def test_each_layer_has_the_switches_of_those_below() -> None:
    """Against the steps one by one. Catches a layer that is inferred without the switches of the image."""
    y = draw(2, 3, 8, 8)
    first = DeconvolutionSettings(4, size=3, weight=1.0, epochs=2, steps=2)
    second = DeconvolutionSettings(3, size=2, maps=1, weight=2.0, epochs=1, steps=3)
    stack = add_layer(LayerStack(), y, first, generator=torch.Generator().manual_seed(0))
    stack = add_layer(stack, y, second, generator=torch.Generator().manual_seed(0))
    found = decompose(y, stack)
    below = infer(y, stack.filters[:1], [], weight=1.0, steps=4, groups=(2, 2))
    switches = pool(below, 2, 2)[1]
    above = infer(y, stack.filters, [switches], weight=2.0, steps=3, groups=(1, 2))
    assert torch.equal(found.activations[0], below)
    assert torch.equal(found.activations[1], above)
    assert torch.equal(found.rebuilt[1], reconstruct(above, stack.filters, [switches]))
    for f in stack.filters:
        assert f.flatten(1).norm(dim=1).tolist() == pytest.approx([1.0] * len(f))


@pytest.mark.parametrize(
    ("given", "message"),
    [({"filters": 0}, "filters=0: give a whole number"), ({"epochs": 0}, "epochs=0"), ({"weight": 0.0}, "weight=0: ")],
)
def test_settings_that_allow_no_layer_are_refused(given: dict[str, float], message: str) -> None:
    with pytest.raises(ForetellError, match=message):
        DeconvolutionSettings(**({"filters": 3} | given))
