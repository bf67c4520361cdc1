"""Draw the figures of the benchmarks: small SVG files, the same bytes for the same numbers."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import matplotlib as mpl
from matplotlib.figure import Figure

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
"""Okabe and Ito's colours, which colour-blind readers can tell apart."""
MARKERS = "osD^vP"
STYLE = {"svg.fonttype": "none", "svg.hashsalt": "foretell", "font.family": "DejaVu Sans", "font.size": 9}


@dataclass(frozen=True)
class Series:
    """Values by row label, with the ends of their intervals where there are any; absent rows have no point."""

    values: Mapping[str, float]
    intervals: Mapping[str, Sequence[float]] | None = None


def draw_dots(
    series: Mapping[str, Series],
    axis: str,
    *,
    line: float | None = None,
    line_label: str = "",
    log: bool = False,
    from_zero: bool = True,
) -> str:
    """Draw a dot plot, one row per label, and return it as SVG.

    Parameters
    ----------
    series
        What is compared, by its name in the legend.
    axis
        Label of the horizontal axis.
    line
        Where to draw a vertical line of reference.
    from_zero
        Whether a linear axis begins at 0.
    """
    labels = list(dict.fromkeys(label for one in series.values() for label in one.values))
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7, 1.2 + 0.24 * len(labels)), layout="constrained")
        axes = figure.add_subplot()
        for i, (name, one) in enumerate(series.items()):
            rows = [label for label in labels if label in one.values]
            heights = [labels.index(label) + 0.16 * (i - (len(series) - 1) / 2) for label in rows]
            values = [one.values[label] for label in rows]
            if one.intervals is not None:
                low, high = zip(*(one.intervals[label] for label in rows), strict=True)
                axes.hlines(heights, low, high, color=COLOURS[i], linewidth=1)
            axes.plot(values, heights, MARKERS[i], color=COLOURS[i], markersize=4, label=name)
        if line is not None:
            axes.axvline(line, color="#555555", linewidth=0.8, linestyle="--", label=line_label or None)
        axes.set_yticks(range(len(labels)), labels)
        axes.set_ylim(len(labels) - 0.4, -0.6)
        axes.set_xlabel(axis)
        if log:
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        elif from_zero:
            axes.set_xlim(left=min(0, axes.get_xlim()[0]))
        axes.grid(axis="x", color="#dddddd", linewidth=0.5)
        axes.set_axisbelow(True)
        if len(series) > 1 or line_label:
            figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
        return _to_svg(figure)


def draw_lines(panels: Mapping[str, Mapping[str, tuple[Sequence[float], Sequence[float]]]], axis: str) -> str:
    """Draw shares from 0 to 1 as lines, one panel per title, and return them as SVG.

    Parameters
    ----------
    panels
        By title: what is compared, by its name in the legend, as the values across and the shares.
    axis
        Label of the horizontal axes.
    """
    names = list(dict.fromkeys(name for lines in panels.values() for name in lines))
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7, 0.8 + 1.9 * -(-len(panels) // 2)), layout="constrained")
        grid = figure.subplots(-(-len(panels) // 2), 2, squeeze=False).flat
        for axes, (title, lines) in zip(grid, panels.items(), strict=False):
            for name, (across, shares) in lines.items():
                i = names.index(name)
                axes.plot(across, shares, f"{MARKERS[i]}-", color=COLOURS[i], markersize=3, linewidth=1, label=name)
            axes.set_title(title, fontsize=9)
            axes.set_xlabel(axis)
            axes.set_ylim(-0.03, 1.03)
            axes.grid(color="#dddddd", linewidth=0.5)
        named = [axes.get_legend_handles_labels() for axes in figure.axes]
        handles = {label: line for one in named for line, label in zip(*one, strict=True)}
        figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=2, frameon=False)
        return _to_svg(figure)


def _to_svg(figure: Figure) -> str:
    target = io.StringIO()
    figure.savefig(target, format="svg", metadata={"Date": None, "Creator": None})
    text = "\n".join(line.rstrip() for line in target.getvalue().splitlines()) + "\n"
    return _number_ids(re.sub(r"\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", text))


def _number_ids(text: str) -> str:
    """Renumber the generated ids: they are hashes of unrounded coordinates, which differ between processors."""
    names = dict.fromkeys(re.findall(r"\b[mp][0-9a-f]{10}\b", text))
    numbers = {name: f"{name[0]}{i}" for i, name in enumerate(names)}
    return re.sub(r"\b[mp][0-9a-f]{10}\b", lambda name: numbers[name[0]], text)
