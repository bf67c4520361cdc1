"""The notebooks of the documentation run, print what they show, and carry nothing of the machine that ran them."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient.exceptions import CellExecutionError

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "docs"))

from generators import notebooks  # noqa: E402

LARGEST_BYTES = 1_000_000
TRACES = re.compile(
    r"/(?:home|root|tmp|work|usr|opt|var|mnt|Users)/|[A-Z]:\\\\|\b\d{4}-\d\d-\d\d[T ]\d\d:|0x[0-9a-f]{6,}"
)
"""Paths, times and addresses in memory."""


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)


def make_notebook(*cells: str) -> Any:
    made = nbformat.v4.new_notebook(metadata={"kernelspec": {"name": "mine", "display_name": "Ada's Python"}})
    made.cells = [nbformat.v4.new_code_cell(source) for source in cells]
    return made


def show_text(*texts: str) -> Any:
    """A notebook whose cells have printed these texts."""
    made = make_notebook(*texts)
    for cell, text in zip(made.cells, texts, strict=True):
        cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text=text)]
    return made


def test_the_three_notebooks_are_here() -> None:
    """A folder that was moved, after which the tests below would run over nothing."""
    names = [path.stem for path in notebooks.NOTEBOOKS]
    assert names == ["explain-a-network", "from-heatmap-to-study", "mixed-models"]


@pytest.mark.slow
@pytest.mark.parametrize("path", notebooks.NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_prints_what_it_shows(path: Path) -> None:
    """A cell that no longer runs or warns, or printed text that is not current: run ``python docs/generate.py``."""
    executed = notebooks.execute(path)
    assert [text for cell in executed.cells for kind, text in notebooks.list_texts(cell) if kind == "stderr"] == []
    assert notebooks.find_differences(read(path), executed) == []


@pytest.mark.parametrize("path", notebooks.NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_committed_in_its_normal_form(path: Path) -> None:
    """Metadata of a kernel or an editor, cells executed out of order, or a path, a time or an address in memory."""
    text = path.read_text(encoding="utf-8")
    assert notebooks.serialise(notebooks.normalise(read(path))) == text
    assert TRACES.findall(notebooks.EMBEDDED.sub("", text)) == []


def test_notebooks_stay_small() -> None:
    """Figures in full size, which every clone would download."""
    files = [path for path in notebooks.FOLDER.rglob("*") if path.is_file() and ".ipynb_checkpoints" not in path.parts]
    assert sum(path.stat().st_size for path in files) < LARGEST_BYTES


@pytest.mark.parametrize(
    "trace", ["/home/ada/x.png", "C:\\\\Users\\\\ada", "2026-11-23T10:00", "<Thing at 0x7f2b3c4d5e>"]
)
def test_the_search_finds_traces(trace: str) -> None:
    """Negative control: what a committed notebook must not hold."""
    assert TRACES.search(f'"text": "{trace}"')


def test_what_belongs_to_one_execution_is_removed() -> None:
    """Catches metadata that passes through, and streams that are cut elsewhere on a slower machine."""
    made = show_text("one")
    made.cells[0].metadata = {"execution": {"iopub.execute_input": "2026-11-23T10:00:00"}}
    made.cells[0].outputs.append(nbformat.v4.new_output("stream", name="stdout", text=" two"))
    text = notebooks.serialise(notebooks.normalise(made))
    assert [words for words in ("Ada", "2026", "mine") if words in text] == []
    (output,) = made.cells[0].outputs
    assert output.text == "one two"


@pytest.mark.slow
def test_an_error_and_a_warning_are_not_missed(tmp_path: Path) -> None:
    """Negative control: a cell that fails, and one that writes to stderr, in a kernel of its own."""
    (tmp_path / "data.txt").write_text("here")
    nbformat.write(make_notebook("import warnings; warnings.warn(open('data.txt').read())"), tmp_path / "warns.ipynb")
    (cell,) = notebooks.execute(tmp_path / "warns.ipynb").cells
    assert [(kind, "UserWarning: here" in text) for kind, text in notebooks.list_texts(cell)] == [("stderr", True)]
    nbformat.write(make_notebook("x = 1", "1 / 0"), tmp_path / "fails.ipynb")
    with pytest.raises(CellExecutionError, match="ZeroDivisionError"):
        notebooks.execute(tmp_path / "fails.ipynb")


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("estimate 0.7497  0.1977", "estimate  0.7498 0.1976", True),
        ("estimate 0.7497", "estimate 0.8497", False),
        ("AIC 2671.62", "AIC 2680.00", True),
        ("AIC 2671.62", "AIC 2771.62", False),
        ("p 0.01", "p 0.03", True),
        ("p 0.01", "p 0.04", False),
        ("1.2e-07", "1.2e-05", False),
        ("288 responses", "287 responses", False),
        ("P scenes 0.948", "P network 0.948", False),
        ("bird 0.911", "fish 0.911", False),
        ("one 0.5", "one 0.5 0.5", False),
        ("a  ----\nb 0.30", "a --\nb  0.30", True),
        ("−0.30", "0.30", False),
        ("True", "False", False),
        ("fingerprint b707b930f7e0eeb5", "fingerprint c1eda0c097733f9b", True),
    ],
)
def test_texts_are_compared_word_by_word_and_number_by_number(before: str, after: str, same: bool) -> None:
    """Catches a tolerance that hides a changed result, or one that another processor exceeds."""
    assert (notebooks.find_differences(show_text(before), show_text(after)) == []) is same


def test_missing_and_additional_outputs_are_differences() -> None:
    """A cell whose output, or which itself, is only on one side; also where numbers may vary."""
    one, none = show_text("text"), make_notebook("text")
    assert len(notebooks.find_differences(one, none)) == len(notebooks.find_differences(none, one)) == 1
    assert len(notebooks.find_differences(one, show_text("text", "more"))) == 1
    for made in (one, none):
        made.cells[0].metadata = {"tags": [notebooks.VARIES]}
    assert len(notebooks.find_differences(one, none)) == 1
    assert notebooks.find_differences(one, show_text("other 3")) == []
