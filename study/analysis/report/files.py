"""The files of a report, each written completely or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from core.types import Progress, silent
from study.analysis.report.report import Report
from study.workspace.files import write_whole


def write(report: Report, out: Path, progress: Progress = silent) -> tuple[Path, ...]:
    """Write a report into the folder ``out``, made if absent; files of the same names are replaced.

    The models, their tests and contrasts are written before any exploratory analysis is computed.
    """
    first = _write_files(out, report.describe_models())
    return first + _write_files(out, report.describe_all(progress))


def _write_files(out: Path, files: Mapping[str, str]) -> tuple[Path, ...]:
    return tuple(write_whole(out / name, text.encode()) for name, text in files.items())
