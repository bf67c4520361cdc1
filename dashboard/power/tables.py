"""Write a power curve in sentences and small tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from core.names import format_probability
from study.analysis.models.sentences import describe_hypothesis
from study.analysis.power import simulation as power
from study.analysis.responses.outcome import Outcome, find_outcome
from study.analysis.words.cells import write_rounded
from study.bundle import TYPE_LABELS
from study.conditions import format_condition
from study.tasks.predict import TASK as PREDICT

MULTIPLIER = "Multiplier"
"""The heading of an effect as a multiple of the assumed one."""


def describe_assumptions(outcome: Outcome) -> tuple[str, str]:
    """Name what is assumed, and the differences in brackets."""
    if outcome.is_scored:
        return "Assumed accuracy", "percentage points above no explanation"
    return "Assumed mean level", "levels above no explanation"


def write_multiple(effect: float) -> str:
    """Write an effect-size multiplier: ``"× 0.5"``."""
    return "×\N{NO-BREAK SPACE}" + f"{effect:g}"


def is_scaled(table: pd.DataFrame) -> bool:
    """Whether a table is about other effects than the assumed ones, so that its multipliers must be named."""
    return set(table["effect"]) != {1.0}


def tabulate_assumptions(means: pd.DataFrame) -> pd.DataFrame:
    """Write `PowerAnalysis.tabulate_means` with a column for each trial type: ``"35.2% (+20.9)"``, ``"3.14 (+0.52)"``.

    No explanation is the same for every multiplier, and has one row.
    """
    asked, outcome = list(dict.fromkeys(means["effect"])), find_outcome(means)
    rows = []
    for condition, of_condition in means.groupby("condition", sort=False):
        for effect in asked[:1] if condition == "none" else asked:
            cells = of_condition[of_condition["effect"] == effect].set_index("trial_type")
            row = {"Condition": format_condition(str(condition))}
            if is_scaled(means):
                row[MULTIPLIER] = "–" if condition == "none" else write_multiple(effect)
            written = {TYPE_LABELS[kind]: _write_mean(cells.loc[kind], condition, outcome) for kind in cells.index}
            rows.append({**row, **written})
    return pd.DataFrame(rows)


def _write_mean(cell: pd.Series[float], condition: object, outcome: Outcome) -> str:
    """Write an accuracy or mean level and, of a condition that is compared, its difference in points or levels."""
    form, digits = (".1%", 1) if outcome.is_scored else (".2f", 2)
    difference = cell[outcome.difference]
    compared = "" if condition == "none" or difference != difference else f" ({write_rounded(difference, digits, '+')})"
    return f"{cell[outcome.mean]:{form}}{compared}"


def describe_sample_sizes(
    table: pd.DataFrame, conditions: int, pay: float, currency: str, act: str = PREDICT.act
) -> Sequence[str]:
    """Describe, for each test and effect, the smallest size whose whole interval of power is above the target.

    ``act`` is what correct participants do, in the words of `study.tasks.task.Task`.
    """
    rows = power.enough(table).itertuples()
    return [_enough(row.test, row.effect, row.per_condition, conditions, pay, currency, act) for row in rows]


def tabulate_sample_sizes(
    table: pd.DataFrame, conditions: int, pay: float, currency: str, act: str = PREDICT.act
) -> pd.DataFrame:
    """Tabulate, for each test and effect, the smallest size whose whole interval of power is above the target."""
    needed = power.enough(table)
    people, smallest = needed["per_condition"] * conditions, float(table["per_condition"].min())
    columns = {
        "To show that": [describe_hypothesis(*test.split(" - ", 1), act=act) for test in needed["test"]],
        "Test": needed["test"].map(power.name_test),
        **({MULTIPLIER: needed["effect"].map(write_multiple)} if is_scaled(needed) else {}),
        "Participants per condition": _write_counts(needed["per_condition"], smallest),
        "Total": _write_counts(people, smallest * conditions),
    }
    if pay:
        columns[f"Total pay, {currency}"] = _write_counts(people * pay, smallest * conditions * pay)
    return pd.DataFrame(columns)


def _write_counts(counts: pd.Series[float], smallest: float) -> list[str]:
    """Write numbers of participants or amounts: at most the smallest that was tried; a dash where no size is enough."""
    at_most = "≤\N{NO-BREAK SPACE}"
    return [
        "–" if count != count else f"{at_most if count == smallest else ''}{_format_amount(count)}" for count in counts
    ]


def _enough(
    test: str, effect: float, per_condition: float, conditions: int, pay: float, currency: str, act: str
) -> str:
    hypothesis = describe_hypothesis(*test.split(" - ", 1), act=act)
    what = f"To show that {hypothesis} ({power.name_test(test)}), effects {write_multiple(effect)}"
    if per_condition != per_condition:  # NaN: none of the sizes
        return (
            f"{what}: at none of these sizes is the whole 95% interval of power above 80%; try larger sizes or more "
            "simulated studies."
        )
    cost = describe_cost(round(per_condition), conditions, pay, currency)
    return (
        f"{what}: with {per_condition:g} participants per condition ({cost}), the whole 95% "
        "interval of power is above 80%."
    )


def tabulate_contrasts(table: pd.DataFrame, planned: int | None) -> pd.DataFrame:
    """Write the power of each contrast with a column for each size, and the smallest size that is enough."""
    enough = power.enough(table).set_index(["effect", "test"])["per_condition"]
    smallest, scaled, rows = float(table["per_condition"].min()), is_scaled(table), []
    for (test, effect), part in table.groupby(["test", "effect"], sort=False):
        row = {"Contrast": power.name_test(str(test))} | ({MULTIPLIER: write_multiple(effect)} if scaled else {})
        for one in part.itertuples():
            name = f"{one.per_condition:,}{' (planned)' if one.per_condition == planned else ''}"
            row[name] = f"{format_probability(one.power)} ({100 * one.low:.0f}–{100 * one.high:.0f})"
        rows.append({**row, "Needed": _write_counts(enough.loc[[(effect, test)]], smallest)[0]})
    return pd.DataFrame(rows)


def tabulate_smallest_effects(table: pd.DataFrame) -> pd.DataFrame:
    """Write, for each test, the smallest multiplier that is enough with a column for each size."""
    smallest, rows = table["effect"].min(), []
    for test, part in power.smallest_effect(table).groupby("test", sort=False):
        of_size = {f"{one.per_condition:,}": _write_at_most(one.effect, smallest) for one in part.itertuples()}
        rows.append({"Test": power.name_test(str(test)), **of_size})
    return pd.DataFrame(rows)


def _write_at_most(effect: float, smallest: float) -> str:
    """Write a multiplier: at most the smallest that was tried; a dash where none is enough."""
    if effect != effect:
        return "–"
    return ("≤\N{NO-BREAK SPACE}" if effect == smallest else "") + write_multiple(effect)


def describe_sizes(sizes: Sequence[int], effects: Sequence[float], planned: int | None) -> str:
    """List the sizes and multipliers that are simulated, as they were read."""
    each = ", ".join(f"{size:,}{' (planned)' if size == planned else ''}" for size in sizes)
    multipliers = "" if list(effects) == [1.0] else f" Effects: {', '.join(map(write_multiple, effects))}."
    return f"Sizes: {each} participants per condition.{multipliers}"


def describe_power(table: pd.DataFrame, size: int) -> list[str]:
    """Describe the power of each test with ``size`` participants per condition; none if they are not simulated."""
    scaled = is_scaled(table)
    return [
        f"{power.name_test(str(test))}: {'; '.join(_describe_one(row, scaled) for row in part.itertuples())}"
        for test, part in table[table["per_condition"] == size].groupby("test", sort=False)
    ]


def _describe_one(row: Any, scaled: bool) -> str:
    limits = f"{format_probability(row.low)} to {format_probability(row.high)}"
    multiple = f" with effects {write_multiple(row.effect)}" if scaled else ""
    return f"{format_probability(row.power)} (95% CI {limits}){multiple}"


def describe_cost(per_condition: int, conditions: int, pay: float, currency: str) -> str:
    """Write the number of all participants and what they cost: ``"160 in total, 480 EUR"``."""
    people = per_condition * conditions
    return f"{people:,} in total" + (f", {_format_amount(people * pay)} {currency}" if pay else "")


def _format_amount(amount: float) -> str:
    """Format an amount of money: ``"240"``, ``"262.50"``."""
    return f"{amount:,.2f}".removesuffix(".00")
