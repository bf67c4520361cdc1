"""Heatmaps in rows and columns: rows are methods; columns are images, classes of one image, or classifiers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from core.attribution.signs import sign_of
from core.classifier import Classifier
from core.faithfulness.curves import Curve
from core.rendering import AGAINST, FOR, NEUTRAL, Scale, scale_of, shared_scales
from core.types import Certificate, Explanation
from core.views import View
from dashboard.explore.canvas import FAINT, INK, ImageItem, Line, Rectangle, Sheet, Words, stack_lines, wrap_text
from dashboard.explore.figures import HeatmapDrawing, HeatmapStyle
from dashboard.explore.heatmap_jobs import Faithfulness, HeatmapRequest, Robustness

Scaling = Literal["Shared", "Own"]
SCALINGS: dict[Scaling, str] = {
    "Shared": "one scale for the heatmaps of a method",
    "Own": "each heatmap on its own scale",
}

SIDE, GAP, LABELS = 200, 14, 160
SMALL, TINY = 11.5, 10.5
CURVES = 44
DELETION, INSERTION = "#b2460a", "#2166ac"
WARNING = "#a33c00"
BLANK = "#eef0f4"


@dataclass(frozen=True)
class Source:
    """Where an image and a classifier come from, in Python, for `dashboard.explore.heatmaps.reproduce`.

    ``code`` is an expression that opens the image, after ``imports``; ``model`` is what `open_classifier` takes,
    relative to the folder ``base``.
    """

    name: str
    code: str
    imports: tuple[str, ...]
    model: str
    base: Path


@dataclass(frozen=True)
class Column:
    """An image as one classifier sees it; ``lines`` say what is written there."""

    seen: View
    classifier: Classifier
    lines: tuple[str, ...]
    source: Source
    mask: NDArray[np.bool_] | None = None

    @property
    def object_pixels(self) -> NDArray[np.bool_] | None:
        """Return the pixels (H, W) of the input that show the object, if known."""
        if self.mask is None or self.seen.note:
            return None
        return self.seen.cut(self.mask, self.classifier.input_shape[:0:-1])


@dataclass(frozen=True)
class Cell:
    """A heatmap, or the reason why there is none yet; and its measures if requested."""

    request: HeatmapRequest
    explanation: Explanation | None = None
    note: str = "waiting"
    faithfulness: Faithfulness | None = None
    robustness: Robustness | None = None

    @property
    def certificate(self) -> Certificate | None:
        """Return the certificate of the heatmap, if there is one."""
        return None if self.explanation is None else self.explanation.certificates[0]


@dataclass(frozen=True)
class HeatmapTable:
    """Cells of each method by column, and how to draw them."""

    title: str
    columns: tuple[Column, ...]
    rows: dict[str, tuple[Cell, ...]]
    scaling: Scaling
    look: HeatmapStyle

    @property
    def cells(self) -> list[tuple[Column, Cell]]:
        """Return all cells with their columns, row by row."""
        return [pair for row in self.rows.values() for pair in zip(self.columns, row, strict=True)]

    def scales(self, method: str) -> list[Scale | None]:
        """Return the value of the full colour of each heatmap of a row."""
        quantile = self.look.quantile
        found = [cell.explanation for cell in self.rows[method]]
        known = [one for one in found if one is not None]
        if self.scaling == "Own" or not known:
            return [None if one is None else scale_of(one, quantile=quantile) for one in found]
        shared = iter(shared_scales(known, quantile))
        return [None if one is None else next(shared) for one in found]


def draw_sheet(table: HeatmapTable) -> Sheet:
    """Draw the whole table: heads, heatmaps, scales, certificates, measures and legend."""
    items: list[ImageItem | Words | Line | Rectangle] = []
    left = [LABELS + k * (SIDE + GAP) for k in range(len(table.columns))]
    width = left[-1] + SIDE + GAP
    y: float = GAP
    for line in wrap_text(table.title, width - 2 * GAP, 14):
        items.append(Words(GAP, y, line, 14))
        y += 20
    y = _heads(items, table, left, y + 4)
    for method in table.rows:
        y = _row(items, table, method, left, y + GAP)
    for line in wrap_text(_legend(table), width - 2 * GAP, SMALL):
        items.append(Words(GAP, y + GAP, line, SMALL, FAINT))
        y += 1.3 * SMALL
    return Sheet(width, y + 2 * GAP, tuple(items))


def _legend(table: HeatmapTable) -> str:
    scale = SCALINGS[table.scaling]
    notes = " ".join(["", *sorted({column.seen.note for column in table.columns} - {""})])
    if table.look.style == "Outline":
        return f"Inside the orange line: the {table.look.percent:g}% of pixels with the strongest evidence.{notes}"
    clip = f"full colour for the strongest {table.look.clip:g}% of the pixels"
    return f"Colours: {scale}, {clip}. Values within sampling error are faded.{notes}"


def _heads(
    items: list[ImageItem | Words | Line | Rectangle], table: HeatmapTable, left: Sequence[float], top: float
) -> float:
    """Draw the network's input and the lines of each column; return where they end."""
    bottom = top
    for column, x in zip(table.columns, left, strict=True):
        height = _height(column)
        items.append(ImageItem(x, top, SIDE, height, column.seen.draw((2 * SIDE, 2 * height))))
        y = top + height + 5
        for k, text in enumerate(column.lines):
            words = stack_lines(wrap_text(text, SIDE, SMALL), x, y, size=SMALL, colour=FAINT if k else INK)
            items += words
            y += 1.3 * SMALL * len(words)
        bottom = max(bottom, y)
    return bottom


def _row(
    items: list[ImageItem | Words | Line | Rectangle],
    table: HeatmapTable,
    method: str,
    left: Sequence[float],
    top: float,
) -> float:
    """Draw the heatmaps of one method; return where they end."""
    scales, bottom = table.scales(method), top
    for column, cell, scale, x in zip(table.columns, table.rows[method], scales, left, strict=True):
        height = _height(column)
        if cell.explanation is None or scale is None:
            items.append(Rectangle(x, top, SIDE, height, BLANK))
            items += stack_lines(wrap_text(cell.note, SIDE - 16, SMALL), x + 8, top + 8, size=SMALL, colour=FAINT)
            bottom = max(bottom, top + height)
            continue
        drawing = HeatmapDrawing(column.seen, cell.explanation, column.mask, scale)
        items.append(ImageItem(x, top, SIDE, height, drawing.draw(table.look)))
        y = _facts(items, table, cell, scale, x, top + height + 4)
        bottom = max(bottom, _measures(items, cell.faithfulness, x, y) if cell.faithfulness else y)
    name = stack_lines(wrap_text(format_name(method), LABELS - 2 * GAP, 12), GAP, top, size=12)
    items += name
    shown = next((scale for scale in scales if scale is not None), None)
    end = top + 16 * len(name) + 60
    if shown is not None and table.look.style != "Outline":
        _bar(items, table, shown, top + 16 * len(name) + 8)
        meaning = sign_of(method).words("the class")
        lines = stack_lines(
            wrap_text(meaning, LABELS - 2 * GAP, TINY), GAP, top + 16 * len(name) + 54, size=TINY, colour=FAINT
        )
        items += lines
        end += 1.3 * TINY * len(lines)
    return max(bottom, end)


def _bar(items: list[ImageItem | Words | Line | Rectangle], table: HeatmapTable, scale: Scale, y: float) -> None:
    """Draw the colours and their values in this row."""
    width = LABELS - 2 * GAP
    ramp = np.linspace(-1, 1, 2 * width, dtype=np.float32)[None, :, None].repeat(20, 0)
    colour = NEUTRAL + np.abs(ramp) * (np.where(ramp >= 0, FOR, AGAINST) - NEUTRAL)
    items.append(ImageItem(GAP, y, width, 10, Image.fromarray(colour.round().astype(np.uint8))))
    own = table.scaling == "Own"
    ends = ("-", "0", "+") if own else ("-" + _number(scale.limit), "0", "+" + _number(scale.limit))
    for text, x, anchor in zip(ends, (GAP, GAP + width / 2, GAP + width), ("start", "middle", "end"), strict=True):
        items.append(Words(x, y + 13, text, TINY, FAINT, anchor))
    note = "own scale: see each heatmap" if own else "shared by this row"
    items.append(Words(GAP, y + 28, note, TINY, FAINT))


def _facts(
    items: list[ImageItem | Words | Line | Rectangle], table: HeatmapTable, cell: Cell, scale: Scale, x: float, y: float
) -> float:
    assert cell.certificate is not None
    lines = [fact for fact in [_scale_fact(table, scale), *format_facts(cell.certificate)] if fact]
    plain = stack_lines(wrap_text(" · ".join(lines), SIDE, TINY), x, y, size=TINY, colour=FAINT)
    y += 1.3 * TINY * len(plain)
    warnings = stack_lines(wrap_text(" ".join(cell.certificate.warnings), SIDE, TINY), x, y, size=TINY, colour=WARNING)
    items += [*plain, *warnings]
    return y + 1.3 * TINY * len(warnings)


def _scale_fact(table: HeatmapTable, scale: Scale) -> str:
    zero = f"zero {_number(scale.zero)}" if scale.zero else ""
    if table.look.style == "Outline":
        return ""
    return " ".join(part for part in (zero, f"scale ±{_number(scale.limit)}" if table.scaling == "Own" else "") if part)


def format_facts(certificate: Certificate) -> list[str]:
    """Format the certificate of a heatmap, short enough for a small heatmap."""
    known = [
        (certificate.completeness, "completeness {:+.2%}"),
        (certificate.conservation, "{:.0%} of the logit"),
        (certificate.standard_error, "error up to {:.2g}"),
        (certificate.effective_samples, "{:,.0f} effective samples"),
    ]
    return [text.format(value) for value, text in known if value is not None]


def _measures(items: list[ImageItem | Words | Line | Rectangle], found: Faithfulness, x: float, y: float) -> float:
    """Draw deletion and insertion as small curves with their areas, and the localisation."""
    items.append(Rectangle(x, y + 3, SIDE, CURVES, "#f7f8fa"))
    for curve, colour in ((found.deletion, DELETION), (found.insertion, INSERTION)):
        items.append(Line(_curve(curve, x, y + 3), colour, 1.2))
    y += CURVES + 6
    for text, colour in ((format_area(found.deletion), DELETION), (format_area(found.insertion), INSERTION)):
        lines = stack_lines(wrap_text(text, SIDE, TINY), x, y, size=TINY, colour=colour)
        items += lines
        y += 1.3 * TINY * len(lines)
    inside = stack_lines(
        wrap_text(" · ".join([format_infidelity(found), *format_localisation(found)]), SIDE, TINY),
        x,
        y,
        size=TINY,
        colour=FAINT,
    )
    items += inside
    return y + 1.3 * TINY * len(inside)


def _curve(curve: Curve, x: float, y: float) -> tuple[tuple[float, float], ...]:
    values = np.clip(curve.values[0].numpy(), 0, 1)
    points = zip(curve.fractions.tolist(), values.tolist(), strict=True)
    return tuple((x + share * SIDE, y + (1 - value) * CURVES) for share, value in points)


def format_area(curve: Curve) -> str:
    """Format the area under a curve with how it was computed."""
    how = f"{curve.output}, {curve.substrate} instead, {len(curve.fractions) - 1} steps"
    return f"{curve.measure} {float(curve.area[0]):.3f} ({how})"


def format_infidelity(found: Faithfulness) -> str:
    """Format the infidelity of a heatmap relative to that of an empty one."""
    how = found.infidelity
    left = float(how.value[0] / how.empty[0]) if float(how.empty[0]) else float("nan")
    return f"infidelity {left:.2f} of an empty heatmap's ({how.samples} squares, {how.substrate} instead, best scale)"


def format_localisation(found: Faithfulness) -> list[str]:
    """Format the share of the evidence on the object, if its location is known."""
    if found.mass is None or found.rank is None:
        return []
    mass = "no evidence in the heatmap" if np.isnan(found.mass) else f"relevance mass on the object {found.mass:.0%}"
    hit = f"peak {'on' if found.hit else 'off'} it (within {found.tolerance} px)"
    return [mass, f"relevance rank {found.rank:.0%}", hit]


def _height(column: Column) -> int:
    height, width = column.classifier.input_shape[1:]
    return round(SIDE * height / width)


def _number(value: float) -> str:
    return f"{value:.3g}"


SPELT = {
    **{
        word.lower(): word for word in ("LRP", "CAM", "MC", "RISE", "LIME", "SHAP", "DeepLIFT", "SmoothGrad", "VarGrad")
    },
    "grad": "Grad",
    "shapley": "Shapley",
    "bayesian": "Bayesian",
    "taylor": "Taylor",
}
"""Words of the methods' names that are not written small."""


def format_name(name: str) -> str:
    """Format a registered name for display: ``"lrp_composite"`` -> ``"LRP composite"``."""
    text = " ".join(SPELT.get(word, word) for word in name.split("_"))
    return text[:1].upper() + text[1:]
