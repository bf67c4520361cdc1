"""Notes on images and saved views: what is kept, for whom, and what is refused."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from core.errors import ForetellError
from study.workspace.notes import (
    MOST_VIEWS,
    ImageNote,
    SavedView,
    read_notes,
    read_views,
    remove_view,
    save_view,
    tabulate_notes,
    write_note,
)
from study.workspace.spreadsheets import csv_text

WHEN = "2026-01-02T03:04:05+00:00"


def note(text: str, *, wrong: bool = False) -> ImageNote:
    return ImageNote(text, wrong, "ada@example.org", WHEN)


def test_notes_of_four_researchers_at_once_are_all_kept(tmp_path: Path) -> None:
    """Catches a file that is read, changed and written without a lock: the last writer would win."""
    together = Barrier(4)

    def write_ten(writer: int) -> None:
        together.wait()
        for number in range(10):
            write_note(tmp_path, "pets", f"{writer}/{number}", note(f"{writer}"))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write_ten, range(4)))
    assert len(read_notes(tmp_path, "pets")) == 40


def test_a_note_belongs_to_its_image_of_its_set_and_an_empty_one_is_removed(tmp_path: Path) -> None:
    write_note(tmp_path, "pets", "cat/1", note("old"))
    write_note(tmp_path, "pets", "cat/1", note("", wrong=True))
    write_note(tmp_path, "others", "cat/1", note("another set"))
    assert read_notes(tmp_path, "pets") == {"cat/1": note("", wrong=True)}
    write_note(tmp_path, "pets", "cat/1", note(""))
    assert read_notes(tmp_path, "pets") == {}
    assert list(read_notes(tmp_path, "others")) == ["cat/1"]


def test_the_table_of_notes_runs_no_formula(tmp_path: Path) -> None:
    """Catches a note that a spreadsheet runs."""
    write_note(tmp_path, "pets", "dog/2", note('=HYPERLINK("http://example.org")', wrong=True))
    write_note(tmp_path, "pets", "cat/1", note("striped, Ä"))
    lines = csv_text(tabulate_notes(read_notes(tmp_path, "pets"))).splitlines()
    assert lines[1].startswith("cat/1,0,")
    assert "'=HYPERLINK" in lines[2]


def test_what_cannot_be_kept_is_refused_and_nothing_is_lost(tmp_path: Path) -> None:
    """Catches a refused note or view that empties the file."""
    write_note(tmp_path, "pets", "cat/1", note("kept"))
    save_view(tmp_path, "One", SavedView("view=Grid", "ada", WHEN))
    with pytest.raises(ForetellError, match="Shorten it"):
        write_note(tmp_path, "pets", "cat/1", note("x" * 2001))
    for name, query in (("", "view=Grid"), ("x" * 81, "view=Grid"), ("Two", "x" * 4001)):
        with pytest.raises(ForetellError):
            save_view(tmp_path, name, SavedView(query, "ada", WHEN))
    assert read_notes(tmp_path, "pets")["cat/1"].text == "kept"
    assert list(read_views(tmp_path)) == ["One"]


def test_views_are_sorted_replaced_and_removed(tmp_path: Path) -> None:
    for name in ("beta", "Alpha", "beta"):
        save_view(tmp_path, name, SavedView(f"view={name}", "ada", WHEN))
    assert list(read_views(tmp_path)) == ["Alpha", "beta"]
    remove_view(tmp_path, "beta")
    remove_view(tmp_path, "never there")
    assert list(read_views(tmp_path)) == ["Alpha"]


def test_there_is_an_end_to_saved_views(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a list that one script fills until no page opens."""
    assert MOST_VIEWS == 500
    monkeypatch.setattr("study.workspace.notes.MOST_VIEWS", 1)
    save_view(tmp_path, "One", SavedView("view=Grid", "ada", WHEN))
    with pytest.raises(ForetellError, match="Remove one"):
        save_view(tmp_path, "Two", SavedView("view=Grid", "ada", WHEN))
    save_view(tmp_path, "One", SavedView("view=Gallery", "ada", WHEN))
    assert read_views(tmp_path)["One"].query == "view=Gallery"


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "images.json").write_text('{"pets": {"cat/1": {"text": 3}}}')
    with pytest.raises(ForetellError, match=r"images\.json is damaged"):
        read_notes(tmp_path, "pets")
    with pytest.raises(ForetellError, match=r"images\.json is damaged"):
        write_note(tmp_path, "pets", "cat/1", note("new"))
    assert '"text": 3' in (tmp_path / "notes" / "images.json").read_text()
