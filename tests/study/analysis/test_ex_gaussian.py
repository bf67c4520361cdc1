"""The ex-Gaussian distribution: SciPy's own search, planted parameters, and responses that do not determine it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import exponnorm

from core.errors import ForetellError
from study.analysis.exploratory import ex_gaussian
from study.analysis.exploratory.analysis import AnalysedStudy, compute
from study.analysis.responses.reading import prepare
from tests.study.analysis.observers import draw_tails
from tests.study.analysis.test_metacognition import complete

TRUE = {"none": (0.6, 0.08, 0.3), "saliency": (0.6, 0.08, 0.6)}
"""Mu, sigma and tau, in seconds."""


@pytest.mark.parametrize("seed", range(3))
def test_the_estimates_are_as_likely_as_scipys(seed: int) -> None:
    """Catches a search that stops early, or one for other parameters. Oracle: scipy.stats.exponnorm.fit."""
    rng = np.random.default_rng(seed)
    times = rng.normal(0.5, 0.1, 80) + rng.exponential(0.4, 80)
    mu, sigma, tau = ex_gaussian.fit(times)
    theirs = exponnorm.fit(times)
    mine = exponnorm.logpdf(times, tau / sigma, mu, sigma).sum()
    assert ex_gaussian.compute_loglik(times, mu, sigma, tau) == pytest.approx(mine)
    assert mine > exponnorm.logpdf(times, *theirs).sum() - 1e-2
    assert mu + tau == pytest.approx(times.mean(), abs=2e-3)


def test_a_longer_tail_is_told_from_slower_responses() -> None:
    """Catches mu and tau exchanged: the conditions differ in the tail alone."""
    frame = draw_tails(1, TRUE)
    table = ex_gaussian.conditions(ex_gaussian.estimate_participants(frame)).set_index("condition")
    for condition, true in TRUE.items():
        for name, value in zip(("mu_s", "sigma_s", "tau_s"), true, strict=True):
            assert table.loc[condition, name] == pytest.approx(value, abs=0.07)
    made = ex_gaussian.differences(ex_gaussian.estimate_participants(frame)).set_index("measure")
    assert made.loc["tau_s", "p_holm"] < 0.001
    assert made.loc["mu_s", "p_holm"] > 0.05


def test_normal_times_have_hardly_a_tail() -> None:
    """Catches a search that fails where times are not skewed."""
    mu, sigma, tau = ex_gaussian.fit(np.random.default_rng(2).normal(1.0, 0.2, 400))
    assert tau < 0.1
    assert mu + tau == pytest.approx(1.0, abs=0.03)
    assert np.hypot(sigma, tau) == pytest.approx(0.2, abs=0.03)


def test_too_few_responses_are_said() -> None:
    """Catches three parameters of a handful of times."""
    with pytest.raises(ForetellError, match="No participant has 20 responses"):
        ex_gaussian.conditions(ex_gaussian.estimate_participants(draw_tails(3, TRUE, trials=15)))


def test_the_figure_has_both_parts() -> None:
    """Catches a figure of one part under the other's name."""
    made = compute("ex_gaussian", AnalysedStudy(prepare(complete(draw_tails(4, TRUE, people=5)))))
    assert made.figure is not None
    drawn = {trace.name: list(trace.y) for trace in made.figure.data}
    assert set(drawn) == {"Mu (s)", "Tau (s)"}
    np.testing.assert_allclose(drawn["Tau (s)"], made.table["tau_s"])
