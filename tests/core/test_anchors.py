from __future__ import annotations

import itertools
import math

import pytest
import torch
from scipy.optimize import brentq
from torch import nn

from core.attribution.players import Cells
from core.attribution.surrogates.anchors import (
    DRAW,
    AnchorSamples,
    PrecisionProof,
    anchors,
    find_best_anchors,
    kl_bound,
    search,
)
from core.errors import ForetellError
from core.network.classifier import Classifier
from tests.core.networks import SIDE, awkward, pictures, unit

WHITE = torch.ones(1, 3, SIDE, SIDE)


class Needs(nn.Module):
    """Of a 3 x 3 grid: the class 0 if every one of these cells is bright, else the class 1."""

    def __init__(self, *cells: tuple[int, int]) -> None:
        super().__init__()
        self.cells = cells

    def forward(self, x):
        seen = [x[:, :, 4 * r : 4 * r + 4, 4 * c : 4 * c + 4].mean((1, 2, 3)) for r, c in self.cells]
        least = torch.stack(seen).amin(0) if seen else x.mean((1, 2, 3)) * 0 + 1
        return torch.stack([least, -least], 1)


def needs(*cells: tuple[int, int]) -> Classifier:
    return Classifier(Needs(*cells), unit, name="needs")


def test_a_classifier_that_looks_at_one_cell_is_anchored_by_it():
    """Closed form: precision 1, and 1/2 without it, so the cell adds 1/2; half of the pictures show it."""
    found = anchors(needs((1, 2)), WHITE, [0], grid=3, fill="black")
    (certificate,) = found.certificates
    known = certificate.parameters
    assert known["cells"] == [(1, 2)]
    assert known["coverage"] == 0.5
    assert known["precision"] == known["upper"] == 1
    assert 0.95 <= known["lower"] < 1
    assert certificate.warnings == ()
    inside = torch.zeros(SIDE, SIDE, dtype=torch.bool)
    inside[4:8, 8:12] = True
    assert found.map[0][~inside].abs().max() == 0
    assert found.error[0][~inside].abs().max() == 0
    assert ((found.map[0][inside] - 0.5).abs() < 4 * found.error[0][inside]).all()
    assert 0.02 < found.error.max() < 0.08
    assert certificate.standard_error == pytest.approx(float(found.error.max()))


def test_two_cells_that_are_both_needed():
    """Closed form: precisions 1/4, 1/2 and 1; a quarter of the pictures show both."""
    found = anchors(needs((0, 0), (2, 1)), WHITE, [0], grid=3, fill="black")
    known = found.certificates[0].parameters
    assert sorted(known["cells"]) == [(0, 0), (2, 1)]
    assert known["coverage"] == 0.25
    (r, c), (s, d) = known["cells"]
    first, second = found.map[0, 4 * r, 4 * c], found.map[0, 4 * s, 4 * d]
    assert float(first) == pytest.approx(0.25, abs=0.15)
    assert float(second) == pytest.approx(0.5, abs=0.15)


def test_a_class_that_stays_whatever_is_covered_needs_no_cell():
    (certificate,) = anchors(needs(), WHITE, [0], grid=3).certificates
    assert certificate.parameters["cells"] == []
    assert certificate.parameters["coverage"] == 1
    assert "No cell is needed" in certificate.warnings[0]


def test_a_class_that_is_never_answered_has_no_anchor_and_says_so():
    found = anchors(needs(), WHITE, [1], grid=2, samples=400)
    (certificate,) = found.certificates
    assert certificate.warnings[0].startswith("No anchor was proved to reach a precision of 0.95: this one has 0.00")
    assert found.map.abs().max() == 0


def test_with_a_share_an_unlikely_class_is_anchored_by_its_own_evidence():
    """The class 1 is never the first answer, but covering the cell takes its probability from 0.12 to 0.02."""

    class Unlikely(nn.Module):
        def forward(self, x):
            seen = x[:, :, :4, :4].mean((1, 2, 3))
            return torch.stack([3 - seen, seen], 1)

    classifier = Classifier(Unlikely(), unit, name="unlikely")
    (certificate,) = anchors(classifier, WHITE, [1], grid=3, fill="black", share=0.5).certificates
    assert certificate.probability == pytest.approx(1 / (1 + math.exp(1)), abs=1e-5)
    assert certificate.parameters["cells"] == [(0, 0)]


def all_draws(players: int) -> torch.Tensor:
    return torch.tensor(list(itertools.product([False, True], repeat=players)))


@pytest.mark.parametrize("seed", range(4))
def test_no_smaller_anchor_would_do(seed):
    """Against all 512 coverings of 9 cells: the anchor's exact precision lies within its bounds and reaches tau; no
    smaller set of cells is more than TOLERANCE's reach above it."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = nn.Sequential(nn.Flatten(), nn.Linear(3 * SIDE * SIDE, 2))
    classifier, image = Classifier(network, unit, name="linear"), pictures(1, seed)
    target = int(classifier.logits(image).argmax())
    (certificate,) = anchors(classifier, image, [target], grid=3, tau=0.9).certificates
    cells, every = Cells(SIDE, SIDE, 3), all_draws(9)
    fill = classifier.fill("mean")
    held = classifier.logits(fill + cells.masks(every)[:, None] * (image - fill)).argmax(1) == target

    def exact(anchor: tuple[int, ...]) -> float:
        return float(held[every[:, list(anchor)].all(1)].double().mean())

    known = certificate.parameters
    anchor = tuple(3 * r + c for r, c in known["cells"])
    assert certificate.warnings == () or anchor == ()
    assert known["lower"] <= exact(anchor) <= known["upper"]
    assert exact(anchor) >= 0.9
    for size in range(len(anchor)):
        assert max(exact(smaller) for smaller in itertools.combinations(range(9), size)) < 0.9 + 0.05


def coin(probability: float, seed: int):
    rng = torch.Generator().manual_seed(seed)
    return lambda coalitions: torch.rand(len(coalitions), generator=rng) < probability


def ignore(_: int) -> None: ...


def test_what_is_not_precise_enough_is_hardly_ever_proved():
    """delta = 0.2 of 200 searches may err; at a true precision of 0.92, just short of tau, far fewer do. A bound from
    the draws that picked the anchor, or of the usual 95 %, would pass more."""
    proved = 0
    for seed in range(200):
        draws = AnchorSamples(coin(0.92, seed), 4, 2000, seed, ignore)
        draws.draw((), DRAW)
        proved += PrecisionProof(draws, 0.93, 0.2).of(()) is not None
    assert proved <= 0.2 * 200
    draws = AnchorSamples(coin(0.98, 1), 4, 3000, 1, ignore)
    draws.draw((), DRAW)
    assert PrecisionProof(draws, 0.93, 0.2).of(()) is not None


def test_draws_count_for_larger_anchors_only():
    draws = AnchorSamples(coin(0.5, 1), 5, 10_000, 3, ignore)
    for anchor in [(), (1,), (1, 3)]:
        draws.draw(anchor, 64)
    shown, held = torch.cat(draws.shown), torch.cat(draws.held)
    assert shown[64:, 1].all()
    assert shown[128:, 3].all()
    assert 0.3 < shown[64:, 0].double().mean() < 0.7
    for anchor, fair in [((), 64), ((1,), 128), ((3,), 64), ((3, 1), 192), ((0, 1), 128)]:
        counting = shown[:fair, list(anchor)].all(1)
        counts, yes = draws.tally([anchor])
        assert (int(counts), int(yes)) == (int(counting.sum()), int(held[:fair][counting].sum()))


def test_the_search_keeps_the_best_arms():
    """Cells 1 and 4 of 6 hold the class with 0.9, the others with 0.4."""

    def held(coalitions: torch.Tensor) -> torch.Tensor:
        rng = torch.Generator().manual_seed(int(coalitions.sum()))
        good = coalitions[:, [1, 4]].any(1)
        return torch.rand(len(coalitions), generator=rng) < torch.where(good, 0.9, 0.2)

    draws = AnchorSamples(held, 6, 6000, 1, ignore)
    draws.draw((), DRAW)
    assert set(find_best_anchors(draws, [(cell,) for cell in range(6)], 2, 0.05)) == {(1,), (4,)}


def test_the_budget_is_kept_and_reported():
    seen: list[tuple[int, int]] = []
    found = anchors(awkward(), pictures(2), [1, 2], grid=4, samples=300, progress=lambda *step: seen.append(step[:2]))
    assert all(certificate.samples <= 300 for certificate in found.certificates)
    assert seen[-1] == (600, 600)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    draws = AnchorSamples(coin(0.5, 1), 9, 333, 1, ignore)
    search(draws, 0.95, 0.05, 2)
    assert draws.spent == 333 == len(torch.cat(draws.shown))


@pytest.mark.parametrize(("held", "counts"), [(0.0, 20.0), (20.0, 20.0), (7.0, 20.0), (199.0, 200.0)])
def test_bounds_equal_a_root_finder(held, counts):
    """counts x kl(mean, p) = level by brentq; for all or none held, exp(-level / counts) in closed form."""
    level, mean = 3.0, held / counts

    def excess(p: float) -> float:
        parts = [(mean, p), (1 - mean, 1 - p)]
        return counts * sum(a * math.log(a / b) for a, b in parts if a > 0) - level

    lower, upper = (
        float(kl_bound(torch.tensor([held]).double(), torch.tensor([counts]).double(), level, s)) for s in (-1, 1)
    )
    assert lower == pytest.approx(brentq(excess, 1e-15, mean) if held else 0.0, abs=1e-9)
    assert upper == pytest.approx(brentq(excess, mean, 1 - 1e-15) if held < counts else 1.0, abs=1e-9)
    if held == counts:
        assert lower == pytest.approx(math.exp(-level / counts), abs=1e-9)


def test_nothing_is_known_without_draws():
    none = torch.zeros(1, dtype=torch.float64)
    assert float(kl_bound(none, none, 1.0, -1)) == 0
    assert float(kl_bound(none, none, 1.0, 1)) == 1


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"tau": 1.0}, "tau and delta between 0 and 1"),
        ({"delta": 0.0}, "tau and delta between 0 and 1"),
        ({"beam": 0}, "at least 1 anchor"),
        ({"share": 1.0}, "share from 0 to below 1"),
        ({"samples": 63}, "at least 64"),
        ({"grid": 1}, "grid=1"),
    ],
)
def test_bad_parameters_are_refused(parameters, says):
    with pytest.raises(ForetellError, match=says):
        anchors(awkward(), pictures(1), [0], **parameters)
