"""The networks of the zoo: what their cards say holds for the committed weights, and so do the known differences."""

from __future__ import annotations

import importlib
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import data
from data.scenes.classifier import SceneNet, normalise
from data.scenes.classifier import build as build_scenes
from data.scenes.contexts import CONTEXTS
from data.scenes.generator import USUAL_SHARE, render
from data.scenes.shapes import CATEGORIES
from data.scenes.splits import context_of
from data.scenes.zoo.effects import exchange_band, measure_accuracy, measure_effects, predict, wilson
from data.scenes.zoo.material import Changes, Images, draw_changes, draw_scene, list_contexts, stack
from data.scenes.zoo.stethoscope import Weigh, read_contexts
from data.scenes.zoo.store import PREFIX, read_card
from data.scenes.zoo.train import FIRST, SPLITS, count_correct

NAMES = [name.removeprefix(PREFIX) for name in data.CLASSIFIERS if name.startswith(PREFIX)]
SCENES = 16
"""Scenes whose interventions are drawn again here."""


@cache
def build(name: str) -> nn.Module:
    torch.set_num_threads(1)
    member: Any = importlib.import_module(f"data.scenes.zoo.{name}")
    network: nn.Module = member.build()
    return network


@pytest.fixture(scope="module")
def first() -> dict[str, Images]:
    """The first held-out images of each split, drawn here one by one."""
    found = {}
    for split in SPLITS:
        seed, share = 1_000_003, 0.0 if split == "adversarial" else USUAL_SHARE
        scenes = [draw_scene(split, seed, share, i) for i in range(FIRST)]  # type: ignore[arg-type]
        labels = torch.tensor([list(CATEGORIES).index(scene.label) for scene in scenes])
        places = torch.tensor([list(CONTEXTS).index(scene.context) for scene in scenes])
        found[split] = Images(stack([np.asarray(scene.image) for scene in scenes]), labels, places)
    return found


@pytest.fixture(scope="module")
def changes(first: dict[str, Images]) -> Changes:
    """Interventions on a few held-out standard scenes."""
    drawn = stack([draw_changes(i) for i in range(SCENES)])
    few = Images(*(getattr(first["standard"], field)[:SCENES] for field in ("pixels", "labels", "contexts")))
    return Changes(few, drawn[:, :9], drawn[:, 9:])


@pytest.mark.parametrize("name", NAMES)
def test_the_weights_are_those_of_the_card(name: str, first: dict[str, Images]) -> None:
    """Catches weights that were trained again without their card, and a card whose accuracy they do not have.

    Arithmetic of another processor may move one image across a boundary. The card's accuracy lies in the 99.9%
    interval of these images.
    """
    card = read_card(name)
    for split, images in first.items():
        correct = count_correct(build(name), images)
        assert abs(correct - card["first_images"][split]) <= 1
        low, high = wilson(correct, FIRST, 3.29)
        assert low <= card["accuracy"][split]["accuracy"] <= high
        assert card["accuracy"][split]["interval_95"][0] < card["accuracy"][split]["accuracy"]


def test_the_blind_network_does_not_use_the_context_and_the_built_in_one_does(changes: Changes) -> None:
    """Catches a blind network that reads the context, and one that is blind because it predicts nothing."""
    card = read_card("blind")
    for kind in ("true_class", "predicted_class"):
        low, high = card["effects"]["network"]["do(context)"][kind][1:]
        assert -0.05 < low < high < 0.05
        assert card["effects"]["scenes"]["do(context)"][kind][1] > 0.5
    own, built_in = (measure_effects(network, changes) for network in (build("blind"), build_scenes()))
    assert abs(own["do(context)"]["true_class"][0]) < 0.12
    assert built_in["do(context)"]["true_class"][0] > 0.4
    assert own["do(object)"]["true_class"][0] > 0.5


def test_the_coarse_network_sees_no_details_and_the_fine_one_few_areas(changes: Changes) -> None:
    """Catches a filter that lets the wrong band through: details leave every probability of ``coarse`` as it is."""
    x = normalise(changes.images.pixels)
    details, areas = exchange_band(x, high=True), exchange_band(x, high=False)
    coarse, scenes = build("coarse"), build_scenes()
    torch.testing.assert_close(predict(coarse, details), predict(coarse, x), atol=2e-2, rtol=0)
    assert (predict(scenes, details) - predict(scenes, x)).abs().max() > 0.5
    moved = {name: (predict(network, areas) - predict(network, x)).abs().amax(1).mean()
             for name, network in (("fine", build("fine")), ("scenes", scenes))}  # fmt: skip
    assert moved["fine"] < 0.5 * moved["scenes"]


def test_the_filters_have_the_gain_of_a_gaussian() -> None:
    """Expected: the gain of a Gaussian at f cycles per px is exp(-2 pi^2 sigma^2 f^2), of its complement 1 minus it."""
    along = torch.arange(96, dtype=torch.float32) / 96
    for name, high in (("coarse", False), ("fine", True)):
        member: Any = importlib.import_module(f"data.scenes.zoo.{name}")
        for cycles in (2, 6, 10):
            wave = torch.cos(2 * torch.pi * cycles * along).expand(1, 3, 96, 96)
            gain = np.exp(-2 * (np.pi * member.SIGMA * cycles / 96) ** 2)
            network: Any = build(name)
            expected = wave * float(1 - gain if high else gain)
            torch.testing.assert_close(network.filter(wave), expected, atol=2e-3, rtol=0)


def test_the_memorised_network_knows_its_training_images_alone() -> None:
    """Catches true labels in place of random ones, and training that did not memorise them."""
    from data.scenes.zoo import memorised

    card = read_card("memorised")
    assert card["further"]["random_labels_of_training_images"]["accuracy"] > 0.95
    low, high = card["accuracy"]["standard"]["interval_95"]
    assert low < 1 / 16 + 0.02
    assert high > 1 / 16 - 0.02
    scenes = [draw_scene("training", 0, USUAL_SHARE, i) for i in range(32)]
    labels = torch.randint(16, (memorised.IMAGES,), generator=torch.Generator().manual_seed(memorised.SEED))[:32]
    images = Images(stack([np.asarray(scene.image) for scene in scenes]), labels, labels)
    assert measure_accuracy(build("memorised"), images)["accuracy"] > 0.9


def test_the_student_predicts_what_the_built_in_network_predicts(first: dict[str, Images]) -> None:
    """Catches a student of the labels: where the teacher is wrong, it repeats the teacher's mistakes."""
    pixels, labels = first["adversarial"].pixels, first["adversarial"].labels
    own, teacher = (predict(network, pixels).argmax(1) for network in (build("student"), build_scenes()))
    card = read_card("student")["further"]["same_class_as_the_built_in_network"]["adversarial"]
    low, high = wilson(int((own == teacher).sum()), FIRST, 3.29)
    assert low <= card["share"] <= high
    wrong = teacher != labels
    assert (own == teacher)[wrong].float().mean() > (own == labels)[wrong].float().mean() + 0.2


def test_the_aware_network_knows_the_context_and_does_not_use_it(first: dict[str, Images], changes: Changes) -> None:
    """Catches a stethoscope whose gradient is reversed or lost, and a prediction that comes from the context."""
    card = read_card("aware")
    read = card["further"]["context_read_by_a_linear_probe"]
    assert min(read[name]["interval_95"][0] for name in ("scenes:aware", "scenes")) > 0.95
    assert read["scenes:blind"]["interval_95"][1] < 0.6
    low, high = card["effects"]["network"]["do(context)"]["true_class"][1:]
    assert -0.05 < low < high < 0.05
    own = measure_effects(build("aware"), changes)
    assert abs(own["do(context)"]["true_class"][0]) < 0.12
    assert own["do(object)"]["true_class"][0] > 0.5
    few = {name: read_contexts(build(name), first["adversarial"])["accuracy"] for name in ("aware", "blind")}
    assert few["aware"] > few["blind"] + 0.2


def test_prototypes_cost_no_accuracy(first: dict[str, Images]) -> None:
    """Catches a network that no longer predicts as well as the one that it was trained from.

    Expected: within two percentage points of the built-in network on standard scenes.
    """
    plain = json.loads((Path(data.__file__).parent / "scenes" / "accuracy.json").read_text(encoding="utf-8"))
    card = read_card("prototypes")["accuracy"]["standard"]
    assert card["accuracy"] > plain["standard"]["accuracy"] - 0.02
    own, built_in = (count_correct(network, first["standard"]) for network in (build("prototypes"), build_scenes()))
    assert own >= built_in - 4  # of 80, for sampling error


def test_gradients_of_a_stethoscope_are_the_plain_ones_times_lambda() -> None:
    """Catches an adversary that helps."""
    features = torch.randn(4, 8, requires_grad=True)
    (plain,) = torch.autograd.grad((features**3).sum(), features)
    for weight in (-0.3, 0.7):
        (weighed,) = torch.autograd.grad((Weigh.apply(features, weight) ** 3).sum(), features)
        torch.testing.assert_close(weighed, weight * plain)


def test_contexts_are_read_on_images_that_the_probe_has_not_seen() -> None:
    """Catches a probe that is judged on what it was fitted to: features without the context tell nothing new."""
    network = SceneNet()
    generator = torch.Generator().manual_seed(0)
    images = Images(
        torch.randint(0, 255, (120, 3, 96, 96), dtype=torch.uint8, generator=generator),
        torch.zeros(120, dtype=torch.long),
        torch.randint(0, 4, (120,), generator=generator),
    )
    assert read_contexts(network.eval(), images)["interval_95"][1] < 0.6


def test_the_shares_of_the_interval_are_statsmodels() -> None:
    """Expected: statsmodels, another implementation of Wilson's interval."""
    from statsmodels.stats.proportion import proportion_confint

    for correct, count in ((0, 20), (7, 20), (1990, 2000), (2000, 2000)):
        assert wilson(correct, count) == pytest.approx(proportion_confint(correct, count, method="wilson"), abs=1e-4)


def test_an_exchanged_band_is_the_others_and_all_else_its_own() -> None:
    """Catches a band that is mixed, and one that is taken from the image itself."""
    x = torch.randn(3, 3, 96, 96, generator=torch.Generator().manual_seed(0))
    cycles = torch.fft.fftfreq(96, 1 / 96)
    high = torch.hypot(cycles[:, None], cycles[None]) > 16
    seen, own = (torch.fft.fft2(one) for one in (exchange_band(x, high=True), x))
    torch.testing.assert_close(seen[..., high], own.roll(-1, 0)[..., high], atol=1e-3, rtol=1e-3)
    torch.testing.assert_close(seen[..., ~high], own[..., ~high], atol=1e-3, rtol=1e-3)


def test_interventions_change_what_they_say() -> None:
    """Expected: the same scenes drawn with one change, here by `render` itself; no object is the scene's own."""
    scene, drawn = draw_scene("standard", 1_000_003, USUAL_SHARE, 3), draw_changes(3)
    others = [name for name in CONTEXTS if name != scene.context]
    expected = render(scene.seed, category=scene.label, context=others[4])
    np.testing.assert_array_equal(drawn[4], np.asarray(expected.image))
    objects = [render(scene.seed, category=name, context=scene.context) for name in CATEGORIES if name != scene.label]
    assert all(any(np.array_equal(one, np.asarray(other.image)) for other in objects) for one in drawn[9:])


def test_effects_are_the_mean_loss_of_probability() -> None:
    """Expected: by hand, for a network that gives the mean colour as logits. Catches a mean over the wrong axis."""
    pixels = torch.randint(0, 255, (6, 3, 96, 96), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    images = Images(pixels[:2], torch.tensor([0, 2]), torch.tensor([0, 0]))
    found = measure_effects(nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten()), Changes(images, pixels[2:].view(2, 2, 3, 96, 96), pixels[2:4, None]))  # fmt: skip  # noqa: E501

    def probability(image: Tensor, target: int) -> float:
        return float(normalise(image[None]).mean((2, 3)).softmax(1)[0, target])

    by_hand = [probability(pixels[i], k) - (probability(pixels[2 + 2 * i], k) + probability(pixels[3 + 2 * i], k)) / 2
               for i, k in ((0, 0), (1, 2))]  # fmt: skip
    assert found["do(context)"]["true_class"][0] == pytest.approx(np.mean(by_hand), abs=1e-4)


def test_training_sets_have_the_contexts_that_they_say() -> None:
    """Catches contexts that stay tied to the object in the randomised set, and labels of other images."""
    contexts = list_contexts("training", 1, 1 / len(CONTEXTS), 2000)
    usual = [list(CATEGORIES.values())[i % 16].context == name for i, name in enumerate(contexts)]
    assert 0.07 < np.mean(usual) < 0.13
    kept = list_contexts("standard", 5, USUAL_SHARE, 50)
    assert kept == [context_of("standard", 5, i) for i in range(50)]
