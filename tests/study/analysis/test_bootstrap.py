"""Likelihood-ratio tests by parametric bootstrap, against whole fits and the chi-square distribution."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta

from core.errors import ForetellError
from study.analysis.exploratory import bootstrap
from study.analysis.exploratory.analysis import AnalysedStudy
from study.analysis.means.adjustment import holm
from study.analysis.models import mixed
from study.analysis.models.draws import Draws
from study.analysis.models.refits import Refits
from study.analysis.planned import nested
from study.analysis.responses.reading import prepare
from tests.study.analysis.simulated import analyze_as_in_the_paper, study, study_with_images


@pytest.fixture(scope="module")
def studied() -> AnalysedStudy:
    data = prepare(study(people=48, seed=8))
    return AnalysedStudy(data, models=analyze_as_in_the_paper(data))


def test_a_refit_is_the_whole_fit_of_the_drawn_responses() -> None:
    """Catches a search that stops early or starts at the modes of the former responses, and rows that keep theirs.

    Expected: the log-likelihood of the same model fitted to each of five drawn studies from the beginning.
    """
    data = prepare(study_with_images(5, people=24))
    analysis = nested.analyze(data)
    rng = np.random.default_rng(2)
    small, large = analysis.models["explanation"], analysis.largest
    draws = Draws.of(data.frame, small)
    for model in (small, large):
        refits = Refits(data.frame, model)
        for _ in range(5):
            correct = draws.sample(rng)
            whole = mixed.fit(data.frame.assign(correct=correct.astype(int)), model.formula)
            assert refits.maximise(correct) == pytest.approx(whole.loglik, abs=1e-3)


def test_p_is_that_of_chi_square_where_it_holds(studied: AnalysedStudy) -> None:
    """Catches draws from the larger model, ratios of the wrong pair, and a share counted at the wrong end.

    Expected: 864 responses of a model without slopes, where chi-square holds, within the Monte Carlo interval.
    """
    table = bootstrap.measure(studied, 99).set_index("result")
    for test in studied.fitted_models.tests:
        row = table.loc[test.name]
        assert row["p"] == test.p
        assert row["chisq"] == test.chisq
        assert row["studies"] == 99
        assert row["p_bootstrap_low"] - 0.02 <= test.p <= row["p_bootstrap_high"] + 0.02
        beyond = round(row["p_bootstrap"] * 100) - 1
        assert row["p_bootstrap_high"] == pytest.approx(
            max(row["p_bootstrap"], beta.ppf(0.975, beyond + 1, 99 - beyond))
        )


def test_p_is_corrected_as_in_the_results() -> None:
    """Catches corrected p next to uncorrected ones. Expected: Holm's method on the shares of the drawn studies."""
    data = prepare(study(people=14, seed=3))
    whole = AnalysedStudy(data, models=nested.analyze(data))
    plain = [replace(test, p_holm=None) for test in whole.fitted_models.tests]
    once = bootstrap.measure(replace(whole, models=replace(whole.fitted_models, tests=tuple(plain))), 9)
    corrected = bootstrap.measure(whole, 9)
    np.testing.assert_allclose(corrected["p_bootstrap"], holm(once["p_bootstrap"].to_numpy()))
    np.testing.assert_allclose(corrected["p"], [test.p_holm for test in whole.fitted_models.tests])


def test_the_sentence_says_what_changes_and_what_is_open() -> None:
    """Catches a changed verdict that is not named, and one that the drawn studies are too few for."""
    rows = [
        ("explanation vs null", 9.0, 2, 0.031, 0.06, 0.03, 0.1, 199),
        ("interaction vs explanation", 9, 2, 0.4, 0.5, 0.4, 0.6, 199),
    ]
    table = pd.DataFrame(rows, columns=list(bootstrap.COLUMNS))
    assert bootstrap.describe(table, 0.05) == (
        "By bootstrap, 1 of 2 verdicts changes: Explanation vs null (p = .031, by bootstrap = .060). The drawn studies "
        "are too few to tell on which side p lies for Explanation vs null."
    )
    same = table.assign(p_bootstrap=table["p"], p_bootstrap_low=table["p"] - 0.01, p_bootstrap_high=table["p"] + 0.01)
    assert bootstrap.describe(same, 0.05) == "By bootstrap, no verdict changes: each p stays on its side of .05."


def test_no_test_is_said(studied: AnalysedStudy) -> None:
    """Catches an empty table where no test has degrees of freedom."""
    none = replace(studied.fitted_models, tests=())
    with pytest.raises(ForetellError, match="none to repeat by bootstrap"):
        bootstrap.measure(replace(studied, models=none), 9)
