"""Looks on the way: bounds against published tables and a simulated walk; a look is made as declared."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError
from scipy.stats import norm

from core.errors import ForetellError
from study.analysis.models.records import InterimAnalysis
from study.analysis.planned import stopping
from study.analysis.planned.bounds import bounds
from study.plan.preregistration import AnalysisPlan, Spending, complete
from tests.study.analysis.simulated import study

PUBLISHED = {
    "obrien_fleming": [4.8769, 3.3569, 2.6803, 2.2898, 2.0310],
    "pocock": [2.4380, 2.4268, 2.4101, 2.3966, 2.3859],
}
"""Five equal looks, two-sided 0.05: Reboussin, DeMets, Kim & Lan (2000, doi:10.1016/S0197-2456(00)00057-X), Table 1."""


@pytest.mark.parametrize("spending", ["obrien_fleming", "pocock"])
def test_bounds_are_the_published_ones(spending: Spending) -> None:
    np.testing.assert_allclose(bounds([0.2, 0.4, 0.6, 0.8, 1.0], 0.05, spending), PUBLISHED[spending], atol=2e-4)


@pytest.mark.parametrize("spending", ["obrien_fleming", "pocock"])
def test_unequal_looks_keep_alpha_in_a_simulated_walk(spending: Spending) -> None:
    """A quarter of a million random walks without drift: the share that ever leaves the bounds is alpha."""
    at, alpha, walks = np.array([0.15, 0.5, 0.55, 1.0]), 0.05, 250_000
    steps = np.sqrt(np.diff(at, prepend=0))[:, None]
    z = np.cumsum(steps * np.random.default_rng(3).normal(size=(4, walks)), 0) / np.sqrt(at)[:, None]
    out = (np.abs(z) > np.array(bounds(list(at), alpha, spending))[:, None]).any(0).mean()
    assert abs(out - alpha) < 4 * np.sqrt(alpha * (1 - alpha) / walks)


def test_one_look_is_the_ordinary_test_and_an_early_one_has_a_bound_all_the_same() -> None:
    assert bounds([1.0], 0.05, "obrien_fleming") == pytest.approx([norm.isf(0.025)])
    early = bounds([0.001, 1.0], 0.05, "obrien_fleming")
    assert early[0] > 30
    assert early[1] == pytest.approx(norm.isf(0.025), abs=1e-6)


def plan(looks: tuple[int, ...] = (4, 6, 8), **more: object) -> AnalysisPlan:
    contrast = {"more": "saliency", "less": "none"}
    stops = {"looks": looks, "contrast": contrast, **more}
    return AnalysisPlan.model_validate({"participants": looks[-1], "stopping": stops})


@pytest.fixture(scope="module")
def answers() -> pd.DataFrame:
    """Eight people in each condition; they finish in the order of their names, interleaved."""
    frame = study(32, 8, 8, seed=11)
    names = {(0, 0): "none", (1, 0): "saliency", (0, 1): "examples", (1, 1): "both"}
    frame["condition"] = [names[pair] for pair in zip(frame["saliency"], frame["examples"], strict=True)]
    minute = frame["participant"].str[1:].astype(int) + frame["trial"] / 100
    frame["received_at"] = (pd.Timestamp("2026-01-01") + pd.to_timedelta(minute, unit="min")).astype(str)
    return frame.sample(frac=1, random_state=1)


def test_a_look_is_at_those_who_finished_first(answers: pd.DataFrame) -> None:
    """The same z as from a table cut off by hand, whoever finished later."""
    found = stopping.run_interim_analysis(answers, plan(), 1)
    by_hand = answers[answers["participant"].isin([f"p{i}" for i in range(16)])]
    again = stopping.run_interim_analysis(by_hand, plan(), 1)
    assert found == again
    assert found.z != pytest.approx(stopping.run_interim_analysis(answers, plan(), 2).z)
    assert (found.number, found.of, found.participants) == (1, 3, 4)


def test_crossing_depends_on_the_bound_alone(answers: pd.DataFrame) -> None:
    """A strong effect at the first look: Pocock's bound is crossed, O'Brien & Fleming's is not."""
    strong = answers.copy()
    lucky = (strong["condition"] == "saliency") & (strong["trial"] % 2 == 0)
    strong.loc[lucky, "correct"] = 1
    found = {
        s: stopping.run_interim_analysis(strong, plan((8, 32), spending=s), 1) for s in ("obrien_fleming", "pocock")
    }
    zs = {round(look.z, 6) for look in found.values()}
    assert len(zs) == 1
    z = zs.pop()
    assert found["pocock"].bound < z < found["obrien_fleming"].bound
    assert (found["pocock"].is_crossed, found["obrien_fleming"].is_crossed) == (True, False)
    assert str(round(z, 1)) not in found["pocock"].sentence


def test_looks_are_due_by_the_smallest_condition() -> None:
    reached = [stopping.due({"none": 9, "saliency": n}, plan()) for n in (3, 4, 5, 6, 8, 20)]
    assert reached == [0, 1, 1, 2, 3, 3]
    assert stopping.due({}, plan()) == 0


def test_without_declared_looks_there_are_none() -> None:
    with pytest.raises(ForetellError, match="declares no interim analyses"):
        stopping.due({"none": 100}, AnalysisPlan())


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"stopping": {"looks": [5, 4], "contrast": {"more": "both"}}, "participants": 4}, "looks must increase"),
        ({"stopping": {"looks": [4, 5], "contrast": {"more": "both"}}}, "last of the looks"),
        ({"stopping": {"looks": [4, 5], "contrast": {"more": "both"}}, "participants": 9}, "last of the looks"),
        ({"stopping": {"looks": [4], "contrast": {"more": "random_maps"}}, "participants": 4}, "not a placebo"),
        ({"stopping": {"looks": [4]}, "participants": 4}, "contrast"),
    ],
)
def test_wrong_looks_are_refused(content: dict, said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        AnalysisPlan.model_validate(content)


def test_plans_without_looks_keep_their_hash() -> None:
    assert (
        AnalysisPlan.model_validate(complete({})).sha256
        == "c2a3e2ed74ba63bfd9216efb4421500f7187ad9779cf340442598e073572ef98"
    )
    assert len({p.sha256 for p in (AnalysisPlan(), plan(), plan((4, 8)), plan(spending="pocock"))}) == 4
    assert not any("stopping" in AnalysisPlan(participants=n).model_dump_json() for n in itertools.chain([None], [4]))


@pytest.mark.parametrize(
    ("z", "said"),
    [
        (1.2, "the bound is not crossed. The collection continues."),
        (-2.9, "the bound is crossed. The collection is closed."),
    ],
)
def test_the_decision_is_told_in_the_glossarys_words_without_the_effect(z: float, said: str) -> None:
    """Catches "look" for an interim analysis, and a sentence that tells the direction."""
    told = InterimAnalysis(1, 2, 6, 2.8, z).sentence
    assert told == f"Interim analysis 1 of 2, at 6 participants per condition: {said}"
