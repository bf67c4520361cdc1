"""Streams: images that were taken one after another, in the order of their file names or of a table."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.errors import ForetellError
from data.sets.images import EXTENSIONS
from study.workspace.tables import parse_numbers, read_table

BY_NAME = "name"
"""The order that is read from file names; any other is the path of a table."""
IMAGE, ORDER, STREAM, POSITION = "image", "order", "stream", "position"


@dataclass(frozen=True)
class Streams:
    """Images in the order in which they were taken.

    Attributes
    ----------
    names
        Name of each stream.
    rows
        For each stream, the numbers of its images in the set, the first image first.
    facts
        Where the order comes from, for a report.
    """

    names: tuple[str, ...]
    rows: tuple[tuple[int, ...], ...]
    facts: Mapping[str, Any]

    @property
    def longest(self) -> int:
        """Number of images in the longest stream."""
        return max(len(rows) for rows in self.rows)

    def list_windows(self, n: int) -> NDArray[np.int64]:
        """List every n images in a row of one stream, as numbers of images (m, n); the last one ends the window."""
        within = [np.lib.stride_tricks.sliding_window_view(rows, n) for rows in self.rows if len(rows) >= n]
        return np.concatenate(within) if within else np.empty((0, n), dtype=np.int64)

    def select_disjoint(self, windows: NDArray[np.int64], among: NDArray[np.bool_]) -> list[int]:
        """Select, among windows (m, n) of `list_windows`, the first and then each next one that shares no image."""
        ranks = np.empty(sum(len(rows) for rows in self.rows), dtype=np.int64)
        ranks[np.concatenate(self.rows)] = np.arange(len(ranks))
        chosen: list[int] = []
        free = 0
        for i in np.flatnonzero(among).tolist():
            if ranks[windows[i, 0]] >= free:
                chosen.append(i)
                free = int(ranks[windows[i, -1]]) + 1
        return chosen

    def describe_places(self) -> pd.DataFrame:
        """Return the stream of each image of the set, and its position there, from 1."""
        places = {
            row: (name, at)
            for name, rows in zip(self.names, self.rows, strict=True)
            for at, row in enumerate(rows, start=1)
        }
        return pd.DataFrame([places[row] for row in range(len(places))], columns=[STREAM, POSITION])


def read_streams(order: str, ids: Sequence[str], *, labelled: bool) -> Streams:
    """Read the order of images: `BY_NAME`, or the path of a CSV file with columns image, order and perhaps stream.

    By name, numbers in file names count as numbers. Without labels each folder is a stream; with labels folders are
    categories, and all images are one stream.

    Raises
    ------
    ForetellError
        File names without a number, or two images of a stream at the same place; a table that cannot be read, that
        lacks a column, or whose images are not exactly those of ``ids``, or whose order is neither numbers nor times.
    """
    if order == BY_NAME:
        return _read_names(ids, labelled)
    return _read_table(Path(order), ids)


def _read_names(ids: Sequence[str], labelled: bool) -> Streams:
    streams, keys = [], []
    for name in ids:
        path = PurePosixPath(name)
        stem = path.stem if path.suffix.lower() in EXTENSIONS else path.name
        if not re.search(r"\d", stem):
            raise ForetellError(
                f"The file name of {name} has no number, so it does not say when the image was taken: number the "
                f"files, or give --order a CSV file with columns {IMAGE} and {ORDER}."
            )
        streams.append("" if labelled or str(path.parent) == "." else str(path.parent))
        keys.append(tuple(int(part) if i % 2 else part for i, part in enumerate(re.split(r"(\d+)", stem))))
    return _sort(ids, streams, keys, {"by": BY_NAME})


def _read_table(file: Path, ids: Sequence[str]) -> Streams:
    table = _open_table(file)
    _refuse_other_images(file, table[IMAGE], ids)
    table = table.assign(**{ORDER: _parse_order(file, table[ORDER])}).set_index(IMAGE).loc[list(ids)]
    streams = table[STREAM].tolist() if STREAM in table else [""] * len(ids)
    facts = {"by": file.name, "sha256": hashlib.sha256(file.read_bytes()).hexdigest()}
    return _sort(ids, streams, table[ORDER].tolist(), facts)


def _open_table(file: Path) -> pd.DataFrame:
    if not file.is_file():
        raise ForetellError(f"There is no file {file}: give --order {BY_NAME}, or a CSV file.")
    table = read_table(file)
    lacking = [name for name in (IMAGE, ORDER) if name not in table]
    if lacking:
        raise ForetellError(f"{file} has no column {lacking[0]}: give columns {IMAGE}, {ORDER} and perhaps {STREAM}.")
    return table


def _refuse_other_images(file: Path, given: pd.Series[str], ids: Sequence[str]) -> None:
    repeated = given[given.duplicated()]
    if len(repeated):
        raise ForetellError(f"{file} names {repeated.iloc[0]} twice: give each image one line.")
    known, listed = set(ids), set(given)
    missing = [name for name in ids if name not in listed]
    further = [name for name in given if name not in known]
    if missing or further:
        wrong = f"does not list {missing[0]}" if missing else f"lists {further[0]}, which is not among the images"
        raise ForetellError(
            f"{file} {wrong}: list exactly the images that are checked, by names such as {ids[0]}, because a window "
            "with an image left out is another window."
        )


def _parse_order(file: Path, given: pd.Series[str]) -> pd.Series[Any]:
    """Read a column of numbers, or of times."""
    parsed = parse_numbers(given)
    numbers = pd.to_numeric(given, errors="coerce") if parsed is None else parsed
    finite = np.isfinite(numbers)
    if finite.all():
        return numbers
    times = pd.to_datetime(given, errors="coerce", format="ISO8601", utc=True)
    if times.isna().any():
        first = given[~finite if finite.any() else times.isna()].iloc[0]
        raise ForetellError(
            f"{file}: {ORDER} must be a number in every line, or in every line a time such as 2024-05-01 12:30:05, and "
            f"{first!r} is not."
        )
    return times


def _sort(ids: Sequence[str], streams: Sequence[str], keys: Sequence[Any], facts: Mapping[str, Any]) -> Streams:
    rows: dict[str, list[int]] = {}
    for row, stream in enumerate(streams):
        rows.setdefault(stream, []).append(row)
    for members in rows.values():
        members.sort(key=lambda row: keys[row])
        for before, row in pairwise(members):
            if keys[before] == keys[row]:
                raise ForetellError(
                    f"{ids[before]} and {ids[row]} are at the same place of a stream: give --order a CSV file with "
                    f"columns {IMAGE}, {ORDER} and {STREAM} that tells them apart."
                )
    ordered = tuple(tuple(members) for members in rows.values())
    return Streams(tuple(rows), ordered, {**facts, "streams": len(rows)})
