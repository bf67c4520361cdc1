"""Human importance: how much of participants' brushes lies on each cell of an image, and agreement with heatmaps.

The importance of a cell in a condition is the mean of its participants' brushes (Linsley et al., 2019,
arXiv:1805.08819). Agreement is Spearman's correlation over cells with the evidence that was frozen with the study;
chance is the mean correlation with the evidence of the other images.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

import numpy as np
import pandas as pd
from PIL import Image, ImageDraw

from study.analysis.exploratory.analysis import AnalysedStudy, ExploratoryAnalysis, TableAndFigure
from study.analysis.responses import accuracies
from study.analysis.responses.places import CELLS
from study.conditions import format_condition
from study.places.grid import SIDE, Floats, cover, decode_cells, encode_cells
from study.places.marks import correlate_with_each
from study.places.region import open_region

TILE, MARGIN, TEXT = 96, 8, 16
"""Sizes of the sheet, px."""


def average(frame: pd.DataFrame) -> dict[tuple[str, str], tuple[Floats, int]]:
    """Average the brushes of each item and condition: its importance (SIDE, SIDE), 0 to 1, and their number."""
    given = frame[frame[CELLS].notna()]
    maps = {}
    for item in sorted(given["item"].astype(str).unique()):
        for condition in accuracies.order(given):
            own = given[(given["item"] == item) & (given["condition"] == condition)][CELLS]
            if len(own):
                masks = [decode_cells(str(text)) for text in own]
                maps[item, condition] = np.mean(masks, axis=0), len(masks)
    return maps


def spread_points(frame: pd.DataFrame) -> pd.DataFrame:
    """Return responses in which a point, of `localise`, is the cells that a brush covers there; brushes stay."""
    if not {"x", "y"} <= {*frame}:
        return frame
    brushes = frame[CELLS] if CELLS in frame else pd.Series(None, index=frame.index, dtype=object)
    points = zip(frame["x"], frame["y"], brushes, strict=True)
    return frame.assign(**{CELLS: [given if pd.isna(x) else encode_cells(cover([(x, y)])) for x, y, given in points]})


def read_evidence(study: AnalysedStudy) -> dict[str, Floats]:
    """Read the evidence (SIDE, SIDE) of each item that was frozen with a region."""
    return {name: open_region(trial.region).evidence for name, trial in study.trials.items() if trial.region}


def tabulate(study: AnalysedStudy) -> pd.DataFrame:
    """Tabulate item, condition, participants, rank_correlation and permuted (with the other images' evidence)."""
    evidence, rows = read_evidence(study), []
    for (item, condition), (drawn, people) in average(study.data.every).items():
        rows.append((item, condition, people, *correlate_with_each(drawn, item, evidence)))
    return pd.DataFrame(rows, columns=["item", "condition", "participants", "rank_correlation", "permuted"])


def describe(table: pd.DataFrame) -> str:
    """Say for each condition the mean correlation over images, and that by chance."""
    return " ".join(
        f"{format_condition(str(name))}: mean rank correlation {rows['rank_correlation'].mean():.2f}, by chance "
        f"{rows['permuted'].mean():.2f}."
        for name, rows in table.groupby("condition", sort=False)
    )


def _compute(study: AnalysedStudy) -> TableAndFigure:
    return tabulate(study), None


def _has_brushes(study: AnalysedStudy) -> bool:
    return CELLS in study.frame and bool(study.trials)


ANALYSIS = ExploratoryAnalysis(
    "Importance for participants and the heatmap",
    "The importance of a cell is the share of the brushes on it; importance_maps.png shows each next to "
    "the evidence, and importance_maps.csv has its values. Spearman's correlation with the evidence over all cells; by "
    "chance: with that of the other images. Of other methods: python foretell.py importance STUDY.",
    _compute,
    needs=_has_brushes,
    conclude=lambda _, table: describe(table),
)


def describe_files(study: AnalysedStudy) -> dict[str, str | bytes]:
    """Return the files of importance, by name: a sheet (PNG), and each value (CSV); none without brushes."""
    if not _has_brushes(study):
        return {}
    maps = average(study.data.every)
    values, buffer = io.StringIO(), io.BytesIO()
    csv.writer(values, lineterminator="\n").writerows([("item", "condition", "y", "x", "share"), *_list_values(maps)])
    draw_sheet(maps, read_evidence(study)).save(buffer, "PNG", optimize=True)
    return {"importance_maps.csv": values.getvalue(), "importance_maps.png": buffer.getvalue()}


def _list_values(maps: dict[tuple[str, str], tuple[Floats, int]]) -> Iterator[tuple[str, str, float, float, float]]:
    """List the middles of the cells that were brushed, y and x from the top left in 0 to 1."""
    for (item, condition), (drawn, _) in maps.items():
        for row, column in zip(*np.nonzero(drawn), strict=True):
            yield item, condition, (row + 0.5) / SIDE, (column + 0.5) / SIDE, round(float(drawn[row, column]), 6)


def draw_sheet(maps: dict[tuple[str, str], tuple[Floats, int]], evidence: dict[str, Floats]) -> Image.Image:
    """Draw each image's evidence and importance, a row for each image: white where most of it is."""
    items, conditions = (list(dict.fromkeys(key[k] for key in maps)) for k in (0, 1))
    size = ((len(conditions) + 1) * (TILE + MARGIN) + MARGIN, len(items) * (TILE + MARGIN + TEXT) + TEXT)
    sheet = Image.new("L", size, 40)
    pen = ImageDraw.Draw(sheet)
    for k, words in enumerate(["Heatmap", *map(format_condition, conditions)]):
        pen.text((MARGIN + k * (TILE + MARGIN), 2), words, fill=255)
    for row, item in enumerate(items):
        top = TEXT + row * (TILE + MARGIN + TEXT)
        pen.text((MARGIN, top), item, fill=200)
        drawn = [evidence.get(item), *(maps[item, name][0] if (item, name) in maps else None for name in conditions)]
        for k, values in enumerate(drawn):
            if values is not None:
                sheet.paste(_draw_tile(values), (MARGIN + k * (TILE + MARGIN), top + TEXT))
    return sheet


def _draw_tile(values: Floats) -> Image.Image:
    scaled = np.zeros((SIDE, SIDE)) if values.max() <= 0 else values / values.max()
    return Image.fromarray((255 * scaled).astype(np.uint8)).resize((TILE, TILE), Image.Resampling.NEAREST)
