"""The models of a workspace: lines of the list, and files that are never overwritten."""

from __future__ import annotations

import io
import re
from functools import partial
from pathlib import Path

import pytest

from core.errors import ForetellError
from core.sources.local import list_local_models
from study.workspace.imagefolders import Entry
from study.workspace.modelfiles import (
    add_file,
    add_line,
    add_network,
    read_lines,
    remove_file,
    remove_line,
    write_names,
)


def test_a_line_is_added_once_and_removed_and_comments_stay(tmp_path: Path) -> None:
    """Catches a list whose comments or other lines are lost, and one without a last newline that joins two names."""
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "models.txt").write_text("# mine\nresnet18", encoding="utf-8")
    for _ in range(2):
        add_line(tmp_path / "models", "timm:resnet50.a1_in1k")
    assert read_lines(tmp_path / "models") == ["resnet18", "timm:resnet50.a1_in1k"]
    assert list_local_models(tmp_path, "models") == ["resnet18", "timm:resnet50.a1_in1k"]
    remove_line(tmp_path / "models", "resnet18")
    assert (tmp_path / "models" / "models.txt").read_text() == "# mine\ntimm:resnet50.a1_in1k\n"


@pytest.mark.parametrize("line", ["", "  ", "# no", "a\nb", "a\rb"])
def test_a_line_that_would_be_read_as_another_is_refused(tmp_path: Path, line: str) -> None:
    """Catches two models from one field, and a comment that is never read."""
    with pytest.raises(ForetellError):
        add_line(tmp_path, line)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["../evil.py", "/etc/evil.py", "a/b.py", ".hidden.py", "x.exe", "x", "models.txt", ""])
def test_a_file_that_is_no_model_or_leads_out_is_refused(tmp_path: Path, name: str) -> None:
    """Catches a file written outside the folder, or over the list."""
    with pytest.raises(ForetellError):
        add_file(tmp_path / "models", name, b"")
    assert not list(tmp_path.rglob("*"))
    with pytest.raises(ForetellError):
        remove_file(tmp_path / "models", name)


def test_a_file_is_not_overwritten(tmp_path: Path) -> None:
    """Catches a network of one's own lost to an upload of the same name."""
    add_file(tmp_path, "mine.py", b"one")
    with pytest.raises(ForetellError, match="already"):
        add_file(tmp_path, "mine.py", b"two")
    assert (tmp_path / "mine.py").read_bytes() == b"one"


@pytest.mark.parametrize("names", [["cat"], ["cat", " cat"], []])
def test_class_names_are_two_or_more(tmp_path: Path, names: list[str]) -> None:
    """Catches a list of classes that loading would refuse only after a download."""
    with pytest.raises(ForetellError, match="two or more"):
        write_names(tmp_path, "classes", names)
    assert write_names(tmp_path, "classes", [" cat", "", "dog"]).read_text() == "cat\ndog\n"


def list_files(**files: bytes) -> list[Entry]:
    """Return files to add by their stems, ending in .py or .txt."""
    names = {stem: f"{stem}.txt" if stem == "labels" else f"{stem}.py" for stem in files}
    return [Entry(names[k], len(content), partial(io.BytesIO, content)) for k, content in files.items()]


BUILD = b"def build():\n    pass\n"


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"labels": b"cat"}, "None of the files is a network."),
        ({"one": BUILD, "two": BUILD}, "Several files are networks (one.py, two.py)."),
    ],
)
def test_files_without_one_network_are_refused_and_leave_nothing(
    tmp_path: Path, files: dict[str, bytes], said: str
) -> None:
    """Catches a folder of weights that is offered as a network, and half of it that stays."""
    with pytest.raises(ForetellError, match=re.escape(said)):
        add_network(tmp_path / "models", list_files(**files))
    assert [path for path in tmp_path.rglob("*") if path.name != "models"] == []


def test_the_file_with_build_is_the_network_and_is_not_overwritten(tmp_path: Path) -> None:
    """Catches a helper module taken for the network, and a network lost to another of its name."""
    files = list_files(helper=b"x = 1\n", network=BUILD, labels=b"cat")
    assert add_network(tmp_path / "models", files) == "models/network/network.py"
    assert list_local_models(tmp_path, "models") == ["models/network/network.py"]
    with pytest.raises(ForetellError, match="There is a network network"):
        add_network(tmp_path / "models", files)
    remove_file(tmp_path / "models", "network")
    assert list_local_models(tmp_path, "models") == []
