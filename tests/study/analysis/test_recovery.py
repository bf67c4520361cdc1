"""The benchmark of recovery in small: estimates near the truth, intervals that hold it."""

from __future__ import annotations

import pandas as pd
from scipy.stats import binom

from benchmarks import recovery


def test_the_truth_is_in_the_intervals() -> None:
    """Fifteen studies of 48 people. Catches intervals of the wrong width, and coefficients under others' names."""
    found = pd.DataFrame(recovery.measure(15, 12, workers=1)["parameters"])
    assert set(found["parameter"]) == {*recovery.coefficients(), "sd participant", "sd category"}
    wald = found[found["method"] == "wald"]
    assert round(wald["coverage"].mean() * 15 * 12) >= binom.ppf(1e-4, 15 * 12, 0.93)
    assert (found["coverage"] >= binom.ppf(1e-4, 15, 0.95) / 15).all()
    assert ((found["bias"].abs() / found["bias_error"])[found["parameter"].str[:2] != "sd"] < 5).all()
