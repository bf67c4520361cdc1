"""Sphinx settings. The source folder is the repository's root, so that links between its pages work here and there."""

from __future__ import annotations

import builtins
import gc
import importlib
import re
import sys
import tomllib
from functools import cached_property
from pathlib import Path

from docutils import nodes
from pydantic import BaseModel
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.domains.python import ObjectEntry, PythonDomain
from sphinx.environment import BuildEnvironment

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]

gc.set_threshold(200_000)  # of millions of nodes next to none is garbage: looking for it takes a tenth of the time

import apipages  # noqa: E402

project = "Foretell"
author = "The Foretell authors"
project_copyright = author
version = release = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb", ".rst": "restructuredtext"}
root_doc = "docs/index"
include_patterns = ["docs/**", "benchmarks/README.md", "CHANGELOG.md"]
# Everything else is excluded by folder: Sphinx would otherwise walk through environments and workspaces.
KEPT = {"docs", "benchmarks", "CHANGELOG.md"}
exclude_patterns = [path.name for path in ROOT.iterdir() if path.name not in KEPT]
exclude_patterns += ["docs/_build", "benchmarks/results", "**/__pycache__"]

nb_execution_mode = "off"  # the outputs are committed, and a test executes the notebooks
myst_heading_anchors = 4
myst_enable_extensions = ["fieldlist"]
default_role = "code"
add_module_names = False
toc_object_entries = False
suppress_warnings = ["ref.python"]  # a plain name in backticks may mean several attributes
highlight_language = "none"

autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints = "signature"
autodoc_use_type_comments = False  # there are none, and looking for them takes a twentieth of the time
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True

html_theme = "pydata_sphinx_theme"
html_title = "Foretell"
html_logo = html_favicon = "../dashboard/runner/icon.svg"
html_static_path = ["theme", "../dashboard/fonts"]  # the typeface of the pages
html_css_files = ["foretell.css"]
html_copy_source = False
html_show_sourcelink = False
html_extra_path = ["site"]  # a start page at the site's root
html_sidebars = {page: [] for page in ("docs/index", "docs/terms", "benchmarks/README", "CHANGELOG")}  # no subpages
html_theme_options = {
    "logo": {"text": "Foretell"},
    "navbar_persistent": ["search-button"],
    "show_prev_next": False,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "header_links_before_dropdown": 8,
}

SECTIONS = {
    "docs/index": [
        "start",
        "how-to/README",
        "background",
        "reference/README",
        "../benchmarks/README",
        "decisions/README",
        "terms",
        "../CHANGELOG",
    ],
    "docs/start": ["first-heatmaps", "how-to/design-a-study", "first-results", "walkthrough"],
    "docs/how-to/README": [
        "../studies",
        "change-a-study",
        "own-study",
        "prepare-images",
        "write-a-network",
        "python",
        "../notebooks/*",
        "test-your-own-explanation",
        "test-a-function-that-explains",
        "../deploy",
        "several-researchers",
        "answer-participants",
        "recruit",
        "imagenet",
        "prepare-a-large-study",
        "spread-targets",
        "compare-policies",
        "find-images",
        "compare-methods",
        "ask-about-a-prediction",
        "draw-counterfactuals",
        "see-prototypes",
        "ask-the-layers",
        "summarise-predictions",
        "find-modes",
        "explain-a-class",
        "find-parts",
        "restore-a-layer",
        "sample-a-unit",
        "predict-how-a-network-was-built",
        "decompose-images",
        "recognise-classes",
        "show-summaries",
        "debug-a-model",
        "write-rules",
        "write-rules-about-a-stream",
        "choose-among-classes",
        "show-class-heatmaps",
        "ask-about-units",
        "name-units",
        "discover-attributes",
        "train-and-test",
        "compare-conditions-within-participants",
        "adapt-difficulty",
        "run-several-sittings",
        "ask-where",
        "rate-explanations",
        "measure-reliance",
        "decide-as-a-team",
        "analyse-a-scale",
        "analyse-confidence-and-times",
        "plan-covariates",
        "fit-a-bayesian-model",
        "add-*",
    ],
    "docs/background": [
        "experiment",
        "folke2021",
        "statistics",
        "faithfulness",
        "zoo",
        "training",
        "concepts",
        "uncertainty",
        "results/README",
        "sources",
        "architecture",
    ],
    "docs/results/README": [
        "interruptions",
        "reanalysis",
        "rules",
        "modes",
        "x-features",
        "parts",
        "explainer",
        "layers",
        "sampled-units",
        "attributes",
        "crafted-images",
        "decomposition",
        "recognition",
    ],
    "docs/reference/README": ["study-file", "commands", "catalogue", "extensions", "../data-dictionary", "api/index"],
    "docs/decisions/README": ["0*"],
}
"""The navigation: the pages below each page. It is added at build time, so that the pages read well elsewhere."""


def add_navigation(app: Sphinx, page: str, source: list[str]) -> None:
    """Append the hidden table of contents of a page to its text."""
    if page in SECTIONS:
        lines = "\n".join(SECTIONS[page])
        source[0] += f"\n\n```{{toctree}}\n:hidden:\n:glob:\n\n{lines}\n```\n"


def escape_signs(app: Sphinx, what: str, name: str, item: object, options: object, lines: list[str]) -> None:
    """Escape what reStructuredText would take for markup in a docstring: formulas have pipes and stars."""
    parts = re.split(r"(``.*?``|`[^`]*`)", "\n".join(lines), flags=re.DOTALL)
    text = "".join(part if part.startswith("`") else re.sub(r"([|*])", r"\\\1", part) for part in parts)
    lines[:] = text.split("\n")


def skip_foreign(app: Sphinx, what: str, name: str, item: object, skip: bool, options: object) -> bool | None:
    """Leave out what a module only passes on from a library."""
    package = str(getattr(item, "__module__", "") or "").partition(".")[0]
    return True if package in sys.modules and package not in (*apipages.PACKAGES, "builtins") else None


def shorten_signature(
    app: Sphinx, what: str, name: str, item: object, options: object, signature: str | None, returns: str | None
) -> tuple[str | None, str | None]:
    """Name functions among the defaults, and leave out a pydantic model's signature: its fields are listed below it."""
    if isinstance(item, type) and issubclass(item, BaseModel):
        return "", None
    return signature and re.sub(r"<function (\w+) at 0x[0-9a-f]+>", r"\1", signature), returns


def look_up_exactly(app: Sphinx, tree: nodes.document) -> None:
    """Let a type whose name is whole be looked up as it is: Sphinx compares it with the end of every other name.

    Sphinx asks whether the mark of an inexact name is there, and all types in signatures have it, with the value False.
    """
    for reference in tree.findall(pending_xref):
        name = reference.get("reftarget", "")
        if reference.get("refspecific") is False and ("." in name or hasattr(builtins, name)):
            del reference["refspecific"]


class IndexedDomain(PythonDomain):
    """Looks up only names that something has: Sphinx compares each with the end of every other name."""

    @cached_property
    def last_parts(self) -> set[str]:
        """What follows the last dot of each object's name; asked for once all pages are read."""
        return {name.rpartition(".")[2] for name in self.objects}

    def find_obj(
        self, env: BuildEnvironment, modname: str, classname: str, name: str, type: str | None, searchmode: int = 0
    ) -> list[tuple[str, ObjectEntry]]:
        """Find the objects that a reference may mean, as Sphinx does."""
        if name.removesuffix("()").rpartition(".")[2] not in self.last_parts:
            return []
        return super().find_obj(env, modname, classname, name, type, searchmode)


def setup(app: Sphinx) -> None:
    """Write the pages of the Python API and connect the navigation."""
    apipages.write_pages(ROOT)
    for modules in apipages.list_packages(ROOT).values():
        for module in modules:  # autodoc would import them as a type checker does, which pydantic refuses
            importlib.import_module(module)
    app.add_domain(IndexedDomain, override=True)
    app.connect("source-read", add_navigation)
    app.connect("doctree-read", look_up_exactly)
    app.connect("autodoc-process-docstring", escape_signs)
    app.connect("autodoc-process-signature", shorten_signature)
    app.connect("autodoc-skip-member", skip_foreign)
