"""Table and figure of ``benchmarks/results/ordinal_studies.json``."""

from __future__ import annotations

from generators.benchmark_tables import Result, plot_recovery
from generators.markdown import format_table


def tabulate(result: Result) -> list[str]:
    """Tabulate bias and coverage of the odds ratios of saliency maps, then how often tests reject."""
    rows = [
        (
            f"{one['parameter']}, {one['true'] + 0.0:+.1f}",
            f"{one['bias']:+.3f} ± {one['bias_error']:.3f}",
            f"{one['coverage']:.1%} ± {one['coverage_error']:.1%}",
        )
        for one in result["parameters"]
    ]
    tests = [
        (f"{one['effect']:.1f}", f"{one['any_contrast']:.1%}", f"{one['proportional_odds']:.1%} of {one['checked']}")
        for one in result["rejected"]
    ]
    return [
        *format_table(["log odds ratio, true value", "bias", "coverage"], rows),
        "",
        *format_table(["effect", "some p (Holm) below .05", "proportional odds rejected"], tests),
    ]


def plot(result: Result) -> str:
    """Plot the coverage of each odds ratio."""
    named = [one | {"method": f"{one['true'] + 0.0:+.1f}"} for one in result["parameters"]]
    return plot_recovery({"parameters": named})
