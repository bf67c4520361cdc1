"""Machines with normal visible units: their gradient, their distribution, and the deep belief network of the scenes."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch
from torch.nn.functional import softplus

from data.boltzmann import BoltzmannMachine, GaussianMachine, compute_gradient, fit_machine
from data.scenes.classifier import normalise
from data.scenes.zoo.belief import DEVIATION, FEW, UNITS, build
from data.scenes.zoo.material import HELD_OUT_SEED, USUAL_SHARE, draw_scene, stack
from data.scenes.zoo.store import read_card


def draw_machine(kind: type[BoltzmannMachine], visible: int, hidden: int) -> BoltzmannMachine:
    machine, generator = kind(visible, hidden), torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in machine.parameters():
            parameter.normal_(generator=generator)
    return machine.double()


def compute_free_energy(machine: BoltzmannMachine, v: torch.Tensor) -> torch.Tensor:
    """-log of the sum over hidden states of exp(-E): in closed form, since hidden units are independent given v."""
    inside = softplus(v @ machine.weight.T + machine.hidden).sum(1)
    if isinstance(machine, GaussianMachine):
        return (v - machine.visible).square().sum(1) / 2 - inside
    return -v @ machine.visible - inside


@pytest.mark.parametrize("kind", [BoltzmannMachine, GaussianMachine])
def test_the_gradient_is_that_of_the_free_energy(kind: type[BoltzmannMachine]) -> None:
    """Expected: automatic differentiation of the free energy of the particles less that of the images.

    Catches phases of the wrong sign, and statistics of another energy for normal units.
    """
    machine, generator = draw_machine(kind, 5, 3), torch.Generator().manual_seed(1)
    seen, particles = torch.rand(2, 7, 5, generator=generator, dtype=torch.float64)
    gain = compute_free_energy(machine, particles).mean() - compute_free_energy(machine, seen).mean()
    expected = torch.autograd.grad(gain, (machine.weight, machine.visible, machine.hidden))
    for own, other in zip(compute_gradient(machine, seen, particles), expected, strict=True):
        torch.testing.assert_close(own, other)


def test_a_machine_learns_the_moments_of_normal_units() -> None:
    """Planted: two centres of four units in a ratio of 7 to 3, with noise of variance 1.

    Expected: means and second moments of the images against those of the machine, a mixture of one normal distribution
    per hidden state, enumerated. Catches particles without noise, and a bias that starts elsewhere than the mean.
    """
    generator = torch.Generator().manual_seed(0)
    centres = torch.tensor([[2.0, 2, 0, 0], [0, 0, 2, 2]])
    images = centres[(torch.rand(1000, generator=generator) < 0.3).long()]
    images = images + torch.randn(images.shape, generator=generator)
    machine = fit_machine(images, 3, kind=GaussianMachine, epochs=150, rate=0.02, decay=0, generator=generator)
    h = torch.tensor(list(product((0.0, 1.0), repeat=3)))
    with torch.no_grad():
        means = machine.down(h)
        p = (h @ machine.hidden + (means.square() - machine.visible.square()).sum(1) / 2).softmax(0)
    torch.testing.assert_close(p @ means, images.mean(0), atol=0.12, rtol=0)
    second = means.T @ (p[:, None] * means) + torch.eye(4)
    torch.testing.assert_close(second, images.T @ images / len(images), atol=0.25, rtol=0)


def test_what_the_network_of_the_scenes_draws_is_what_it_sees() -> None:
    """Catches another scale or another mean image on the way from the visible units to the input and back."""
    network = build()
    seen = network.look(normalise(stack([draw(i) for i in range(4)])))
    torch.testing.assert_close(network.look(network.draw(seen)), seen, atol=1e-5, rtol=0)
    low = torch.full((1, UNITS[0]), -2.0)
    torch.testing.assert_close(network.look(network.draw(low)) + network.typical, low * 0, atol=1e-5, rtol=0)


def test_layers_rebuild_images_as_well_as_the_card_says() -> None:
    """Expected: the squared errors of the card for its first images, by another formula.

    Catches layers measured with their own training images, in other units or about another mean, and other baselines.
    """
    network, card = build(), read_card("belief")["further"]
    errors = card["squared_error_of_rebuilt_images"]
    assert errors["first_by_components"] < errors["first"] < errors["second"] < 0.5 * errors["mean_image"]
    assert errors["first_by_components"] < errors["second_by_components"] < errors["second"]
    pixels = stack([draw(i) for i in range(FEW)]).float().unflatten(2, (16, 6)).unflatten(4, (16, 6)).mean((3, 5)) / 255
    machines = network.list_machines()
    (weight, visible, hidden), (upper, down, top) = machines["first"], machines["second"]
    v = pixels.flatten(1) - network.typical
    h = torch.sigmoid(v @ weight.T / DEVIATION**2 + hidden)
    below = torch.sigmoid(torch.sigmoid(h @ upper.T + top) @ upper + down)
    for name, states in (("first", h), ("second", below)):
        again = float((states @ weight + visible - v).square().mean())
        assert again == pytest.approx(card["squared_error_of_first_images"][name], rel=2e-3)


def test_images_drawn_for_a_unit_are_those_that_the_card_measured() -> None:
    """Expected: the agreement of the card, for some units, by the sampling of `core.units.deep_belief`.

    Catches a card that measures units that are not clamped, or another layer.
    """
    from core.units.deep_belief import Machine, sample_clamped

    network = build()
    seen = network.look(normalise(stack([draw(i) for i in range(400)])))
    machines = list(network.list_machines().values())
    own = [Machine(*machines[0], deviation=DEVIATION), Machine(*machines[1])]
    active = network.second(network.first(seen / DEVIATION))
    values = []
    for unit in range(0, UNITS[2], 20):
        drawn = sample_clamped(own, unit, chains=32, burn_in=300, samples=8, apart=40).mean.float()
        typical = active[:, unit] @ seen / active[:, unit].sum()
        values.append(float(torch.corrcoef(torch.stack([drawn, typical]))[0, 1]))
    low, middle, high = read_card("belief")["further"]["agreement_of_drawn_and_held_out_images"]["quartiles"]
    assert 0.3 < low < middle < high < 1
    assert low - 0.15 < sum(values) / len(values) < high + 0.1


def draw(index: int) -> np.ndarray:
    return np.asarray(draw_scene("standard", HELD_OUT_SEED, USUAL_SHARE, index).image)
