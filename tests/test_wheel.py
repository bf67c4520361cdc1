"""The installed package: beside a user's own folders of the same names, and from a notebook's cells."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from core.attribution import METHODS
from data.scenes.generator import render
from study.network.sources import open_classifier

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[1]
PACKAGES = ("core", "data", "study", "inquiry", "dashboard")
SOURCE = (*PACKAGES, "package", ".streamlit", "setup.py", "pyproject.toml", "README.md", "LICENSE")
CELL = """
import sys
import foretell
assert not {"torch", "streamlit", "pandas"} & set(sys.modules), "import foretell loads what it does not need yet"
import core, data
assert (core.MINE, data.MINE) == (1, 2)
network = foretell.load("scenes")
found = foretell.explain(network, "fish.png", method=["gradient", "bayesian_teaching"], samples=32, target=3)
found.save("maps")
assert foretell.load("scenes:blind").name == "scenes:blind"
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy of the source and installed without its dependencies, which are here already."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    for name in (*SOURCE, *(path.name for path in ROOT.glob("requirements*.txt"))):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, source / name)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", folder, source], check=True)
    (wheel,) = folder.glob("foretell-*.whl")
    subprocess.run([*pip, "install", "--no-deps", "--target", folder / "site", wheel], check=True)
    return folder / "site"


def test_a_cell_runs_beside_folders_of_the_same_names(installed: Path, tmp_path: Path) -> None:
    """Catches a module that takes the user's ``core`` or ``data`` for Foretell's, and a file that the wheel lacks.

    Expected: the values that the checkout computes.
    """
    for number, name in enumerate(("core", "data"), 1):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"MINE = {number}\n")
    scene = render(3, category="fish", context="meadow").image
    scene.save(tmp_path / "fish.png")
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    done = subprocess.run(
        [sys.executable, "-c", CELL], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    classifier = open_classifier("scenes", tmp_path)
    expected = METHODS["gradient"](classifier, classifier.preprocess(scene)[None], [3]).map[0].numpy()
    np.testing.assert_allclose(np.load(tmp_path / "maps" / "fish.gradient.npy"), expected, rtol=1e-5, atol=1e-7)
    assert (tmp_path / "maps" / "fish.bayesian_teaching.json").is_file()


def test_the_command_is_installed(installed: Path, tmp_path: Path) -> None:
    """Catches an entry point, or a command's name in the table, that the wheel does not have; and a workspace that
    would lie inside the installed package.
    """
    environment = {**os.environ, "PYTHONPATH": str(installed), "HOME": str(tmp_path)}
    environment.pop("FORETELL_HOME", None)
    said = ""
    for words, code in ((["explain", "--list"], 0), (["verify", "nothing"], 2), (["bench", "attribution"], 2)):
        done = subprocess.run(
            [sys.executable, installed / "bin" / "foretell", *words],
            cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
        said = done.stderr if words[0] == "verify" else said
    assert f"in {tmp_path / 'foretell-workspace'}" in said  # and a command that reads makes none
    assert not (tmp_path / "foretell-workspace").exists()
    assert not (installed / "foretell" / "workspace").exists()


def test_no_import_of_a_short_name_is_left(installed: Path) -> None:
    """Catches an import or a registry's entry of a new form, which the build leaves as it is in the checkout."""
    short = re.compile(rf"({'|'.join(PACKAGES)})(\.\w+)+:\w+")
    left = []
    for path in (installed / "foretell").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            left += [f"{path.name}: {name}" for name in names if name.split(".")[0] in PACKAGES]
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and short.fullmatch(node.value):
                left.append(f"{path.name}: {node.value}")
    assert left == []


def test_every_file_of_a_package_is_installed(installed: Path) -> None:
    """Catches a file next to the code, such as a screenshot that a page shows, of a folder that setup.py omits."""
    files = {
        path.relative_to(ROOT)
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and path.suffix not in (".py", ".pyc")
    }
    assert {file.suffix for file in files} >= {".webp", ".toml", ".safetensors", ".css"}
    assert {str(file) for file in files if not (installed / "foretell" / file).is_file()} == set()
