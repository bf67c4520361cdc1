"""Contrasts against differences of cells computed by hand, and Holm's method against its definition."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.multitest import multipletests

from core.errors import ForetellError
from study.analysis.means.adjustment import holm
from study.analysis.planned import contrasts, nested
from study.analysis.planned.contrasts import Contrast
from tests.study.analysis.simulated import TYPES, study


@pytest.fixture(scope="module")
def model() -> nested.MixedModel:
    return nested.analyze(study(40, 8, 8, seed=11)).models["interaction"]


def test_estimates_are_sums_of_coefficients(model: nested.MixedModel) -> None:
    # By hand from Table 1's parametrisation: saliency at std_correct is saliency + std_correct:saliency.
    b = {c.term: c.estimate for c in model.coefficients}
    v = pd.DataFrame(model.covariance, index=list(b), columns=list(b))
    found = contrasts.table(model).set_index("contrast")
    terms = ["saliency", "trial_typestd_correct:saliency"]
    row = found.loc["saliency - none, std_correct"]
    assert row["estimate"] == pytest.approx(sum(b[t] for t in terms))
    assert row["se"] == pytest.approx(np.sqrt(v.loc[terms, terms].to_numpy().sum()))
    both = b["saliency"] + b["examples"] + b["saliency:examples"]
    assert found.loc["both - none, adv_incorrect", "estimate"] == pytest.approx(both)
    averaged = contrasts.table(model, [Contrast("saliency", "none")]).iloc[0]
    each = [found.loc[f"saliency - none, {kind}", "estimate"] for kind in TYPES]
    assert averaged["estimate"] == pytest.approx(np.mean(each))


def test_holm_by_its_definition(model: nested.MixedModel) -> None:
    found = contrasts.table(model).sort_values("p")
    k, running, expected = len(found), 0.0, []
    for i, p in enumerate(found["p"]):
        running = max(running, min(1.0, (k - i) * p))
        expected.append(running)
    np.testing.assert_allclose(found["p_holm"], expected, rtol=1e-12)


def test_holm_is_that_of_statsmodels() -> None:
    """Catches a correction that gives back other places than it was given, ties and missing ones included."""
    p = np.array([0.04, np.nan, 0.001, 0.04, 0.9, 0.02, np.nan, 0.5])
    known = ~np.isnan(p)
    found = holm(p)
    np.testing.assert_allclose(found[known], multipletests(p[known], method="holm")[1], rtol=1e-15)
    assert np.isnan(found[~known]).all()
    assert np.isnan(holm(np.array([np.nan]))).all()


def test_a_contrast_without_an_estimate_claims_nothing() -> None:
    frame = study(40, 8, 8, seed=11)
    certain = (frame["trial_type"] == "std_correct") & (frame["saliency"] == 1) & (frame["examples"] == 0)
    model = nested.analyze(frame.assign(correct=frame["correct"].where(~certain, 1))).models["interaction"]
    found = contrasts.table(model).set_index("contrast")
    claims = ["estimate", "se", "low", "high", "z", "p", "p_holm", "points_low", "points_high"]
    row = found.loc["saliency - none, std_correct"]
    assert row[claims].isna().all()
    assert row["accuracy_more"] == pytest.approx(1.0)  # the limit is known, its interval is not
    assert found.drop("saliency - none, std_correct").loc[:, "p_holm"].notna().sum() >= 7
    absent = nested.analyze(frame[~((frame["saliency"] == 1) & (frame["examples"] == 1))]).models["interaction"]
    lost = contrasts.table(absent).set_index("contrast")
    assert lost.loc["both - none, adv_incorrect", claims].isna().all()
    assert lost.loc["saliency - none, adv_incorrect"].notna().all()


def test_unknown_names_are_refused(model: nested.MixedModel) -> None:
    with pytest.raises(ForetellError, match="no condition 'maps'"):
        contrasts.table(model, [Contrast("maps", "none")])
    with pytest.raises(ForetellError, match="no trial type 'hard'"):
        contrasts.table(model, [Contrast("both", "none", ("hard",))])
