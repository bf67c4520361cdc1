"""Means and contrasts of linear mixed models against emmeans with lmerTest (``oracles/gaussian_means.R``)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from study.analysis.means.means import estimate_means
from study.analysis.models import mixed

CASES = json.loads((Path(__file__).parent / "oracles" / "gaussian_means.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_each_mean_and_contrast_has_the_degrees_of_freedom_of_emmeans(case: dict[str, Any]) -> None:
    """Catches the fewest degrees of freedom of any coefficient for every mean, and z or another design's t."""
    frame = pd.DataFrame(case["data"])
    model = mixed.fit(frame, case["formula"], family="gaussian", reml=True)
    made = estimate_means(frame, model, case["spec"], adjust="none")
    for ours, theirs in ((made.means, case["means"]), (made.contrasts, case["contrasts"])):
        np.testing.assert_allclose(ours["estimate"], theirs.get("emmean", theirs.get("estimate")), rtol=1e-3)
        for name, other in (("se", "SE"), ("df", "df"), ("low", "lower.CL"), ("high", "upper.CL"), ("p", "p.value")):
            if other in theirs:
                np.testing.assert_allclose(ours[name], theirs[other], rtol=1e-3, atol=1e-6, err_msg=name)
