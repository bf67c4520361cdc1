"""Columns of responses that are places: what was marked, and how it scores against the heatmap and by chance."""

from __future__ import annotations

from typing import Any, NamedTuple

from study.bundle import Manifest, Trial
from study.places.chance import Permutation
from study.places.grid import SIDE
from study.places.marks import Kind, Point, read_mark
from study.tasks import find_task


class Score(NamedTuple):
    """A column: its name, meaning and unit, and whether it is text."""

    name: str
    meaning: str
    unit: str = ""
    is_text: bool = False


WIDTHS, SHARE = "widths of the image", "share of the image"
SCORES = (
    Score("x", "of localise, the marked point, from the left; empty in other tasks, as all that follow", "0 to 1"),
    Score("y", "the marked point, from the top", "0 to 1"),
    Score(
        "cells",
        f"of highlight, the brushed cells of {SIDE} x {SIDE}, row by row from the top left, as hexadecimal digits of "
        "four cells each",
        is_text=True,
    ),
    Score("region_area", "size of the region: the smallest set of cells with a stated share of the evidence", SHARE),
    Score("distance", "of localise, distance from the point to the region; 0 inside it", WIDTHS),
    Score("peak_distance", "of localise, distance from the point to the cell with most evidence", WIDTHS),
    Score("object_hit", "of localise, whether the point is on the object, where its mask is known", "0, 1"),
    Score("brushed", "of highlight, size of the brushed area", SHARE),
    Score("pointing", "of highlight, share of the brushed area in the region", "0 to 1"),
    Score("iou", "of highlight, intersection over union with as many cells of most evidence", "0 to 1"),
    Score("rank_correlation", "of highlight, Spearman's correlation of the brushed area with the evidence", "-1 to 1"),
    Score("chance", "share of the other images whose region makes the same mark correct", "0 to 1"),
    Score("permuted_iou", "of highlight, mean of iou over the heatmaps of the other images", "0 to 1"),
)


def open_permutation(manifest: Manifest) -> Permutation | None:
    """Open the regions of a study whose responses are places; None of other studies."""
    return None if find_task(manifest.config).place is None else Permutation(manifest.trials)


def read_scores(kind: Kind, place: str, trial: Trial, permutation: Permutation) -> dict[str, Any]:
    """Return the values of a stored place by the names of `SCORES`; those that it does not have are left out."""
    mark = read_mark(kind, place)
    marked = {"x": mark.x, "y": mark.y} if isinstance(mark, Point) else {"cells": mark.text}
    area = {} if trial.region is None else {"region_area": trial.region.area}
    return {**marked, **area, **permutation.measure(trial, mark)}
