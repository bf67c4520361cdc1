"""The specification curve, against each specification fitted on its own."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from study.analysis.exploratory import specifications
from study.analysis.exploratory.analysis import AnalysedStudy, compute
from study.analysis.exploratory.specifications import INTERCEPTS, NONE, PAPER, PLANNED, SLOPES
from study.analysis.models import mixed
from study.analysis.planned import analysis, contrasts, nested
from study.analysis.responses.reading import prepare
from study.plan.preregistration import AnalysisPlan, Exclusions
from tests.study.analysis.simulated import study, study_with_images


@pytest.fixture(scope="module")
def planned() -> AnalysedStudy:
    """Of 15 participants the plan excludes the three who respond too fast."""
    frame = study_with_images(5, people=15, categories=8, sd=0.6)
    fast = frame["participant"].isin(["p2", "p7", "p11"])
    data = prepare(frame.assign(rt_ms=np.where(fast, 200.0, 2000.0)))
    plan = AnalysisPlan(exclusions=Exclusions(fastest_ms=500, most_fast=0.5))
    done = analysis.execute(data, plan)
    return AnalysedStudy(done.data, models=done.analysis, plan=done)


def test_each_specification_is_that_fit(planned: AnalysedStudy) -> None:
    """Catches choices that are mixed up: other rows, random effects or link than the table says, and intervals of
    another level. Expected: models fitted from their formulas to rows chosen here; the plan's own contrasts."""
    reports: list[tuple[int, int]] = []
    study_ = AnalysedStudy(
        planned.data, models=planned.models, plan=planned.plan, progress=lambda done, of, _: reports.append((done, of))
    )
    made = compute("specifications", study_)
    assert reports == [(k, 12) for k in range(13)]
    table = made.table.set_index(["exclusions", "random_effects", "link", "contrast"]).sort_index()
    assert planned.plan is not None
    whole = planned.plan.given.frame
    kept = whole[whole["rt_ms"] > 500]
    assert (len(whole), len(kept)) == (360, 288)
    wanted = contrasts.list_default(kept)
    fixed = "correct ~ trial_type * saliency * examples"
    for frame, exclusions, random, text, link in (
        (whole, NONE, PAPER, "(1|participant) + (1|category)", None),
        (kept, PLANNED, INTERCEPTS, "(1|participant) + (1|category) + (1|item)", "probit"),
    ):
        expected = contrasts.table(mixed.fit(frame, f"{fixed} + {text}", link=link), wanted)
        ours = table.loc[(exclusions, random, link or "logit")].loc[list(expected["contrast"])]
        assert set(ours["responses"]) == {len(frame)}
        for name in ("points", "points_low", "points_high", "p"):
            np.testing.assert_allclose(ours[name], expected[name], atol=5e-3)
    reported = table.loc[(PLANNED, SLOPES, "logit")].loc[list(planned.plan.contrasts["contrast"])]
    assert set(reported["reported"]) == {"yes"}
    assert (table["reported"] == "yes").sum() == len(wanted)
    np.testing.assert_allclose(reported["points"], planned.plan.contrasts["points"])
    assert made.figure is not None
    curve = [trace for trace in made.figure.data if trace.error_y.array is not None]
    assert [len(trace.x) for trace in curve] == [11, 1]
    assert sorted(x for trace in curve for x in trace.x) == list(range(12))
    heights = np.concatenate([trace.y for trace in curve])[np.argsort(np.concatenate([trace.x for trace in curve]))]
    assert (np.diff(heights) >= 0).all()
    assert [len(trace.x) for trace in made.figure.data if trace not in curve] == [33, 3]


def test_choices_that_make_no_specification_are_named() -> None:
    """Catches choices that are dropped in silence, and the same specification counted twice. Expected: the design,
    which has neither images nor a plan; a cell in which every response is correct."""
    frame = study(20, 6, 4, seed=2)
    cell = (frame["trial_type"] == "std_correct") & (frame["saliency"] == 1) & (frame["examples"] == 1)
    data = prepare(frame.assign(correct=frame["correct"].where(~cell, 1)))
    one = AnalysedStudy(data, models=nested.analyze(data, fixed=nested.FIXED))
    choices = specifications.list_choices(one)
    assert len(choices.combine()) == 4
    made = compute("specifications", one)
    assert "Not among them: exclusions, because there is no plan; random intercepts, because" in made.conclusion
    lost = made.table[made.table["contrast"] == "both - none, std_correct"]
    assert set(lost["reason"]) == {specifications.NO_INTERVAL}
    assert not made.table.loc[made.table["points_low"].notna(), "reason"].any()


def test_the_sentence_counts_directions_and_intervals() -> None:
    """Catches counts of other contrasts, and of intervals that touch zero. By hand."""
    rows = [(2.0, -1.0, 5.0, ""), (4.0, 1.0, 7.0, ""), (-1.0, -3.0, 1.0, ""), (np.nan, np.nan, np.nan, "It failed.")]
    table = pd.DataFrame(rows, columns=["points", "points_low", "points_high", "reason"])
    other = table.assign(contrast="examples - none, std_correct", points_low=9.0, points_high=10.0)
    whole = pd.concat([table.assign(contrast="saliency - none, std_correct"), other], ignore_index=True)
    assert specifications.describe(whole, ("x, because y",)) == (
        "Saliency maps vs no explanation, AI right: 2 of 3 specifications point the same way, with differences from "
        "−1.0 to 4.0 percentage points; 1 of 3 uncorrected intervals exclude zero. Without an interval: 1 of the "
        "specifications, because It failed. Not among them: x, because y."
    )
