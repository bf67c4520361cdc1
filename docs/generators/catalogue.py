"""The page ``docs/reference/catalogue.md``: everything that is registered by name."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from core.attribution import METHODS
from core.faithfulness import FAITHFULNESS_MEASURES as FAITHFULNESS
from core.parameters import list_parameters
from core.registry import Registry
from core.teaching.policies import POLICIES
from core.uncertainty import SAMPLERS
from core.units import PARAMETERISATIONS
from generators.markdown import escape_cell, first_sentence, format_table
from inquiry.layers import QUESTIONS
from study.analysis.exploratory.analysis import EXPLORATORY
from study.conditions import CONDITIONS
from study.plan.config import IMAGE_SETS
from study.plan.measures import IMAGE_MEASURES as STRATA
from study.plan.simulated_participants import THEORIES
from study.tasks import TASKS

HEAD = """\
# Catalogue

<!-- Written by `python docs/generate.py` from the registries. Do not edit by hand. -->

Everything that a study file, a command or the Explore page names. Adding an entry takes one file and one line:
[a method](../how-to/add-a-method.md), [a task](../how-to/add-a-task.md), [a condition](../how-to/add-a-condition.md),
[an image set](../how-to/add-a-dataset.md), [a model](../how-to/add-a-model.md),
[a question about layers](../how-to/add-a-layer-question.md),
[an exploratory analysis](../how-to/add-an-exploratory-analysis.md).
"""

METHOD_NOTE = """\
`explain --list` prints the same methods; `--param name=value` sets a parameter. Measured comparisons are under
[how well the heatmap methods do](../faithfulness.md).
"""

PARAMETER_NOTE = "What the parameters mean, in the order of the table above; the forms of the pages say the same."

QUESTION_NOTE = "Parameters of the questions of `layers`, as set by `--param name=value` and under Explore, Layers."

TASK_NOTE = """\
Tasks are named by `task` in `[study]` of the study file; each has texts of its own. The task of
`data/studies/accept-reject.toml` is not the default.
"""

CONDITION_NOTE = "Conditions are named in `conditions` of the study file."

POLICY_NOTE = """\
Policies are named by `policy` in `[teaching]` of the study file; the Teaching page shows the set of each. `first`,
`best` and `greedy` are Bayesian teaching ([how to compare them](../how-to/compare-policies.md)).
"""

SET_NOTE = """\
Image sets are named in `[sets.*]` of the study file. `scenes` and `bars` are generated and built in; the others
read your own files ([ImageNet](../how-to/imagenet.md)).
"""

PEOPLE_NOTE = "Simulated participants are mixed by `simulate --mixture name=share,...`."

SAMPLER_PARAMETER_NOTE = "Parameters are set by `uncertainty --param name=value`."

SAMPLER_NOTE = "Samplers are named by `uncertainty --sampler` and by `sampler` in `[trials.strata]`."

PARAMETERISATION_NOTE = """\
How `units --how` and Explore's view "Classes and units" synthesise images for a class or a unit.
"""

STRATA_NOTE = "Measures that stratify a study's targets ([how](../how-to/spread-targets.md))."

EXPLORATORY_NOTE = """\
The report of `analyze` has every one that the responses allow; Results, Exploratory shows one at a time.
"""

FAITHFULNESS_NOTE = "Measures of faithfulness, from Python: `core.faithfulness.FAITHFULNESS_MEASURES`."

MEANINGS = ["parameter", "of", "meaning"]


def render_page() -> str:
    """Render the whole page."""
    parts: list[str] = [HEAD]
    head = ["method", "what it shows", "parameters", "source"]
    parts += _section("Heatmap methods", METHOD_NOTE, _methods(), head)
    parts += _section("Parameters of heatmap methods", PARAMETER_NOTE, _meanings(METHODS), MEANINGS)
    parts += _section("Tasks", TASK_NOTE, _modules(TASKS), ["task", "what participants are asked"])
    parts += _section("Conditions", CONDITION_NOTE, _modules(CONDITIONS), ["condition", "what participants see"])
    parts += _section("Teaching policies", POLICY_NOTE, _policies(), ["policy", "examples", "source"])
    parts += _section("Image sets", SET_NOTE, _modules(IMAGE_SETS), ["set", "content"])
    parts += _section("Simulated participants", PEOPLE_NOTE, _objects(THEORIES), ["name", "behaviour"])
    parts += _section("Uncertainty samplers", SAMPLER_NOTE, _objects(SAMPLERS), ["sampler", "noise"])
    parts += _section("Parameters of uncertainty samplers", SAMPLER_PARAMETER_NOTE, _meanings(SAMPLERS), MEANINGS)
    parts += _section("Parameters of questions about layers", QUESTION_NOTE, _meanings(QUESTIONS), MEANINGS)
    ways = [(*row, _source(PARAMETERISATIONS[row[0].strip("`")])) for row in _objects(PARAMETERISATIONS)]
    parts += _section("Feature visualisation", PARAMETERISATION_NOTE, ways, ["parameterisation", "image", "source"])
    parts += _section("Measures for strata", STRATA_NOTE, _objects(STRATA), ["measure", "value"])
    parts += _section("Measures of faithfulness", FAITHFULNESS_NOTE, _objects(FAITHFULNESS), ["measure", "value"])
    exploratory = ((f"`{name}`", analysis.title) for name, analysis in EXPLORATORY.items())
    parts += _section("Exploratory analyses", EXPLORATORY_NOTE, exploratory, ["analysis", "title"])
    return "\n".join(parts)


def _section(title: str, note: str, rows: Iterable[tuple[str, ...]], head: list[str]) -> list[str]:
    return [f"## {title}", "", note.strip(), "", *format_table(head, rows), ""]


def _methods() -> Iterator[tuple[str, ...]]:
    for name in METHODS:
        method = METHODS[name]
        yield f"`{name}`", escape_cell(first_sentence(method.__doc__)), _parameters(method), _source(method)


def _parameters(method: Callable[..., Any]) -> str:
    """Return keyword parameters of a method with their defaults; those of every method are left out."""
    signature = inspect.signature(method).parameters.values()
    own = [p for p in signature if p.kind is p.KEYWORD_ONLY and p.name not in ("generator", "progress")]
    return ", ".join(f"`{p.name}={p.default}`" for p in own)


def _meanings(registry: Registry) -> Iterator[tuple[str, ...]]:
    """Return what each parameter means, and which entries of a registry have it with this meaning."""
    owners: dict[tuple[str, str], list[str]] = {}
    for name in registry:
        for parameter in list_parameters(registry[name]):
            owners.setdefault((parameter.name, parameter.help), []).append(f"`{name}`")
    for (name, meaning), having in owners.items():
        yield f"`{name}`", ", ".join(having), escape_cell(meaning)


def _source(method: Callable[..., Any]) -> str:
    """Return the first arXiv number or DOI that the docstring, or else the module, cites."""
    for text in (method.__doc__ or "", inspect.getmodule(method).__doc__ or ""):  # type: ignore[union-attr]
        cited = re.search(r"(arXiv:\d{4}\.\d{4,5}|doi:10\.[^\s),;]+)", text)
        if cited:
            return _link(cited[1].rstrip("."))
    return ""


def _link(cited: str) -> str:
    kind, _, number = cited.partition(":")
    base = "https://arxiv.org/abs/" if kind == "arXiv" else "https://doi.org/"
    return f"[{cited}]({base}{number})"


def _policies() -> Iterator[tuple[str, ...]]:
    for name in POLICIES:
        choose = POLICIES[name].choose
        yield f"`{name}`", escape_cell(re.sub(r" \(arXiv:[^)]*\)", "", first_sentence(choose.__doc__))), _source(choose)


def _modules(registry: Registry) -> Iterator[tuple[str, ...]]:
    """Return names whose meaning is in the first line of the module they point to."""
    for name in registry:
        yield f"`{name}`", escape_cell(first_sentence(registry.describe(name)))


def _objects(registry: Any) -> Iterator[tuple[str, ...]]:
    for name in registry:
        yield f"`{name}`", escape_cell(first_sentence(registry[name].__doc__))
