"""Table and figure of ``benchmarks/results/bayes_studies.json``."""

from __future__ import annotations

from generators.benchmark_tables import Result, plot_recovery
from generators.markdown import format_table


def tabulate(result: Result) -> list[str]:
    """Tabulate coverage and ranks of each parameter, then over all of them, and the time."""
    rows = [
        (one["parameter"], f"{one['coverage']:.1%}", f"{one['mean_rank']:.2f}", f"{one['p_uniform']:.2f}")
        for one in result["parameters"]
    ]
    every, demo = result["all"], result["demo"]
    blank = every["coverage_points_blank"]
    facts = [
        ("coverage of all parameters", f"{every['coverage']:.1%} ± {every['coverage_error']:.1%}"),
        ("coverage of differences", f"{every['coverage_points']:.1%} ± {every['coverage_points_error']:.1%}"),
        ("the same where the likelihood has no maximum", "–" if blank is None else f"{blank:.1%}"),
        ("studies without a maximum of the likelihood", f"{result['blank']} of {result['studies']}"),
        ("fits to be believed", f"{result['believed']:.0%}"),
        ("processor time of a fit, and by maximum likelihood", _write_times(result)),
        (f"the same with random slopes and {demo['responses']:,} responses", _write_times(demo)),
    ]
    return [
        *format_table(["parameter", "coverage", "mean rank", "p of uniform ranks"], rows),
        "",
        *format_table(["over all studies", "value"], facts),
    ]


def _write_times(result: Result) -> str:
    return f"{result['seconds']:.1f} s, {result['likelihood_seconds']:.2f} s"


def plot(result: Result) -> str:
    """Plot the coverage of each parameter, with its Monte Carlo error."""
    n = result["studies"]
    named = [
        {
            "parameter": one["parameter"],
            "method": "95% interval",
            "coverage": one["coverage"],
            "coverage_error": (max(one["coverage"] * (1 - one["coverage"]), 0.01) / n) ** 0.5,
            "bias": 0.0,
            "bias_error": 0.0,
        }
        for one in result["parameters"]
    ]
    return plot_recovery({"parameters": named})
