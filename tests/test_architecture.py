"""The shape of the project: who knows whom, how long a file may be, and settings that must not drift."""

from __future__ import annotations

import ast
import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dashboard.cli import installation

ROOT = Path(__file__).parents[1]
PACKAGES = ("core", "data", "study", "inquiry", "dashboard")
LONGEST = 350
LONGEST_BODY = 25
LONG_BODIES = {"dashboard/cli/glmm.py:glmm"}
"""A command reads each of its options once: in two functions, all of them would be handed over in between."""
SOURCES = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
TESTS = sorted((ROOT / "tests").rglob("*.py"))
TOOLS = [path for folder in ("benchmarks", "docs") for path in sorted((ROOT / folder).rglob("*.py"))]
FILES = {".py", ".js", ".css", ".html"}


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def dotted(node: ast.AST) -> str:
    """``"st.cache_data.clear"`` of a chain of names, else the part that is one."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}".lstrip(".")
    return node.id if isinstance(node, ast.Name) else ""


def calls(path: Path, inside_fork: bool = False) -> Iterator[tuple[str, int]]:
    """Every call by its dotted name and line; those under ``with ... fork_rng(...)`` only if asked for."""
    todo: list[ast.AST] = [tree(path)]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.With) and not inside_fork:
            names = [dotted(item.context_expr.func) for item in node.items if isinstance(item.context_expr, ast.Call)]
            if any(name.endswith("fork_rng") for name in names):
                continue
        if isinstance(node, ast.Call):
            yield dotted(node.func), node.lineno
        todo += ast.iter_child_nodes(node)


def offences(paths: list[Path], offends: Callable[[str], bool]) -> list[str]:
    return [f"{path.relative_to(ROOT)}:{line} {name}" for path in paths for name, line in calls(path) if offends(name)]


def test_packages_know_only_what_they_may() -> None:
    """Catches an import against the direction dashboard -> study -> {core | data}, or of a library kept elsewhere."""
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as lint; lint(['--no-cache'])"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    assert f"Contracts: {len(contracts)} kept, 0 broken" in done.stdout
    assert len(contracts) >= 6


def test_no_file_is_too_long() -> None:
    """A file that outgrows this holds more than one concept."""
    assert len(SOURCES) > 50
    files = [path for path in [*everything(), *TESTS] if path.is_file()]
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in files}
    assert {str(path): count for path, count in lengths.items() if count > LONGEST} == {}


def test_no_function_of_the_dashboard_is_too_long() -> None:
    """Catches a page drawn by one function, whose parts have no names and cannot be read or reused alone."""
    long_bodies = {f"{path.relative_to(ROOT)}:{name}" for path, name, count in bodies() if count > LONGEST_BODY}
    assert long_bodies == LONG_BODIES
    assert sum(1 for _ in bodies()) > 1000


def bodies() -> Iterator[tuple[Path, str, int]]:
    """Every function of the dashboard with the lines of its body, without its docstring."""
    for path in sorted((ROOT / "dashboard").rglob("*.py")):
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = node.body[ast.get_docstring(node) is not None :]
                yield path, node.name, (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def everything() -> list[Path]:
    return [path for package in PACKAGES for path in (ROOT / package).rglob("*") if path.suffix in FILES]


def test_no_module_of_the_dashboard_hides_another() -> None:
    """Streamlit puts the folder of its script on the path: ``dashboard/code.py`` would then hide Python's own."""
    taken = set(sys.stdlib_module_names) | set(PACKAGES) | {"tests", "streamlit", "torch", "plotly"}
    names = {path.stem for path in (ROOT / "dashboard").glob("*.py")} - {"__init__"}
    names |= {path.name for path in (ROOT / "dashboard").iterdir() if path.is_dir()} - {"__pycache__"}
    assert {"app", "server", "runner"} <= names
    assert names & taken == set()


def test_the_pages_have_one_router() -> None:
    """A folder ``dashboard/pages`` would start Streamlit's own second navigation."""
    assert not (ROOT / "dashboard" / "pages").exists()


@pytest.mark.parametrize(
    "file",
    [
        "requirements.txt",
        "requirements-dev.txt",
        "requirements-docs.txt",
        "requirements-networks.txt",
        "requirements-bayes.txt",
    ],
)
def test_requirements_are_pinned_and_installed(file: str) -> None:
    """An open range, or tests run on other versions than those promised."""
    lines = [line.split("#")[0].strip() for line in (ROOT / file).read_text().splitlines()]
    lines = [line for line in lines if line]
    pinned = re.compile(r"[A-Za-z0-9_.-]+==[0-9][0-9A-Za-z.]*(; sys_platform .*)?")
    assert [line for line in lines if not pinned.fullmatch(line)] == []
    pins = installation.read_pins(ROOT / file)
    installed = {name: importlib.metadata.version(name).split("+")[0] for name in pins}
    assert installed == pins


@pytest.mark.parametrize(
    "file",
    ["requirements-docs.txt", "requirements-networks.txt", "requirements-postgresql.txt", "requirements-bayes.txt"],
)
def test_the_tests_install_what_is_optional(file: str) -> None:
    """A documentation, networks or a database that are tested with other versions than those promised."""
    dev, optional = (set((ROOT / name).read_text().splitlines()) for name in ("requirements-dev.txt", file))
    assert {line for line in optional if "==" in line} - dev == set()


def test_every_requirement_has_its_reason() -> None:
    """A dependency nobody can explain."""
    reasons = (ROOT / "docs" / "decisions" / "0002-dependencies.md").read_text()
    for file in ("requirements.txt", "requirements-dev.txt"):
        names = re.findall(r"^([A-Za-z0-9_-]+)==", (ROOT / file).read_text(), re.MULTILINE)
        assert [name for name in names if not re.search(rf"\b{name}\b", reasons)] == []


def streamlit_option(name: str, folder: Path) -> str:
    code = f"from streamlit import config; print(config.get_option({name!r}))"
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("STREAMLIT_")}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=inherited, capture_output=True, text=True, check=True
    )
    return done.stdout.split()[-1]


def test_streamlit_reports_no_usage(tmp_path: Path) -> None:
    """What Streamlit really loads where it is started, not what a file says; its default is the negative control."""
    assert streamlit_option("browser.gatherUsageStats", ROOT) == "False"
    assert streamlit_option("browser.gatherUsageStats", tmp_path) == "True"


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("runner.postScriptGC", "False"),
        ("runner.magicEnabled", "False"),
        ("client.toolbarMode", "minimal"),
        ("client.showErrorLinks", "False"),
        ("server.address", "127.0.0.1"),
    ],
)
def test_streamlit_runs_with_the_settings_that_were_decided(option: str, value: str) -> None:
    """docs/decisions/0003: slow clicks, keys that clear caches, a server open to the network."""
    assert streamlit_option(option, ROOT) == value


def test_no_cache_is_ever_cleared() -> None:
    """``st.cache_*.clear()`` empties the caches of everybody who is connected."""
    assert offences([*SOURCES, *TOOLS], lambda name: name.endswith(".clear") and "cache" in name) == []


def test_streamlit_is_never_mocked() -> None:
    """A mocked page tests the mock."""
    found = [
        f"{path.relative_to(ROOT)}"
        for path in TESTS
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Import | ast.ImportFrom)
        and any("mock" in name for name in [getattr(node, "module", None) or "", *(a.name for a in node.names)])
    ]
    assert found == []


def test_nothing_seeds_the_whole_process() -> None:
    """A global seed makes one result depend on what ran before it; generators are arguments here.

    ``torch.manual_seed`` is allowed under ``torch.random.fork_rng``, which puts the state back.
    """
    globally = re.compile(r"^(torch\.(cuda\.)?(manual_seed(_all)?|seed)|(np|numpy)\.random\.seed|random\.seed)$")
    assert offences([*SOURCES, *TESTS, *TOOLS, ROOT / "foretell.py"], lambda name: bool(globally.match(name))) == []


def imports(path: Path) -> set[str]:
    """The modules that a file imports."""
    nodes = [node for node in ast.walk(tree(path)) if isinstance(node, ast.Import | ast.ImportFrom)]
    return {(node.module or "") if isinstance(node, ast.ImportFrom) else a.name for node in nodes for a in node.names}


def test_foretell_py_needs_python_alone() -> None:
    """It runs before anything is installed."""
    names = imports(ROOT / "foretell.py")
    assert "subprocess" in names
    own = {"dashboard.cli", "dashboard.cli.commands", "dashboard.cli.installation", "dashboard.notebook"}
    assert {name.split(".")[0] for name in names - own} - set(sys.stdlib_module_names) == set()
    table = ROOT / "dashboard" / "cli" / "commands.py"
    for module in (table, table.with_name("installation.py"), table.with_name("failures.py")):
        assert {name.split(".")[0] for name in imports(module) - own} <= set(sys.stdlib_module_names)
    code = {node for file in (table.parent, table.parents[1]) for node in tree(file / "__init__.py").body[1:]}
    assert code == set(), "what foretell.py passes on its way to the table holds a docstring only"
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import foretell; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True).stdout
    assert {name.split(".")[0] for name in loaded.split()} - set(sys.stdlib_module_names) == {
        "__main__",
        "foretell",
        "dashboard",
    }


def test_the_ci_runs_the_readmes_test_command() -> None:
    """A CI that tests something else than what people are told to run, or leaves out the browser."""
    readme = (ROOT / "README.md").read_text()
    run = (ROOT / ".ci" / "run").read_text()
    assert re.search(r"^    python foretell.py test\b", readme, re.MULTILINE)
    assert re.search(r'^"\$start" foretell.py test \|\| passed=\$\?$', run, re.MULTILINE)
    for check in ("ruff check", "ruff format --check", "mypy", "lint_imports_command"):
        assert re.search(rf'&& "\$python" .*{check}', run, re.MULTILINE), check
    for failed in ("passed", "checked"):  # both are waited for, and either failure is the exit code
        assert f'[ "${failed}" -eq 0 ] || {{' in run, failed
        assert f'exit "${failed}"; }}' in run, failed
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    assert "set -euo pipefail" in run
