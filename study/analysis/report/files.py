"""The files of a report, each written completely or not at all."""

from __future__ import annotations

from pathlib import Path

from core.types import Progress, silent
from study.analysis.exploratory.analysis import ExploratoryResult
from study.analysis.report.report import Files, Report, encode
from study.workspace.files import write_whole


def write(report: Report, out: Path, progress: Progress = silent) -> list[ExploratoryResult]:
    """Write a report into the folder ``out``, made if absent, and return its exploratory analyses.

    Files of the same names are replaced. The models, their tests and contrasts are written before any exploratory
    analysis is computed.
    """
    _write_files(out, report.describe_models())
    results, absent = report.explore(progress)
    _write_files(out, report.describe_all(results, absent))
    return results


def _write_files(out: Path, files: Files) -> None:
    for name, content in encode(files).items():
        write_whole(out / name, content)
