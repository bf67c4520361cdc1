"""Table and figure of ``benchmarks/results/counterfactuals.json``."""

from __future__ import annotations

from generators.benchmark_tables import Result
from generators.markdown import format_table
from generators.plots import Series, draw_dots


def tabulate(result: Result) -> list[str]:
    """Tabulate the cells exchanged, how often random ones do the same, and how much of them is the object."""
    rows = []
    for row in result["sets"]:
        middle, low, high = row["cells"]
        of_object = row["share_on_object"]
        rows.append(
            (
                f"`{row['network']}`, {row['searches']} {row['images']}",
                f"{middle:g} ({low:.1f} to {high:.1f})",
                f"{row['random_cells_alike']:.1%}",
                "not known" if of_object is None else f"{of_object:.0%}",
            )
        )
    head = [
        "network and images",
        "cells of 49: median (10% to 90%)",
        "as many random cells do the same",
        "on the object",
    ]
    return format_table(head, rows)


def plot(result: Result) -> str:
    """Plot the median number of cells with its quantiles."""
    named = {f"{row['network']}, {row['images']}": row["cells"] for row in result["sets"]}
    values = {name: cells[0] for name, cells in named.items()}
    spans = {name: (cells[1], cells[2]) for name, cells in named.items()}
    return draw_dots({"median and 10% to 90%": Series(values, spans)}, "cells exchanged, of 49")
