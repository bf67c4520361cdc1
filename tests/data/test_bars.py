"""Bars: what an intervention leaves alone, how often colour goes with class, and what the best observer would see."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import norm

from benchmarks.concepts import best_observer
from data.bars.generator import ASPECT, GROUND, SPREAD, render
from data.bars.network import train, transforms
from data.errors import DataError
from data.sets.bars import load


def test_an_intervention_on_colour_changes_the_colour_alone() -> None:
    """Catches a colour drawn from the same numbers as the shape or the noise."""
    for seed in range(20):
        red, green = (np.asarray(render(seed, colour=name).image, dtype=int) for name in ("red", "green"))
        assert np.array_equal(red[..., 2], green[..., 2])
        lit, moved = red[..., 0] - green[..., 0], green[..., 1] - red[..., 1]
        clear = (red[..., 0] < 255) & (green[..., 1] < 255)
        assert np.abs(lit - moved)[clear].max() <= 1  # rounding
        assert lit.max() > 100
        assert (lit == 0).sum() > lit.size / 2


def test_an_intervention_on_the_orientation_turns_the_bar() -> None:
    """Width and height change places (to a pixel's rounding), the colour stays."""
    for seed in range(20):
        lying, standing = (
            np.asarray(render(seed, orientation=name, colour="red").image, dtype=float)[..., 0] - GROUND
            for name in ("horizontal", "vertical")
        )
        spans = [[(bar.sum(axis) > 150).sum() for axis in (0, 1)] for bar in (lying, standing)]
        assert abs(spans[0][0] - spans[1][1]) <= 1
        assert abs(spans[0][1] - spans[1][0]) <= 1


def test_the_set_has_the_shares_it_was_asked_for() -> None:
    """Binomial limits (four standard errors) of 98 and 10 %; what is not given to chance takes turns."""
    images = load(red_horizontal=98, red_vertical=10, size=2000)
    colours = np.array(images.factors["colour"].known)
    for label, share in ((0, 0.98), (1, 0.10)):
        found = (colours[images.labels == label] == "red").mean()
        assert abs(found - share) < 4 * np.sqrt(share * (1 - share) / 1000)
    assert images.factors["orientation"].known[:2] == ("horizontal", "vertical")
    again = images.factors["colour"].do(7, colours[7])
    assert again.tobytes() == images.open(7).tobytes()
    assert load(size=5, seed=1).digest != load(size=5).digest


def test_what_cannot_be_drawn_is_one_sentence() -> None:
    for wrong, sentence in (
        ({"red_horizontal": 120}, "choose them between 0 and 1"),
        ({"size": 0}, "choose 1 <= size"),
    ):
        with pytest.raises(DataError, match=sentence):
            load(**wrong)
    with pytest.raises(DataError, match=r"not 'blue'\. Known: red, green"):
        render(1, colour="blue")


def test_the_best_observer_is_bayes_rule() -> None:
    """Simulation: shapes and colours drawn as the set draws them, answered by Bayes' rule, intervened on by hand."""
    rng, n = np.random.default_rng(0), 400_000
    lying = rng.random(n) < 0.5
    red = rng.random(n) < np.where(lying, 0.98, 0.02)
    shape = np.where(lying, ASPECT, -ASPECT) + SPREAD * rng.normal(size=n)

    def answer(is_red: np.ndarray) -> np.ndarray:
        odds = norm.pdf(shape, ASPECT, SPREAD) / norm.pdf(shape, -ASPECT, SPREAD)
        odds = odds * np.where(is_red, 0.98 / 0.02, 0.02 / 0.98)
        return odds / (1 + odds)

    expected = best_observer(98, 2)
    causal = (answer(np.full(n, True)) - answer(np.full(n, False))).mean()
    assert expected["best_causal"] == pytest.approx(causal, abs=0.005)
    assert expected["best_observed"] == pytest.approx(answer(red)[red].mean() - answer(red)[~red].mean(), abs=0.005)


@pytest.mark.parametrize(("shares", "tolerance"), [((60, 40), 0.04), ((98, 2), 0.15)])
def test_a_trained_network_owes_the_colour_what_the_best_observer_does(
    shares: tuple[int, int], tolerance: float
) -> None:
    """The closed form, within what a few thousand pictures teach; catches a class that does not follow the shape."""
    images = load(red_horizontal=shares[0], red_vertical=shares[1], size=6000)
    inputs = torch.stack([transforms(images.open(i)) for i in range(len(images))])
    network = train(inputs, torch.from_numpy(images.labels), generator=torch.Generator().manual_seed(0))
    do = load(size=1000, seed=9).factors["colour"].do
    red, green = (
        network(torch.stack([transforms(do(i, c)) for i in range(1000)])).softmax(1)[:, 0] for c in ("red", "green")
    )
    assert float((red - green).mean()) == pytest.approx(best_observer(*shares)["best_causal"], abs=tolerance)
