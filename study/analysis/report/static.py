"""Figures as files for a manuscript: SVG, and PNG for Word, drawn by Matplotlib from what the page shows.

Matplotlib is imported only where a report is written. The same figure gives the same bytes.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import plotly.graph_objects as go
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator, PercentFormatter

from core.errors import ForetellError

WIDTH, PIXELS = 7.0, 100.0
"""Of a figure in inches, and how many of the page's pixels are one."""
DPI = 300
INK = "#222222"
"""On paper; the page's grey is for two backgrounds."""
MARKERS = {
    "circle": "o", "diamond": "D", "square": "s", "triangle-up": "^", "triangle-down": "v", "cross": "P", "x": "X",
}  # fmt: skip
DASHES = {"solid": "-", "dot": ":", "dash": "--", "dashdot": "-.", "longdash": (0, (8, 3))}
SETTINGS: Any = {
    "svg.fonttype": "none",  # words stay words, for readers who search or edit
    "svg.hashsalt": "foretell",
    "font.family": ["DejaVu Sans"],  # Matplotlib has it, so that words take the same place on every machine
    "font.size": 9,
    "text.parse_math": False,  # a $ in a name begins no formula
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


class NotDrawnError(ForetellError):
    """A figure has a kind of trace that is not drawn here, such as that of a package's analysis."""


def write_figures(figures: Mapping[str, go.Figure | None]) -> dict[str, str]:
    """Write each figure that there is, by its file; one of a kind that is not drawn here stays on the page only."""
    written = {}
    for name, figure in figures.items():
        if figure is not None:
            with suppress(NotDrawnError):
                written[name] = write_svg(figure)
    return written


def write_svg(figure: go.Figure) -> str:
    """Draw a figure of the page as SVG.

    Raises
    ------
    NotDrawnError
        It has something that is not drawn here.
    """
    written = io.StringIO()
    with rc_context(SETTINGS):
        draw(figure).savefig(written, format="svg", bbox_inches="tight", metadata={"Date": None})
    return written.getvalue()


def write_png(figure: go.Figure) -> bytes:
    """Draw a figure of the page as PNG, 300 dots an inch; errors are those of `write_svg`."""
    written = io.BytesIO()
    with rc_context(SETTINGS):
        draw(figure).savefig(written, format="png", dpi=DPI, bbox_inches="tight", metadata={"Software": None})
    return written.getvalue()


def draw(figure: go.Figure) -> Figure:
    """Draw the traces, lines, words and axes of a figure of `study.plots`."""
    height = (figure.layout.height or 430) / PIXELS
    made = Figure(figsize=(WIDTH, height))
    axes = {name: _add_axes(made, figure, name) for name in _list_panels(figure)}
    for trace in figure.data:
        _draw_trace(axes[trace.yaxis or "y"], trace)
    for shape in figure.layout.shapes:
        _draw_line(axes[_find_panel(shape.yref, figure)], shape)
    for name, panel in axes.items():
        _label_axes(panel, figure, name)
    _write_words(axes, figure)
    return made


def _list_panels(figure: go.Figure) -> list[str]:
    return sorted({trace.yaxis or "y" for trace in figure.data})


def _find_panel(reference: str | None, figure: go.Figure) -> str:
    name = (reference or "y").split(" ")[0]
    return name if name in _list_panels(figure) else "y"


def _get_axes(figure: go.Figure, name: str) -> tuple[Any, Any]:
    number = name[1:]
    return figure.layout[f"xaxis{number}"], figure.layout[f"yaxis{number}"]


def _add_axes(made: Figure, figure: go.Figure, name: str) -> Axes:
    bottom, top = _get_axes(figure, name)[1].domain or (0.0, 1.0)
    panel = made.add_axes((0.12, bottom, 0.86, top - bottom))
    panel.set_axisbelow(True)
    return panel


def _draw_trace(panel: Axes, trace: Any) -> None:
    """Draw marks, a line, or horizontal bars, with intervals."""
    if trace.type == "bar" and trace.orientation == "h":
        panel.barh(list(trace.y), list(trace.x), trace.width, list(trace.base), color=_read_color(trace.marker.color),
                   label=trace.name)  # fmt: skip
        return
    if trace.type != "scatter" or trace.fill not in (None, "none"):
        raise NotDrawnError(f"A figure with {trace.type} is on the page only.")
    x, y = list(trace.x), list(trace.y)
    mode, line = trace.mode or "lines", trace.line
    color = _read_color(trace.marker.color or line.color)
    panel.plot(
        x,
        y,
        linestyle=DASHES[line.dash or "solid"] if "lines" in mode else "none",
        linewidth=0.75 * (line.width or 2),
        marker=MARKERS.get(trace.marker.symbol or "circle", "o") if "markers" in mode else "none",
        markersize=0.6 * (trace.marker.size or 8),
        color=_read_color(line.color) if "lines" in mode and line.color else color,
        alpha=trace.marker.opacity or 1.0,
        label=None if trace.showlegend is False else _write_plain(trace.name or "").replace("\n", " "),
    )
    for bars, is_across in ((trace.error_x, True), (trace.error_y, False)):
        if bars.array is not None:
            low = bars.arrayminus if bars.arrayminus is not None else bars.array
            spread = np.maximum(np.nan_to_num(np.array([low, bars.array], dtype=np.float64)), 0)
            panel.errorbar(
                x,
                y,
                xerr=spread if is_across else None,
                yerr=None if is_across else spread,
                fmt="none",
                ecolor=_read_color(bars.color) or color,
                elinewidth=1.3,
                capsize=3,
            )
    if "text" in mode:
        for at, height, word, side in zip(x, y, trace.text, _repeat(trace.textposition, len(x)), strict=True):
            left = "left" in (side or "")
            panel.annotate(str(word), (at, height), xytext=(-6 if left else 6, 0), textcoords="offset points",
                           ha="right" if left else "left", va="center")  # fmt: skip


def _repeat(value: Any, count: int) -> Sequence[Any]:
    return [value] * count if value is None or isinstance(value, str) else list(value)


def _draw_line(panel: Axes, shape: Any) -> None:
    """Draw a line across the panel: what is compared with."""
    look: dict[str, Any] = {
        "color": INK,
        "linestyle": DASHES[shape.line.dash or "solid"],
        "linewidth": 0.9,
        "zorder": 0.5,
    }
    if shape.y0 == shape.y1:
        panel.axhline(shape.y0, **look)
    else:
        panel.axvline(shape.x0, **look)


def _label_axes(panel: Axes, figure: go.Figure, name: str) -> None:
    across, up = _get_axes(figure, name)
    panel.set_xlabel(_write_plain(across.title.text or ""))
    panel.set_ylabel(_write_plain(up.title.text or ""))
    for axis, given, limit in ((panel.xaxis, across, panel.set_xlim), (panel.yaxis, up, panel.set_ylim)):
        if given.type == "log":
            (panel.set_xscale if axis is panel.xaxis else panel.set_yscale)("log")
            axis.set_major_locator(LogLocator(subs=(1.0, 1.5, 2.0, 3.0, 5.0, 7.0)))
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axis.set_minor_locator(NullLocator())
        if given.range is not None:
            limit(*(10 ** np.array(given.range, dtype=np.float64) if given.type == "log" else given.range))
        if given.autorange == "reversed":
            limit(*limit()[::-1])
        _label_ticks(axis, given)
        if given.showgrid is not False:
            axis.grid(visible=True, color="#dddddd", linewidth=0.6)


def _label_ticks(axis: Axis, given: Any) -> None:
    if given.tickvals is not None:
        axis.set_ticks(list(given.tickvals), [_write_plain(word) for word in given.ticktext], size=8)
        axis.set_tick_params(length=0)
        for drawn, word in zip(axis.get_ticklabels(), given.ticktext, strict=True):
            drawn.set_fontweight("bold" if "<b>" in word else "normal")
    elif given.tickformat and given.tickformat.endswith("%"):
        axis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    if given.showticklabels is False:
        axis.set_tick_params(labelbottom=False, labelleft=False)


def _write_words(axes: Mapping[str, Axes], figure: go.Figure) -> None:
    """Write the legend, the words above the figure, and those at a line."""
    first = axes["y"]
    handles, names = first.get_legend_handles_labels()
    if figure.layout.showlegend is not False and len(names) > 1:
        first.legend(handles, names, loc="lower left", bbox_to_anchor=(0, 1.01), ncols=3, frameon=False, borderpad=0)
    if figure.layout.title.text:
        first.annotate(_write_plain(figure.layout.title.text), (0, 1), xycoords="axes fraction", xytext=(0, 34),
                       textcoords="offset points", weight="bold")  # fmt: skip
    for one in figure.layout.annotations:
        panel = axes[_find_panel(one.yref, figure)]
        across = (one.xref or "x").endswith("domain")
        along = (one.yref or "y").endswith("domain")
        transform = panel.get_xaxis_transform() if along else panel.get_yaxis_transform() if across else panel.transData
        panel.annotate(
            _write_plain(one.text),
            (one.x, one.y),
            xycoords=transform,
            xytext=(3, 2),
            textcoords="offset points",
            fontsize=8,
            ha={"left": "left", "right": "right"}.get(one.xanchor, "center"),
            va={"top": "top", "bottom": "bottom"}.get(one.yanchor, "center"),
        )


def _write_plain(text: str) -> str:
    """Write a label of the page without its markup."""
    return re.sub(r"</?(b|i)>", "", re.sub(r"<br\s*/?>", "\n", text))


def _read_color(color: str | None) -> Any:
    """Read a colour of the page; its grey for two backgrounds becomes ink."""
    if color is None:
        return None
    if numbers := re.fullmatch(r"rgba\(([\d.,\s]+)\)", color):
        red, green, blue, opacity = map(float, numbers[1].split(","))
        return red / 255, green / 255, blue / 255, opacity
    return to_rgba(INK if color == "#767676" else color)
