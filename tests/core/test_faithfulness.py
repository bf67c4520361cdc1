from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from core.attribution.baselines import baselines
from core.attribution.perturbation.expected_mask import bayesian_teaching
from core.errors import ForetellError
from core.faithfulness import FAITHFULNESS_MEASURES
from core.faithfulness.curves import deletion, insertion
from core.faithfulness.pointing import pointing_hit, relevance_mass, relevance_rank
from core.network.classifier import Classifier
from data.scenes import classifier as scene_net
from data.scenes.splits import picture
from tests.core.networks import SIDE, awkward, pictures, unit

CURVES = pytest.mark.parametrize("curve", [deletion, insertion])
SUBSTRATES = pytest.mark.parametrize("substrate", ["mean", "black", "blur"])


class Sum(nn.Module):
    """Logits (sum of the pixels, 0)."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        total = x.flatten(1).sum(1)
        return torch.stack([total, torch.zeros_like(total)], 1)


def adder() -> Classifier:
    """The sum of 2 x 2 pixels whose mean and black fill are both 0."""
    return Classifier(Sum(), lambda image: torch.zeros(1, 2, 2), name="sum")


def maps(count: int, seed: int = 5) -> torch.Tensor:
    """Random maps without ties."""
    drawn = torch.randn(count, SIDE, SIDE, generator=torch.Generator().manual_seed(seed))
    assert len(drawn.unique()) == drawn.numel()
    return drawn


def mask(rows: slice, columns: slice, side: int = 8) -> torch.Tensor:
    inside = torch.zeros(1, side, side, dtype=torch.bool)
    inside[:, rows, columns] = True
    return inside


def slow_curve(classifier, image, target, one, counts, fill, start_from_image):
    """From the paper's algorithm: sort the pixels, change the picture one pixel at a time, ask at the given counts."""
    side = one.shape[1]
    order = sorted(range(one.numel()), key=lambda k: (-float(one[k // side, k % side]), k))
    current, new = (image.clone(), fill) if start_from_image else (fill.clone(), image)
    values = []
    for done in range(one.numel() + 1):
        if done in counts:
            values.append(float(classifier.probabilities(current[None])[0, target]))
        if done < one.numel():
            row, column = divmod(order[done], side)
            current[:, row, column] = new[:, row, column]
    return values


# Curves


def test_deletion_and_insertion_of_a_sum_by_hand():
    """f = 1 + 4 + 2 + 3 with its own contributions as map: 10, 6, 3, 1, 0, area (10/2 + 6 + 3 + 1 + 0/2) / 4."""
    image = torch.tensor([[[[1.0, 4.0], [2.0, 3.0]]]])
    options = {"steps": 4, "substrate": "mean", "output": "logit"}
    down = deletion(adder(), image, [0], image[:, 0], **options)
    up = insertion(adder(), image, [0], image[:, 0], **options)
    assert down.values.tolist() == [[10, 6, 3, 1, 0]]
    assert up.values.tolist() == [[0, 4, 7, 9, 10]]
    assert down.fractions.tolist() == up.fractions.tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert (down.area.item(), up.area.item()) == (3.75, 6.25)
    assert (down.measure, down.substrate, down.output) == ("deletion", "mean", "logit")
    assert up.measure == "insertion"
    backwards = deletion(adder(), image, [0], -image[:, 0], **options)
    assert backwards.values.tolist() == [[10, 9, 7, 4, 0]]
    assert backwards.area.item() == 6.25


def test_a_linear_network_falls_by_its_largest_contributions_first():
    """numpy: f(substrate) + the contributions that are left, the largest gone first; no order has a smaller area."""
    network = nn.Sequential(nn.Flatten(), nn.Linear(3 * SIDE * SIDE, 2))
    classifier, image = Classifier(network, unit, name="linear"), pictures(1)
    fill = classifier.fill("black")
    gave = (network[1].weight[1].detach().view(3, SIDE, SIDE) * (image[0] - fill)).sum(0).double().numpy()
    options = {"steps": SIDE * SIDE, "substrate": "black", "output": "logit"}
    found = deletion(classifier, image, [1], torch.from_numpy(gave)[None], **options)
    sunk = np.concatenate([[0.0], np.cumsum(np.sort(gave.ravel())[::-1])])
    expected = float(classifier.logits(fill[None])[0, 1]) + gave.sum() - sunk
    np.testing.assert_allclose(found.values[0], expected, rtol=0, atol=1e-5)
    area = ((expected[1:] + expected[:-1]) / 2).mean()
    assert found.area.item() == pytest.approx(area, abs=1e-5)
    for other in (-torch.from_numpy(gave)[None], maps(1)):
        assert deletion(classifier, image, [1], other, **options).area.item() > area + 0.1


def test_equal_values_go_row_by_row():
    image = torch.tensor([[[[1.0, 4.0], [2.0, 3.0]]]])
    found = deletion(adder(), image, [0], torch.zeros(1, 2, 2), steps=4, output="logit")
    assert found.values.tolist() == [[10, 9, 5, 3, 0]]
    assert insertion(
        adder(), image, [0], torch.zeros(1, 2, 2), steps=4, substrate="mean", output="logit"
    ).values.tolist() == [[0, 1, 5, 7, 10]]


@CURVES
def test_a_constant_classifier_has_flat_curves(curve):
    network = nn.Sequential(nn.Flatten(), nn.Linear(3 * SIDE * SIDE, 2))
    nn.init.zeros_(network[1].weight)
    classifier = Classifier(network, unit, name="blind")
    level = float(classifier.probabilities(pictures(1))[0, 0])
    found = curve(classifier, pictures(2), [0, 0], maps(2), steps=7)
    torch.testing.assert_close(found.values, torch.full((2, 8), level, dtype=torch.float64), rtol=0, atol=1e-7)
    torch.testing.assert_close(found.area, torch.full((2,), level, dtype=torch.float64), rtol=0, atol=1e-7)


@SUBSTRATES
def test_insertion_is_the_deletion_of_the_reversed_order_run_backwards(substrate):
    """The very same masked pictures, also where the steps do not divide the pixels."""
    for steps in (SIDE * SIDE, 10, 1):
        options = {"steps": steps, "substrate": substrate}
        up = insertion(awkward(), pictures(2), [2, 0], maps(2), **options)
        down = deletion(awkward(), pictures(2), [2, 0], -maps(2), **options)
        torch.testing.assert_close(up.values, down.values.flip(1), rtol=0, atol=1e-7)
        torch.testing.assert_close(up.fractions, 1 - down.fractions.flip(0), rtol=0, atol=1e-12)
        torch.testing.assert_close(up.area, down.area, rtol=0, atol=1e-7)


@CURVES
@SUBSTRATES
@pytest.mark.parametrize("output", ["probability", "logit"])
@pytest.mark.parametrize("steps", [1, 10, 100])
def test_a_curve_runs_between_image_and_substrate_in_exactly_its_steps(curve, substrate, output, steps):
    classifier, images = awkward(), pictures(2)
    found = curve(classifier, images, [1, 2], maps(2), steps=steps, substrate=substrate, output=output)
    assert found.values.shape == (2, steps + 1)
    assert found.fractions.shape == (steps + 1,)
    assert (found.fractions[0], found.fractions[-1]) == (0, 1)
    assert bool((found.fractions.diff() > 0).all())
    answer = classifier.probabilities if output == "probability" else classifier.logits
    picked = torch.tensor([[1], [2]])
    ends = [answer(x).gather(1, picked)[:, 0].double() for x in (images, baselines(classifier, images, substrate, 0))]
    first, last = ends if curve is deletion else ends[::-1]
    torch.testing.assert_close(found.values[:, 0], first, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(found.values[:, -1], last, rtol=1e-5, atol=1e-6)
    assert (first - last).abs().min() > 1e-4


@CURVES
@SUBSTRATES
def test_a_slow_curve_pixel_by_pixel(curve, substrate):
    classifier, images, one = awkward(), pictures(2), maps(2).round(decimals=1)
    assert len(one[0].unique()) < one[0].numel()
    counts = [round(s * SIDE * SIDE / 10) for s in range(11)]  # 14.4 pixels a step
    fills = baselines(classifier, images, substrate, 0)
    found = curve(classifier, images, [2, 0], one, steps=10, substrate=substrate)
    for b, target in enumerate([2, 0]):
        slow = slow_curve(classifier, images[b], target, one[b], counts, fills[b], curve is deletion)
        np.testing.assert_allclose(found.values[b], slow, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found.fractions, np.array(counts) / SIDE**2, rtol=0, atol=1e-12)


@CURVES
def test_a_batch_equals_one_by_one_for_any_chunk(curve):
    classifier, images = awkward(), pictures(3)
    whole = curve(classifier, images, [0, 1, 2], maps(3))
    for k in range(3):
        alone = curve(classifier, images[k : k + 1], [k], maps(3)[k : k + 1], chunk=7)
        torch.testing.assert_close(whole.values[k], alone.values[0], rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(whole.area[k], alone.area[0], rtol=1e-5, atol=1e-6)


@CURVES
def test_curves_leave_their_input_alone_and_count_the_points(curve):
    images, one, seen = pictures(2), maps(2), []
    before = images.clone(), one.clone()
    curve(awkward(), images, [0, 1], one, steps=70, progress=lambda done, total, what: seen.append((done, total)))
    assert torch.equal(images, before[0])
    assert torch.equal(one, before[1])
    assert seen == [(64, 142), (71, 142), (135, 142), (142, 142)]


@pytest.mark.parametrize(
    ("maps_given", "steps", "says"),
    [
        (torch.zeros(2, SIDE, SIDE), 5, "one heatmap"),
        (torch.zeros(1, SIDE, SIDE - 1), 5, "one heatmap"),
        (torch.full((1, SIDE, SIDE), float("nan")), 5, "Heatmap 0 has NaN"),
        (torch.zeros(1, SIDE, SIDE), 0, "takes 1 to 144 steps"),
        (torch.zeros(1, SIDE, SIDE), 145, "takes 1 to 144 steps"),
    ],
)
@CURVES
def test_what_has_no_curve_is_refused(curve, maps_given, steps, says):
    with pytest.raises(ForetellError, match=says):
        curve(awkward(), pictures(1), [0], maps_given, steps=steps)


# Masses


def test_block_masks_hold_all_half_or_none():
    """Quantus's localisation oracle: 1.0 / 0.5 / 0 where the mask covers all, half, none of a block of evidence."""
    block = mask(slice(2, 6), slice(2, 6))
    for inside, share in ((block, 1.0), (mask(slice(2, 4), slice(2, 6)), 0.5), (mask(slice(6, 8), slice(0, 8)), 0.0)):
        assert relevance_mass(block.float(), inside).tolist() == [share]
    for inside, share in ((block, 1.0), (mask(slice(4, 8), slice(2, 6)), 0.5), (mask(slice(6, 8), slice(0, 8)), 0.0)):
        assert relevance_rank(block.float() + maps(1)[:, :8, :8] / 100, inside).tolist() == [share]


def test_mass_counts_positive_evidence_above_the_maps_own_zero():
    """Above 0.25: 0.75 inside, 0.25 outside; what lies below counts on neither side."""
    one = torch.tensor([[[1.0, 0.5], [0.0, -3.0]]])
    inside = torch.tensor([[[True, False], [True, False]]])
    assert relevance_mass(one - 0.25, inside).item() == 0.75
    assert relevance_mass(one, inside).item() == pytest.approx(2 / 3)
    assert relevance_mass(torch.zeros(1, 2, 2), inside).isnan().all()


def test_rank_by_hand():
    """Top 3 of 6 are 9, 8 and 7; the mask of 3 pixels holds 9 and 7. A tie is broken row by row."""
    one = torch.tensor([[[9.0, 8.0, 7.0], [6.0, -1.0, 0.0]]])
    inside = torch.tensor([[[True, False, True], [False, False, True]]])
    assert relevance_rank(one, inside).item() == pytest.approx(2 / 3)
    assert relevance_rank(torch.zeros(1, 2, 3), inside).item() == pytest.approx(2 / 3)
    assert relevance_rank(torch.zeros(1, 2, 3), ~inside).item() == pytest.approx(1 / 3)


def test_pointing_is_a_hit_up_to_the_tolerance():
    """Maximum at (1, 1), nearest pixel of the mask at (4, 5): 5 px away."""
    one = torch.zeros(1, 8, 8)
    one[0, 1, 1] = 2
    one[0, 7, 7] = 1
    inside = mask(slice(4, 8), slice(5, 8))
    assert pointing_hit(one, inside, tolerance=5).tolist() == [True]
    assert pointing_hit(one, inside, tolerance=4.99).tolist() == [False]
    assert pointing_hit(one, mask(slice(1, 2), slice(1, 2)), tolerance=0).tolist() == [True]
    assert pointing_hit(one, mask(slice(1, 2), slice(2, 3)), tolerance=0).tolist() == [False]
    far = torch.zeros(2, 40, 40)
    far[:, 0, 0] = 1
    edges = torch.cat([mask(slice(0, 1), slice(k, 40), side=40) for k in (15, 16)])
    assert pointing_hit(far, edges).tolist() == [True, False]


@pytest.mark.parametrize("measure", [relevance_mass, relevance_rank, pointing_hit])
def test_masses_of_a_batch_are_those_one_by_one_and_bad_masks_are_refused(measure):
    inside = torch.cat([mask(slice(0, 3), slice(k, k + 2), side=SIDE) for k in range(3)])
    parameters = {"tolerance": 1.5} if measure is pointing_hit else {}
    whole = measure(maps(3), inside, **parameters)
    alone = [measure(maps(3)[k : k + 1], inside[k : k + 1], **parameters)[0] for k in range(3)]
    assert whole.tolist() == torch.stack(alone).tolist()
    for wrong, says in (
        (inside.float(), "one bool mask"),
        (inside[:2], "one bool mask"),
        (inside & torch.tensor([True, False, True])[:, None, None], "Mask 1 is empty"),
    ):
        with pytest.raises(ForetellError, match=says):
            measure(maps(3), wrong)
    with pytest.raises(ForetellError, match="Heatmap 2 has NaN"):
        measure(maps(3).index_fill(0, torch.tensor([2]), float("inf")), inside)


def test_a_negative_tolerance_is_refused():
    with pytest.raises(ForetellError, match="0 px or more"):
        pointing_hit(maps(1), torch.ones(1, SIDE, SIDE, dtype=torch.bool), tolerance=-1)


# A world whose truth is known


def confident(classifier, split, right):
    """The first 12 scenes that the built-in network is sure of, rightly or wrongly: inputs, its answers, objects."""
    found, index = [], 0
    while len(found) < 12:
        scene = picture(split, 0, index)
        index += 1
        x = classifier.preprocess(scene.image)
        probabilities = classifier.probabilities(x[None])[0]
        said = int(probabilities.argmax())
        if probabilities[said] > 0.8 and (classifier.categories[said] == scene.label) == right and scene.mask.any():
            found.append((x, said, torch.from_numpy(scene.mask)))
    inputs, answers, objects = zip(*found, strict=True)
    return torch.stack(inputs), list(answers), torch.stack(objects)


def test_maps_of_confident_errors_lie_less_on_the_object_than_those_of_right_answers():
    """The network is misled by contexts: a map true to it leaves the object where the answer does not come from it."""
    classifier = Classifier(
        scene_net.build(),
        scene_net.transforms,
        scene_net.CATEGORIES,
        name="scenes",
        mean_colour=scene_net.MEAN_COLOUR,
    )
    share, area = {}, {}
    for split, right in (("standard", True), ("adversarial", False)):
        inputs, answers, objects = confident(classifier, split, right)
        explained = bayesian_teaching(classifier, inputs, answers, samples=128)
        share[right] = float(relevance_mass(explained.evidence, objects).mean())
        area[right] = float(objects.float().mean())
    assert share[False] < share[True] - 0.1
    # Nor is it that their objects are smaller: against the object's share of the picture.
    assert share[True] / area[True] > 1.3
    assert share[False] / area[False] < share[True] / area[True] - 0.3


@pytest.mark.parametrize("name", list(FAITHFULNESS_MEASURES))
def test_every_measure_can_be_imported_and_says_what_it_is(name):
    assert FAITHFULNESS_MEASURES[name].__name__ == name
    assert FAITHFULNESS_MEASURES[name].__doc__


def test_an_unknown_measure_suggests_the_nearest():
    with pytest.raises(ForetellError, match=r"Unknown measure of faithfulness 'deletions'\. Did you mean 'deletion'"):
        FAITHFULNESS_MEASURES["deletions"]
