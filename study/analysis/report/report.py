"""A report: everything that its files say, computed from an analysis and written nowhere."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from core.types import Progress, silent
from study.analysis.bayes.sampler import SamplerSettings
from study.analysis.exploratory import analysis as exploratory
from study.analysis.exploratory import importance, slopes
from study.analysis.exploratory.analysis import AnalysedStudy, ExploratoryResult
from study.analysis.planned import nested
from study.analysis.planned.analysis import PlannedAnalysis
from study.analysis.planned.nested import NestedAnalysis
from study.analysis.report import captions, composition, document, evidence, figures, means, model_table, reproduction
from study.analysis.report.finding import HeadlineResult
from study.analysis.report.manuscript.draft import list_tables, write_draft
from study.analysis.report.manuscript.manuscript import Manuscript
from study.analysis.responses.notices import MODES
from study.analysis.responses.reading import Responses
from study.bundle import Manifest
from study.network.placement import caveats
from study.workspace.spreadsheets import csv_text

Files = dict[str, str | bytes]
"""The contents of files, by name."""


@dataclass(frozen=True)
class Report:
    """The results of a study: the same for the same rows, study, plan, seed, draws, code and versions.

    Attributes
    ----------
    data
        The responses the analysis was made from.
    finding
        Its main result.
    plan
        The planned analysis, if there was a plan; without it the page labels everything exploratory.
    manifest
        Of the study that the participants took, if known: it adds the measures of its trials.
    seed
        Random seed of exploratory analyses that draw at random.
    requests
        The analyses that take long and that it has (`study.analysis.exploratory.analysis.compute_all`).
    draws
        Of each chain of a Bayesian fit, after warm-up.
    """

    analysis: NestedAnalysis
    data: Responses
    finding: HeadlineResult
    plan: PlannedAnalysis | None = None
    manifest: Manifest | None = None
    seed: int = 0
    requests: Collection[str] = ()
    draws: int = SamplerSettings.draws

    @cached_property
    def figure(self) -> tuple[go.Figure, pd.DataFrame]:
        """Figure 1 and its numbers."""
        return figures.accuracy_figure(self.data)

    @cached_property
    def study(self) -> AnalysedStudy:
        """What exploratory analyses may use, with the results of both choices of random effects."""
        study = AnalysedStudy(self.data, self.seed, self.manifest, self.analysis, self.plan, draws=self.draws)
        return replace(study, compared=slopes.compute_table(study))

    @cached_property
    def headline(self) -> HeadlineResult:
        """The main result, with its tests both with random slopes and as in the paper."""
        return replace(self.finding, compared=self.study.compared)

    @cached_property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The tables of the models, their tests, contrasts, Figure 1 and exclusions."""
        return {
            "table1": model_table.table(self.analysis.largest),
            "random_effects": model_table.tabulate_random(self.analysis.largest),
            "lrt": tests_table(self.analysis),
            "models": nested.comparison(self.analysis),
            "figure1": self.figure[1],
            "contrasts": self.finding.contrasts,
            **evidence.tabulate(self.plan),
            **means.tabulate(self.plan),
            **self._exclusions,
        }

    @property
    def draft(self) -> Manuscript:
        """The method and results sections."""
        title = composition.write_title(self.data.task, self.manifest)
        return write_draft(title, self.headline, self.plan, self.manifest, self.tables, self.figure[0])

    def describe_models(self) -> Files:
        """Return the files of models, tests, contrasts and Figure 1, which need no further analysis."""
        return {
            "models.json": json.dumps(self.analysis.as_dict(), indent=2, allow_nan=False) + "\n",
            **_format_tables(self.tables),
            "table1.tex": model_table.latex(self.analysis.largest),
            "figure1.html": self.figure[0].to_html(include_plotlyjs=True, full_html=True, div_id="figure1"),
            **reproduction.describe(
                self.analysis,
                self.data,
                self.finding.contrasts,
                self.plan,
                self.finding.level,
                self._made_from,
                self.finding.condition_model,
            ),
        }

    def explore(self, progress: Progress = silent) -> tuple[list[ExploratoryResult], list[str]]:
        """Compute the exploratory analyses, and explain each one that is absent."""
        return exploratory.compute_all(self.study, progress, requests=self.requests)

    def describe_all(self, results: Sequence[ExploratoryResult], absent: Sequence[str]) -> Files:
        """Return the files of the exploratory analyses, as of `explore`, and the report itself."""
        from study.analysis.report.manuscript.word import write_word
        from study.analysis.report.static import write_figures

        draft = self.draft
        contents = {**self._fill(results, absent), "draft": draft}
        return {
            **_format_tables({f"exploratory_{result.name}": result.table for result in results}),
            **{name: document.render(name, **contents) for name in ("report.md", "report.html")},
            **{f"{name}.tex": table.latex for name, table in list_tables(self.headline, self.tables).items()},
            **write_figures(
                {one.file: one.figure for one in draft.figures}
                | {f"exploratory_{result.name}.svg": result.figure for result in results}
            ),
            **importance.describe_files(self.study),
            "manuscript.md": draft.markdown,
            "manuscript.docx": write_word(draft),
        }

    def _fill(self, results: Sequence[ExploratoryResult], absent: Sequence[str]) -> dict[str, Any]:
        """Return what the templates of the report show."""
        analysis, data, plan, said = self.analysis, self.data, self.plan, self.headline
        label = "exploratory" if plan is None else plan.label
        planned = [*evidence.list_sections(plan), *means.list_sections(plan)]
        sections = composition.list_sections(
            analysis,
            self.tables,
            self.figure[0],
            results,
            task=data.task,
            planned=planned,
            caption=captions.explain_figure_1(data.every, data.task),
            explained=captions.explain_random_effects(data.frame, analysis.largest),
            label=label,
            level=said.level,
            simulated=data.has_simulated,
        )
        notices = (line for line in data.messages if line.startswith(tuple(MODES.values())))
        return {
            "title": composition.write_title(data.task, self.manifest),
            "notices": [*notices, *caveats(self.manifest)],
            "facts": composition.list_facts(data, plan, self.manifest),
            "opening": said.opening,
            "verdicts": said.verdicts,
            "counted": None if said.compared is None else slopes.describe_contrasts(said.compared, said.level),
            "effects": said.effects,
            "sections": sections,
            "asked": planned,
            "figures": document.embed_figures(sections),
            "notes": [
                *said.omissions,
                *analysis.messages,
                *(f"Not shown. {line}" for line in absent),
            ],
            "excluded": (plan.exclusions if plan else data.excluded).rename(columns={"rule": "excluded by rule"}),
            "planned": plan is not None,
            "scored": data.task.is_scored,
            "random": analysis.random,
            "references": captions.name_references(analysis.largest),
            "models": document.tabulate_models(analysis),
            "random_effects": self.tables["random_effects"],
            "results": results,
            "seed": self.seed,
            "made_from": self._made_from,
        }

    @property
    def _made_from(self) -> dict[str, str]:
        return document.provenance(self.data, self.plan.plan if self.plan else None, self.manifest, self.seed)

    @property
    def _exclusions(self) -> dict[str, pd.DataFrame]:
        """The table of exclusions: by the plan's rules, or by researchers if there is no plan."""
        if self.plan is not None:
            return {"exclusions": self.plan.exclusions}
        return {"exclusions": self.data.excluded} if len(self.data.excluded) else {}


def encode(files: Files) -> dict[str, bytes]:
    """Return the contents of files as they are written."""
    return {name: content if isinstance(content, bytes) else content.encode() for name, content in files.items()}


def tests_table(analysis: NestedAnalysis) -> pd.DataFrame:
    """Tabulate the likelihood-ratio tests: smaller, larger, chisq, df, p."""
    return pd.DataFrame(analysis.as_dict()["lrt"])


def _format_tables(tables: Mapping[str, pd.DataFrame]) -> Files:
    return {f"{name}.csv": csv_text(table) for name, table in tables.items()}
