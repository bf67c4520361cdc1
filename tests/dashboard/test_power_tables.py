"""A power curve in sentences and small tables."""

from __future__ import annotations

import pandas as pd

from dashboard.power.tables import describe_sample_sizes, tabulate_sample_sizes


def test_sentences_name_the_hypothesis_of_each_test() -> None:
    """Catches the names of two models where a stranger looks for what the study can show."""
    rows = [(20, 1.0, "null - explanation", 0.9), (20, 1.0, "small - large", 0.2)]
    table = pd.DataFrame(rows, columns=["per_condition", "effect", "test", "low"])
    first, second = describe_sample_sizes(table, 4, 3.0, "EUR")
    assert first == (
        "To show that explanations change how often participants predict the AI correctly (explanation vs null), "
        "effects × 1: with 20 participants per condition (80 in all, 240 EUR), the whole 95% interval of power is "
        "above 80%."
    )
    assert second.startswith("To show that the large model fits better than the small model (large vs small)")
    assert "(80 in all, 262.40 EUR)" in describe_sample_sizes(table, 4, 3.28, "EUR")[0]
    assert "(80 in all)" in describe_sample_sizes(table, 4, 0.0, "EUR")[0]


def test_the_sizes_that_are_enough_are_a_table_and_a_dash_where_none_is() -> None:
    """Catches a size that is not enough, a smallest size that may be too large, and a pay that is
    not that of all conditions.
    """
    rows = [(20, 1.0, "null - explanation", 0.7), (30, 1.0, "null - explanation", 0.9), (30, 0.5, "a - b", 0.2)]
    rows += [(20, 2.0, "null - explanation", 0.95)]
    needed = tabulate_sample_sizes(
        pd.DataFrame(rows, columns=["per_condition", "effect", "test", "low"]), 4, 3.25, "EUR"
    )
    assert needed["Test"].tolist() == ["explanation vs null", "b vs a", "explanation vs null"]
    assert needed["Effects"].tolist() == ["× 1", "× 0.5", "× 2"]
    assert needed.iloc[:, 3:].to_numpy().tolist() == [
        ["30", "120", "390"],
        ["–", "–", "–"],
        ["≤ 20", "≤ 80", "≤ 260"],
    ]
    assert list(needed.columns[3:]) == ["Participants per condition", "In all", "Pay, EUR"]
