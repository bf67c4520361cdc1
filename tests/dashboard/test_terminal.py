"""What a stranger wrote is shown on the terminal and never obeyed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dashboard.cli import main as cli
from dashboard.cli.terminal import Bars, escape_controls, say
from study.service import Service
from tests.conftest import write_bundle

CLEAR, TITLE = "\x1b[2J", "\x1b]0;owned\x07"


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        (f"{CLEAR}a", "\\x1b[2Ja"),
        (TITLE, "\\x1b]0;owned\\x07"),
        ("a\rb\x08c\x9bd", "a\\rb\\x08c\\x9bd"),
        ("a\u202eb\u2028c\ud800", "a\\u202eb\\u2028c\\ud800"),
        ("one\ntwo", "one\\ntwo"),
        ("Zoë 鱼 – \\x1b “q” 👍", "Zoë 鱼 – \\x1b “q” 👍"),
    ],
)
def test_what_a_terminal_obeys_is_shown_as_its_escape(text: str, seen: str) -> None:
    """Catches a control character of either range, a mark that turns text round, or letters that are lost."""
    assert escape_controls(text) == seen


def test_lines_stay_lines_and_bars_are_disarmed(capsys: pytest.CaptureFixture[str]) -> None:
    """Catches a result on one long line, and an escape in what a bar says it does."""
    say(f"one{CLEAR}\ntwo")
    with Bars() as progress:
        progress(1, 1, f"of {CLEAR}")
    said = capsys.readouterr()
    assert said.out == "one\\x1b[2J\ntwo\n"
    assert CLEAR not in said.err
    assert "\\x1b[2J" in said.err


def test_an_error_is_disarmed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Catches a culprit that is named in an error as it came."""
    monkeypatch.setattr(sys, "argv", ["foretell.py", "verify", f"{CLEAR}.db"])
    with pytest.raises(SystemExit):
        cli.main()
    assert "There is no database \\x1b[2J.db" in capsys.readouterr().err


def test_a_recruiters_list_cannot_forge_lines(workspace: Path) -> None:
    """Catches cells of a stranger's file that clear the terminal, or add a line of their own to the result."""
    with Service(workspace) as service:
        service.researcher.open_study(write_bundle(workspace / "bundles" / "demo-00", name="demo"), per_condition=1)
    listed = workspace / "list.csv"
    listed.write_text(f'Participant id,Status\n"a{CLEAR}\n0 people differ","{TITLE}"\n', encoding="utf-8")
    result = CliRunner().invoke(cli.build_app(), ["reconcile", "demo", str(listed)])
    lines = result.stdout.splitlines()
    firsts = ["a\\x1b[2J\\n0 people differ", "1 rows in the list, 1 participants differ"]
    assert [line.split(":")[0] for line in lines] == firsts
    assert "\x1b" not in result.stdout
    assert "\x07" not in result.stdout
