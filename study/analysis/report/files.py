"""The files of the results: Table 1, the tests, Figure 1 and a short report, each written completely or not at all."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from core.types import Progress, silent
from study.analysis.exploratory import analysis as exploratory
from study.analysis.exploratory import slopes
from study.analysis.exploratory.analysis import AnalysedStudy, ExploratoryResult
from study.analysis.models import intervals, random_effects
from study.analysis.models.records import Coefficient, MixedModel
from study.analysis.models.sentences import LEVEL, alpha_text, describe_hypothesis, describe_p, p_text, words
from study.analysis.planned import nested, placebos
from study.analysis.planned.analysis import PlannedAnalysis
from study.analysis.planned.nested import NestedAnalysis, RatioTest
from study.analysis.report import captions, composition, document, figures, headline
from study.analysis.responses.notices import MODES
from study.analysis.responses.reading import Responses
from study.bundle import Manifest
from study.network.placement import caveats
from study.workspace.files import write_whole
from study.workspace.spreadsheets import csv_text

COLUMNS = ["term", "estimate", "se", "low", "high", "z", "p", "stars", "odds_ratio"]
STARS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))


def stars(p: float | None) -> str:
    """Mark significance by the customary stars: * below .05, ** below .01, *** below .001."""
    return "" if p is None else next((mark for bound, mark in STARS if p < bound), "")


def table(model: MixedModel) -> pd.DataFrame:
    """Make Table 1: term, estimate, se, low, high (95%, Wald), z, p, stars, odds_ratio.

    Infinite estimates appear as infinity, without se, interval, z and p.
    """
    rows = [_row(c, model.limit(c)) for c in model.coefficients]
    return pd.DataFrame(rows).assign(**intervals.wald(model)[["low", "high"]])[COLUMNS]


def _row(c: Coefficient, estimate: float) -> dict[str, object]:
    with np.errstate(over="ignore"):
        ratio = float(np.exp(estimate))
    return {
        "term": words(c.term),
        "estimate": estimate,
        "se": c.se,
        "z": c.z,
        "p": c.p,
        "stars": stars(c.p),
        "odds_ratio": ratio,
    }


def latex(model: MixedModel) -> str:
    """Format Table 1 for a LaTeX document with the package booktabs."""
    body = [
        f"{_term_latex(c.term)} & {_estimate_latex(c, model.limit(c))} & {_number_latex(c.se)} & "
        f"{_number_latex(c.z)} & {_p_latex(c.p)} \\\\"
        for c in model.coefficients
    ]
    lines = [
        r"\begin{tabular}{lrrrr}",
        r"\toprule",
        r"Term & $\beta$ & SE & $z$ & $p$ \\",
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def _term_latex(term: str) -> str:
    return words(term).replace("_", r"\_").replace(" × ", r" $\times$ ")


def _number_latex(value: float | None) -> str:
    if value is None:
        return "--"
    text = f"{value:.2f}"
    return text.replace("-", "$-$") if float(text) else "0.00"


def _estimate_latex(c: Coefficient, estimate: float) -> str:
    if math.isinf(estimate):
        return r"$-\infty$" if estimate < 0 else r"$\infty$"
    mark = stars(c.p)
    return _number_latex(None if math.isnan(estimate) else estimate) + (f"$^{{{mark}}}$" if mark else "")


def _p_latex(p: float | None) -> str:
    return p_text(p).replace("< ", "$<$ ").replace("> ", "$>$ ").replace("–", "--")


def describe_test(test: RatioTest, level: float = LEVEL) -> str:
    """Describe a likelihood-ratio test in one sentence; p below `level` counts as evidence."""
    added = describe_hypothesis(test.smaller, test.larger)
    if test.p is None:
        return f"These data cannot say whether {added}: both models have the same parameters."
    verdict = "There is evidence that" if test.p < level else "There is no clear evidence that"
    against = "" if level == LEVEL else f", tested at alpha = {alpha_text(level)}"
    return f"{verdict} {added} (χ²({test.df}) = {test.chisq:.2f}, {describe_p(test.p)}{against})."


@dataclass(frozen=True)
class HeadlineResult:
    """The main result: the tests, then the size of each effect.

    Attributes
    ----------
    contrasts
        As of `study.analysis.planned.contrasts.table`, at 1 - `level`.
    level
        The p below which a test counts as evidence.
    omission
        Which random slopes the models leave out, if any.
    interim
        Why these are not the planned results yet, if so.
    untestable
        Which planned contrasts have no responses, if any.
    """

    analysis: NestedAnalysis
    contrasts: pd.DataFrame
    level: float
    omission: str | None
    interim: str | None = None
    untestable: str | None = None

    @property
    def sentences(self) -> list[str]:
        """Tests, effects, and what is left out."""
        return [*self.verdicts, *self.effects, *self.omissions]

    @property
    def omissions(self) -> list[str]:
        """Contrasts and random slopes that are left out, in a sentence each."""
        return [line for line in (self.untestable, self.omission) if line is not None]

    @property
    def verdicts(self) -> list[str]:
        """What the tests say, in sentences."""
        return [describe_test(test, self.level) for test in self.analysis.tests]

    @property
    def effects(self) -> list[str]:
        """The size of each contrast, in sentences."""
        return [] if self.contrasts.empty else headline.sentences(self.contrasts, self.level)


def compute_headline(analysis: NestedAnalysis, data: Responses, plan: PlannedAnalysis | None) -> HeadlineResult:
    """Return the planned contrasts at the plan's level; without a plan, the default ones."""
    omission = random_effects.omission(data.frame, analysis.random)
    if plan is not None:
        interim = None if plan.final else plan.stopping
        return HeadlineResult(analysis, plan.contrasts, plan.level, omission, interim, plan.untestable)
    made = placebos.together(data, analysis.largest, placebos.list_all_default_contrasts(data))
    return HeadlineResult(analysis, made, LEVEL, omission)


def tests_table(analysis: NestedAnalysis) -> pd.DataFrame:
    """Tabulate the likelihood-ratio tests: smaller, larger, chisq, df, p."""
    return pd.DataFrame(analysis.as_dict()["lrt"])


def write(
    analysis: NestedAnalysis,
    data: Responses,
    out: Path,
    *,
    seed: int = 0,
    plan: PlannedAnalysis | None = None,
    manifest: Manifest | None = None,
    finding: HeadlineResult | None = None,
    progress: Progress = silent,
) -> tuple[Path, ...]:
    """Write the results into `out`: the same bytes for the same rows, study, plan, seed, code and versions.

    The models, their tests and contrasts are written before any exploratory analysis is computed.

    Parameters
    ----------
    data
        The responses the analysis was made from.
    out
        Folder, made if absent; files of the same names are replaced.
    seed
        Random seed of exploratory analyses that draw at random.
    plan
        The planned analysis, if there was a plan; without it the page labels everything exploratory.
    manifest
        Of the study that the participants took, if known: it adds the measures of its trials.
    finding
        The result of `compute_headline` for the same data, if it was computed before.
    """
    said = finding or compute_headline(analysis, data, plan)
    figure, numbers = figures.accuracy_figure(data)
    tables = {
        "table1": table(analysis.largest),
        "lrt": tests_table(analysis),
        "models": nested.comparison(analysis),
        "figure1": numbers,
        "contrasts": said.contrasts,
        **_exclusions(data, plan),
    }
    written = _write_files(
        out,
        {
            "models.json": json.dumps(analysis.as_dict(), indent=2, allow_nan=False) + "\n",
            **_write_tables(tables),
            "table1.tex": latex(analysis.largest),
            "figure1.html": figure.to_html(include_plotlyjs=True, full_html=True, div_id="figure1"),
        },
    )
    results, absent = exploratory.compute_all(AnalysedStudy(data, seed, manifest, analysis, plan), progress)
    compared = _find_slopes(said, data, results)
    with_slopes = [None if compared is None else slopes.describe(test, compared, said.level) for test in analysis.tests]
    label = "exploratory" if plan is None else plan.label
    sections = composition.list_sections(
        analysis, tables, figure, results, label=label, level=said.level, simulated=data.has_simulated
    )
    contents = {
        "title": composition.write_title(manifest),
        "notices": [*(line for line in data.messages if line.startswith(tuple(MODES.values()))), *caveats(manifest)],
        "facts": composition.list_facts(data, plan, manifest),
        "verdicts": list(zip(said.verdicts, with_slopes, strict=True)),
        "counted": None if compared is None else slopes.describe_contrasts(compared, said.level),
        "effects": said.effects,
        "sections": sections,
        "figures": document.embed_figures(sections),
        "notes": [*said.omissions, *analysis.messages, *(f"Not shown. {line}" for line in absent)],
        "excluded": (plan.exclusions if plan else data.excluded).rename(columns={"rule": "excluded by rule"}),
        "planned": plan is not None,
        "random": analysis.random,
        "references": captions.name_references(analysis.largest),
        "models": document.tabulate_models(analysis),
        "results": results,
        "seed": seed,
        "made_from": document.provenance(data, plan.plan if plan else None, manifest, seed),
    }
    files = {
        **_write_tables({f"exploratory_{result.name}": result.table for result in results}),
        **{name: document.render(name, **contents) for name in ("report.md", "report.html")},
    }
    return written + _write_files(out, files)


def _write_tables(tables: Mapping[str, pd.DataFrame]) -> dict[str, str]:
    return {f"{name}.csv": csv_text(table) for name, table in tables.items()}


def _write_files(out: Path, files: Mapping[str, str]) -> tuple[Path, ...]:
    return tuple(write_whole(out / name, text.encode()) for name, text in files.items())


def _find_slopes(said: HeadlineResult, data: Responses, results: Sequence[ExploratoryResult]) -> pd.DataFrame | None:
    """Find the comparison with random slopes, where the models leave them out."""
    if not slopes.are_left_out(data, said.analysis):
        return None
    return next((result.table for result in results if result.name == "slopes"), None)


def _exclusions(data: Responses, plan: PlannedAnalysis | None) -> dict[str, pd.DataFrame]:
    """Return the table of exclusions: by the plan's rules, or by researchers if there is no plan."""
    if plan is not None:
        return {"exclusions": plan.exclusions}
    return {"exclusions": data.excluded} if len(data.excluded) else {}
