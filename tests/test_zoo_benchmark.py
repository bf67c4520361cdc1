"""What the benchmark of the zoo computes."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks import zoo
from core.attribution import METHODS
from data.scenes.generator import render
from data.scenes.zoo.store import read_card


def test_the_area_is_the_share_of_pairs() -> None:
    """Expected: every pair counted, ties half. Catches an area of the wrong direction, and a paired comparison."""
    first, second = np.array([4.0, 1.0, 3.0, 2.0]), np.array([2.0, 0.0, 5.0, 2.0])
    pairs = [1.0 if a > b else 0.5 if a == b else 0.0 for a, b in product(first, second)]
    found = zoo.separate(first, second)
    assert found["auc"] == pytest.approx(np.mean(pairs), abs=1e-3)
    assert found["interval_95"][0] <= found["auc"] <= found["interval_95"][1]
    assert zoo.separate(second, first)["auc"] == pytest.approx(1 - found["auc"], abs=1e-3)


def test_images_without_a_score_are_left_out_of_both() -> None:
    """Catches a NaN that counts as the smallest score, and images that are no longer the same."""
    found = zoo.separate(np.array([1.0, np.nan, 3.0]), np.array([0.0, 9.0, np.nan]))
    assert (found["auc"], found["images"]) == (1.0, 1)
    assert zoo.separate(np.array([np.nan]), np.array([1.0]))["auc"] is None


def test_bands_of_a_wave() -> None:
    """Expected: all variance of a wave of f cycles is at f, whatever its mean. Catches cycles per px or half a band."""
    along, scene = torch.arange(96) / 96, render(0)
    for cycles, shares in ((2, (1, 0)), (8, (0, 0)), (20, (0, 1))):
        wave = 5 + torch.cos(2 * torch.pi * cycles * along).expand(96, 96)
        assert (zoo.coarse_share(wave, scene), zoo.fine_share(wave, scene)) == pytest.approx(shares, abs=1e-6)
    assert np.isnan(zoo.coarse_share(torch.zeros(96, 96), scene))


def test_evidence_on_object_and_context_is_all_there_is() -> None:
    """Expected: by hand on the mask. Catches evidence against a class that counts for it."""
    scene = render(0, category="fish", context="meadow")
    inside = torch.from_numpy(scene.mask)
    evidence = torch.where(inside, 2.0, 1.0)
    evidence[0, 0] = -50.0
    outside = float((~inside).sum() - 1)
    assert zoo.context_share(evidence, scene) == pytest.approx(outside / (outside + 2 * float(inside.sum())), abs=1e-5)
    assert zoo.object_share(evidence, scene) == pytest.approx(1 - zoo.context_share(evidence, scene))


def test_every_method_of_the_benchmark_is_registered() -> None:
    """Catches a method that was renamed, which would be left out in silence."""
    assert set(f"{zoo.CHEAP} {zoo.DEAR}".split()) <= set(METHODS)


def test_every_difference_is_there_by_intervention() -> None:
    """Against the cards: of the built-in network the effect is larger, beyond both intervals; not so for the control.

    Catches a score of the wrong direction, and a network that does not differ in what it is said to.
    """
    for one in zoo.DIFFERENCES:
        effects = read_card(one.network.removeprefix("scenes:"))["effects"]
        own, other = (effects[name][zoo.INTERVENTIONS[one.score]]["true_class"] for name in ("scenes", "network"))
        assert (own[1] > other[2]) == (not one.known.startswith("control")), one.network


def test_the_stored_result_has_every_difference_and_method() -> None:
    """Catches a network or a method that was added, and never measured."""
    stored = json.loads((Path(zoo.__file__).parent / "results" / "zoo.json").read_text(encoding="utf-8"))["result"]
    methods = set(f"{zoo.CHEAP} {zoo.DEAR}".split())
    assert [one["network"] for one in stored["differences"]] == [one.network for one in zoo.DIFFERENCES]
    assert set(stored["not_measured"]) == set(METHODS) - methods
    for one in stored["differences"]:
        left_out = {name.split(" of ")[0] for name in stored["left_out"] if name.endswith(f" of {one['network']}")}
        assert set(one["methods"]) == methods - left_out


def test_scenes_are_standard_and_shifted_in_turn() -> None:
    """Catches a benchmark on the images of one split alone."""
    scenes = zoo.stage(4)
    usual = [scene.seed >> 96 for scene in scenes]
    assert usual == [2, 3, 2, 3]


def test_a_result_has_every_difference_and_the_reason_of_what_is_missing(tmp_path: Path) -> None:
    """Catches a network that is compared with itself: the control's interval would be a point."""
    found = zoo.measure(["gradient", "attention_rollout"], 2, 2, tmp_path / "rows.jsonl")
    assert [one["network"] for one in found["differences"]] == [one.network for one in zoo.DIFFERENCES]
    assert all(list(one["methods"]) == ["gradient"] for one in found["differences"])
    assert all("attention_rollout of " in name for name in found["left_out"])
    assert "grad_cam" in found["not_measured"]
