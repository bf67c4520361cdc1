"""The deep belief network of the bars: its card, and the learning of a machine small enough to be enumerated."""

from __future__ import annotations

import json
from itertools import product

import torch
from torch.nn.functional import softplus

from data.bars.belief import CARD, RED, UNITS, build, look
from data.bars.train import FIRST, HELD_OUT_SEED, draw_bars, measure_accuracy, read
from data.boltzmann import fit_machine


def test_the_weights_are_those_of_the_card() -> None:
    """Catches weights that were trained again without their card; another processor may move one image."""
    card, images = json.loads(CARD.read_text(encoding="utf-8")), draw_bars(RED, FIRST, HELD_OUT_SEED)
    correct, count = measure_accuracy(build(), images)["first_images"]
    assert count == FIRST
    assert abs(correct - card["accuracy"]["first_images"][0]) <= 1
    low, high = card["accuracy"]["interval_95"]
    assert 0.8 < low < card["accuracy"]["accuracy"] < high
    assert card["units"] == list(UNITS)


def test_a_machine_learns_the_distribution_of_its_images() -> None:
    """Planted: two patterns of six units in a ratio of 7 to 3, of which one value in seven is flipped.

    Expected: means and second moments of the images, against those of all states of the machine, enumerated. Catches a
    negative phase of the wrong sign, and particles that are the images themselves.
    """
    generator = torch.Generator().manual_seed(0)
    patterns = torch.tensor([[1.0, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]])
    images = patterns[(torch.rand(1000, generator=generator) < 0.3).long()]
    images = (images - (torch.rand(images.shape, generator=generator) < 1 / 7).float()).abs()
    machine = fit_machine(images, 4, epochs=300, batch=100, rate=0.05, decay=0, generator=generator)
    v = torch.tensor(list(product((0.0, 1.0), repeat=6)))
    p = (v @ machine.visible + softplus(v @ machine.weight.T + machine.hidden).sum(1)).softmax(0)
    torch.testing.assert_close(p @ v, images.mean(0), atol=0.06, rtol=0)
    torch.testing.assert_close(v.T @ (p[:, None] * v), images.T @ images / len(images), atol=0.06, rtol=0)


def test_what_the_network_draws_is_what_it_sees() -> None:
    """Catches another scale, or an image turned, on the way from the visible units to the input and back."""
    visible = torch.rand(3, UNITS[0], generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(look(build().draw(visible)), visible, atol=1e-5, rtol=0)
    assert -0.3 < float(look(read(draw_bars(RED, 20, 1))).min()) < 0.1
