"""Sittings in the analysis: read, named by models, and who returned."""

from __future__ import annotations

from math import comb

import numpy as np
import pandas as pd
import pytest

from core.errors import ForetellError
from study.analysis.exploratory import analysis as exploratory
from study.analysis.exploratory.sittings import compute_p, tabulate_accuracy, tabulate_attrition
from study.analysis.planned import covariates
from study.analysis.responses.reading import prepare


def make(returned: dict[str, int], people: int = 12) -> pd.DataFrame:
    """Responses of so many participants in each condition, of whom some return; correct more often the second time."""
    rng = np.random.default_rng(1)
    factors = {"none": (0, 0), "saliency": (1, 0)}
    rows = []
    for name, count in returned.items():
        for person in range(people):
            for sitting in (1, 2) if person < count else (1,):
                rows += [
                    {
                        "participant": f"{name}{person}",
                        "category": f"c{trial}",
                        "item": f"i{trial}",
                        "trial": trial + 6 * (sitting - 1) + 1,
                        "trial_type": ("adv_incorrect", "std_incorrect", "std_correct")[trial % 3],
                        "saliency": factors[name][0],
                        "examples": 0,
                        "condition": name,
                        "correct": int(rng.random() < (0.5 if sitting == 1 else 0.8)),
                        "sitting": sitting,
                    }
                    for trial in range(6)
                ]
    return pd.DataFrame(rows)


def test_the_column_is_read_and_other_rows_keep_their_hash() -> None:
    """Catches a column that is lost, one of another meaning that is taken for it, and rows with another hash."""
    frame = make({"none": 12, "saliency": 12})
    data = prepare(frame)
    assert data.frame["sitting"].tolist() == frame["sitting"].tolist()
    without = prepare(frame.drop(columns="sitting"))
    assert prepare(frame.assign(sitting=1)).sha256 == without.sha256
    assert prepare(frame.assign(sitting="left")).sha256 == without.sha256


def test_models_may_name_the_sitting() -> None:
    """Catches a covariate that is looked for by image. Expected: in SDs from its mean; refused where it is missing."""
    data = covariates.attach(prepare(make({"none": 12, "saliency": 12})), ("sitting",))
    scaled = covariates.standardise(data, ("sitting",))
    assert scaled.frame["sitting"].mean() == pytest.approx(0)
    assert scaled.frame["sitting"].std() == pytest.approx(1)
    assert "sitting (sitting in which the trial was shown)" in scaled.messages[-1]
    assert tabulate_accuracy(scaled.frame)["sitting"].tolist() == [1, 2, 1, 2]
    with pytest.raises(ForetellError, match="no column 'sitting'"):
        covariates.attach(prepare(make({"none": 12, "saliency": 12}).drop(columns="sitting")), ("sitting",))


def test_accuracy_by_sitting_and_condition() -> None:
    """Catches accuracies of another sitting or condition, and those who did not return among them."""
    frame = make({"none": 10, "saliency": 5})
    table = tabulate_accuracy(prepare(frame).frame).set_index(["condition", "sitting"])
    for (name, number), rows in frame.groupby(["condition", "sitting"]):
        one = table.loc[(name, number)]
        assert one["accuracy"] == pytest.approx(rows["correct"].mean())
        assert one["low"] < one["accuracy"] < one["high"]
        assert one["participants"] == rows["participant"].nunique()


def test_attrition_that_differs_between_conditions_is_said() -> None:
    """Catches a difference that is not seen, and one that is seen where there is none.

    Expected of 12 and 2 of 12 who return: p of Fisher's exact test, by enumeration.
    """
    study = exploratory.AnalysedStudy(prepare(make({"none": 12, "saliency": 2})))
    result = exploratory.compute("attrition", study)
    table = result.table.set_index("condition")
    assert table["returned"].to_dict() == {"none": 12, "saliency": 2, "all conditions": 14}
    assert table.loc["all conditions", "proportion"] == pytest.approx(14 / 24)
    assert table.loc["saliency", "low"] < 2 / 12 < table.loc["saliency", "high"]
    assert "14 of 24 participants returned for sitting 2." in result.conclusion
    assert "Conditions differ in it" in result.conclusion
    alike = exploratory.compute("attrition", exploratory.AnalysedStudy(prepare(make({"none": 7, "saliency": 6}))))
    assert "There is no evidence that conditions differ" in alike.conclusion


@pytest.mark.parametrize("returned", [(9, 4), (12, 2), (6, 6)])
def test_the_test_is_exact(returned: tuple[int, int]) -> None:
    """Catches a test that is of large samples only: by enumeration of all tables with these margins."""
    total = sum(returned)
    weights = {k: comb(12, k) * comb(12, total - k) for k in range(13) if 0 <= total - k <= 12}
    far = abs(returned[0] - total / 2)
    exact = sum(weight for k, weight in weights.items() if abs(k - total / 2) >= far) / sum(weights.values())
    p = compute_p(np.array([12, 12]), np.array(returned), np.random.default_rng(3))
    assert p == pytest.approx(exact, abs=0.015)
    assert np.isnan(compute_p(np.array([12, 12]), np.array([12, 12]), np.random.default_rng(3)))


def test_without_sittings_nothing_is_offered_and_within_participants_no_groups_are_compared() -> None:
    """Catches a section on sittings in every report, and a comparison of conditions that everyone was in."""
    plain = exploratory.AnalysedStudy(prepare(make({"none": 12, "saliency": 12}).drop(columns="sitting")))
    assert not {"sittings", "attrition"} & exploratory.list_analyses(plain).keys()
    frame = make({"none": 12, "saliency": 12})
    crossed = frame.assign(participant=frame["participant"].str.removeprefix("none").str.removeprefix("saliency"))
    table = tabulate_attrition(crossed.assign(trial=range(len(crossed))), np.random.default_rng(0))
    assert table["condition"].tolist() == ["all conditions"]
    assert table["p"].isna().all()


def test_the_change_is_of_those_who_were_in_both() -> None:
    """Catches a change over all participants, which attrition alone could make."""
    frame = make({"none": 8, "saliency": 8})
    result = exploratory.compute("sittings", exploratory.AnalysedStudy(prepare(frame)))
    assert result.figure is not None
    assert "the 16 participants who were in both" in result.conclusion
    shares = frame.groupby(["participant", "sitting"])["correct"].mean().unstack().dropna()
    assert f"{100 * (shares[2] - shares[1]).mean():+.1f} percentage points" in result.conclusion
