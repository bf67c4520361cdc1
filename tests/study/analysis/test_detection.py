"""Signal detection on answers whose sensitivity and criterion are known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from core.errors import ForetellError
from study.analysis.exploratory import detection
from study.analysis.exploratory.analysis import AnalysedStudy
from study.analysis.models import mixed
from study.analysis.power.truths import TABLE_1, AdditiveTruth
from study.analysis.report import results
from study.analysis.responses import reading as responses
from tests.study.analysis import glmmtmb

KINDS = ("adv_incorrect", "std_incorrect", "std_correct")
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
        assert abs(row["dprime"] - d) < 3 * row["dprime_se"]
        assert abs(row["criterion"] - c) < 3 * row["criterion_se"]
        assert row["dprime_low"] < row["dprime"] < row["dprime_high"]
    assert found["dprime_se"].max() < 0.15


CRITERIA = {"none": 1.2, "saliency": 0.8, "examples": 0.4, "both": 0.0}


def observers(seed: int, per_condition: int = 20, trials: int = 60) -> pd.DataFrame:
    """Observers of the same d' = 1.25 in four conditions that differ in their criterion only."""
    rng = np.random.default_rng(seed)
    rows = []
    for name, criterion in CRITERIA.items():
        saliency, examples = int(name in ("saliency", "both")), int(name in ("examples", "both"))
        for i in range(per_condition):
            d, c = 1.25 + rng.normal(0, 0.3), criterion + rng.normal(0, 0.3)
            kind = np.arange(trials) % 3
            said = rng.normal(size=trials) + np.where(kind < 2, d / 2, -d / 2) > c
            rows += [
                (f"{name}{i}", f"c{j // 3}", KINDS[k], saliency, examples, int(s == (k < 2)))
                for j, (k, s) in enumerate(zip(kind, said, strict=True))
            ]
    return responses.prepare(pd.DataFrame(rows, columns=list(responses.REQUIRED))).frame


def test_a_shift_of_the_criterion_is_no_change_of_sensitivity() -> None:
    """Catches d' by way of the logit: it gives 1.42 where the criterion is 1.2, and 1.17 where it is 0."""
    found = pd.concat(detection.conditions(observers(seed)) for seed in range(12))
    means = found.groupby("condition")[["dprime", "criterion"]].mean()
    np.testing.assert_allclose(means["dprime"], 1.25, atol=0.1)
    np.testing.assert_allclose(means.loc[list(CRITERIA), "criterion"], list(CRITERIA.values()), atol=0.08)
    covered = (found["dprime_low"] < 1.25) & (found["dprime_high"] > 1.25)
    assert covered.mean() > 0.85


def test_differences_between_conditions_have_intervals() -> None:
    frame = observers(1)
    each, found = detection.conditions(frame).set_index("condition"), detection.differences(frame)
    assert list(found["contrast"].unique()) == ["saliency - none", "examples - none", "both - none"]
    for row in found.itertuples():
        more, less = row.contrast.split(" - ")
        assert row.difference == pytest.approx(each.loc[more, row.measure] - each.loc[less, row.measure], abs=1e-9)
        assert row.low < row.difference < row.high
    shift = found[(found["measure"] == "criterion") & (found["contrast"] == "both - none")].iloc[0]
    assert shift["p_holm"] < 0.001
    assert shift["low"] < -1.2 < shift["high"]


@pytest.mark.parametrize("seed", [0, 2, 4, 5])
def test_images_that_differ_are_no_difference_between_conditions(seed: int) -> None:
    """Catches the difference of 8 x 3 images taken for one of conditions: without random effects of images, all four
    of these studies without an effect show one."""
    truth = AdditiveTruth({"": TABLE_1[""]}, image_slope_sd=1.2, categories=8)
    studied = responses.prepare(truth.study(40, np.random.default_rng(seed))).frame
    assert detection.differences(studied)["p_holm"].min() > 0.05


@glmmtmb.needed
def test_the_probit_model_is_that_of_glmmtmb(tmp_path: Path) -> None:
    """Catches a logit rescaled to look like a probit."""
    frame = observers(2)
    shown = frame["trial_type"].ne("std_correct").astype(int)
    data = pd.DataFrame(
        {
            "said": (frame["correct"] == shown).astype(int),
            "shown": shown - 0.5,
            "condition": pd.Categorical(frame["condition"], categories=list(CRITERIA)),
            "participant": frame["participant"],
        }
    )
    formula = "said ~ condition * shown + (shown|participant)"
    ours = mixed.fit(data, formula, link="probit")
    other = glmmtmb.fit(data, formula, tmp_path, family='binomial(link = "probit")')
    np.testing.assert_allclose([c.estimate for c in ours.coefficients], other["estimate"], atol=0.01)
    np.testing.assert_allclose([c.se for c in ours.coefficients], other["se"], rtol=0.03)


def test_figure_shows_both_measures(frame: pd.DataFrame) -> None:
    drawn = detection.figure(detection.conditions(frame))
    assert [trace.name for trace in drawn.data] == ["sensitivity d'", "criterion c"]
    assert all(len(trace.x) == 2 for trace in drawn.data)


def test_one_kind_of_trial_detects_nothing(frame: pd.DataFrame) -> None:
    wrong = frame[frame["trial_type"] != "std_correct"]
    with pytest.raises(ForetellError, match="Signal detection needs"):
        detection.conditions(wrong)


def test_a_condition_without_errors_costs_neither_the_others_nor_the_planned_results(tmp_path: Path) -> None:
    """Catches d' of 0.0 [0, 0] everywhere, and a ZeroDivisionError that left nothing written."""
    data = observers(4, per_condition=10, trials=30)
    certain = (data["condition"] == "none") & (data["trial_type"] == "std_correct")
    perfect = data.assign(correct=data["correct"].where(~certain, 1))
    found = detection.conditions(perfect).set_index("condition")
    assert found.loc["none"].isna().all()
    assert found.drop(index="none").notna().all(axis=None)
    # The other conditions' estimates are those of their responses with the errors of "none" alone.
    others = detection.conditions(perfect[~certain | (perfect["condition"] != "none")].reset_index(drop=True))
    np.testing.assert_allclose(
        found.loc["both", ["dprime", "criterion"]].astype(float),
        others.set_index("condition").loc["both", ["dprime", "criterion"]].astype(float),
        atol=0.02,
    )
    assert detection.differences(perfect)[["difference", "p"]].isna().all(axis=None)  # each is from "none"
    results.write(responses.prepare(perfect), tmp_path)
    reason = "No explanation: no finite d' and criterion, because participants never reported an error where the AI is "
    assert f"{reason}right." in (tmp_path / "report.md").read_text()


def test_both_analyses_read_one_fit_of_the_same_responses_and_of_no_others(
    frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches the model of both fitted twice, and the fit of one study's responses read for another's."""
    fitted, fit = [], detection.fit
    monkeypatch.setattr(detection, "fit", lambda given: fitted.append(given) or fit(given))
    study = AnalysedStudy(responses.prepare(frame))
    table, _ = detection.BY_CONDITION.compute(study)
    differences, _ = detection.DIFFERENCES.compute(study)
    assert len(fitted) == 1
    assert differences["difference"][0] == pytest.approx(table["dprime"][1] - table["dprime"][0])
    some = replace(study, data=responses.prepare(frame[frame["participant"] != "p0"]))
    assert detection.BY_CONDITION.compute(some)[0]["dprime"][0] != table["dprime"][0]


def test_the_criterion_compares_misses_with_false_alarms() -> None:
    """Catches "they rarely say that it errs" for a criterion above 0: participants who report 40% of trials have one.

    Hits 60%, false alarms 20%: c = -(z(.6) + z(.2)) / 2 = .29: misses (40%) are more frequent than false alarms.
    """
    signal = np.repeat([1, 0], 1000)
    said = np.concatenate([np.arange(1000) < 600, np.arange(1000) < 200]).astype(int)
    kinds = np.where(signal == 1, "std_incorrect", "std_correct")
    rows = {"participant": np.tile([f"p{i}" for i in range(40)], 50), "category": np.tile(list("abcdefgh"), 250)}
    frame = pd.DataFrame({**rows, "trial_type": kinds, "saliency": 0, "examples": 0, "correct": (said == signal) * 1})
    frame = frame.sample(frac=1, random_state=0, ignore_index=True)
    shown = AnalysedStudy(responses.prepare(frame))
    assert detection.conditions(shown.frame)["criterion"][0] == pytest.approx(0.29, abs=0.06)
    assert "Criterion above 0: they miss its errors more often than" in detection.BY_CONDITION.explain(shown)
