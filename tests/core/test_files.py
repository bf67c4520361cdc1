"""Which files a name may lead to, and which files are code."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import ForetellError
from core.files import FileLimits, find_file, is_path
from core.userfiles import execute_file, split_python


@pytest.fixture
def limits(tmp_path: Path) -> FileLimits:
    """A workspace with its folders, inside a folder that is allowed."""
    home = tmp_path / "data" / "workspace"
    for name in ("models", "images", "bundles"):
        (home / name).mkdir(parents=True)
    return FileLimits((home / "models",), (home / "images", tmp_path / "data"), (home,), "Ask.")


@pytest.mark.parametrize(
    ("name", "data", "code"),
    [
        ("models/net.py", True, True),
        ("images/set", True, False),
        ("../other", True, False),
        ("bundles/other", False, False),
        ("images/../bundles", False, False),
        ("participants.key", False, False),
        ("../../elsewhere", False, False),
        ("/etc/passwd", False, False),
        ("~/x", False, False),
        ("~root", False, False),
        ("images/link/x", False, False),
        ("images/\0", False, False),
    ],
)
def test_the_deepest_folder_that_holds_a_file_decides(
    tmp_path: Path, limits: FileLimits, name: str, data: bool, code: bool
) -> None:
    """Catches a folder that is opened by one above it, by dots, a home, a link or what is no path."""
    home = tmp_path / "data" / "workspace"
    (home / "images" / "link").symlink_to(home / "bundles")
    for runs, is_open in ((False, data), (True, code)):
        if is_open:
            assert find_file(home, name, limits, runs=runs) == home / name
        else:
            with pytest.raises(ForetellError, match=r"outside the folders whose files you may name\. Ask"):
                find_file(home, name, limits, runs=runs)


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("net.py", ("net.py", "")),
        ("net.py:build", ("net.py", "build")),
        ("a/net.py:", ("a/net.py", "")),
        ("C:\\nets\\net.py:build", ("C:\\nets\\net.py", "build")),
        ("evil.py.png", None),
        ("../images/evil.py.png:build", None),
        ("net.pyc:build", None),
        ("evil.py:x/photo.png", None),
        ("resnet50.py_tag", None),
        ("timm:x", None),
    ],
)
def test_the_ending_alone_makes_a_python_file(name: str, split: tuple[str, str] | None) -> None:
    """Catches `.py` in the middle of a name, which made a photograph code."""
    assert split_python(name) == split


def test_no_file_without_the_ending_is_run(tmp_path: Path) -> None:
    """Catches a road to the interpreter that passes the check of the name."""
    file = tmp_path / "evil.py.png"
    file.write_text("raise SystemExit")
    with pytest.raises(ForetellError, match=r"evil\.py\.png is no Python file"):
        execute_file(file)


@pytest.mark.parametrize(
    ("name", "expected"), [("google/vit", False), ("resnet50", False), ("../x", True), ("/x", True), ("~x", True)]
)
def test_paths_and_names_are_told_apart(name: str, expected: bool) -> None:
    assert is_path(name) is expected
