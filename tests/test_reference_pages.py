"""The generated reference pages say what the code does: compared with the files and programs that users meet."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dashboard.cli.main import build_app

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "docs"))

from generators.benchmarks import BENCHMARKS  # noqa: E402
from generators.markdown import escape_cell, format_p  # noqa: E402
from generators.plots import Series, draw_dots  # noqa: E402
from generators.studyfile import describe_type  # noqa: E402

STUDY_FILE = (ROOT / "docs" / "reference" / "study-file.md").read_text(encoding="utf-8")
COMMANDS = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
OPEN_TABLES = ("[sets.", "[texts]", "[saliency.parameters]", "[trials.strata.parameters]", "[analysis.models]")
"""Tables whose keys are a matter of the image set, the method or the study."""


def list_keys(table: dict[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    """List the keys of a TOML table with the header of their table."""
    for key, value in table.items():
        inner = value[0] if isinstance(value, list) and value and isinstance(value[0], dict) else value
        if isinstance(inner, dict):
            yield from list_keys(inner, f"{path}.{key}" if path else key)
        else:
            yield f"[{path}]", key


@pytest.mark.parametrize("study", sorted((ROOT / "data" / "studies").glob("*.toml")), ids=lambda path: path.stem)
def test_every_key_of_a_study_file_is_in_the_reference(study: Path) -> None:
    """A key that can be set and is not documented, or under another table."""
    sections = dict(re.findall(r"^## `\[?(\[.*?\])\]?`\n(.*?)(?=^## |\Z)", STUDY_FILE, re.MULTILINE | re.DOTALL))
    sections["[]"] = STUDY_FILE.split("## Top level")[1].split("\n## ")[0]
    keys = [
        (path, key) for path, key in list_keys(tomllib.loads(study.read_text())) if not path.startswith(OPEN_TABLES)
    ]
    assert len(keys) >= 10
    assert [(path, key) for path, key in keys if f"\n| `{key}` |" not in sections.get(path, "")] == []


@pytest.mark.parametrize("command", ["build", "explain", "power", "analyze"])
def test_every_option_of_the_help_is_in_the_reference(command: str) -> None:
    """An option that ``--help`` prints and the page does not, or the other way round."""
    done = CliRunner().invoke(build_app(), [command, "--help"], env={"COLUMNS": "300"})
    printed = set(re.findall(r"^ +(--[a-z-]+)", done.output, re.MULTILINE)) - {"--help"}
    section = COMMANDS.split(f"\n## {command}\n")[1].split("\n## ")[0]
    assert len(printed) > 3
    assert printed == set(re.findall(r"^\| `(--[a-z-]+)`", section, re.MULTILINE))


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "integer", "minimum": 1, "maximum": 5}, "whole number (≥ 1, ≤ 5)"),
        ({"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "null"}]}, "number (> 0)"),
        ({"anyOf": [{"type": "integer", "minimum": 1}, {"const": "all"}]}, 'whole number (≥ 1) or `"all"`'),
        ({"enum": ["en", "de"]}, '`"en"`, `"de"`'),
        ({"type": "array", "items": {"type": "string"}}, "list of text"),
        ({"type": "string", "pattern": "^(a|b)$"}, "text (of the form `^(a\\|b)$`)"),
    ],
)
def test_a_type_is_described_in_words(schema: dict[str, Any], words: str) -> None:
    """A bound, a choice or a null that the page omits; a pipe that breaks its table."""
    assert describe_type(schema) == words


def test_a_cell_stays_in_its_row() -> None:
    """A line break or a pipe of a docstring would end the cell, a bracket would become HTML."""
    assert escape_cell("a | b\n  ``c <d>`` <e>") == "a \\| b `c <d>` &lt;e>"
    assert [format_p(p) for p in (0.0004, 0.0123, 0.9999)] == ["< .001", ".012", "1"]


def test_a_figure_has_every_row_and_the_same_bytes_each_time() -> None:
    """A committed figure that differs at every run, or lacks what has no value in the first series."""
    series = {"one": Series({"a": 1.0}, {"a": (0.5, 2.0)}), "two": Series({"b": 3.0})}
    first = draw_dots(series, "axis", line=1.0, line_label="nominal")
    assert first == draw_dots(series, "axis", line=1.0, line_label="nominal")
    assert all(f">{label}<" in first for label in ("a", "b", "one", "two", "axis", "nominal"))
    assert "Date" not in first


def test_a_benchmark_that_has_not_run_yet_can_be_tabulated_and_drawn() -> None:
    """The table of a benchmark whose result comes later: its function would fail on that day."""
    row = {
        "world": "slopes",
        "participants": 40,
        "categories": 10,
        "studies": 9,
        "analysis": "default",
        "test": "any test",
        "rejected": 0.07,
        "low": 0.04,
        "high": 0.1,
    }
    (benchmark,) = [one for one in BENCHMARKS if one.name == "null_studies"]
    last = benchmark.tabulate({"rows": [row]})[-1]
    assert last == "| slopes | 40 | 10 | 9 | 0.070 [0.040, 0.100] |"
    assert ">slopes, 40 participants<" in benchmark.plot({"rows": [row]})


def test_tables_print_the_numbers_of_the_results() -> None:
    """A column that shows another quantity than its heading says."""
    page = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    results = {
        path.stem: json.loads(path.read_text())["result"] for path in (ROOT / "benchmarks/results").glob("*.json")
    }
    gradient = results["attribution"]["resnet50"]["gradient"]
    speed_up = gradient["seconds"]["captum"] / gradient["seconds"]["foretell"]
    assert f"| `gradient` | {gradient['seconds']['foretell']:.2g} | captum {speed_up:.2f} |" in page
    network = results["masked_forward"]["torchvision resnet18, 224 px"]["inputs_per_second"]
    ratio = network["masked engine"] / network["network"]
    printed = re.search(r"^\| resnet18, 224 px \|.* \| (\S+) \| \S+ \|$", page, re.MULTILINE)
    assert printed is not None
    assert float(printed[1]) == pytest.approx(ratio, abs=0.01)  # the ratio of rounded numbers
    faults = results["faults"]
    assert f"| responses stored | {faults['acknowledged'] - faults['lost']:,} |" in page
