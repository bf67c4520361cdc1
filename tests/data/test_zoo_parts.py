"""`scenes:parts`: the filter loss by enumeration, what is where in a scene, and what its filters detect."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from data.scenes.classifier import build as build_scenes
from data.scenes.generator import USUAL_SHARE, find_parts
from data.scenes.pen import PartPen, Pen, Pose
from data.scenes.shapes import CATEGORIES
from data.scenes.zoo import parts
from data.scenes.zoo.filter_loss import Assignment, KeepPlace, compute_filter_losses, make_templates
from data.scenes.zoo.filter_measures import (
    Truth,
    compare,
    compute_maps,
    draw_truth,
    find_box,
    measure_filters,
    read_part,
    summarise,
)
from data.scenes.zoo.material import draw_scene, stack
from data.scenes.zoo.store import read_card

SIDE, TAU, ALPHA = 2, 0.7, 0.5
FEW = 64


def enumerate_loss(x: np.ndarray, own: np.ndarray) -> float:
    """-MI(X; T) of one filter's outputs (B, 2, 2): every template, every image, and every place in turn."""
    cells = [(i, j) for i in range(SIDE) for j in range(SIDE)]
    scale, fits = x.sum((1, 2)).mean(), []
    for mu in [*cells, None]:
        row = []
        for image, is_own in zip(x, own, strict=True):
            trace = 0.0
            for i, j in cells:
                apart = 0 if mu is None else abs(i - mu[0]) + abs(j - mu[1])
                template = -TAU if mu is None else TAU * max(1 - 4 * apart / SIDE, -1)
                trace += image[i, j] / scale * template
            row.append(math.exp(trace) if is_own or mu is None else 0.0)
        fits.append([value / sum(row) for value in row])
    prior = [ALPHA / 4] * 4 + [1 - ALPHA]
    loss = 0.0
    for p, row in zip(prior, fits, strict=True):
        for b, share in enumerate(row):
            whole = sum(q * other[b] for q, other in zip(prior, fits, strict=True))
            loss -= p * share * math.log(share / whole) if share else 0.0
    return loss


@pytest.fixture
def outputs() -> Tensor:
    return torch.rand(5, 3, SIDE, SIDE, generator=torch.Generator().manual_seed(1), dtype=torch.float64) * 3


@pytest.mark.parametrize("everything", [True, False])
def test_the_loss_and_its_gradient_are_those_of_the_enumeration(outputs: Tensor, everything: bool) -> None:
    """Expected: the definition with loops, and its central differences.

    Catches a negative template of the wrong sign, a scale taken as constant in the gradient, and images of other
    categories at a place.
    """
    own = torch.ones(3, 5, dtype=torch.bool)
    if not everything:
        own[0, 2:], own[1, :3], own[2, ::2] = False, False, False
    templates = make_templates(SIDE, TAU).double()
    x = outputs.clone().requires_grad_()
    found = compute_filter_losses(x, templates, None if everything else own)
    (gradient,) = torch.autograd.grad(found.sum(), x)
    for k in range(3):
        one, mine = outputs[:, k].numpy(), own[k].numpy()
        assert found[k].item() == pytest.approx(enumerate_loss(one, mine), rel=1e-6)
        for b in range(5):
            step = np.zeros_like(one)
            step[b, 1, 0] = 1e-5
            slope = (enumerate_loss(one + step, mine) - enumerate_loss(one - step, mine)) / 2e-5
            assert float(gradient[b, k, 1, 0]) == pytest.approx(slope, rel=1e-4, abs=1e-8)


def test_the_loss_has_the_symmetries_of_the_definition(outputs: Tensor) -> None:
    """Catches a scale shared by filters, and templates that know rows from columns or one side from another."""
    templates = make_templates(SIDE, TAU).double()
    found = compute_filter_losses(outputs, templates)
    scaled = outputs * torch.tensor([1.0, 7.0, 0.1]).double().view(1, 3, 1, 1)
    for same in (scaled, outputs.flip(0), outputs.flip(3), outputs.transpose(2, 3)):
        torch.testing.assert_close(compute_filter_losses(same, templates), found)


def test_one_place_has_a_lower_loss_than_two_and_than_all() -> None:
    """Expected by the definition. Catches the sign of the loss."""
    one, two = torch.zeros(9, 1, 3, 3), torch.zeros(9, 1, 3, 3)
    for b in range(9):
        one[b, 0].view(-1)[b] = 1
        two[b, 0].view(-1)[[b, (b + 4) % 9]] = 0.5
    templates = make_templates(3, 5.0)
    losses = [float(compute_filter_losses(x, templates)) for x in (one, two, torch.full((9, 1, 3, 3), 1 / 9))]
    assert losses[0] < losses[1] - 0.1 < losses[2] - 0.2
    assert losses[2] == pytest.approx(0, abs=1e-6)


def test_what_is_near_the_maximum_is_kept() -> None:
    """By hand: β = 4 and n = 6 leave 1, 1/3 and 0 at the distances 0, 1 and 2."""
    x = torch.ones(1, 1, 6, 6)
    x[0, 0, 2, 3] = 2
    kept = KeepPlace(6)(x)[0, 0]
    assert kept[2, 3] == 2
    assert kept[[1, 3, 2, 2], [3, 3, 2, 4]].tolist() == pytest.approx([1 / 3] * 4)
    assert float(kept.sum()) == pytest.approx(2 + 4 / 3)


def test_filters_are_assigned_the_category_they_respond_to_most() -> None:
    """Catches the category with the most images, and one batch without a category that makes its mean 0."""
    maps = torch.zeros(4, 2, 2, 2)
    maps[:3, 0], maps[3, 1] = 1.0, 1.0
    maps[3, 0] = 2.0
    labels, assignment = torch.tensor([0, 0, 0, 1]), Assignment(3)
    assert assignment.find_own(maps, labels).tolist() == [[False] * 3 + [True]] * 2
    assert assignment.find_own(maps[:2], labels[:2]).tolist() == [[False, False]] * 2


def test_the_named_parts_are_where_they_are_drawn() -> None:
    """Catches a recording that changes the drawing, a part that what covers it does not replace, and an offset."""
    pose = Pose((40.0, 60.0), 30.0, 0.3, mirrored=True)
    for kind in CATEGORIES.values():
        plain, recorded = Pen(pose), PartPen(pose)
        for pen in (plain, recorded):
            kind.draw(pen, np.random.default_rng(4))
        assert plain.canvas.tobytes() == recorded.canvas.tobytes()
        assert len(recorded.names) == len(set(recorded.names)) >= 2
    pen = PartPen(Pose((48.0, 48.0), 40.0))
    pen.name("below")
    pen.ellipse((0, 0), (0.8, 0.8), (9, 9, 9))
    pen.name("above")
    pen.ellipse((0.4, 0), (0.2, 0.2), (9, 9, 9))
    found = pen.read_parts()
    assert (pen.names, found[48, 64], found[48, 32], found[2, 2]) == (["below", "above"], 2, 1, 0)
    y, x = np.nonzero(found == 2)
    assert (y.mean() + 0.5, x.mean() + 0.5) == pytest.approx((48, 64), abs=0.5)


def test_parts_of_a_scene_fill_its_mask() -> None:
    """Catches another pose than the scene's, and parts that an occluder hides."""
    for i in range(16):
        scene = draw_scene("standard", 3, USUAL_SHARE, i)
        found, names = find_parts(scene)
        assert not found[~scene.mask].any()
        assert (found[scene.mask] > 0).mean() > 0.97
        assert found.max() < len(names)
        assert names[0] == scene.context
    cat = draw_scene("standard", 3, USUAL_SHARE, 4)
    found, names = find_parts(cat)
    head, paws = (np.nonzero(found == names.index(f"cat: {name}"))[0].mean() for name in ("head", "paws"))
    assert head < paws


def test_purity_and_instability_of_planted_filters() -> None:
    """By hand: one filter at the part in all images, one at four places, one that is 0.

    Catches maxima below the threshold, rows for columns, and cells whose middle is taken half a stride off.
    """
    where = np.zeros((20, 96, 96), dtype=int)
    where[:, 24:40, 56:72] = 1  # the square around (32, 64), which is cell (2, 4) of 6
    truth = Truth(where, ("context", "fish: tail"), np.tile(find_box(where[0] == 1), (20, 1, 1)))
    maps = torch.zeros(20, 3, 6, 6)
    maps[:, 0, 2, 4] = torch.arange(20) + 1.0
    for b in range(20):
        maps[b, 1, 2 * (b % 2), 4] = b + 1.0
    found = measure_filters(maps, truth)
    assert found["purity"].tolist() == pytest.approx([1, 0.5, math.nan], nan_ok=True)
    assert found["part"].tolist()[::2] == [1, -1]
    assert found["instability"][0] == pytest.approx(0, abs=1e-12)
    places = np.array([(64.5, 0.5), (64.5, 32.5)]) / 96
    distances = np.linalg.norm(places[:, None] - truth.landmarks[0], axis=2)
    assert found["instability"][1] == pytest.approx(distances.std(0).mean())
    assert read_part(where[0], 40, 32, 16) == 0  # half of the square is context: the first of two equals
    assert read_part(where[0], 64, 32, 16) == 1


def test_intervals_over_filters_are_those_of_the_mean() -> None:
    """By hand; filters without a value in one of the networks are left out."""
    own, other = np.array([1.0, 3.0, 5.0, math.nan]), np.array([0.0, 1.0, 2.0, 9.0])
    half = 1.959964 / math.sqrt(3)
    assert compare(own, other) == pytest.approx([2, 2 - half, 2 + half], abs=1e-4)
    assert summarise(other[:3])[0] == 1


def test_filters_detect_one_part_more_often_and_more_steadily() -> None:
    """Catches weights that were trained without the loss, and a card that is not of these weights.

    The loss makes filters steadier; leaving out what is far from a maximum is enough for their purity.
    """
    card = read_card("parts")["further"]["filters"]
    assert min(card["purity"]["less_scenes"][1], card["purity"]["less_middle"][1]) > 0.05
    assert max(card["instability"][f"less_{name}"][2] for name in ("scenes", "without_the_loss")) < -0.01
    scenes = [draw_scene("standard", 1_000_003, USUAL_SHARE, i) for i in range(FEW)]
    pixels, truth = stack([np.asarray(scene.image) for scene in scenes]), draw_truth(FEW)
    networks = (parts.build(), build_scenes())
    own, built_in = (measure_filters(compute_maps(network, pixels), truth) for network in networks)
    assert np.nanmean(own["purity"]) > np.nanmean(built_in["purity"])
    assert np.nanmean(own["instability"]) < np.nanmean(built_in["instability"])
