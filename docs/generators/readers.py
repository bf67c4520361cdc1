"""Table and figure of ``benchmarks/results/readers.json``."""

from __future__ import annotations

from generators.benchmark_tables import Result
from generators.markdown import format_table
from generators.plots import Series, draw_dots

TYPES = {
    "std_correct": "standard, AI correct",
    "std_incorrect": "standard, AI incorrect",
    "adv_incorrect": "adversarial, AI incorrect",
}


def tabulate(result: Result) -> list[str]:
    """Tabulate the probability of predicting the AI, by condition and trial type."""
    rows = [
        [
            f"`{row['condition']}`",
            f"`{row['reader']}`",
            f"`{row['network']}`",
            *("{:.2f} ({:.2f} to {:.2f})".format(*row[kind]) for kind in TYPES),
        ]
        for row in list_rows(result)
    ]
    return format_table(["condition", "reader", "network", *TYPES.values()], rows)


def plot(result: Result) -> str:
    """Plot the same."""
    series = {}
    for kind, label in TYPES.items():
        named = {f"{row['condition']}, {row['reader']}, {row['network']}": row[kind] for row in list_rows(result)}
        series[label] = Series({name: one[0] for name, one in named.items()}, {k: v[1:] for k, v in named.items()})
    return draw_dots(series, "probability of predicting the AI", line=0.5, line_label="chance")


def list_rows(result: Result) -> list[Result]:
    """List the rows of the result in their order."""
    return list(result["rows"])
