"""The page ``docs/reference/extensions.md``: everything that can be added, its table, guide and entry points."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from core.registry import Registry
from generators.markdown import format_table

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("core", "data", "study", "inquiry", "dashboard")
HEAD = """\
# Extension points

<!-- Written by `python docs/generate.py` from the registries. Do not edit by hand. -->

Everything in Foretell that is chosen by name is in one table of strings, `NAME: "module:attribute"`. To add an entry,
write one file and one line of its table. Where the last column names a group of entry points, an installed package adds
entries without any change to Foretell: in its `pyproject.toml`, for example,

```toml
[project.entry-points."foretell.methods"]
glow = "my_package.heatmaps:glow"
```

A name of Foretell's own is never replaced, and a package that cannot be imported takes nothing else with it. What is
registered now is in the [catalogue](catalogue.md).
"""


class Point(NamedTuple):
    """What can be added: its table as ``module:NAME``, what an entry is, and the guide, if there is one."""

    what: str
    table: str
    entry: str
    guide: str = ""


POINTS = (
    Point(
        "heatmap method",
        "core.attribution:METHODS",
        "a function under `heatmap_method`, whose arguments are its record: family, meaning of the colours, cost",
        "add-a-method.md",
    ),
    Point("source of networks", "core.sources:SOURCES", "a function that loads a network by its name"),
    Point("way to sample predictions", "core.uncertainty:SAMPLERS", "a function that returns logits (B, T, K)"),
    Point("measure of uncertainty", "core.uncertainty:UNCERTAINTY_MEASURES", "a function of probabilities (B, T, K)"),
    Point("measure of faithfulness", "core.faithfulness:FAITHFULNESS_MEASURES", "a function; its arguments vary"),
    Point("attack", "core.robustness:ATTACKS", "a function that searches for another prediction within a radius"),
    Point("way to draw units", "core.units:PARAMETERISATIONS", "a class that turns parameters into an image"),
    Point("teaching policy", "core.teaching.policies:POLICIES", "a `Policy`: how examples are chosen"),
    Point("image set", "study.plan.config:IMAGE_SETS", "a function that opens images and labels", "add-a-dataset.md"),
    Point("task", "study.tasks:TASKS", "a `Task`: what is asked, sealed and right", "add-a-task.md"),
    Point("condition", "study.conditions:CONDITIONS", "a `Condition`: what is shown where", "add-a-condition.md"),
    Point(
        "measure to stratify targets by",
        "study.plan.measures:IMAGE_MEASURES",
        "a function that returns a function of a candidate",
        "add-a-measure.md",
    ),
    Point(
        "simulated participant",
        "study.plan.simulated_participants:THEORIES",
        "a class: the probability of each response",
        "add-a-simulated-participant.md",
    ),
    Point(
        "question of Layers",
        "inquiry.layers:QUESTIONS",
        "a function under `layer_question`, whose arguments are its record: topic, words, figure, cost",
        "add-a-layer-question.md",
    ),
    Point(
        "exploratory analysis",
        "study.analysis.exploratory.analysis:EXPLORATORY",
        "an `ExploratoryAnalysis`: title, words, table and figure",
        "add-an-exploratory-analysis.md",
    ),
    Point("language of the experiment", "study.locales:Language", "a translation of every text", "add-a-language.md"),
    Point(
        "command", "dashboard.cli.commands:COMMANDS", "a function whose arguments are its options", "add-a-command.md"
    ),
    Point("page for researchers", "dashboard.pages:PAGES", "a function `page()`", "add-a-page.md"),
)


def render_page() -> str:
    """Render the page."""
    rows = [_describe(point) for point in POINTS]
    return "\n".join(
        [HEAD, *format_table(("to add a", "its table", "an entry is", "guide", "a package adds"), rows), ""]
    )


def find_registries() -> Iterator[str]:
    """Yield ``module:NAME`` of each registry that a module of Foretell defines, by reading the code."""
    for path in sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                called = node.value.func
                if isinstance(called, ast.Name) and called.id == Registry.__name__:
                    yield from (f"{module}:{name.id}" for name in node.targets if isinstance(name, ast.Name))


def _describe(point: Point) -> tuple[str, ...]:
    module, _, name = point.table.partition(":")
    table = getattr(importlib.import_module(module), name)
    group = table.group if isinstance(table, Registry) else None
    guide = f"[{point.guide.removesuffix('.md').replace('-', ' ')}](../how-to/{point.guide})" if point.guide else ""
    return point.what, f"`{name}` in `{module}`", point.entry, guide, f"`{group}`" if group else ""
