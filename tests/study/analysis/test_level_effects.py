"""Average effects on the mean level of ordinal models."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import norm

from study.analysis.means.effects import estimate_effects
from study.analysis.models import mixed
from tests.study.analysis.test_ordinal import simulate

FORMULA = "level ~ shown * size + (1|participant) + (1|item)"


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(8)
    made = simulate(rng, 40, 8, 1.0)
    return made.assign(size=np.tile(rng.normal(0, 1, 8), 40), level=made["level"].replace(4, 7))


def compute_mean(eta: float, cuts: np.ndarray, sd: float) -> float:
    """The mean of levels 1, 2, 3 and 7 by its definition, over a normal random effect."""

    def at(b: float) -> float:
        above = expit(eta + b - cuts)
        return float(1 + above[0] + above[1] + 4 * above[2])

    return at(0.0) if sd == 0 else quad(lambda b: at(b) * norm.pdf(b, 0, sd), -9 * sd, 9 * sd)[0]


@pytest.mark.parametrize("scale", ["response", "population"])
def test_effects_on_the_mean_level_are_those_of_the_definition(frame: pd.DataFrame, scale: str) -> None:
    """Catches levels counted as 1, 2, 3, 4, thresholds without their error, and effects at one row for all.

    Oracle: the mean level by its definition (SciPy's integral over the random effects) and difference quotients.
    """
    model = mixed.fit(frame, FORMULA, family="ordinal")
    sd = float(np.sqrt(sum(one.variance for one in model.random))) if scale == "population" else 0.0
    sizes = frame["size"].unique()  # every row of a size has the same prediction, and each size as many rows

    def effect(values: np.ndarray) -> float:
        (shown, size, both), cuts = values[:3], values[3:]
        pairs = [((shown + both * x) + size * x, size * x) for x in sizes]
        return float(np.mean([compute_mean(a, cuts, sd) - compute_mean(b, cuts, sd) for a, b in pairs]))

    values = np.array([c.estimate for c in (*model.coefficients, *model.thresholds)])
    steps = 1e-5 * np.eye(len(values))
    gradient = np.array([(effect(values + h) - effect(values - h)) / 2e-5 for h in steps])
    (row,) = estimate_effects(frame, model, "shown", scale=scale).to_dict("records")  # type: ignore[arg-type]
    assert row["effect"] == pytest.approx(effect(values), rel=1e-5)
    assert row["se"] == pytest.approx(float(np.sqrt(gradient @ model.joint_covariance @ gradient)), rel=1e-4)
    assert row["high"] - row["effect"] == pytest.approx(norm.ppf(0.975) * row["se"])


def test_effects_within_the_levels_of_another_factor(frame: pd.DataFrame) -> None:
    """Catches a part that is averaged over all rows; the parts' mean, weighted by their rows, is the whole."""
    half = frame.assign(part=np.where(frame["size"] > 0, "large", "small"))
    model = mixed.fit(half, "level ~ shown * part + (1|participant)", family="ordinal")
    parts = estimate_effects(half, model, "shown | part").set_index("part")["effect"]
    whole = estimate_effects(half, model, "shown")["effect"][0]
    shares = half["part"].value_counts(normalize=True)
    assert whole == pytest.approx(float((parts * shares).sum()))
    assert parts["large"] != pytest.approx(parts["small"])


def test_effects_of_models_with_slopes_have_their_degrees_of_freedom(frame: pd.DataFrame) -> None:
    """Catches z where contrasts of the same model are t."""
    model = mixed.fit(frame, "level ~ shown + (shown||item) + (1|participant)", family="ordinal")
    (row,) = estimate_effects(frame, model, "shown").to_dict("records")
    assert (row["high"] - row["effect"]) / row["se"] > 1.965
