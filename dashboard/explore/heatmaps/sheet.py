"""Draw a table of heatmaps on one sheet: heads, heatmaps, scales, certificates, measures and legend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from core.drawing.rendering import Scale, draw_colour_bar
from core.drawing.sheet import FAINT, INK, ImageItem, Item, Line, Rectangle, Sheet, Words, write_lines
from core.faithfulness.curves import Curve
from core.names import format_name
from dashboard.explore.facts import format_area, format_facts, format_infidelity, format_localisation
from dashboard.explore.figures import DELETION, INSERTION, HeatmapDrawing
from dashboard.explore.heatmap_jobs import Faithfulness
from dashboard.explore.table import SCALINGS, Cell, HeatmapColumn, HeatmapTable

SIDE, GAP, LABELS = 200, 14, 160
WIDE_SIDE = 330
"""Side of the images of a stacked sheet, which fill a phone, where a unit is one pixel."""
SMALL, TINY = 12.5, 12.25
"""Sizes of text: on the page, a unit of the sheet is one pixel or more."""
PER_LINE = 5
"""Heatmaps side by side where there are more methods, of one image."""
CURVES = 44


@dataclass(frozen=True)
class Palette:
    """Colours of a sheet, text and curves with a contrast of 4.5 on the ground."""

    ground: str
    ink: str
    faint: str
    warning: str
    blank: str
    pale: str
    deletion: str
    insertion: str


LIGHT = Palette("white", INK, FAINT, "#a33c00", "#eef0f4", "#f7f8fa", DELETION, INSERTION)
"""Of files, which end on paper, and of the light page."""
DARK = Palette("#14161b", "#e9ebf0", "#a3aab8", "#ffb27a", "#262b35", "#1f232c", "#f0a06a", "#8ab8ec")
"""Of the dark page, whose ground is the sheet's (.streamlit/config.toml)."""


def draw_sheet(table: HeatmapTable, palette: Palette = LIGHT) -> Sheet:
    """Draw the whole table; many methods of one image are drawn side by side."""
    if len(table.columns) == 1 and len(table.rows) > PER_LINE:
        return _draw_tiles(table, palette)
    if table.shares_image:
        return _draw_pair(table, palette)
    drawing = _Drawing(table, palette)
    width = drawing.left[-1] + SIDE + GAP
    y = drawing.write(table.title, GAP, GAP, width - 2 * GAP, size=14)
    y = drawing.draw_heads(y + 4)
    for method in table.rows:
        y = drawing.draw_row(method, y + GAP)
    return drawing.finish(width, y + GAP)


def draw_stacked_sheet(table: HeatmapTable, palette: Palette = LIGHT) -> Sheet:
    """Draw the columns below each other, for a phone; the scales are those of the whole table."""
    if table.shares_image:
        return _draw_stacked_pair(table, palette)
    drawing = _Drawing(table, palette, labels=GAP, side=WIDE_SIDE)
    width = WIDE_SIDE + 2 * GAP
    y = drawing.write(table.title, GAP, GAP, width - 2 * GAP, size=14)
    for k in range(len(table.columns)):
        y = drawing.draw_heads(y + GAP, [k])
        for method in table.rows:
            y = drawing.draw_titled(method, k, y + GAP)
    return drawing.finish(width, y + GAP)


def _draw_tiles(table: HeatmapTable, palette: Palette) -> Sheet:
    """Draw the image and the heatmap of each method, line by line."""
    drawing = _Drawing(table, palette)
    left = [GAP + k * (SIDE + GAP) for k in range(PER_LINE)]
    width = left[-1] + SIDE + GAP
    y = drawing.write(table.title, GAP, GAP, width - 2 * GAP, size=14) + GAP
    tiles = [None, *table.rows]
    for start in range(0, len(tiles), PER_LINE):
        line = zip(tiles[start : start + PER_LINE], left, strict=False)
        y = max(drawing.draw_tile(method, x, y) for method, x in line) + GAP
    return drawing.finish(width, y)


def _draw_pair(table: HeatmapTable, palette: Palette) -> Sheet:
    """Draw the image once, and next to it the heatmaps of both networks."""
    drawing = _Drawing(table, palette, labels=SIDE + 2 * GAP)
    width = drawing.left[-1] + SIDE + GAP
    y = drawing.write(table.title, GAP, GAP, width - 2 * GAP, size=14) + 4
    y = max(drawing.write_lines(column, x, y) for column, x in zip(table.columns, drawing.left, strict=True))
    for k, method in enumerate(table.rows):
        y = drawing.draw_row(method, y + GAP, with_image=k == 0)
    return drawing.finish(width, y + GAP)


def _draw_stacked_pair(table: HeatmapTable, palette: Palette) -> Sheet:
    """Draw the image next to what both networks predict, and below it their heatmaps side by side, for a phone."""
    drawing = _Drawing(table, palette, labels=GAP, side=(WIDE_SIDE - GAP) // 2)
    width = WIDE_SIDE + 2 * GAP
    top = y = drawing.write(table.title, GAP, GAP, width - 2 * GAP, size=14) + GAP
    for column in table.columns:
        y = drawing.write_lines(column, drawing.left[1], y) + GAP
    y = max(y, drawing.draw_image(table.columns[0], GAP, top) + GAP)
    for method in table.rows:
        y = drawing.draw_row_below_label(method, y) + GAP
    return drawing.finish(width, y)


def _legend(table: HeatmapTable) -> str:
    scale = SCALINGS[table.scaling]
    notes = " ".join(["", *sorted({column.image.view.note for column in table.columns} - {""})])
    if table.look.style == "Outline":
        return f"Inside the orange line: the {table.look.percent:g}% of pixels with the strongest evidence.{notes}"
    clip = f"full colour for the strongest {table.look.clip:g}% of the pixels"
    return f"Colours: {scale}, {clip}. Values within sampling error are faded.{notes}"


@dataclass
class _Drawing:
    """What is drawn so far; each method draws below ``y`` and returns where it ends."""

    table: HeatmapTable
    palette: Palette
    labels: int = LABELS
    side: int = SIDE
    items: list[Item] = field(default_factory=list)

    @property
    def left(self) -> list[int]:
        """Left edges of the columns, if they are side by side."""
        return [self.labels + k * (self.side + GAP) for k in range(len(self.table.columns))]

    def write(
        self, text: str, x: float, y: float, width: float | None = None, *, size: float, colour: str | None = None
    ) -> float:
        wide, ink = self.side if width is None else width, colour or self.palette.ink
        words, end = write_lines(text, x, y, wide, size=size, colour=ink)
        self.items += words
        return end

    def finish(self, width: int, y: float) -> Sheet:
        """Draw the legend below everything and return the sheet."""
        y = self.write(_legend(self.table), GAP, y, width - 2 * GAP, size=SMALL, colour=self.palette.faint)
        return Sheet(width, y + GAP, tuple(self.items), self.palette.ground)

    def draw_heads(self, y: float, which: Sequence[int] | None = None) -> float:
        """Draw the network's input and the lines of each column, or of the columns ``which``."""
        columns = self.table.columns if which is None else [self.table.columns[k] for k in which]
        return max(self._draw_head(column, x, y) for column, x in zip(columns, self.left, strict=False))

    def _draw_head(self, column: HeatmapColumn, x: float, y: float) -> float:
        return self.write_lines(column, x, self.draw_image(column, x, y))

    def draw_image(self, column: HeatmapColumn, x: float, y: float) -> float:
        """Draw the network's input."""
        side, height = self.side, _height(column, self.side)
        self.items.append(ImageItem(x, y, side, height, column.image.view.draw((2 * side, 2 * height))))
        return y + height + 5

    def write_lines(self, column: HeatmapColumn, x: float, y: float) -> float:
        """Write the lines of a column."""
        for k, text in enumerate(column.lines):
            y = self.write(text, x, y, size=SMALL, colour=self.palette.faint if k else None)
        return y

    def draw_row(self, method: str, y: float, *, with_image: bool = False) -> float:
        """Draw the heatmaps of one method, next to its name or, ``with_image``, to the image above its name."""
        end = self._draw_cells(method, y)
        if with_image:
            y = self.draw_image(self.table.columns[0], GAP, y)
        return max(end, self._draw_label(method, y, self.labels - 2 * GAP))

    def draw_row_below_label(self, method: str, y: float) -> float:
        """Draw the heatmaps of one method below its name and colours, each under the name of its column."""
        y = self._draw_label(method, y, WIDE_SIDE) + 4
        names = [column.lines[0] for column in self.table.columns]
        y = max(self.write(name, x, y, size=SMALL) for name, x in zip(names, self.left, strict=True))
        return self._draw_cells(method, y + 4)

    def _draw_cells(self, method: str, y: float) -> float:
        cells = zip(self.table.columns, self.table.rows[method], self.table.scales(method), strict=True)
        return max(self._draw_cell(*of, x, y) for of, x in zip(cells, self.left, strict=True))

    def draw_titled(self, method: str, k: int, y: float) -> float:
        """Draw the heatmap of one method in column ``k`` under its name, in the first column with its colours."""
        scale = self.table.scales(method)[k]
        y = self.write(format_name(method), GAP, y, size=12)
        if k == 0 and scale is not None and self.table.look.style != "Outline":
            self._draw_bar(scale, y + 4, self.side)
            y = self._write_sign(method, GAP, y + 48)
        return self._draw_cell(self.table.columns[k], self.table.rows[method][k], scale, GAP, y + 4)

    def draw_tile(self, method: str | None, x: float, y: float) -> float:
        """Draw the heatmap of a method under its name, or, for None, the image; there is one column."""
        (column,) = self.table.columns
        if method is None:
            return self._draw_head(column, x, self.write("What the AI saw", x, y, size=12))
        (cell,), (scale,) = self.table.rows[method], self.table.scales(method)
        y = self._draw_cell(column, cell, scale, x, self.write(format_name(method), x, y, size=12))
        if scale is None or self.table.look.style == "Outline":
            return y
        return self._write_sign(method, x, y)

    def _draw_cell(self, column: HeatmapColumn, cell: Cell, scale: Scale | None, x: float, y: float) -> float:
        side, height = self.side, _height(column, self.side)
        if cell.explanation is None or scale is None:
            self.items.append(Rectangle(x, y, side, height, self.palette.blank))
            self.write(cell.note, x + 8, y + 8, side - 16, size=SMALL, colour=self.palette.faint)
            return y + height
        drawing = HeatmapDrawing(column.image.view, cell.explanation, column.image.chosen.mask, scale)
        self.items.append(ImageItem(x, y, side, height, drawing.draw(self.table.look)))
        y = self._write_facts(cell, scale, x, y + height + 4)
        return self._draw_measures(cell.faithfulness, x, y) if cell.faithfulness else y

    def _draw_label(self, method: str, y: float, width: int) -> float:
        """Draw the method's name and the colours of its row."""
        scale = next((scale for scale in self.table.scales(method) if scale is not None), None)
        end = self.write(format_name(method), GAP, y, width, size=12)
        if scale is None or self.table.look.style == "Outline":
            return end + 60
        self._draw_bar(scale, end + 8, width)
        return self._write_sign(method, GAP, end + 54, width) + 6

    def _write_sign(self, method: str, x: float, y: float, width: float | None = None) -> float:
        return self.write(self.table.describe_colours(method), x, y, width, size=TINY, colour=self.palette.faint)

    def _draw_bar(self, scale: Scale, y: float, width: int) -> None:
        """Draw the colours and their values in this row."""
        own = self.table.scaling == "Own"
        self.items.append(ImageItem(GAP, y, width, 10, draw_colour_bar(2 * width, 20)))
        ends = ("−", "neutral", "+") if own else (f"−{scale.limit:.3g}", "0", f"+{scale.limit:.3g}")
        for text, x, anchor in zip(ends, (GAP, GAP + width / 2, GAP + width), ("start", "middle", "end"), strict=True):
            self.items.append(Words(x, y + 13, text, TINY, self.palette.faint, anchor))
        self.items.append(Words(GAP, y + 28, "own scale" if own else "shared scale", TINY, self.palette.faint))

    def _write_facts(self, cell: Cell, scale: Scale, x: float, y: float) -> float:
        assert cell.certificate is not None
        facts = [fact for fact in [self._format_scale(scale), *format_facts(cell.certificate)] if fact]
        y = self.write(" · ".join(facts), x, y, size=TINY, colour=self.palette.faint)
        return self.write(" ".join(cell.certificate.warnings), x, y, size=TINY, colour=self.palette.warning)

    def _format_scale(self, scale: Scale) -> str:
        if self.table.look.style == "Outline":
            return ""
        if self.table.scaling != "Own":
            return f"neutral: {scale.zero:.3g}" if scale.zero else ""
        ends = (scale.zero - scale.limit, scale.zero + scale.limit)
        return "blue {} to orange {}".format(*(f"{end:.3g}".replace("-", "−") for end in ends))

    def _draw_measures(self, faithfulness: Faithfulness, x: float, y: float) -> float:
        """Draw deletion and insertion as small curves with their areas, and the localisation."""
        self.items.append(Rectangle(x, y + 3, self.side, CURVES, self.palette.pale))
        curves = ((faithfulness.deletion, self.palette.deletion), (faithfulness.insertion, self.palette.insertion))
        self.items += [Line(_place_curve(curve, x, y + 3, self.side), colour, 1.2) for curve, colour in curves]
        y += CURVES + 6
        for curve, colour in curves:
            y = self.write(format_area(curve), x, y, size=TINY, colour=colour)
        inside = " · ".join([format_infidelity(faithfulness), *format_localisation(faithfulness)])
        return self.write(inside, x, y, size=TINY, colour=self.palette.faint)


def _place_curve(curve: Curve, x: float, y: float, side: int) -> tuple[tuple[float, float], ...]:
    values = np.clip(curve.values[0].numpy(), 0, 1)
    points = zip(curve.fractions.tolist(), values.tolist(), strict=True)
    return tuple((x + share * side, y + (1 - value) * CURVES) for share, value in points)


def _height(column: HeatmapColumn, side: int) -> int:
    height, width = column.image.classifier.input_shape[1:]
    return round(side * height / width)
