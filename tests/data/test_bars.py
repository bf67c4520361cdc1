"""Bars: what an intervention leaves alone, how often colour goes with class, and what the best observer would see."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from scipy.stats import binomtest, norm

from data.bars.classifier import build
from data.bars.generator import ASPECT, GROUND, SPREAD, render
from data.bars.network import train, transforms
from data.bars.observer import best_observer
from data.bars.train import (
    CARD,
    FIRST,
    HELD_OUT,
    HELD_OUT_SEED,
    RED,
    SPLITS,
    draw_bars,
    list_labels,
    measure_accuracy,
    measure_effect,
)
from data.errors import DataError
from data.sets.bars import load
from study.network.sources import open_classifier


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


def test_the_weights_are_those_of_the_card_and_owe_the_colour_what_the_best_observer_does() -> None:
    """Catches weights that were trained again without their card, and a planted effect that is not there.

    Expected: the card's counts on its first images (arithmetic of another processor may move one), Wilson's interval
    of scipy, and the closed form of the best observer.
    """
    card, network = json.loads(CARD.read_text(encoding="utf-8")), build()
    for name, red in SPLITS.items():
        found, first = card["accuracy"][name], draw_bars(red, FIRST, HELD_OUT_SEED)
        correct = measure_accuracy(network, first)["first_images"][0]
        assert abs(correct - found["first_images"][0]) <= 1
        limits = binomtest(round(found["accuracy"] * HELD_OUT), HELD_OUT).proportion_ci(method="wilson")
        assert found["interval_95"] == pytest.approx([limits.low, limits.high], abs=1e-3)
    effect, low, high = card["effect_of_red_on_horizontal"]["network"]
    assert low < effect < high
    assert effect == pytest.approx(best_observer(*RED)["best_causal"], abs=0.04)
    again, few_low, few_high = measure_effect(network, draw_bars((50, 50), FIRST, HELD_OUT_SEED))
    assert abs(again - effect) < 1.7 * (few_high - few_low) / 2  # 99.9% instead of 95%


def test_the_bars_of_the_card_are_those_of_the_set() -> None:
    """Catches a training script that draws other images than the set shows."""
    own, images = draw_bars(RED, 6, 5), load(red_horizontal=RED[0], red_vertical=RED[1], size=6, seed=5)
    assert [one.image.tobytes() for one in own] == [images.open(i).tobytes() for i in range(6)]
    assert list_labels(own).tolist() == images.labels.tolist()


def test_the_network_is_opened_by_its_name(tmp_path) -> None:
    """Catches a name that is searched among torchvision's, and a network of other classes than the set's."""
    classifier = open_classifier("bars", tmp_path, "cpu")
    assert (classifier.name, classifier.categories) == ("bars", ("horizontal", "vertical"))
    images = load(size=100, seed=3)
    predicted = classifier.logits(torch.stack([classifier.preprocess(images.open(i)) for i in range(100)]))
    assert (predicted.argmax(1).numpy() == images.labels).mean() > 0.7
