"""Other roads to the same coefficients."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from core.errors import ForetellError
from study.analysis.exploratory import crosschecks
from study.analysis.exploratory.analysis import EXPLORATORY, AnalysedStudy
from study.analysis.models import mixed
from study.analysis.responses.reading import Responses
from tests.study.analysis.simulated import study

FORMULA = "correct ~ trial_type + saliency + examples + (1|participant) + (1|category)"


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return study(80, 12, 10, seed=4, sd=0.6)


def test_they_agree_within_their_limits(frame: pd.DataFrame) -> None:
    # Catches rows in another order, a group taken for another, and the factor between person and population.
    model = mixed.fit(frame, FORMULA)
    table = crosschecks.table(frame, model)
    gap = (table["bayes"] - table["mixed"]).abs() / table["mixed_se"]
    assert gap.max() < 0.25
    assert (table["bayes_se"] < table["mixed_se"]).all()  # as the explanation says
    within = table["term"].str.startswith("trial_type")
    np.testing.assert_allclose(table.loc[within, "gee_rescaled"], table.loc[within, "mixed"], atol=0.06)
    assert (table.loc[within, "gee"].abs() < table.loc[within, "mixed"].abs()).all()
    assert set(crosschecks.EXPLANATIONS) == {"bayes", "gee"}


def test_rows_in_another_order_change_nothing(frame: pd.DataFrame) -> None:
    model = mixed.fit(frame, FORMULA)
    shuffled = frame.iloc[np.random.default_rng(1).permutation(len(frame))].reset_index(drop=True)
    first, other = crosschecks.table(frame, model), crosschecks.table(shuffled, model)
    np.testing.assert_allclose(first["gee"], other["gee"], atol=1e-6)
    np.testing.assert_allclose(first["bayes"], other["bayes"], atol=5e-3)


def test_separation_is_held_by_the_prior(frame: pd.DataFrame) -> None:
    certain = frame.assign(correct=frame["correct"].where(frame["trial_type"] != "std_correct", 1))
    table = crosschecks.table(certain, mixed.fit(certain, FORMULA))
    assert np.isinf(table["mixed"]).sum() >= 1
    assert np.isfinite(table["bayes"]).all()
    assert table["gee"].isna().all()


def test_too_many_responses_leave_the_bayesian_fit_out(frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a search that does not end, and a column that is empty without a word."""
    model = mixed.fit(frame, FORMULA)
    whole = crosschecks.table(frame, model)
    monkeypatch.setattr(crosschecks, "MOST_BAYESIAN", len(frame) - 1)
    part = crosschecks.table(frame, model)
    assert part[["bayes", "bayes_se"]].isna().all(axis=None)
    pd.testing.assert_frame_equal(part.drop(columns=["bayes", "bayes_se"]), whole.drop(columns=["bayes", "bayes_se"]))
    said = EXPLORATORY["crosschecks"].explain(AnalysedStudy(Responses(frame)))
    assert f"not fitted, because it would take many minutes with {len(frame):,}" in said
    assert crosschecks.explain_omission(len(frame) - 1) is None


def test_refusals(frame: pd.DataFrame) -> None:
    slope = mixed.fit(frame.assign(trial=frame["trial"] / 30), "correct ~ trial + (trial|participant)")
    with pytest.raises(ForetellError, match="without correlated random effects"):
        crosschecks.table(frame, slope)
