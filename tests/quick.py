"""The tests that a change reaches, nearest first: ``python foretell.py test --quick``.

A file reaches a test file that imports it, directly or through others; names of modules in strings count as imports,
because the tables of methods, conditions and commands are strings. A changed document reaches the tests of documents,
and what no import leads to (styles, scripts, study files) the tests that name it. `tests/test_smoke.py` always runs.
The tests beyond `MOST_FILES` files do not run, and those left when the time is over are skipped: the whole suite,
``python foretell.py test``, has the last word.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import time
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("core", "data", "study", "inquiry", "dashboard", "tests", "docs", "benchmarks")
SMOKE = "tests/test_smoke.py"
OF_DOCUMENTS = (
    "tests/test_docs.py",
    "tests/test_guides.py",
    "tests/test_language.py",
    "tests/test_reference_pages.py",
    "tests/test_release.py",
)
MOST_FILES = 40
"""Files of tests that are run: each process imports all of them first, and 400 take it a minute."""
BUDGET_S = 120.0
"""Seconds after which no further test begins; with the start of the processes, less than three minutes."""
DEADLINE = "FORETELL_QUICK_UNTIL"
"""The environment variable in which the processes that run the tests find the end of the time."""
LEFT_OUT = "the time of --quick was over"
_NAME = re.compile(rf"(?:{'|'.join(PACKAGES)})(?:\.\w+)+")


def list_changes(root: Path = ROOT) -> list[str]:
    """List the files that differ from the last commit; those of the last commit where nothing does."""
    changed = _ask_git(root, "diff", "--name-only", "HEAD") + _ask_git(
        root, "ls-files", "--others", "--exclude-standard"
    )
    return changed or _ask_git(root, "diff", "--name-only", "HEAD~1", "HEAD")


def _ask_git(root: Path, *words: str) -> list[str]:
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
    return done.stdout.splitlines() if done.returncode == 0 else []


def select(changes: Collection[str], root: Path = ROOT) -> list[str]:
    """Return the test files that the changed files reach, as paths below ``root``: the nearest first."""
    modules = {name_module(path.relative_to(root)): path for path in list_sources(root)}
    importers = invert({name: read_names(path, modules) for name, path in modules.items()})
    changed = {name for name, path in modules.items() if str(path.relative_to(root)) in changes}
    distances = measure_distances(changed, importers)
    order = {str(modules[name].relative_to(root)): steps for name, steps in distances.items()}
    texts = {path: (root / path).read_text(encoding="utf-8") for path in map(str, _list_tests(root))}
    for change in changes:
        for test in _find_without_imports(change, texts):
            order[test] = min(order.get(test, 1), 1)
    tests = [path for path in order if Path(path).name.startswith("test_") and (root / path).is_file()]
    return sorted(tests, key=lambda path: (order[path], path))


def list_sources(root: Path) -> list[Path]:
    """List the Python files of the project."""
    return [path for name in PACKAGES for path in sorted((root / name).rglob("*.py")) if "_build" not in path.parts]


def name_module(path: Path) -> str:
    """Return the name by which a file is imported: ``core.registry`` of ``core/registry.py``."""
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def read_names(path: Path, modules: Collection[str]) -> set[str]:
    """Return the modules that a file imports or names in a string."""
    named: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            named |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            named |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 200:
            named |= set(_NAME.findall(node.value))
    return named & set(modules)


def invert(imports: Mapping[str, Iterable[str]]) -> dict[str, set[str]]:
    """Return by module those that import it."""
    importers: dict[str, set[str]] = {}
    for name, imported in imports.items():
        for one in imported:
            importers.setdefault(one, set()).add(name)
    return importers


def measure_distances(start: Collection[str], importers: Mapping[str, Iterable[str]]) -> dict[str, int]:
    """Return every module that a change reaches, with the number of imports between them."""
    distances = dict.fromkeys(start, 0)
    todo = deque(start)
    while todo:
        name = todo.popleft()
        for one in importers.get(name, ()):
            if one not in distances:
                distances[one] = distances[name] + 1
                todo.append(one)
    return distances


def _list_tests(root: Path) -> list[Path]:
    return [path.relative_to(root) for path in sorted((root / "tests").rglob("test_*.py"))]


def _find_without_imports(change: str, texts: Mapping[str, str]) -> list[str]:
    """Find the tests of a changed file that nothing imports: of a document, or those that name it."""
    if change.endswith(".md"):
        return [test for test in OF_DOCUMENTS if test in texts]
    if change.endswith(".py") and change.split("/")[0] in PACKAGES:
        return []
    word = Path(change).stem if change.endswith(".toml") else Path(change).name  # the start of the whole name, too
    return [test for test, text in texts.items() if f'"{word}' in text or f"/{word}" in text]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Begin no test after the end of the time; those of the smoke test always run."""
    over = time.time() > float(os.environ.get(DEADLINE, "inf"))
    if over and item.path != ROOT / SMOKE:
        pytest.skip(LEFT_OUT)


def main(arguments: list[str]) -> int:
    """Run the smoke test and what the changes reach; the exit code is that of pytest."""
    changes = list_changes()
    tests = [test for test in select(changes) if test != SMOKE]
    nearest = tests[:MOST_FILES]
    sys.stdout.write(
        f"{len(changes)} changed files reach {len(tests)} files of tests; the nearest {len(nearest)} run.\n"
    )
    sys.stdout.flush()
    os.environ[DEADLINE] = str(time.time() + BUDGET_S)
    return int(pytest.main(["-p", "tests.quick", *arguments, SMOKE, *nearest]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
