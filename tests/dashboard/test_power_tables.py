"""A power curve in sentences and small tables."""

from __future__ import annotations

import pandas as pd

from dashboard.power.tables import (
    describe_power,
    describe_sample_sizes,
    describe_sizes,
    tabulate_contrasts,
    tabulate_sample_sizes,
    tabulate_smallest_effects,
)
from study.analysis.power import simulation as power
from study.analysis.words.headings import is_share


def test_sentences_name_the_hypothesis_of_each_test() -> None:
    """Catches the names of two models where a stranger looks for what the study can show."""
    rows = [(20, 1.0, "null - explanation", 0.9), (20, 1.0, "small - large", 0.2)]
    table = pd.DataFrame(rows, columns=["per_condition", "effect", "test", "low"])
    first, second = describe_sample_sizes(table, 4, 3.0, "EUR")
    assert first == (
        "To show that explanations change how often participants predict the AI correctly (explanation vs null), "
        "effects ×\N{NO-BREAK SPACE}1: with 20 participants per condition (80 in total, 240 EUR), the whole 95% "
        "interval of power is above 80%."
    )
    assert second.startswith("To show that the large model fits better than the small model (large vs small)")
    assert "(80 in total, 262.40 EUR)" in describe_sample_sizes(table, 4, 3.28, "EUR")[0]
    assert "(80 in total)" in describe_sample_sizes(table, 4, 0.0, "EUR")[0]


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
    assert needed["Multiplier"].tolist() == ["×\N{NO-BREAK SPACE}1", "×\N{NO-BREAK SPACE}0.5", "×\N{NO-BREAK SPACE}2"]
    assert needed.iloc[:, 3:].to_numpy().tolist() == [
        ["30", "120", "390"],
        ["–", "–", "–"],
        ["≤\N{NO-BREAK SPACE}20", "≤\N{NO-BREAK SPACE}80", "≤\N{NO-BREAK SPACE}260"],
    ]
    assert list(needed.columns[3:]) == ["Participants per condition", "Total", "Total pay, EUR"]
    alone = pd.DataFrame(rows[:2], columns=["per_condition", "effect", "test", "low"])
    assert "Multiplier" not in tabulate_sample_sizes(alone, 4, 3.25, "EUR")


def test_the_power_of_the_planned_size_is_a_sentence_for_each_test() -> None:
    """Catches a page that asks how many participants and never says what those of the plan give."""
    rows = [(40, 1.0, "a - b", 0.995, 0.9725, 0.99987), (40, 0.5, "a - b", 0.5, 0.4, 0.6), (20, 1.0, "a - b", 0, 0, 0)]
    table = pd.DataFrame(rows, columns=["per_condition", "effect", "test", "power", "low", "high"])
    assert [line.replace("\N{NO-BREAK SPACE}", " ") for line in describe_power(table, 40)] == [
        "b vs a: 99.5% (95% CI 97.2% to 100.0%) with effects × 1; 50.0% (95% CI 40.0% to 60.0%) with effects × 0.5"
    ]
    assert describe_power(table[:1], 40) == ["b vs a: 99.5% (95% CI 97.2% to 100.0%)"]
    assert describe_power(table, 30) == []


def test_what_is_simulated_is_named_as_it_was_read() -> None:
    """Catches a typing error that is simulated without being shown."""
    assert describe_sizes((10, 40), (1.0,), 40) == "Sizes: 10, 40 (planned) participants per condition."
    assert describe_sizes((10,), (1.0, 5.0), 40).endswith("Effects: ×\N{NO-BREAK SPACE}1, ×\N{NO-BREAK SPACE}5.")


def test_power_and_its_limits_are_written_in_percent() -> None:
    """Catches ".98" in the table of a figure whose axis is in percent."""
    assert all(is_share(name, power.COLUMNS) for name in ("power", "low", "high"))
    assert not is_share("low", ["estimate", "low", "high"])
    assert not is_share("effect", power.COLUMNS)


def test_contrasts_have_a_column_for_each_size() -> None:
    """Catches the size that is enough of another contrast, and contrasts by their codes."""
    rows = [
        (n, e, f"contrast: {name} - none, std_correct", p, p - 0.05, p + 0.05)
        for name, e, p in (("saliency", 1.0, 0.5), ("saliency", 0.5, 0.25), ("both", 1.0, 0.9), ("both", 0.5, 0.25))
        for n in (20, 40)
    ]
    table = pd.DataFrame(rows, columns=["per_condition", "effect", "test", "power", "low", "high"])
    shown = tabulate_contrasts(table, 40)
    assert list(shown.columns) == ["Contrast", "Multiplier", "20", "40 (planned)", "Needed"]
    assert shown["Contrast"].tolist()[::2] == [
        "Saliency maps vs no explanation, AI right",
        "Both explanations vs no explanation, AI right",
    ]
    assert shown["Needed"].tolist() == ["–", "–", "≤\N{NO-BREAK SPACE}20", "–"]
    assert shown.iloc[0]["20"] == "50.0% (45–55)"


def test_the_smallest_multiplier_says_where_none_smaller_was_tried() -> None:
    """Catches the smaller of two multipliers that is read as the smallest effect that can be found."""
    rows = [(20, 1.0, "a - b", 0.9), (20, 0.5, "a - b", 0.2), (40, 1.0, "a - b", 0.95), (40, 0.5, "a - b", 0.9)]
    rows += [(20, 1.0, "b - c", 0.1), (20, 0.5, "b - c", 0.1), (40, 1.0, "b - c", 0.2), (40, 0.5, "b - c", 0.1)]
    table = pd.DataFrame(rows, columns=["per_condition", "effect", "test", "low"])
    written = tabulate_smallest_effects(table)
    assert written.columns.tolist() == ["Test", "20", "40"]
    assert [[cell.replace("\N{NO-BREAK SPACE}", " ") for cell in row] for row in written.to_numpy().tolist()] == [
        ["b vs a", "× 1", "≤ × 0.5"],
        ["c vs b", "–", "–"],
    ]
