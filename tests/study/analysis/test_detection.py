"""Signal detection on answers whose sensitivity and criterion are known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from core.errors import ForetellError
from study.analysis import detection, responses

TRUE = {"none": (0.4, 0.6), "saliency": (1.4, 0.1)}
"""d' and criterion."""


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """Observers by the definition: they say "wrong" when a normal draw, shifted by half d', exceeds the criterion."""
    rng = np.random.default_rng(3)
    rows = []
    for i in range(60):
        condition = list(TRUE)[i % 2]
        d, c = TRUE[condition]
        d, c = d + rng.normal(0, 0.3), c + rng.normal(0, 0.3)
        for j in range(90):
            kind = ("adv_incorrect", "std_incorrect", "std_correct")[j % 3]
            signal = kind != "std_correct"
            said = rng.normal() + (d / 2 if signal else -d / 2) > c
            rows.append((f"p{i}", f"c{j % 30}", kind, i % 2, 0, int(said == signal)))
    return responses.prepare(pd.DataFrame(rows, columns=list(responses.REQUIRED))).frame


def test_hierarchical_estimates_are_the_true_ones(frame: pd.DataFrame) -> None:
    found = detection.conditions(frame).set_index("condition")
    for name, (d, c) in TRUE.items():
        row = found.loc[name]
        assert abs(row["dprime"] - d) < 3 * row["dprime_se"] + 0.05 * d  # logit for probit: 5 %
        assert abs(row["criterion"] - c) < 3 * row["criterion_se"]
        assert row["dprime_low"] < row["dprime"] < row["dprime_high"]
    assert found["dprime_se"].max() < 0.15


def test_people_by_the_definition(frame: pd.DataFrame) -> None:
    table = detection.people(frame).set_index("participant")
    one = frame[frame["participant"] == "p3"]
    errs = one["trial_type"] != "std_correct"
    hit = (one.loc[errs, "correct"].sum() + 0.5) / (errs.sum() + 1)
    alarm = ((1 - one.loc[~errs, "correct"]).sum() + 0.5) / ((~errs).sum() + 1)
    assert table.loc["p3", "dprime"] == pytest.approx(norm.ppf(hit) - norm.ppf(alarm))
    assert table.loc["p3", "criterion"] == pytest.approx(-(norm.ppf(hit) + norm.ppf(alarm)) / 2)
    assert np.isfinite(table[["dprime", "criterion"]].to_numpy()).all()
    means = table.groupby("condition")["dprime"].mean()
    assert means["saliency"] - means["none"] == pytest.approx(1.0, abs=0.3)


def test_figure_shows_both_measures(frame: pd.DataFrame) -> None:
    drawn = detection.figure(detection.conditions(frame))
    assert [trace.name for trace in drawn.data] == ["sensitivity d'", "criterion c"]
    assert all(len(trace.x) == 2 for trace in drawn.data)


def test_one_kind_of_trial_detects_nothing(frame: pd.DataFrame) -> None:
    wrong = frame[frame["trial_type"] != "std_correct"]
    for work in (detection.people, detection.conditions):
        with pytest.raises(ForetellError, match="Signal detection needs"):
            work(wrong)
