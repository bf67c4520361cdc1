"""The report in Markdown: data, tests, models, exploratory analyses, and provenance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from study.analysis.document import CHANCES, SHOWN, chance, number
from study.analysis.exploratory import ExploratoryResult
from study.analysis.nested import NestedAnalysis
from study.analysis.planned import PlannedAnalysis
from study.analysis.responses import Responses


def report(
    title: str,
    answer: Sequence[str],
    analysis: NestedAnalysis,
    data: Responses,
    found: Sequence[ExploratoryResult],
    made_from: Mapping[str, str],
    seed: int,
    plan: PlannedAnalysis | None,
) -> str:
    """Compose the whole text; `answer` holds its first sentences, `found` the exploratory measures."""
    messages = [f"- {message}" for message in analysis.messages] or ["- None."]
    return "\n".join(
        [
            f"# {title}",
            "",
            *(line for said in answer for line in (said, "")),
            "## Data",
            "",
            _data(data),
            "",
            *_exclusions(data, plan),
            "## Models",
            "",
            f"Logistic mixed models, random effects {analysis.random}, maximum likelihood (Laplace approximation). "
            "Reference levels: adversarial incorrect, no saliency, no examples.",
            "",
            *_models_table(analysis),
            "",
            "Table 1 (the largest model) is in `table1.csv` and `table1.tex`; Figure 1 in `figure1.html`, its "
            f"intervals from resampled participants (random seed {seed}); everything on one page in `report.html`.",
            "",
            "## Caveats",
            "",
            *messages,
            "",
            "## Exploratory analyses (not in a plan)",
            "",
            *(line for measure in found for line in _measure(measure)),
            "## Provenance",
            "",
            *[f"- {name}: `{value}`" for name, value in made_from.items()],
            "",
        ]
    )


def table(frame: pd.DataFrame) -> list[str]:
    """Format a table as lines of Markdown, its numbers as the page prints them."""
    names = [str(name) for name in frame.columns]
    rows = [[_cell(name, value) for name, value in row.items()] for row in frame.to_dict("records")]
    return [_row(names), _row(["---"] * len(names)), *map(_row, rows)]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(name: Any, value: Any) -> str:
    if pd.isna(value):
        return "–"
    if name in CHANCES:
        return chance(value)
    return number(value) if isinstance(value, float) else str(value).replace("|", "\\|")


def _data(data: Responses) -> str:
    frame = data.frame
    people = frame.groupby("condition")["participant"].nunique()
    return (
        f"{len(frame):,} responses of {frame['participant'].nunique():,} participants "
        f"({', '.join(f'{name}: {count}' for name, count in people.items())}) to {frame['category'].nunique():,} "
        f"target categories; {data.dropped:,} rows left out."
    )


def _exclusions(data: Responses, plan: PlannedAnalysis | None) -> list[str]:
    counts = plan.exclusions if plan else data.excluded
    if counts.empty:
        return ["The plan excludes no participants.", ""] if plan else []
    return [*table(counts.rename(columns={"rule": "excluded by rule"})), ""]


def _models_table(analysis: NestedAnalysis) -> list[str]:
    rows = []
    for name, model in analysis.models.items():
        sd = {f"sd {effect.group}": effect.sd for effect in model.random}
        converged = "yes" if model.converged else "no"
        rows.append(
            {"model": name, "log-likelihood": model.loglik, "parameters": model.df, **sd, "converged": converged}
        )
    return table(pd.DataFrame(rows))


def _measure(measure: ExploratoryResult) -> Iterator[str]:
    """Write a short table here; refer to the file of a long one."""
    yield from (f"### {measure.title}", "", measure.says, "")
    if len(measure.table) <= SHOWN:
        yield from table(measure.table)
    else:
        yield f"{len(measure.table)} rows in `exploratory_{measure.name}.csv`."
    yield ""
