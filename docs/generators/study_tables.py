"""The table and the figure of the benchmarks of a running study, of heatmaps and of concepts."""

from __future__ import annotations

from typing import Any

from generators.concepts import COLUMNS, PAPER
from generators.markdown import format_interval, format_p, format_table
from generators.plots import Series, draw_dots

Result = dict[str, Any]


def tabulate_power(result: Result) -> list[str]:
    """Time of the whole power analysis, and the power it finds."""
    rows = [
        ("studies", f"{result['studies']:,}"),
        ("participants in each", result["people"]),
        ("worker processes", result["workers"]),
        ("seconds", f"{result['seconds']:.0f}"),
        ("processor seconds", f"{result['cpu_seconds']:.0f}"),
        *(
            (
                f"power of {one['test'].replace(' - ', ' against ')}",
                f"{one['power']:.3f} [{one['low']:.3f}, {one['high']:.3f}]",
            )
            for one in result["power"]
        ),
    ]
    return format_table(["", "value"], rows)


def plot_power(result: Result) -> str:
    """Plot seconds of the power analysis: elapsed, of all processors, of one worker."""
    values = {
        "elapsed": result["seconds"],
        "processors": result["cpu_seconds"],
        "processor, per worker": result["cpu_seconds_per_worker"],
    }
    return draw_dots({"seconds": Series(values)}, f"seconds for {result['studies']:,} studies")


def tabulate_participants(result: Result) -> list[str]:
    """Tabulate the latency, throughput and completeness by number of participants."""
    rows = [
        (
            run["people"],
            "open" if run.get("monitor", True) else "closed",
            run["left"],
            run["finished"],
            f"{run['responses']:,}",
            f"{run['p50_ms']:,} / {run['p95_ms']:,} / {run['p99_ms']:,}",
            f"{run['slowest_ms']:,}",
            f"{run['server_cores']:.2f}",
            f"{run['written_kb_per_response']:.0f}",
        )
        for run in result["runs"]
    ]
    head = [
        "participants",
        "Monitor",
        "left early",
        "finished",
        "responses",
        "median / 95% / 99%, ms",
        "slowest, ms",
        "cores used",
        "KB written per response",
    ]
    return format_table(head, rows)


def plot_participants(result: Result) -> str:
    """Plot the latency quantiles by number of participants."""
    quantiles = {"median": "p50_ms", "95%": "p95_ms", "99%": "p99_ms", "slowest": "slowest_ms"}
    series = {
        f"{run['people']} participants, Monitor {'open' if run.get('monitor', True) else 'closed'}": Series(
            {name: run[key] for name, key in quantiles.items()}
        )
        for run in result["runs"]
    }
    return draw_dots(series, "time until a response is acknowledged, ms", log=True)


def tabulate_timing(result: Result) -> list[str]:
    """Tabulate the error of response times."""
    low, high = result["error_range_ms"]
    rows = [
        ("trials", result["trials"]),
        ("standard deviation of the error", f"{result['error_sd_ms']:.1f} ms"),
        ("mean error", f"{result['error_mean_ms']:.1f} ms"),
        ("range of the error", f"{low:.0f} to {high:.0f} ms"),
        ("refresh rate of the screen", f"{result['frame_hz']:.0f} Hz"),
        ("step of the browser's clock", f"{result['clock_ms']:.1f} ms"),
    ]
    return format_table(["", "value"], rows)


def plot_timing(result: Result) -> str:
    """Plot the mean error with its standard deviation and its range."""
    mean, sd = result["error_mean_ms"], result["error_sd_ms"]
    spans = {"mean ± one standard deviation": (mean - sd, mean + sd), "range": tuple(result["error_range_ms"])}
    values = {"mean ± one standard deviation": mean, "range": sum(result["error_range_ms"]) / 2}
    return draw_dots(
        {"error": Series(values, spans)}, "error of the response time, ms", line=0.0, line_label="no error"
    )


STAGES = {"listens": "the server listens", "home": "Home", "first heatmap": "first heatmap", "demo": "demo ready"}
"""Stages of the first start after the installation."""


def tabulate_first_start(result: Result) -> list[str]:
    """Tabulate the stages of the first start, with the processor seconds used until each."""
    rows = [] if result["install_s"] is None else [("packages installed", f"{result['install_s']:.0f}", "–", "–")]
    for stage, label in STAGES.items():
        used = result["processor_s"][stage]
        cells = [f"{used['server']:.1f}" if used else "–", _measure_demo(result) if stage == "demo" else "–"]
        rows.append((label, f"{result['after_installation_s'][stage]:.1f}", *cells))
    head = ["stage", "s since the installation", "processor s of the server", "of the demo's processes"]
    size = result["installed_gb"]
    text = f"The packages take {size:.1f} GB here. " if size is not None else ""
    return [*format_table(head, rows), "", f"{text}The start printed {result['output']['lines']} lines."]


def _measure_demo(result: Result) -> str:
    """Return the processor seconds of the processes that prepared the demo: without those of the installation."""
    ends = [result["processor_s"][stage] for stage in ("listens", "demo")]
    return f"{ends[1]['background'] - ends[0]['background']:.0f}" if all(ends) else "–"


def plot_first_start(result: Result) -> str:
    """Plot the seconds from the end of the installation to each stage."""
    seconds = {label: result["after_installation_s"][stage] for stage, label in STAGES.items()}
    return draw_dots({"since the installation": Series(seconds)}, "s")


def tabulate_pages(result: Result) -> list[str]:
    """Tabulate the time of each page and click, and how many times the reference it is."""
    reference = result["reference_ms"]
    rows = [("a page of one sentence", f"{reference:.0f}", "1.0")]
    for name, ms in (result["pages_ms"] | result["clicks_ms"]).items():
        path = name.partition("?")[0]
        label = name if name in result["clicks_ms"] else path.capitalize() or "Home"
        rows.append((label, f"{ms:.0f}", f"{ms / reference:.1f}"))
    table = format_table(["page or click", "median, ms", "times the reference"], rows)
    return [*table, *_describe_scroll(result["scroll"])] if "scroll" in result else table


def _describe_scroll(scroll: Result) -> list[str]:
    rate, longest = scroll["frames_per_s"], scroll["longest_frame_ms"]
    return [
        "",
        f"Scrolling through Explore's gallery of {scroll['images']:,} images draws {rate:.0f} frames per second, the "
        f"longest in {longest:.0f} ms; the browser draws 60 at most.",
    ]


def plot_pages(result: Result) -> str:
    """Plot the time of each page and click."""
    pages = {name.partition("?")[0].capitalize() or "Home": ms for name, ms in result["pages_ms"].items()}
    series = {"first useful content": Series(pages), "click": Series(result["clicks_ms"])}
    return draw_dots(series, "ms", line=result["reference_ms"], line_label="a page of one sentence")


def tabulate_faults(result: Result) -> list[str]:
    """Tabulate what was stored and lost over all kills."""
    labels = {
        "kills": "kills of the server",
        "clients": "clients",
        "acknowledged": "responses acknowledged",
        "stored": "responses stored",
        "lost": "lost",
        "doubled": "stored twice",
        "retries_found_stored": "retries of responses already stored",
        "p50_ms": "median latency, ms",
    }
    return format_table(["", "value"], [(label, f"{result[key]:,}") for key, label in labels.items()])


def plot_faults(result: Result) -> str:
    """Plot counts of responses."""
    labels = {"acknowledged": "acknowledged", "stored": "stored", "lost": "lost", "doubled": "stored twice"}
    return draw_dots({"responses": Series({label: result[key] for key, label in labels.items()})}, "responses")


def tabulate_policies(result: Result) -> list[str]:
    """Tabulate how well each policy teaches, and how influence ranks images."""
    rows = [
        (
            f"`{name}`",
            one["trials"],
            f"{one['probability']['mean']:.3f}",
            _cell(one["gain"]),
            f"{one['rank']['mean']:.2f}",
            f"{100 * one['more_correct']['mean']:.1f} ± {100 * one['more_correct']['error']:.1f}",
        )
        for name, one in result["policies"].items()
    ]
    head = ["policy", "trials", "learner's P after", "gain, log-odds", "rank", "simulated learner, points more correct"]
    ranks = [
        (label, _cell(result["retraining"][name]["rank_correlation"]))
        for name, label in (("exact", "exact Hessian"), ("kfac", "Kronecker factors, as the policy has it"))
    ]
    against = f"rank correlation with leaving out, {result['left_out']} images"
    return [*format_table(head, rows), "", *format_table(["influence by", against], ranks)]


def plot_policies(result: Result) -> str:
    """Plot the gain of each policy with its standard error."""
    gains = {name: one["gain"] for name, one in result["policies"].items()}
    means = {name: gain["mean"] for name, gain in gains.items()}
    spans = {name: [gain["mean"] - gain["error"], gain["mean"] + gain["error"]] for name, gain in gains.items()}
    return draw_dots(
        {"learner": Series(means, spans)}, "gain in log-odds, with its standard error", from_zero=False, line=0.0
    )


def tabulate_faithfulness(result: Result) -> list[str]:
    """Tabulate the pointing game and context effect of each method."""
    pointing, contexts = result["pointing"]["methods"], result["contexts"]["methods"]
    rows = []
    order = sorted(pointing, key=lambda method: -pointing[method]["share"])
    for name in [*order, *(name for name in contexts if name not in pointing)]:
        hit, context = pointing.get(name), contexts.get(name, {}).get("logit")
        share = f"{hit['share']:.2f} {format_interval(hit['interval_95'])}" if hit else ""
        p = format_p(hit["p_holm"]) if hit else ""
        effect = f"{context['spearman']:.2f} {format_interval(context['interval_95'])}" if context else ""
        rows.append((f"`{name}`", share, p, effect))
    return format_table(["method", "pointing game: hits", "p against the centre", "context: correlation"], rows)


def plot_faithfulness(result: Result) -> str:
    """Plot hits of each method, and of the centre of the photograph."""
    methods = result["pointing"]["methods"]
    order = sorted(methods, key=lambda name: -methods[name]["share"])
    hits = Series({n: methods[n]["share"] for n in order}, {n: methods[n]["interval_95"] for n in order})
    centre = result["pointing"]["centre"]["share"]
    return draw_dots({"method": hits}, "pointing game: share of hits", line=centre, line_label="centre of the image")


def tabulate_concepts(result: Result) -> list[str]:
    """Tabulate each estimate of the concept's effect on the bars."""
    rows = [
        (name.replace("-", " / "), f"{one['best_causal']:.2f}", *(_cell(one[column]) for column in COLUMNS))
        for name, one in result["bars"].items()
    ]
    head = ["% red: horizontal / vertical", "closed form", "intervention", "Dec-CaCE", "EncDec-CaCE", "ConExp", "TCAV"]
    return format_table(head, rows)


def _cell(cell: dict[str, float]) -> str:
    return f"{cell['mean']:.2f} ± {cell['error']:.2f}"


def plot_concepts(result: Result) -> str:
    """Plot estimates of the effect next to its closed form."""
    names = {name: f"{name.replace('-', ' / ')} % red" for name in PAPER}
    labels = {"causal": "intervention", "decoded": "Dec-CaCE", "reencoded": "EncDec-CaCE", "observed": "ConExp"}
    series = {"closed form": Series({names[name]: result["bars"][name]["best_causal"] for name in names})}
    for column, label in labels.items():
        series[label] = Series({names[name]: result["bars"][name][column]["mean"] for name in names})
    return draw_dots(series, "effect of the colour on the probability of the class")
