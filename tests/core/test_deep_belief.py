"""Sampling with a unit clamped, against the enumeration of every state of small machines."""

from __future__ import annotations

from itertools import product

import pytest
import torch

from core.errors import ForetellError
from core.units.deep_belief import Machine, sample_clamped

VISIBLE, HIDDEN, TOP = 10, 8, 5


def draw_machine(visible: int, hidden: int, seed: int, scale: float = 1.2) -> Machine:
    generator = torch.Generator().manual_seed(seed)
    shapes = ((hidden, visible), (visible,), (hidden,))
    return Machine(*(scale * torch.randn(*shape, generator=generator, dtype=torch.float64) for shape in shapes))


def list_states(size: int) -> torch.Tensor:
    """Every state (2^size, size) of binary units."""
    return torch.tensor(list(product((0.0, 1.0), repeat=size)), dtype=torch.float64)


def enumerate_visible(machine: Machine, unit: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Visible states (S, V) and their exact probability given that a hidden unit is 1, by the joint energy."""
    v, h = list_states(machine.weight.shape[1]), list_states(machine.weight.shape[0])
    h = h[h[:, unit] == 1]
    log_p = h @ machine.weight @ v.T + (h @ machine.hidden)[:, None] + (v @ machine.visible)[None]
    return v, torch.softmax(log_p.flatten(), 0).view_as(log_p).sum(0)


def test_the_mean_is_that_of_the_enumeration_of_every_state():
    """Expected: all 2^10 x 2^7 states of a machine of 10 and 8 units, for two units, within the Monte Carlo error.

    Catches a unit that is not clamped, or clamped to 0, a chain that forgets the clamp, and an error that is too small.
    """
    machine = draw_machine(VISIBLE, HIDDEN, 0)
    for unit in (0, 5):
        v, p = enumerate_visible(machine, unit)
        exact = p @ v
        found = sample_clamped([machine], unit, chains=200, burn_in=60, samples=10, apart=10)
        z = (found.mean - exact) / found.error
        assert float(found.error.max()) < 0.03
        assert float(z.abs().max()) < 4
        assert 0.4 < float(z.square().mean()) < 2.5
        assert found.mixing < 1.2


def test_samples_go_down_through_the_layers_below():
    """Expected: the top machine's exact distribution, taken down by the exact p(x | h) of the machine below it.

    Catches ancestral sampling from the wrong end, and a mean taken of the top machine's visible units.
    """
    below, top = draw_machine(6, HIDDEN, 1), draw_machine(HIDDEN, TOP, 2)
    h, p = enumerate_visible(top, 3)
    exact = p @ below.down(h)
    found = sample_clamped([below, top], 3, chains=200, burn_in=60, samples=10, apart=10)
    assert float(((found.mean - exact) / found.error).abs().max()) < 4
    assert float(found.error.max()) < 0.03
    assert found.chains.shape == (200, 6)


def draw_gaussian(visible: int, hidden: int, seed: int) -> Machine:
    drawn = draw_machine(visible, hidden, seed)
    return Machine(0.4 * drawn.weight, drawn.visible, 0.3 * drawn.hidden, deviation=0.7)


def enumerate_hidden(machine: Machine) -> tuple[torch.Tensor, torch.Tensor]:
    """Hidden states (S, H) of a machine with normal visible units, and their probability, these integrated out."""
    h = list_states(machine.weight.shape[0])
    moved, variance = h @ machine.weight + machine.visible, machine.deviation**2
    return h, (h @ machine.hidden + (moved.square() - machine.visible.square()).sum(1) / (2 * variance)).softmax(0)


def test_conditional_expectations_of_normal_units_are_those_of_the_energy():
    """Expected: p(h = 1 | v) by the energy of all 2^4 hidden states, E[v | h] as the minimum of the energy in v.

    Catches a variance that is left out, or is a standard deviation, and a squashed mean of normal units.
    """
    machine = draw_gaussian(6, 4, 7)
    h, v = list_states(4), torch.randn(5, 6, generator=torch.Generator().manual_seed(8), dtype=torch.float64)

    def compute_energy(v: torch.Tensor) -> torch.Tensor:
        apart = (v[:, None] - machine.visible).square().sum(2) / (2 * 0.7**2)
        return apart - (v @ machine.weight.T / 0.7**2 + machine.hidden) @ h.T

    p = (-compute_energy(v)).softmax(1)
    torch.testing.assert_close(machine.up(v), p @ h)
    means = machine.down(h).requires_grad_()
    (slope,) = torch.autograd.grad(compute_energy(means).diagonal().sum(), means)
    torch.testing.assert_close(slope, torch.zeros_like(slope), atol=1e-12, rtol=0)


def test_the_mean_of_normal_units_is_that_of_the_enumeration():
    """Expected: a mixture of 2^7 normal distributions, one for each state of the other hidden units, within the error.

    With a machine of binary units above, its exact distribution taken down to E[v | h]. Catches normal units drawn
    without their noise, or with another deviation, and a lower machine that is taken to be binary.
    """
    machine = draw_gaussian(6, HIDDEN, 4)
    h, p = enumerate_hidden(machine)
    clamped = h[:, 2] == 1
    exact = p[clamped] / p[clamped].sum() @ machine.down(h[clamped])
    drawn = sample_clamped([machine], 2, chains=400, burn_in=60, samples=10, apart=10)
    assert float(drawn.error.max()) < 0.02
    assert float(((drawn.mean - exact) / drawn.error).abs().max()) < 4
    top = draw_machine(HIDDEN, TOP, 5)
    below, share = enumerate_visible(top, 3)
    drawn = sample_clamped([machine, top], 3, chains=200, burn_in=60, samples=10, apart=10)
    assert float(((drawn.mean - share @ machine.down(below)) / drawn.error).abs().max()) < 4


def test_chains_that_have_not_mixed_are_told_from_those_that_have():
    """Planted: two far valleys, between which no chain moves. Catches a ratio that is near 1 whatever happens."""
    weight = torch.zeros(2, 6, dtype=torch.float64)
    weight[0] = 12.0
    stuck = Machine(
        weight, torch.full((6,), -6.0, dtype=torch.float64), torch.tensor([-36.0, 0.0], dtype=torch.float64)
    )
    assert sample_clamped([stuck], 1, chains=20, samples=10, burn_in=50, apart=5).mixing > 2
    assert sample_clamped([draw_machine(6, 4, 3, 0.3)], 1, chains=20, samples=40, burn_in=50, apart=5).mixing < 1.3


def test_what_cannot_be_sampled_is_one_sentence():
    machine = draw_machine(4, 3, 0)
    with pytest.raises(ForetellError, match="has units 0 to 2, not 3"):
        sample_clamped([machine], 3)
    for wrong in ({"chains": 1}, {"samples": 3}, {"burn_in": 0}):
        with pytest.raises(ForetellError, match="give 2 or more chains, 4 or more samples"):
            sample_clamped([machine], 0, **wrong)
