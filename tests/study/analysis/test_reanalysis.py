"""Published responses of people (`real`) against what the committed page says, whose oracles are print and R."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import reanalysis
from study.analysis.models import mixed
from study.workspace.workspace import ROOT

STORED: dict[str, Any] = json.loads((ROOT / "benchmarks" / "results" / "reanalysis.json").read_text())["result"]


def test_the_model_of_10_800_responses_is_that_of_lme4_and_glmmtmb(real: Path) -> None:
    """Catches a fit that drifts from R's on real crossed data; lme4's own standard errors are coarser."""
    frame = reanalysis.read_accept_reject(real / "human" / reanalysis.ACCEPT_REJECT)
    mine = reanalysis.list_coefficients(mixed.fit(frame, reanalysis.FORMULA))
    for name, tolerance in {"lme4": 2e-3, "glmmTMB": 5e-5}.items():
        theirs = STORED["accept_reject"]["programs"][name]
        assert mine["loglik"] == pytest.approx(theirs["loglik"], abs=2e-3)
        np.testing.assert_allclose(mine["coefficients"], theirs["coefficients"], atol=tolerance)


def test_published_responses_give_the_published_accuracies(real: Path) -> None:
    """10,800 responses of 360 participants, in percent to the digits that were printed, and as the page has them.

    Catches rows that are lost, conditions or trial types that are exchanged, and accuracies over responses to the wrong
    kind of trial.
    """
    frame = reanalysis.read_accept_reject(real / "human" / reanalysis.ACCEPT_REJECT)
    assert (len(frame), frame["participant"].nunique()) == (10_800, 360)
    rows = reanalysis.tabulate_accuracies(frame)
    for row in rows:
        mine = (row["mean"], row["sd"], row[reanalysis.RIGHT][0], row[reanalysis.WRONG][0])
        assert mine == row["printed"], row["condition"]
    assert json.loads(json.dumps(rows)) == STORED["accept_reject"]["accuracies"]


def test_what_is_said_of_reliance_is_what_the_decisions_give(real: Path) -> None:
    """Catches a page with figures that the product no longer computes; print is the oracle of those stored."""
    assert reanalysis.analyze_two_step(real / "human") == STORED["two_step"]
    assert all(round(row["found"][0], 3) == row["printed"] for row in STORED["two_step"]["measures"])
