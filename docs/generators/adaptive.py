"""False positives and power where responses choose the trials: a table and a figure of the benchmark."""

from __future__ import annotations

from generators.benchmark_tables import Result
from generators.markdown import format_table
from generators.plots import Series, draw_dots


def tabulate(result: Result) -> list[str]:
    """Share of studies in which each analysis rejects."""
    analyses = list(dict.fromkeys(row["analysis"] for row in result["rows"]))
    cells: dict[tuple[str, str, int, int], dict[str, str]] = {}
    for row in result["rows"]:
        key = (row["policy"], row["world"], row["participants"], row["studies"])
        cells.setdefault(key, {})[row["analysis"]] = f"{row['rejected']:.3f} [{row['low']:.3f}, {row['high']:.3f}]"
    columns = ["policy", "world", "participants", "studies", *analyses]
    return format_table(columns, [[*map(str, key), *(cell[name] for name in analyses)] for key, cell in cells.items()])


def plot(result: Result) -> str:
    """Plot the shares by analysis."""
    series = {}
    for analysis in dict.fromkeys(row["analysis"] for row in result["rows"]):
        rows = {f"{one['policy']}, {one['world']}": one for one in result["rows"] if one["analysis"] == analysis}
        values = {key: row["rejected"] for key, row in rows.items()}
        series[analysis] = Series(values, {key: (row["low"], row["high"]) for key, row in rows.items()})
    return draw_dots(series, "share of p < .05", line=0.05, line_label="nominal")
