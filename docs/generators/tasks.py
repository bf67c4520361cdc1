"""Table and figure of ``benchmarks/results/task_recovery.json``."""

from __future__ import annotations

from typing import Any

from generators.benchmark_tables import Result, plot_recovery
from generators.markdown import format_table

UNITS = {"points": "percentage points", "levels": "levels"}


def tabulate(result: Result) -> list[str]:
    """Tabulate the study of each task: true differences, bias and coverage over its contrasts."""
    rows = [_describe(one) for one in result["studies"]]
    columns = ["study", "participants", "contrasts", "true differences", "mean bias", "largest bias", "coverage"]
    return format_table([*columns, "of each contrast"], rows)


def _describe(study: dict[str, Any]) -> tuple[str, ...]:
    contrasts, unit = study["contrasts"], UNITS[study["unit"]]
    true = [one["true"] for one in contrasts]
    bias = [one["bias"] for one in contrasts]
    worst = max(contrasts, key=lambda one: abs(one["bias"]))
    covered = [one["coverage"] for one in contrasts]
    return (
        f"`{study['study']}`",
        str(study["participants"]),
        str(len(contrasts)),
        f"{min(true):+.1f} to {max(true):+.1f} {unit}",
        f"{sum(bias) / len(bias):+.2f}",
        f"{worst['bias']:+.2f} ± {worst['bias_error']:.2f}",
        f"{sum(covered) / len(covered):.1%}",
        f"{min(covered):.1%} to {max(covered):.1%}",
    )


def plot(result: Result) -> str:
    """Plot the coverage of the contrast of each study that is covered least often."""
    least = [(one, min(one["contrasts"], key=lambda each: each["coverage"])) for one in result["studies"]]
    named = [worst | {"parameter": one["study"], "method": worst["contrast"]} for one, worst in least]
    return plot_recovery({"parameters": named})
