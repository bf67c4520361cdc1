"""The table of source documents against the code: what it names exists, and a row without a proof is marked."""

from __future__ import annotations

import ast
import re

import pytest

from core.attribution import METHODS
from dashboard.cli.commands import COMMANDS
from data import CLASSIFIERS
from inquiry.layers import QUESTIONS
from study.conditions import CONDITIONS
from study.workspace.workspace import ROOT

PAGE = (ROOT / "docs" / "sources.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("| ") and line.count("|") == 6
][1:]
NOT_YET = "not yet"


def exists(name: str) -> bool:
    """A file, a command (of ``layers`` with its question), a condition, a heatmap method or a network."""
    if "/" in name:
        return (ROOT / name).is_file()
    command, *question = name.split()
    if question:
        return command == "layers" and question == [question[0]] and question[0] in QUESTIONS
    return name in {*COMMANDS, *CONDITIONS, *METHODS, *CLASSIFIERS}


def test_the_table_has_the_rows_of_the_documents() -> None:
    """Catches a table that the test does not read, and a row that was lost."""
    assert len(ROWS) == 30
    assert all(len(row) == 5 and all(row[:4]) for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_what_a_row_names_exists_and_is_proved(row: list[str]) -> None:
    """Catches a renamed file, command, condition, network or test, and a system without a test."""
    _, _, _, where, proof = row
    if where == NOT_YET:
        assert not proof
        return
    named = re.findall(r"`([^`]+)`", where.split("*missing*")[0])
    assert named
    assert [name for name in named if not exists(name)] == []
    tests = re.findall(r"`([^`]+)::(\w+)`", proof)
    assert tests
    for file, function in tests:
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
