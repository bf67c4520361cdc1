"""The table and the figure of each benchmark, from its result."""

from __future__ import annotations

from typing import Any

from generators.markdown import MISSING, format_table
from generators.plots import Series, draw_dots

Result = dict[str, Any]
SHOWN = 20
"""Participants per condition whose coverage the page of benchmarks shows; docs/statistics.md has all sizes."""


def tabulate_attribution(result: Result) -> list[str]:
    """Tabulate Foretell's time per method, and how many times as long each peer takes."""
    rows = []
    for method in dict.fromkeys(method for network in result.values() for method in network):
        cells = [f"`{method}`"]
        for network in result.values():
            one = network.get(method, {"refused": ""})
            if "refused" in one:
                cells += [MISSING, MISSING]
                continue
            faster = [(peer.replace(", batched", " (batched)"), ratio) for peer, ratio in one["faster"].items()]
            cells += [f"{one['seconds']['foretell']:.2g}", ", ".join(f"{k} {v:.2f}" for k, v in faster) or MISSING]
        rows.append(cells)
    head = [cell for network in result for cell in (f"{network}, s", "speed-up over")]
    return format_table(["method", *head], rows)


def plot_attribution(result: Result) -> str:
    """Plot the speed-up over the fastest peer."""
    series = {
        network: Series({name: min(one["faster"].values()) for name, one in methods.items() if one.get("faster")})
        for network, methods in result.items()
    }
    return draw_dots(series, "speed-up over the fastest peer", line=1.0)


def tabulate_masked_forward(result: Result) -> list[str]:
    """Tabulate inputs per second of the network, the compiled program, the engine, and a whole heatmap."""
    rows = [
        (
            network.removeprefix("torchvision "),
            *(f"{value:,.0f}" if value >= 100 else f"{value:.1f}" for value in one["inputs_per_second"].values()),
            f"{one['masked engine / network']:.2f}",
            f"{one['whole heatmap / network']:.2f}",
        )
        for network, one in result.items()
    ]
    head = ["network", "network as loaded", "fused program", "masked engine", "whole heatmap"]
    return format_table([*head, "engine / network", "heatmap / network"], rows)


def plot_masked_forward(result: Result) -> str:
    """Plot the throughput against the network as it was loaded."""
    names = {network: network.removeprefix("torchvision ") for network in result}
    series = {
        label: Series({names[network]: one[key] for network, one in result.items()})
        for label, key in (("masked engine", "masked engine / network"), ("whole heatmap", "whole heatmap / network"))
    }
    return draw_dots(series, "images per second, relative to the network as loaded", line=1.0)


def tabulate_uncertainty(result: Result) -> list[str]:
    """Tabulate the cost of passes under noise in bare forward passes."""
    labels = _uncertainty_rows(result)
    rows = [(f"`{sampler}`", where, *_costs(result, sampler, where)) for sampler, where in labels]
    return format_table(["sampler", "noise on", *result], rows)


def _uncertainty_rows(result: Result) -> list[tuple[str, str]]:
    pairs = ((sampler, where) for network in result.values() for sampler, one in network.items() for where in one)
    return list(dict.fromkeys(pairs))


def _costs(result: Result, sampler: str, where: str) -> list[str]:
    cells = (network.get(sampler, {}).get(where) for network in result.values())
    return [f"{cell['of_bare']:.2f}" if isinstance(cell, dict) else MISSING for cell in cells]


def plot_uncertainty(result: Result) -> str:
    """Plot the cost of a pass under noise, by network."""
    series = {}
    for name, network in result.items():
        cells = {f"{sampler}, {where}": one for sampler, w in network.items() for where, one in w.items()}
        series[name] = Series({key: one["of_bare"] for key, one in cells.items() if isinstance(one, dict)})
    return draw_dots(series, "cost of a pass under noise, in bare forward passes", line=1.0)


def tabulate_memory(result: Result) -> list[str]:
    """Tabulate the rise of the peak memory at each budget."""
    peaks = result["peak rise"]
    rows = [
        (f"`{method}`", *(f"{peaks[budget][method]['rise_mib']:,} MiB" for budget in peaks), f"{difference:.1g}")
        for method, difference in result["largest difference of the heatmaps, relative"].items()
    ]
    return format_table(["method", *(f"budget {budget}" for budget in peaks), "largest difference, relative"], rows)


def plot_memory(result: Result) -> str:
    """Plot the rise of the peak by budget."""
    peaks = result["peak rise"]
    methods = next(iter(peaks.values()))
    series = {
        method: Series({f"budget {budget}": peaks[budget][method]["rise_mib"] for budget in peaks})
        for method in methods
    }
    return draw_dots(series, "rise of the peak memory, MiB")


def tabulate_teaching(result: Result) -> list[str]:
    """Tabulate scoring in both spaces, and the projected hours of the paper's build."""
    scoring, projected = result["scoring"], result["projected"]
    rows = [
        ("teaching sets per second, function space", f"{scoring['function_space_sets_per_second']:,}"),
        ("teaching sets per second, weight space", f"{scoring['weight_space_sets_per_second']:.3g}"),
        ("largest difference of the probabilities", f"{scoring['largest_difference_of_probabilities']:.1g}"),
        *((f"hours: {part}", f"{hours:.3f}") for part, hours in projected["hours"].items()),
        ("hours in all", f"{projected['hours in all']:.2f}"),
    ]
    return format_table(["", "value"], rows)


def plot_teaching(result: Result) -> str:
    """Plot projected hours of each part of the paper's build."""
    return draw_dots({"hours": Series(result["projected"]["hours"])}, "projected hours", log=True)


def _programs(result: Result) -> dict[str, dict[str, Any]]:
    """Return processor seconds of each program for each data set."""
    sets = {key: result[key]["interaction model"] for key in ("160 participants", "1600 participants")}
    return {**sets, "160 participants, random slope": result["160 participants, random slope"]}


def tabulate_models(result: Result) -> list[str]:
    """Tabulate processor seconds of one model by program."""
    data = _programs(result)
    programs = next(iter(data.values()))
    rows = [(program, *(_seconds(one[program]) for one in data.values())) for program in programs]
    return format_table(["program", *(f"{name}, s" for name in data)], rows)


def _seconds(cell: Any) -> str:
    return f"{cell['cpu_seconds']:.2f}" if isinstance(cell, dict) else cell.removesuffix(" of processor time")


def plot_models(result: Result) -> str:
    """Plot processor seconds by program and data."""
    series = {
        name: Series({program: cell["cpu_seconds"] for program, cell in one.items() if isinstance(cell, dict)})
        for name, one in _programs(result).items()
    }
    return draw_dots(series, "processor seconds", log=True)


def tabulate_recovery(result: Result) -> list[str]:
    """Tabulate the bias and coverage of each parameter."""
    rows = [
        (
            f"`{one['parameter']}`",
            one["method"],
            f"{one['true']:.2f}",
            f"{one['bias']:+.3f} ± {one['bias_error']:.3f}",
            f"{one['coverage']:.1%} ± {one['coverage_error']:.1%}",
        )
        for one in result["parameters"]
    ]
    return format_table(["parameter", "interval", "true value", "bias", "coverage"], rows)


def plot_recovery(result: Result) -> str:
    """Plot the coverage of each interval."""
    return _plot_coverage(
        {f"{one['parameter']} ({one['method']})": one for one in result["parameters"]}, "coverage_error"
    )


def tabulate_coverage(result: Result) -> list[str]:
    """Tabulate the coverage of every interval that Foretell reports, at one size of studies."""
    rows = [
        (one["measure"], f"{one['coverage']:.1%}", f"{one['error']:.1%}", f"{one['intervals']:,}")
        for one in _select_shown(result)
    ]
    return format_table(["interval", "coverage", "Monte Carlo error", "intervals"], rows)


def plot_coverage(result: Result) -> str:
    """Plot the coverage of every interval; false positives are in the table only."""
    rows = {one["measure"]: one for one in _select_shown(result) if "false positives" not in one["measure"]}
    return _plot_coverage(rows, "error")


def _select_shown(result: Result) -> list[dict[str, Any]]:
    return [one for one in result["rows"] if one["per_condition"] == SHOWN]


def _plot_coverage(rows: dict[str, Any], error: str) -> str:
    values = {name: one["coverage"] for name, one in rows.items()}
    ends = {
        name: (value - 1.96 * rows[name][error], value + 1.96 * rows[name][error]) for name, value in values.items()
    }
    dots = {"coverage": Series(values, ends)}
    return draw_dots(dots, "coverage of 95% intervals", line=0.95, line_label="nominal", from_zero=False)


def tabulate_null_studies(result: Result) -> list[str]:
    """Share of studies in which any test rejects, by analysis."""
    rows = [row for row in result["rows"] if row["test"] in ("any test", "any contrast", "any difference")]
    analyses = list(dict.fromkeys((row["analysis"], row["test"]) for row in rows))
    cells: dict[tuple[Any, ...], dict[tuple[str, str], str]] = {}
    for row in rows:
        key = (row["world"], row["participants"], row["categories"], row["studies"])
        share = f"{row['rejected']:.3f} [{row['low']:.3f}, {row['high']:.3f}]"
        cells.setdefault(key, {})[row["analysis"], row["test"]] = share
    names = [f"{analysis}: {test}" for analysis, test in analyses]
    columns = ["simulated variation", "participants", "categories", "studies", *names]
    return format_table(columns, [[*map(str, key), *(cell[name] for name in analyses)] for key, cell in cells.items()])


def plot_null_studies(result: Result) -> str:
    """Plot the shares of studies in which any test rejects, by analysis."""
    shown = [row for row in result["rows"] if row["test"] == "any test" and "power" not in row["world"]]
    series: dict[str, Series] = {}
    for analysis in dict.fromkeys(row["analysis"] for row in shown):
        rows = {
            f"{row['world']}, {row['participants']} participants": row for row in shown if row["analysis"] == analysis
        }
        values = {key: row["rejected"] for key, row in rows.items()}
        series[analysis] = Series(values, {key: (row["low"], row["high"]) for key, row in rows.items()})
    return draw_dots(series, "share of p < .05 under the null hypothesis", line=0.05, line_label="nominal")
