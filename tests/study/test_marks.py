"""Scores of marks on images by closed forms, and chance by permutation of images; their analysis."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr, ttest_1samp

from core.errors import ForetellError
from study.analysis.exploratory import detection, importance, places
from study.analysis.exploratory.analysis import AnalysedStudy, list_analyses
from study.analysis.responses import reading
from study.building.differences import differences
from study.bundle import Bundle, Trial
from study.places.chance import CHANCE, PERMUTED_IOU, Permutation
from study.places.grid import CELLS, DIGITS, SIDE, decode_cells, decode_values, encode_cells, encode_values, pool
from study.places.marks import Brush, Point, is_right, read_mark
from study.places.region import Region, make_region, open_region
from tests.study.participants import MakeBundle


def plant(values: dict[tuple[int, int], float], share: float = 0.5, aspect: float = 1.0) -> Region:
    """A region whose evidence lies in few cells."""
    evidence = np.zeros((SIDE, SIDE))
    for place, value in values.items():
        evidence[place] = value
    return open_region(make_region(evidence, share, aspect, None))


@pytest.mark.parametrize(("share", "cells"), [(0.5, 1), (0.501, 2), (0.75, 2), (0.76, 3), (0.99, 5), (1.0, 5)])
def test_a_region_is_the_smallest_set_with_its_share_of_the_evidence(share: float, cells: int) -> None:
    """Catches a set that is a cell too large or too small, one of single pixels, and negative evidence that counts.

    Evidence of 8, 4, 2, 1 and 1 of 16, and -50 elsewhere: the cumulated shares are 8, 12, 14, 15 and 16 of 16.
    """
    planted = {(3, 4): 8.0, (3, 5): 4.0, (20, 1): 2.0, (31, 31): 1.0, (0, 0): 1.0, (9, 9): -50.0}
    region = plant(planted, share)
    assert region.inside.sum() == cells
    assert region.area == cells / CELLS
    assert region.peak == ((4 + 0.5) / SIDE, (3 + 0.5) / SIDE)


@pytest.mark.parametrize("size", [(224, 224), (100, 33), (16, 50)])
def test_cells_share_pixels_by_area(size: tuple[int, int]) -> None:
    """Catches evidence that is lost or counted twice where cells and pixels do not meet: uniform stays uniform."""
    values = pool(np.ones(size))
    assert values == pytest.approx(np.full((SIDE, SIDE), size[0] * size[1] / CELLS))
    drawn = np.random.default_rng(0).random(size)
    assert pool(drawn).sum() == pytest.approx(drawn.sum())
    assert encode_cells(decode_cells("0f" * (DIGITS // 2))) == "0f" * (DIGITS // 2)


def test_a_heatmap_without_positive_evidence_is_refused() -> None:
    with pytest.raises(ForetellError, match="no positive evidence"):
        make_region(np.full((32, 32), -1.0), 0.5, 1.0, None)


def test_distances_are_in_widths_of_the_image() -> None:
    """By geometry: the region is the cell from (.5, .5), the image half as high as wide.

    Catches a distance to the middle of the region, one in heights, and an edge of a cell that is another one's.
    """
    region = plant({(16, 16): 1.0}, aspect=0.5)
    right = 0.5 + 1 / SIDE
    assert Point(0.25, 0.51).measure(region)["distance"] == pytest.approx(0.25)
    assert Point(0.51, 0.1).measure(region)["distance"] == pytest.approx(0.4 * 0.5)
    assert Point(right + 0.3, 0.5 + 1 / SIDE + 0.4).measure(region)["distance"] == pytest.approx(np.hypot(0.3, 0.2))
    assert Point(0.51, 0.51).measure(region)["distance"] == 0
    middle = 0.5 + 0.5 / SIDE
    assert Point(middle + 0.3, middle - 0.4).measure(region)["peak_distance"] == pytest.approx(np.hypot(0.3, 0.2))
    assert is_right(Point(1.0, 1.0), plant({(31, 31): 1.0}))  # the last edge belongs to the last cell


def test_scores_of_a_brush_are_those_of_sets_and_scipy() -> None:
    """An independent implementation with sets of cells, and SciPy's correlation.

    Catches intersection over union with the region instead of as many cells, and ties that are ranked by their order.
    """
    rng = np.random.default_rng(3)
    evidence = np.round(rng.random((SIDE, SIDE)), 1)  # with ties
    region = open_region(make_region(evidence, 0.3, 1.0, None))
    cells = rng.random((SIDE, SIDE)) < 0.2
    scores = Brush(cells).measure(region)
    brushed, inside = set(np.flatnonzero(cells)), set(np.flatnonzero(region.inside))
    top = set(sorted(range(CELLS), key=lambda k: (-region.evidence.ravel()[k], k))[: len(brushed)])
    assert scores["pointing"] == pytest.approx(len(brushed & inside) / len(brushed))
    assert scores["iou"] == pytest.approx(len(brushed & top) / len(brushed | top))
    assert scores["rank_correlation"] == pytest.approx(spearmanr(cells.ravel(), region.evidence.ravel()).statistic)
    assert "rank_correlation" not in Brush(np.ones((SIDE, SIDE), dtype=bool)).measure(region)
    assert not is_right(Brush(np.ones((SIDE, SIDE), dtype=bool)), region)  # all of the image is no place


@pytest.fixture
def manifest(bundle: MakeBundle) -> Any:
    return Bundle(bundle(config={"study": {"task": "localise"}}, trials=8, conditions=("none", "examples"))).manifest


def test_chance_is_that_of_the_other_images(manifest: Any) -> None:
    """Closed forms: a uniform clicker has the area of the region, and a mark on the middle no advantage.

    The quadrants are planted, two of each. Catches the image's own region among those of chance, and a chance of one
    half.
    """
    permutation = Permutation(manifest.trials)
    grid = [Point((c + 0.5) / SIDE, (r + 0.5) / SIDE) for r in range(SIDE) for c in range(SIDE)]
    for trial in manifest.trials:
        region = open_region(trial.region)
        assert np.mean([is_right(point, region) for point in grid]) == pytest.approx(region.area) == 0.25
        scored = [permutation.measure(trial, point) for point in grid]
        assert np.mean([one[CHANCE] for one in scored]) == pytest.approx(0.25)
        own = [one[CHANCE] for point, one in zip(grid, scored, strict=True) if is_right(point, region)]
        assert set(own) == {1 / 7}  # of the other seven images, one has this quadrant
    whole = Brush(np.ones((SIDE, SIDE), dtype=bool))
    assert permutation.measure(manifest.trials[0], whole)[PERMUTED_IOU] == 1
    alike = [trial.model_copy(update={"region": manifest.trials[0].region}) for trial in manifest.trials]
    centred = Permutation(alike)
    for x, y in ((0.2, 0.2), (0.8, 0.2), (0.5, 0.5)):  # regions that are alike: hits are chance, wherever one marks
        one = Point(x, y)
        assert centred.measure(alike[0], one)[CHANCE] == is_right(one, open_region(alike[0].region))


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        ("point", "1.20000,0.50000", "outside the image"),
        ("point", "-0.1000,0.50000", "is not x,y"),
        ("point", "nan,nan", "is not x,y"),
        ("point", "0.5,0.5", "is not x,y"),
        ("point", "0.50000,0.50000;DROP TABLE", "is not x,y"),
        ("point", "٠.٥٠٠٠٠,٠.٥٠٠٠٠", "is not x,y"),
        ("cells", "0" * DIGITS, "is empty"),
        ("cells", "f" * 60_000, "60,000 characters, not 256"),
        ("cells", "F" * DIGITS, "hexadecimal digits"),
        ("cells", "", "0 characters"),
    ],
)
def test_what_is_no_mark_is_refused(kind: Any, text: str, said: str) -> None:
    with pytest.raises(ForetellError, match=said):
        read_mark(kind, text)


def make_rows(task: str, **columns: Any) -> pd.DataFrame:
    """Rows of three participants with four responses each, half of them right."""
    rng = np.random.default_rng(1)
    people = np.repeat(["p", "q", "r"], 4)
    fixed = {"category": "cat", "trial_type": "std_correct", "saliency": 0, "examples": 0, "task": task}
    drawn = {"correct": rng.permutation([0, 1] * 6), "chance": rng.random(12), "item": ["i1", "i2", "i3", "i4"] * 3}
    return pd.DataFrame({"participant": people, **fixed, **drawn, **columns})


def test_marks_above_chance_have_the_interval_of_participants() -> None:
    """With as many responses of each participant, it is Student's interval of their means (SciPy).

    Catches an interval over responses, and a difference from one half instead of from chance.
    """
    frame = make_rows("localise")
    study = AnalysedStudy(reading.prepare(frame))
    table = places.tabulate(study.data.every).set_index("measure")
    means = (frame["correct"] - frame["chance"]).groupby(frame["participant"]).mean()
    expected = ttest_1samp(means, 0).confidence_interval()
    above = table.loc[places.ABOVE]
    assert (above["estimate"], above["low"], above["high"]) == pytest.approx((means.mean(), *expected))
    assert table.loc[places.RIGHT, "estimate"] == 0.5
    assert table.loc[places.BY_CHANCE, "estimate"] == pytest.approx(frame["chance"].mean())
    assert "No explanation: 50% of the marks are correct" in places.describe(table.reset_index())
    offered = list_analyses(study)
    assert "places" in offered
    assert not {"diffusion", "levels", "ordinal", "reliance", "team", "projection", "importance"} & set(offered)
    with pytest.raises(ForetellError, match="d' does not apply to marked places"):
        detection.code_signals(study.frame)
    plain = reading.prepare(frame.assign(task="predict"))
    assert "chance" not in plain.frame
    assert "places" not in list_analyses(AnalysedStudy(plain))


def test_an_importance_map_is_the_mean_of_the_brushes(manifest: Any) -> None:
    """By hand: three participants brush one cell or none of the others; catches a map of one participant alone."""
    one, two = (np.zeros((SIDE, SIDE), dtype=bool) for _ in range(2))
    one[0, 0] = two[0, 0] = two[0, 1] = True
    texts = [encode_cells(one)] * 8 + [encode_cells(two)] * 4
    trials: tuple[Trial, ...] = manifest.trials[:4]
    frame = make_rows("highlight", cells=texts).assign(item=[trial.id for trial in trials] * 3)
    study = AnalysedStudy(reading.prepare(frame), manifest=manifest)
    drawn, people = importance.average(study.data.every)[trials[0].id, "none"]
    assert people == 3
    assert (drawn[0, 0], drawn[0, 1], drawn.sum()) == pytest.approx((1.0, 1 / 3, 4 / 3))
    table = importance.tabulate(study).set_index("item")
    evidence = open_region(trials[0].region).evidence  # type: ignore[arg-type]
    assert table.loc[trials[0].id, "rank_correlation"] == pytest.approx(spearmanr(drawn, evidence, axis=None).statistic)
    files = importance.describe_files(study)
    rows = str(files["importance_maps.csv"]).splitlines()
    corner = f"{trials[0].id},none,{0.5 / SIDE}"
    assert rows[1:3] == [f"{corner},{0.5 / SIDE},1.0", f"{corner},{1.5 / SIDE},0.333333"]
    assert bytes(files["importance_maps.png"])[:4] == b"\x89PNG"  # type: ignore[arg-type]


def test_a_region_that_is_rounded_otherwise_is_no_other_image(manifest: Any) -> None:
    """Catches a rebuilt study that is said to render differently where another processor rounds the heatmap's evidence.

    One cell is one step of 60,000 off; another share is another region.
    """
    trial = manifest.trials[0]
    values = decode_values(trial.region.evidence)
    values[0, 1] -= 1
    rounded, other = {"evidence": encode_values(values)}, {"share": 0.3}
    named = manifest.model_copy(update={"classifier": {"name": "test", "fingerprint": "f"}, "trials": (trial,)})
    for update, said in ((rounded, "differ by up to 2e-05"), (other, "render differently")):
        region = trial.region.model_copy(update=update)
        again = named.model_copy(update={"trials": (trial.model_copy(update={"region": region}),)})
        (fault,) = differences(named, again)
        assert said in fault
