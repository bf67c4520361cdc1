"""Utility of explanations: against closed forms, an example by hand and a slow bootstrap, and where it is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import pytest

from core.errors import ForetellError
from study.analysis.exploratory import utility
from study.analysis.exploratory.analysis import AnalysedStudy, compute, list_analyses
from study.analysis.responses.reading import prepare

STEPS = (5, 10, 15)


def make_responses(
    right: Mapping[str, Sequence[int]], *, steps: Sequence[int] = STEPS, of: int = 4, people: int = 3
) -> pd.DataFrame:
    """Rows of participants who are right on so many ``of`` a block after each number of training images."""
    rows = [
        (f"{name}-{person}", name, seen, int(k < count))
        for name, counts in right.items()
        for person in range(people)
        for seen, count in zip(steps, counts, strict=True)
        for k in range(of)
    ]
    return pd.DataFrame(rows, columns=["participant", "condition", "n_training", "correct"])


def tabulate(frame: pd.DataFrame) -> pd.DataFrame:
    return utility.tabulate(frame, np.random.default_rng(0), draws=500)


def pick(table: pd.DataFrame, condition: str, measure: str) -> list[float]:
    return table.query("condition == @condition and measure == @measure")["estimate"].tolist()


def test_a_learner_who_ignores_explanations_has_utility_one() -> None:
    """Closed form. Catches a ratio the other way round only where it differs from 1, and an area that is not scaled."""
    table = tabulate(make_responses({"none": (2, 3, 1), "saliency": (2, 3, 1)}))
    assert pick(table, "saliency", utility.AT_K) == [1, 1, 1]
    assert pick(table, "saliency", utility.UTILITY) == [1]
    exact = table[table["condition"] == "saliency"]
    assert (exact["low"] == exact["estimate"]).all()  # participants do not vary
    assert (exact["high"] == exact["estimate"]).all()


def test_a_small_example_is_as_computed_by_hand() -> None:
    """Control 1/2, 1/2, 1/2; explained 1/2, 3/4, 1. Ratios 1, 3/2, 2; area 6.25 + 8.75 over a range of 10: 3/2.

    Catches a sum for an area, an area over the number of values of K, and a ratio to the wrong condition.
    """
    table = tabulate(make_responses({"none": (2, 2, 2), "both": (2, 3, 4), "examples": (1, 1, 1)}))
    assert pick(table, "none", utility.ACCURACY) == [0.5] * 3
    assert pick(table, "both", utility.ACCURACY) == [0.5, 0.75, 1]
    assert pick(table, "both", utility.AT_K) == [1, 1.5, 2]
    assert pick(table, "both", utility.UTILITY) == [1.5]
    assert pick(table, "examples", utility.UTILITY) == [0.5]
    assert pick(table, "none", utility.UTILITY) == []
    assert table.query("measure == 'Utility'")["n_training"].isna().all()
    assert table.query("measure == 'Utility'")["responses"].tolist() == [36, 36]


def test_unequal_steps_have_unequal_weight() -> None:
    """K = 2, 4, 10 and ratios 1, 1, 2: (2 + 9) / 8 by hand. Catches a plain mean (4/3)."""
    table = tabulate(make_responses({"none": (2, 2, 2), "both": (2, 2, 4)}, steps=(2, 4, 10)))
    assert pick(table, "both", utility.UTILITY) == pytest.approx([11 / 8])


def test_with_one_round_utility_is_that_ratio() -> None:
    """Catches a division by a range of 0."""
    table = tabulate(make_responses({"none": (2,), "both": (3,)}, steps=(5,)))
    assert pick(table, "both", utility.UTILITY) == pick(table, "both", utility.AT_K) == [1.5]


def test_intervals_are_those_of_a_slow_bootstrap() -> None:
    """Against participants drawn one by one, each with all their responses, within conditions.

    Catches responses drawn instead of participants, participants drawn across conditions, one draw for both, limits of
    other percentiles, and rounds drawn separately. The tolerance is that of 3,000 draws.
    """
    rng = np.random.default_rng(1)
    ability = {f"{name}-{k}": rng.beta(2, 2) for name in ("none", "both") for k in range(12)}
    rows = [
        (who, who.split("-")[0], seen, int(rng.random() < p))
        for who, p in ability.items()
        for seen in STEPS
        for _ in range(6)
    ]
    frame = pd.DataFrame(rows, columns=["participant", "condition", "n_training", "correct"])
    table = utility.tabulate(frame, np.random.default_rng(2), draws=3000)
    people = dict(list(frame.groupby("participant")))
    slow = []
    for _ in range(3000):
        accuracy = {}
        for name in ("none", "both"):
            drawn = [people[f"{name}-{k}"]["correct"].to_numpy() for k in rng.integers(0, 12, 12)]
            accuracy[name] = np.reshape(drawn, (12, 3, 6)).mean(axis=(0, 2))
        first, second, third = accuracy["both"] / accuracy["none"]
        slow.append(((first + second) / 2 + (second + third) / 2) / 2)
    (row,) = table.query("measure == 'Utility'").to_dict("records")
    spread = np.std(slow)
    assert row["low"] == pytest.approx(np.quantile(slow, 0.025), abs=0.2 * spread)
    assert row["high"] == pytest.approx(np.quantile(slow, 0.975), abs=0.3 * spread)
    again = utility.tabulate(frame, np.random.default_rng(2), draws=3000)
    assert again.equals(table)  # the same seed


@pytest.mark.parametrize(
    ("frame", "sentence"),
    [
        (
            make_responses({"none": (1, 1, 1)}).drop(columns="n_training"),
            "The study has no blocks of training and test",
        ),
        (make_responses({"both": (1, 1, 1)}), "No participant was in the condition 'none'"),
        (make_responses({"none": (1, 1, 1)}), "Every participant trained without an explanation"),
        (
            make_responses({"none": (1, 1, 1), "both": (1, 1, 1)}).query("n_training < 15 or condition == 'none'"),
            "The condition 'both' has no responses after 15 training images",
        ),
        (make_responses({"none": (1, 0, 1), "both": (1, 1, 1)}), "The condition 'none' has no correct response"),
    ],
)
def test_it_says_why_it_does_not_apply(frame: pd.DataFrame, sentence: str) -> None:
    """Catches infinite and missing utilities."""
    with pytest.raises(ForetellError, match=re.escape(sentence)):
        tabulate(frame)


def test_it_is_offered_with_blocks_alone_and_concludes() -> None:
    """Catches the analysis in every study, training among its responses, and a sentence that says the opposite."""
    test = make_responses({"none": (2, 2, 2), "both": (3, 3, 3)})
    test["saliency"] = test["examples"] = (test["condition"] == "both").astype(int)
    kinds = ("adv_incorrect", "std_incorrect", "std_correct")
    test = test.assign(category="fish", trial_type=[kinds[k % 3] for k in range(len(test))], block="test")
    test["trial"] = test.groupby("participant").cumcount()
    training = test.assign(block="training", correct=0, trial=test["trial"] + 100)
    study = AnalysedStudy(prepare(pd.concat([test, training])))
    result = compute("utility", study)
    assert (
        result.conclusion
        == "Both explanations: utility 1.50 [1.50, 1.50], so training with it helped to predict the AI."
    )
    assert "2,000 bootstrap draws" in result.says
    assert result.figure is not None
    (trace,) = result.figure.data
    assert list(trace.x) == [5, 10, 15]
    plain = AnalysedStudy(prepare(test.drop(columns=["n_training", "block"])))
    assert "utility" not in list_analyses(plain)
