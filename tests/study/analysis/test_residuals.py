"""Responses drawn from a model, and what of the responses the model lacks."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, kstest, multivariate_normal, norm

from core.errors import ForetellError
from study.analysis.exploratory import residuals
from study.analysis.exploratory.analysis import AnalysedStudy, compute
from study.analysis.models import mixed
from study.analysis.models.draws import Draws
from study.analysis.responses.reading import prepare
from tests.study.analysis.simulated import analyze_as_in_the_paper, study, study_with_images


@pytest.fixture(scope="module")
def studied() -> AnalysedStudy:
    """Forty participants whose responses the paper's models describe."""
    data = prepare(study(people=40, seed=11))
    return AnalysedStudy(data, models=analyze_as_in_the_paper(data))


def test_draws_share_effects_within_a_level_and_only_there() -> None:
    """Catches effects that are not drawn, a factor that is turned, one effect for all levels, and another link.

    Expected, of a probit model: two responses are both correct with the probability that the bivariate normal
    distribution gives (correlation from the effects that they share), and each with the univariate one.
    """
    frame = study(people=30, seed=2)
    model = mixed.fit(frame, "correct ~ saliency + (1 + saliency | category)", link="probit")
    covariance = np.array([[0.3, 0.6], [0.6, 2.0]])
    draws = Draws.of(frame, replace(model, blocks=(replace(model.blocks[0], covariance=covariance),)))
    rng = np.random.default_rng(0)
    drawn = np.array([draws.sample(rng) for _ in range(4000)])
    z = np.column_stack([np.ones(len(frame)), frame["saliency"]])
    fixed, total = z @ [one.estimate for one in model.coefficients], 1 + np.sum(z @ covariance * z, axis=1)
    same = frame.index[frame["category"] == "c0"]
    one, other = (int(frame.index[frame.index.isin(same) & (frame["saliency"] == k)][0]) for k in (0, 1))
    elsewhere = int(frame.index[(frame["category"] == "c1") & (frame["saliency"] == 1)][0])
    limits = fixed / np.sqrt(total)
    np.testing.assert_allclose(drawn.mean(axis=0), norm.cdf(limits), atol=0.04)
    for second, shared in ((other, z[one] @ covariance @ z[other]), (elsewhere, 0.0)):
        correlation = shared / np.sqrt(total[one] * total[second])
        both = multivariate_normal.cdf(limits[[one, second]], cov=[[1, correlation], [correlation, 1]])
        assert np.mean(drawn[:, one] * drawn[:, second]) == pytest.approx(both, abs=0.03)


def test_residuals_are_places_in_the_models_distribution() -> None:
    """Catches a residual of another number, group or end, and draws with one effect for all.

    Expected: the distribution of a participant's number of correct responses by quadrature over the random intercept,
    in a model with nothing else.
    """
    frame = study(people=30, seed=5, sd=1.2)
    model = mixed.fit(frame, "correct ~ 1 + (1 | participant)")
    draws, rng = Draws.of(frame, model), np.random.default_rng(3)
    drawn = np.array([draws.sample(rng) for _ in range(2000)])
    table = residuals.tabulate_residuals(AnalysedStudy(replace(prepare(frame), frame=frame)), drawn)
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    shares = 1 / (1 + np.exp(-(model.coefficients[0].estimate + model.random[0].sd * nodes)))
    weights = weights / weights.sum()
    below, upto = (
        np.array(
            [
                weights @ binom.cdf(k, n, shares)
                for k, n in zip(table["correct"] - less, table["responses"], strict=True)
            ]
        )
        for less in (1, 0)
    )
    assert np.all(table["residual"] > below - 0.04)
    assert np.all(table["residual"] < upto + 0.04)
    np.testing.assert_allclose(table["drawn"], 18 * (weights @ shares), atol=0.5)


def test_a_model_that_is_right_is_rarely_called_wrong(studied: AnalysedStudy) -> None:
    """Catches a property that the draws compute in another way, and p that are too small.

    Expected: the responses are drawn from the model itself, so that p, of each of 40 studies, is uniform or careful.
    """
    draws, rng = Draws.of(studied.frame, studied.fitted_models.largest), np.random.default_rng(1)
    drawn = residuals.draw(studied, 99)
    p = []
    for _ in range(40):
        frame = studied.frame.assign(correct=draws.sample(rng).astype(int))
        p.append(residuals.compare(replace(studied, data=replace(studied.data, frame=frame)), drawn)["p"])
    shares = pd.concat(p)
    assert np.mean(shares < 0.05) < 0.08
    assert 0.35 < np.mean(shares < 0.5) < 0.65


def test_neighbouring_responses_that_are_alike_are_reported(studied: AnalysedStudy) -> None:
    """Catches pairs of other participants or in another order. Planted: two in five responses repeat the one before."""
    rng, frame = np.random.default_rng(4), studied.frame.copy()
    for rows in frame.sort_values("trial").groupby("participant").groups.values():
        for before, after in pairwise(rows):
            if rng.random() < 0.4:
                frame.loc[after, "correct"] = frame.loc[before, "correct"]
    data = prepare(frame.sample(frac=1, random_state=0))
    made = compute("checks", AnalysedStudy(data, models=analyze_as_in_the_paper(data)))
    row = made.table.set_index("property").loc["Neighbouring responses alike"]
    order = frame.sort_values(["participant", "trial"])
    same = order["correct"].eq(order["correct"].shift()) & order["participant"].eq(order["participant"].shift())
    assert row["observed"] == pytest.approx(same.sum() / (len(frame) - frame["participant"].nunique()))
    assert row["p_holm"] < 0.05
    assert "The model does not reproduce" in made.conclusion
    assert f"neighbouring responses alike ({row['observed']:.3f}; draws" in made.conclusion
    points, bars = made.figure.data[1], made.figure.data[0]
    place = list(points.y).index("Neighbouring responses alike")
    assert points.x[place] > bars.base[place] + bars.x[place]  # it is drawn beyond the bar


def test_differences_between_participants_that_the_model_lacks_are_reported() -> None:
    """Catches a spread that is not that of participants. Planted: participants differ between trial types, which the
    paper's models have no term for."""
    data = prepare(study_with_images(5, people=40))
    one = AnalysedStudy(data, models=analyze_as_in_the_paper(data))
    table = residuals.compare(one, residuals.draw(one, 199)).set_index("property")
    assert table.loc["Participants × trial types: spread", "p_holm"] < 0.1
    assert (
        table.loc["Participants × trial types: spread", "observed"]
        > table.loc["Participants × trial types: spread", "drawn_to"]
    )
    assert "Neighbouring responses alike" not in table.index  # there is no order of trials


def test_residuals_of_a_right_model_are_uniform_and_drawn(studied: AnalysedStudy) -> None:
    """Catches residuals squeezed to the middle, and a figure or sentence of other numbers."""
    made = compute("residuals", studied)
    assert kstest(made.table["residual"], "uniform").pvalue > 0.01
    outside = int(np.sum(abs(norm.ppf(made.table["residual"])) > norm.ppf(0.975)))
    assert made.conclusion.startswith(f"Outside the 95% of the draws are {outside} of 40 participants;")
    marks = next(trace for trace in made.figure.data if trace.name == "Participants")
    np.testing.assert_allclose(marks.y, np.sort(made.table["residual"]))


def test_what_cannot_be_drawn_from_is_said(studied: AnalysedStudy) -> None:
    """Catches draws of a certain cell, which would be certain in every draw, and of grouped responses."""
    certain = replace(studied.fitted_models.largest, diverging={"saliency": 1})
    with pytest.raises(ForetellError, match="only correct or only incorrect responses"):
        Draws.of(studied.frame, certain)
    grouped = studied.frame.groupby(["participant", "saliency"], as_index=False)["correct"].agg(["sum", "count"])
    grouped = grouped.assign(misses=grouped["count"] - grouped["sum"])
    model = mixed.fit(grouped, "cbind(sum, misses) ~ saliency + (1 | participant)")
    with pytest.raises(ForetellError, match="single responses only"):
        Draws.of(grouped, model)
