"""What the result would be without single participants and images, against models fitted to the other rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from study.analysis.exploratory import leave_out
from study.analysis.exploratory.analysis import AnalysedStudy, compute, list_analyses
from study.analysis.means.adjustment import holm
from study.analysis.models import mixed
from study.analysis.models.refits import Refits
from study.analysis.planned import contrasts, nested
from study.analysis.responses.reading import Responses, prepare
from tests.study.analysis.simulated import study, study_with_images


def analyse(data: Responses) -> AnalysedStudy:
    return AnalysedStudy(data, models=nested.analyze(data))


@pytest.fixture(scope="module")
def images() -> AnalysedStudy:
    """Twelve participants, of whom the first is right in every trial."""
    frame = study_with_images(5, people=12, categories=8, sd=0.6)
    return analyse(prepare(frame.assign(correct=frame["correct"].where(frame["participant"] != "p0", 1))))


def fit_others(one: AnalysedStudy, rows: np.ndarray) -> dict[str, mixed.MixedModel]:
    """The same models of the other rows, by the fit that every analysis uses."""
    return {name: mixed.fit(one.frame[~rows], model.formula) for name, model in one.fitted_models.models.items()}


def test_the_result_without_a_level_is_that_of_the_other_rows(images: AnalysedStudy) -> None:
    """Catches rows that still count, a search that stops early, standard errors or degrees of freedom of all rows, and
    p corrected for something else. Expected: each model fitted to the other rows, their tests and contrasts."""
    headline = leave_out.Headline(images)
    kinds = [("participant", "p0"), ("item", images.frame["item"].iloc[4])]
    for group, level in kinds:
        rows = (images.frame[group] == level).to_numpy()
        models = fit_others(images, rows)
        table = contrasts.table(models["interaction"], headline.contrasts)
        tests = nested.correct(
            [
                nested.ratio_test(t.smaller, models[t.smaller], t.larger, models[t.larger])
                for t in headline.study.models.tests
            ]
        )
        made = headline.without(rows)
        k = len(tests)
        np.testing.assert_allclose(made.points[k:], table["points"], atol=0.02)
        np.testing.assert_allclose(made.p[k:], holm(table["p"].to_numpy()), rtol=0.02)
        np.testing.assert_allclose(made.p[:k], [test.p_holm for test in tests], rtol=2e-3)
        np.testing.assert_allclose(made.high[k:] - made.low[k:], table["points_high"] - table["points_low"], rtol=0.01)


def test_a_refit_is_the_fit_of_the_other_rows(images: AnalysedStudy) -> None:
    """Catches standard errors of all rows, or of known variances. Expected: the fit of the other rows."""
    model, rows = images.fitted_models.largest, (images.frame["participant"] == "p3").to_numpy()
    made, expected = Refits(images.frame, model).without(rows), fit_others(images, rows)["interaction"]
    for ours, theirs in zip(made.coefficients, expected.coefficients, strict=True):
        assert ours.estimate == pytest.approx(theirs.estimate, abs=2e-3 * theirs.se)
        assert ours.se == pytest.approx(theirs.se, rel=5e-3)
    assert made.loglik == pytest.approx(expected.loglik, abs=1e-4)


def test_the_participant_who_differs_comes_first(images: AnalysedStudy) -> None:
    """Catches a table in another order, a sentence or figure about another contrast, and missing reports of progress.

    Oracles: one participant, whose responses are all set to correct, and the range in the table itself.
    """
    reports: list[tuple[int, int]] = []
    watched = replace(images, progress=lambda done, total, _: reports.append((done, total)))
    made = compute("leave_out_participants", watched)
    assert reports == [(k, 12) for k in range(13)]
    headline = leave_out.select_headline(made.table, 0.05)
    assert headline.loc[headline["shift"].abs().idxmax(), "participant"] == "p0"
    assert made.figure is not None
    assert made.figure.data[0].y[-1] == "without p0"  # the top row
    low, high = headline["points_without"].min(), headline["points_without"].max()
    assert f"stays between {low:.1f} and {high:.1f} percentage points".replace("-", "−") in made.conclusion
    shifts = made.table[made.table["change"] == "no"]["shift"].abs().dropna().to_numpy()
    assert (np.diff(shifts) <= 0).all()


def test_cancelling_ends_it(images: AnalysedStudy) -> None:
    """Catches refits that go on, or an error that is taken for a participant without a result."""

    class Stopped(Exception):
        pass

    def stop(done: int, total: int, what: str) -> None:
        raise Stopped

    with pytest.raises(Stopped):
        leave_out.measure(replace(images, progress=stop), "participant")


def test_a_cell_that_is_separated_without_a_participant() -> None:
    """Catches a search that runs off to an infinite coefficient and reports a number of nowhere. Expected: the fit of
    the other rows, which names the coefficients without a finite estimate."""
    frame = study(20, 6, 4, seed=2)
    cell = (frame["trial_type"] == "std_correct") & (frame["saliency"] == 1) & (frame["examples"] == 1)
    frame["correct"] = frame["correct"].where(~cell, 1)
    person = frame.loc[cell, "participant"].iloc[0]
    frame.loc[frame[cell & (frame["participant"] == person)].index[:2], "correct"] = 0
    data = prepare(frame)
    model = nested.analyze(data, fixed=nested.FIXED).largest
    rows = (data.frame["participant"] == person).to_numpy()
    made = Refits(data.frame, model).without(rows)
    assert not model.diverging
    assert made.diverging
    wanted = contrasts.list_default(data.frame)
    expected = contrasts.table(mixed.fit(data.frame[~rows], model.formula), wanted)
    pd.testing.assert_frame_equal(contrasts.table(made, wanted), expected, atol=1e-3, rtol=1e-3)


def test_responses_without_images_say_why() -> None:
    """Catches a table without rows, or categories taken for images."""
    one = AnalysedStudy(prepare(study(8, 6, 2, seed=1)))
    with pytest.raises(leave_out.ForetellError, match="because the responses have no column item"):
        leave_out.measure(one, "item")
    assert "leave_out_images" not in list_analyses(one)  # without models


def test_a_changed_verdict_is_named() -> None:
    """Catches the change of another row, p on the wrong side, and a count of something else. By hand."""
    rows = [
        ("p1", "saliency - none, std_correct", 12.0, 9.0, -1.0, 19.0, -3.0, 0.04, 0.06, "yes"),
        ("p2", "saliency - none, std_correct", 12.0, 13.0, 3.0, 23.0, 1.0, 0.04, 0.03, "no"),
        ("p1", "explanation vs null", *(np.nan,) * 5, 0.01, 0.02, "no"),
    ]
    table = pd.DataFrame(rows, columns=["participant", *leave_out.COLUMNS])
    assert leave_out.describe(table, 0.05) == (
        "Saliency maps vs no explanation, AI right: without any one participant, the difference stays between 9.0 and "
        "13.0 percentage points (12.0 with all). 1 verdict changes, because p crosses .05: Saliency maps vs no "
        "explanation, AI right without p1."
    )
    same = leave_out.describe(table.assign(change="no"), 0.05)
    assert same.endswith("No verdict changes: each p stays on its side of .05.")
