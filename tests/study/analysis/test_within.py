"""Conditions within participants: what the analysis makes of periods, and of the condition before."""

from __future__ import annotations

from typing import Any

import glmm
import numpy as np
import pandas as pd
import pytest

from study.analysis.exploratory import carry_over
from study.analysis.exploratory.analysis import AnalysedStudy, list_analyses
from study.analysis.models import random_effects
from study.analysis.planned import nested
from study.analysis.planned.analysis import keep
from study.analysis.power.truths import TABLE_1, AdditiveTruth
from study.analysis.power.within import draw_conditions, put_within
from study.analysis.report.captions import FIGURE_1, explain_figure_1
from study.analysis.report.composition import list_facts
from study.analysis.responses.periods import FIRST, PERIOD, PREVIOUS, add_previous_conditions, has_periods
from study.analysis.responses.reading import Responses, prepare
from study.bundle import TRIAL_TYPES
from study.conditions import CONDITIONS
from study.plan.orders import WITHIN_RANDOM, list_orders
from study.plan.preregistration import AnalysisPlan

FOUR = ("none", "saliency", "examples", "both")
TYPE_LEVELS = dict(zip(TRIAL_TYPES, (-0.8, -0.2, 1.0), strict=True))


def draw(seed: int, people: int = 40, *, period: float = 0.0, carried: float = 0.0, **columns: Any) -> Responses:
    """Participants with 9 trials in each of four conditions: an effect of each period, and one carried over by both."""
    rng, rows, orders = np.random.default_rng(seed), [], list_orders(FOUR)
    items = [(f"{kind}{k}", kind, f"c{k % 6}") for kind in TRIAL_TYPES for k in range(12)]
    for person in range(people):
        order, own = orders[person % len(orders)], rng.normal(0, 0.6)
        sets = rng.permutation(len(items)).reshape(len(order), -1)
        for k, name in enumerate(order):
            shown, before = CONDITIONS[name], carried * (k > 0 and order[k - 1] == "both")
            for item, kind, category in (items[i] for i in sets[k]):
                p = 1 / (1 + np.exp(-(0.3 + own + TYPE_LEVELS[kind] + period * k + before)))
                flags = int(shown.shows_saliency), int(shown.shows_examples), int(rng.random() < p)
                rows.append((f"p{person}", category, kind, *flags, name, item, k + 1))
    names = ["participant", "category", "trial_type", "saliency", "examples", "correct", "condition", "item", PERIOD]
    return prepare(pd.DataFrame(rows, columns=names).assign(**columns))


@pytest.fixture(scope="module")
def carrying() -> Responses:
    return draw(3, carried=1.2)


@pytest.mark.parametrize(
    ("planted", "found"), [({}, (False, False)), ({"period": 0.4}, (True, False)), ({"carried": 1.2}, (False, True))]
)
def test_planted_effects_of_period_and_carry_over_are_told_apart(
    planted: dict[str, float], found: tuple[bool, bool]
) -> None:
    """Catches carry-over taken for a period's effect, an effect of no more than chance, and a wrong conclusion."""
    data = draw(3, **planted)
    table = carry_over.tabulate(data, nested.analyze(data, random=random_effects.INTERCEPTS).largest)
    p = table.set_index("result")["p_holm"]
    assert tuple(p[[carry_over.PERIODS, carry_over.CARRY_OVER]] < 0.05) == found
    said = carry_over.conclude(table, 0.05)
    assert ("Accuracy changes over the periods" in said) == found[0]
    assert ("Responses depend on the condition of the period before" in said) == found[1]
    assert ("Report next to them the first period alone" in said) == found[1]
    if found[1]:
        row = table.set_index("result").loc["After both explanations compared with after no explanation"]
        assert row["low"] < 1.2 < row["high"]
        assert row["low"] > 0


def test_the_tests_are_those_of_factors_in_another_coding(carrying: Responses) -> None:
    """Periods and previous conditions as factors of glmm, the first period a level of its own, which it drops.

    Catches a column that is left out, a reference that is wrong, and previous conditions of other participants.
    """
    frame = carrying.frame
    table = carry_over.tabulate(carrying, nested.analyze(carrying, random=random_effects.INTERCEPTS).largest)
    coded = add_previous_conditions(frame).assign(time=lambda one: "t" + one[PERIOD].astype(int).astype(str))
    assert (coded.loc[coded[PERIOD] == 1, PREVIOUS] == FIRST).all()
    base = "correct ~ trial_type * saliency * examples"
    random = "(1 | participant) + (1 | category)"
    coded["merged"] = coded[PREVIOUS].replace(FIRST, "none")
    whole, *smaller = (
        glmm.fit(coded, f"{base} + {more} + {random}", family="binomial").loglik
        for more in (f"time + {PREVIOUS}", "merged", "time")
    )
    assert table["chisq"].to_numpy()[:2] == pytest.approx([2 * (whole - one) for one in smaller], abs=2e-3)
    assert table["chisq_df"].tolist()[:2] == [3, 3]


def test_periods_are_read_and_other_columns_of_the_name_are_not(carrying: Responses) -> None:
    """Catches a warning about a design that is meant, one that is missing, and a column of texts taken for periods."""
    rows = carrying.frame.drop(columns=PERIOD)
    without = prepare(rows)
    assert any("have responses in several conditions" in message for message in without.messages)
    assert not has_periods(without.frame)
    assert not any("several conditions" in message for message in carrying.messages)
    for other in ("morning", 1, 0.5):
        named = prepare(rows.assign(period=other))
        assert PERIOD not in named.frame
        assert named.sha256 == without.sha256
    shifted = prepare(rows.assign(period=carrying.frame[PERIOD].sample(frac=1, random_state=1).to_numpy()))
    assert PERIOD not in shifted.frame
    models = nested.analyze(carrying, random=random_effects.INTERCEPTS)
    assert "carry_over" in list_analyses(AnalysedStudy(carrying, models=models))
    assert "carry_over" not in list_analyses(AnalysedStudy(without, models=models))


def test_the_planned_slopes_are_those_that_the_design_needs(carrying: Responses) -> None:
    """Catches default models that leave out what participants differ in, and a plan other than the design's own."""
    assert random_effects.sensible(carrying.frame).replace(" ", "") == WITHIN_RANDOM.replace(" ", "")
    models, trials = {"all": f"trial_type + {WITHIN_RANDOM}"}, [(c, kind) for kind in TRIAL_TYPES for c in ("a", "b")]
    assert random_effects.planned_omission(models, FOUR, trials, within=True) is None
    between = {"all": "trial_type + (trial_type || participant) + (saliency + examples || category)"}
    omitted = random_effects.planned_omission(between, FOUR, trials, within=True)
    assert omitted is not None
    assert "saliency and examples by participant" in omitted


def test_results_say_the_design(carrying: Responses) -> None:
    """Catches a count of 160 participants, a figure read by its overlaps, and a plan that waits for more of them."""
    assert list_facts(carrying, None, None)["Participants"] == "40, each in all 4 conditions"
    assert "differences are more precise than the overlap" in explain_figure_1(carrying.every, carrying.task)
    assert explain_figure_1(carrying.frame[carrying.frame["condition"] == "none"], carrying.task) == FIGURE_1
    kept = keep(carrying, AnalysisPlan(participants=40))
    assert kept.stopping == "The planned 40 participants, each in every condition, were reached after exclusions."
    assert "40 of the 60 planned participants (after" in keep(carrying, AnalysisPlan(participants=60)).stopping


@pytest.mark.parametrize("count", [2, 3, 4])
def test_power_simulates_the_allocation(count: int) -> None:
    """Closed form: over whole blocks each trial is in each condition equally often, with equal types for each person.

    Catches conditions drawn per trial, and trials that are always in the same one.
    """
    orders = len(list_orders(FOUR[:count]))
    kinds = np.repeat(np.arange(3), 2 * count + 1)
    seen = draw_conditions(kinds, count, 2 * orders, np.random.default_rng(4))
    for block in (seen[:orders], seen[orders:]):
        kept = (block >= 0).all(axis=0)
        assert kept.sum() == 6 * count
        assert all(((block[:, kept] == k).sum(axis=0) == orders // count).all() for k in range(count))
    for own in seen:
        assert all(((own == k) & (kinds == kind)).sum() == 2 for k in range(count) for kind in range(3))


def test_simulated_studies_within_participants_have_the_accuracies_they_assume() -> None:
    """Against the integral over random effects, within 4 standard errors of 3,000 participants (binomial, widened).

    Catches a participant's slope that is left out of either, responses of another condition, and participants without
    responses in one of the conditions.
    """
    world = AdditiveTruth(TABLE_1, categories=4, per_type=2).with_slopes({"participant": 0.8, "category": 0.0})
    within = put_within(AdditiveTruth(**{**world.__dict__, "category_sd": 0.0}))
    frame = within.study(3000, np.random.default_rng(2))
    assert set(frame.groupby("participant", observed=True).size()) == {24}
    named = frame.assign(both=frame["saliency"] + 2 * frame["examples"])
    assert set(named.groupby("participant", observed=True)["both"].nunique()) == {4}
    expected = within.tabulate_means().set_index(["condition", "trial_type"])["accuracy"]
    flags = {name: CONDITIONS[name].shows_saliency + 2 * CONDITIONS[name].shows_examples for name in FOUR}
    for (name, kind), accuracy in expected.items():
        own = named[(named["both"] == flags[name]) & (named["trial_type"] == kind)]
        by_person = own.groupby("participant", observed=True)["correct"].mean()
        assert abs(by_person.mean() - accuracy) < 4 * by_person.std() / np.sqrt(len(by_person))
