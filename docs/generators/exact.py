"""Table and figure of ``benchmarks/results/exact.json``."""

from __future__ import annotations

from generators.benchmark_tables import Result
from generators.markdown import format_table
from generators.plots import Series, draw_dots

SCALES = ("cells", "pixels")


def tabulate(result: Result) -> list[str]:
    """Tabulate the correlation of each method's heatmaps with the exact ones, the highest first."""
    rows = [
        [f"`{name}`", *(f"{mean:.2f} ({low:.2f} to {high:.2f})" for mean, low, high in map(one.get, SCALES))]
        for name, one in sort_methods(result)
    ]
    return format_table(["method", *SCALES], rows)


def plot(result: Result) -> str:
    """Plot the same."""
    series = {}
    for scale in SCALES:
        points = {name: one[scale] for name, one in sort_methods(result)}
        values = {name: one[0] for name, one in points.items()}
        series[scale] = Series(values, {name: one[1:] for name, one in points.items()})
    return draw_dots(series, "rank correlation with the exact heatmap", line=0.0, line_label="none", from_zero=False)


def sort_methods(result: Result) -> list[tuple[str, Result]]:
    """Sort the methods by their correlation over cells, the highest first."""
    return sorted(result["methods"].items(), key=lambda one: -one[1]["cells"][0])


def list_refusals(result: Result) -> list[str]:
    """List the methods that were left out, with the reason."""
    return [f"- `{name}`: {why}" for name, why in result["left_out"].items()]
