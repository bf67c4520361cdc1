"""Write one page for each package of ``core``, ``data`` and ``study``: what Sphinx then reads from the docstrings."""

from __future__ import annotations

from pathlib import Path

PACKAGES = ("core", "data", "study", "inquiry")
FOLDER = Path("docs") / "reference" / "api"
TITLE = "Python API"
INTRODUCTION = """\
The public modules of ``core`` (the engine), ``data`` (images) and ``study`` (participants and responses). Names that
begin with an underscore are left out. ``dashboard`` has no public functions: its interface is the pages and commands.
"""


def write_pages(root: Path) -> None:
    """Write the pages, and remove those of packages that are gone."""
    folder = root / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    pages = {name: render_page(name, modules) for name, modules in list_packages(root).items()}
    pages["index"] = render_index(sorted(pages))
    for path in folder.glob("*.rst"):
        if path.stem not in pages:
            path.unlink()
    for name, text in pages.items():
        path = folder / f"{name}.rst"
        if not path.is_file() or path.read_text(encoding="utf-8") != text:  # an unchanged page is not read again
            path.write_text(text, encoding="utf-8")


def list_packages(root: Path) -> dict[str, list[str]]:
    """List the public modules of each package, by the package's dotted name."""
    packages: dict[str, list[str]] = {}
    for package in PACKAGES:
        for init in sorted((root / package).rglob("__init__.py")):
            name = ".".join(init.parent.relative_to(root).parts)
            modules = [f"{name}.{path.stem}" for path in sorted(init.parent.glob("*.py")) if path.stem[0] != "_"]
            packages[name] = [name, *modules]
    return packages


def render_page(package: str, modules: list[str]) -> str:
    """Render the page of a package: a heading and its modules' documentation."""
    parts = [package, "=" * len(package), ""]
    for module in modules:
        if module != package:
            parts += [module, "-" * len(module), ""]
        parts += [f".. automodule:: {module}", ""]
    return "\n".join(parts)


def render_index(pages: list[str]) -> str:
    """Render the list of packages."""
    entries = "\n".join(f"   {name}" for name in pages)
    return f"{TITLE}\n{'=' * len(TITLE)}\n\n{INTRODUCTION}\n.. toctree::\n   :maxdepth: 1\n\n{entries}\n"
