"""The benchmark of methods on architectures: it tells planted right heatmaps from wrong ones."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

from benchmarks import checks
from benchmarks.architectures import Subject
from benchmarks.checks import EXACT, MOST, PLANS, Finding
from benchmarks.definitions import enlarge, shrink
from benchmarks.planted import ARCHITECTURES, draw_images, mark_quarter
from core.attribution import METHODS
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.sources import load
from core.types import Certificate, Explanation
from tests.core import networks
from tests.core.scenes import answered

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "docs"))

from generators.architecture_tables import plot_architectures, tabulate_architectures

SIDE = 16
SEEN = mark_quarter(SIDE)


def noise(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(3))


def explanation(*warnings: str) -> Explanation:
    return Explanation(torch.zeros(1, SIDE, SIDE), 0.0, (Certificate("gradient", 0, "", 0.5, warnings=warnings),))


def test_every_method_has_a_plan() -> None:
    """A new method that the table would leave out, or a plan that checks nothing."""
    assert set(PLANS) == set(METHODS)
    for method, plan in PLANS.items():
        checked = plan.place or plan.baseline or plan.defined or method in checks.BLIND_TO_QUARTER
        assert checked or plan.plant == "tokens", method


def test_a_heatmap_elsewhere_than_its_evidence_is_found_out() -> None:
    """A flipped, turned or empty heatmap that counts as right."""
    planted = torch.where(SEEN, noise(SIDE, SIDE), torch.zeros(()))
    assert checks.check_place(planted, EXACT).holds
    for wrong in (planted.T, planted.flip(0), planted.flip(1), torch.zeros(SIDE, SIDE), noise(SIDE, SIDE)):
        assert not checks.check_place(wrong, MOST).holds


def test_the_noise_of_an_estimate_counts_neither_for_nor_against_it() -> None:
    """Noise as strong as the evidence: with its variance taken off, three quarters of noise do not outweigh it."""
    exact = torch.where(mark_quarter(256), torch.ones(()), torch.zeros(()))
    estimate, error = exact + noise(256, 256), torch.ones(256, 256)
    assert not checks.check_place(estimate, MOST).holds
    assert checks.check_place(estimate, MOST, error).value == pytest.approx(1, abs=0.1)
    assert not checks.check_place(estimate.flip(0), MOST, error).holds


def test_a_leak_into_a_blind_quarter_is_found_out() -> None:
    """Evidence at a place that nothing reads, and a heatmap of the transposed places."""
    coarse = noise(4, 4).double()
    coarse[mark_quarter(4)] = 0
    assert checks.check_blind(enlarge(coarse, SIDE), 4).holds
    assert not checks.check_blind(enlarge(coarse.T, SIDE), 4).holds
    assert not checks.check_blind(torch.zeros(SIDE, SIDE), 4).holds


def test_shifts_in_the_wrong_direction_or_along_the_other_axis_are_found_out() -> None:
    coarse = noise(8, 8).double()
    one = enlarge(coarse, 64)
    assert checks.check_shift(one, enlarge(coarse.roll(3, 0), 64), 8, 3).holds
    for wrong in (coarse, coarse.roll(-3, 0), coarse.roll(3, 1)):
        assert not checks.check_shift(one, enlarge(wrong, 64), 8, 3).holds


def test_a_sum_that_misses_what_it_explains_is_found_out() -> None:
    assert checks.check_sum(torch.full((2, 2), 0.25), 1.0).holds
    assert not checks.check_sum(torch.full((2, 2), 0.25), -1.0).holds
    assert not checks.check_sum(torch.full((2, 2), 0.25), 1.1).holds


def test_a_heatmap_whose_parts_cancel_is_found_out() -> None:
    """What DeepLIFT gave on sharp attention: the sum is right, of parts that are larger by orders of magnitude."""
    heatmap = torch.full((2, 2), 0.25)
    assert checks.check_size(heatmap, 1.0).holds
    heatmap[0] += torch.tensor([1e4, -1e4])
    assert checks.check_sum(heatmap, 1.0).holds
    assert not checks.check_size(heatmap, 1.0).holds
    assert not checks.check_size(heatmap, 0.0).holds


def draw_needles(count: int, draws: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Noise with one patch of 3 x 3 px in red, green or blue, and which of the three."""
    images = 0.3 * torch.randn(count, 3, networks.SIDE, networks.SIDE, generator=draws)
    classes = torch.randint(3, (count,), generator=draws)
    for image, colour, place in zip(images, classes, torch.randint(16, (count,), generator=draws), strict=True):
        row, column = divmod(int(place), 4)
        image[colour, 3 * row : 3 * row + 3, 3 * column : 3 * column + 3] += 3
    return images, classes


@pytest.fixture(scope="module")
def searching() -> Classifier:
    """A transformer trained to find the one coloured patch, to which it then attends sharply."""
    draws = torch.Generator().manual_seed(0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = networks.Attentive()
        network.drop.p = 0.0
        climber = torch.optim.Adam(network.parameters(), lr=1e-2)
        for _ in range(400):
            images, classes = draw_needles(64, draws)
            climber.zero_grad()
            F.cross_entropy(network(images), classes).backward()
            climber.step()
    return Classifier(network, networks.unit, name="searching")


@pytest.mark.parametrize("method", [method for method, plan in PLANS.items() if plan.baseline])
@pytest.mark.parametrize("trained", ["vit", "searching"])
def test_contributions_hold_where_training_made_attention_sharp(
    method: str, trained: str, searching: Classifier
) -> None:
    """Random weights attend to all places nearly alike, where DeepLIFT's maps of 1e5 and more cannot be seen.

    Of the zoo's trained transformer, and of one trained here.
    """
    classifier = load("data/scenes/zoo/vit.py:build") if trained == "vit" else searching
    images = answered(classifier, 2)[0] if trained == "vit" else draw_needles(8, torch.Generator().manual_seed(1))[0]
    classes = classifier.logits(images).argmax(1).tolist()
    plan = PLANS[method]
    heatmaps = METHODS[method](classifier, images, classes, **plan.settings).evidence
    origin = classifier.fill(plan.baseline)[None]
    changes = (classifier.logits(images) - classifier.logits(origin))[range(len(images)), classes].tolist()
    for evidence, change in zip(heatmaps, changes, strict=True):
        assert checks.check_sum(evidence, change).holds
        assert checks.check_size(evidence, change).holds


def test_enlarged_heatmaps_are_torchs_and_shrink_to_what_they_were() -> None:
    """The oracle for the enlargement: `torch.nn.functional.interpolate`."""
    coarse = noise(3, 5).double()
    expected = F.interpolate(coarse[None, None], [SIDE, SIDE], mode="bilinear")[0, 0]
    torch.testing.assert_close(enlarge(coarse, SIDE), expected)
    square = noise(3, 3).double()
    torch.testing.assert_close(shrink(enlarge(square, SIDE), 3), square)


def test_a_cell_is_right_refused_warned_or_wrong() -> None:
    """A failed check or a crash that passes, a warning that hides a right heatmap, a refusal without its sentence."""

    def refuse() -> tuple[Explanation, list[Finding]]:
        raise ForetellError("It has no ReLU. Use another method.")

    def crash() -> tuple[Explanation, list[Finding]]:
        raise ValueError("shapes differ")

    good, bad = Finding("place", True, 1.0), Finding("sum", False, 0.4)
    assert checks.judge(lambda: (explanation(), [good]))["status"] == "right"
    assert checks.judge(lambda: (explanation("Beware."), [good]))["status"] == "right"
    assert checks.judge(lambda: (explanation("Beware."), [good, bad]))["status"] == "warned"
    failed = checks.judge(lambda: (explanation(), [good, bad]))
    assert (failed["status"], failed["failed"]) == ("wrong", ["sum"])
    assert checks.judge(lambda: (explanation(), []))["status"] == "wrong"
    assert checks.judge(refuse) == {"status": "refused", "sentence": "It has no ReLU. Use another method."}
    assert checks.judge(crash)["status"] == "wrong"


def test_a_planted_network_sees_its_quarter_alone() -> None:
    """Evidence outside the quarter, which would make a right heatmap count as wrong."""
    subject = Subject("swin", "image")
    other = draw_images(1, subject.architecture.side, 9)
    seen = mark_quarter(subject.architecture.side)
    logits = subject.classifier.logits(subject.image)
    assert torch.equal(subject.classifier.logits(torch.where(seen, subject.image, other)), logits)
    assert (subject.classifier.logits(torch.where(seen, other, subject.image)) - logits).abs().max() > 1


def test_a_heatmap_of_the_wrong_layer_or_tokens_is_wrong() -> None:
    """A class activation map of an earlier block, or of tokens counted from the class token, that counts as right."""
    subject = Subject("vit", "layer")
    assert checks.judge(lambda: subject.measure("layer_cam"))["status"] == "right"
    subject.architecture = dataclasses.replace(ARCHITECTURES["vit"], layer="blocks.1")
    assert checks.judge(lambda: subject.measure("layer_cam"))["status"] == "wrong"


def test_the_table_shows_each_outcome() -> None:
    """A wrong cell that the page leaves out, and a reason of refusal that names one network of several."""
    refused = {"status": "refused", "sentence": "vit (small) has no ReLU (it has gelu), and it is needed. Use another."}
    wrong = {"status": "wrong", "failed": ["place"], "warnings": []}
    right = {"status": "right", "checks": {"place": 1.0}, "failed": [], "warnings": ["Beware."]}
    result = {"vit": {"cam": refused, "lime": wrong}, "swin": {"cam": right, "lime": right | {"warnings": []}}}
    lines = tabulate_architectures(result)
    assert "| `cam` | refused | ✓\\* |" in lines
    assert "| `lime` | **wrong** | ✓ |" in lines
    assert "| NETWORK (small) has no ReLU, and it is needed. | `cam` | vit |" in lines
    assert "| vit | `lime` | place | none |" in lines
    assert ">wrong<" in plot_architectures(result)
