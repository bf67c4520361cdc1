"""Exploratory analyses: a table and a figure each, labelled as exploratory wherever they appear.

An analysis is one file and one line of `EXPLORATORY`, whose order is that of the report.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.errors import ForetellError
from core.registry import Registry
from core.types import Progress, silent
from study import plots
from study.analysis.bayes.sampler import SamplerSettings
from study.analysis.models.sentences import LEVEL
from study.analysis.planned.analysis import PlannedAnalysis
from study.analysis.planned.nested import NestedAnalysis
from study.analysis.responses.notices import MODES
from study.analysis.responses.reading import Responses
from study.bundle import Manifest, Trial
from study.tasks import DEFAULT_TASK
from study.tasks.task import Task

ROBUSTNESS = "robustness"
TableAndFigure = tuple[pd.DataFrame, go.Figure | None]
Value = TypeVar("Value")

EXPLORATORY = Registry(
    "exploratory analysis",
    {
        "slopes": "study.analysis.exploratory.slopes:ANALYSIS",
        "crosschecks": "study.analysis.exploratory.crosschecks:ANALYSIS",
        "leave_out_participants": "study.analysis.exploratory.leave_out:PARTICIPANTS",
        "leave_out_images": "study.analysis.exploratory.leave_out:IMAGES",
        "specifications": "study.analysis.exploratory.specifications:ANALYSIS",
        "bootstrap": "study.analysis.exploratory.bootstrap:ANALYSIS",
        "checks": "study.analysis.exploratory.residuals:CHECKS",
        "residuals": "study.analysis.exploratory.residuals:RESIDUALS",
        "bayes_differences": "study.analysis.exploratory.bayes:DIFFERENCES",
        "bayes_parameters": "study.analysis.exploratory.bayes:PARAMETERS",
        "bayes_prior": "study.analysis.exploratory.bayes:PRIOR",
        "bayes_checks": "study.analysis.exploratory.bayes:CHECKS",
        "means": "study.analysis.exploratory.means:MEANS",
        "pairs": "study.analysis.exploratory.means:PAIRS",
        "detection": "study.analysis.exploratory.detection:BY_CONDITION",
        "detection_differences": "study.analysis.exploratory.detection:DIFFERENCES",
        "projection": "study.analysis.exploratory.projection:ANALYSIS",
        "learning": "study.analysis.exploratory.learning:ANALYSIS",
        "carry_over": "study.analysis.exploratory.carry_over:ANALYSIS",
        "adaptive_participants": "study.analysis.exploratory.thresholds:PARTICIPANTS",
        "adaptive": "study.analysis.exploratory.thresholds:BY_CONDITION",
        "adaptive_differences": "study.analysis.exploratory.thresholds:DIFFERENCES",
        "sittings": "study.analysis.exploratory.sittings:ACCURACY",
        "attrition": "study.analysis.exploratory.sittings:ATTRITION",
        "utility": "study.analysis.exploratory.utility:ANALYSIS",
        "reliance": "study.analysis.exploratory.reliance:ANALYSIS",
        "team": "study.analysis.exploratory.team:ANALYSIS",
        "places": "study.analysis.exploratory.places:ANALYSIS",
        "raters": "study.analysis.exploratory.raters:ANALYSIS",
        "importance": "study.analysis.exploratory.importance:ANALYSIS",
        "levels": "study.analysis.exploratory.levels:ANALYSIS",
        "ordinal": "study.analysis.exploratory.ordinal:ANALYSIS",
        "proportional_odds": "study.analysis.exploratory.proportional_odds:ANALYSIS",
        "attributes": "study.analysis.exploratory.attributes:ANALYSIS",
        "calibration": "study.analysis.exploratory.calibration:ANALYSIS",
        "calibration_scores": "study.analysis.exploratory.calibration:SCORES",
        "metacognition": "study.analysis.exploratory.metacognition:BY_CONDITION",
        "metacognition_differences": "study.analysis.exploratory.metacognition:DIFFERENCES",
        "categories": "study.analysis.exploratory.items:CATEGORIES",
        "modes": "study.analysis.exploratory.modes:ANALYSIS",
        "speed": "study.analysis.exploratory.speed:ANALYSIS",
        "log_times": "study.analysis.exploratory.times:ANALYSIS",
        "ex_gaussian": "study.analysis.exploratory.ex_gaussian:BY_CONDITION",
        "ex_gaussian_differences": "study.analysis.exploratory.ex_gaussian:DIFFERENCES",
        "diffusion": "study.analysis.exploratory.diffusion:BY_CONDITION",
        "diffusion_differences": "study.analysis.exploratory.diffusion:DIFFERENCES",
        "associations": "study.analysis.exploratory.items:ASSOCIATIONS",
        "items_p_learner": "study.analysis.exploratory.items:P_LEARNER",
        "items_gain": "study.analysis.exploratory.items:GAIN",
        "items_insertion": "study.analysis.exploratory.items:INSERTION",
        "items_deletion": "study.analysis.exploratory.items:DELETION",
        "items_relevance": "study.analysis.exploratory.items:RELEVANCE",
        "items_effective_samples": "study.analysis.exploratory.items:EFFECTIVE_SAMPLES",
        "items_ai_probability": "study.analysis.exploratory.items:AI_PROBABILITY",
        "items_unit_gap": "study.analysis.exploratory.items:UNIT_GAP",
        "items_difficulty": "study.analysis.exploratory.items:DIFFICULTY",
        "items_stratum": "study.analysis.exploratory.items:STRATUM",
        "theories": "study.analysis.exploratory.cognitive:COMPARISON",
        "overlay": "study.analysis.exploratory.cognitive:OVERLAY",
    },
)


@dataclass(frozen=True)
class AnalysedStudy:
    """The data and models that an exploratory analysis may use.

    Attributes
    ----------
    seed
        Random seed of an analysis that draws at random.
    manifest
        Of the study that the participants took, if known.
    models
        The three models, if they were fitted.
    plan
        The planned analysis, if there was a plan.
    compared
        The results with and without random slopes, if they are known.
    progress
        Where an analysis that takes more than a second reports its progress.
    draws
        Of each chain of a Bayesian fit, after warm-up.
    """

    data: Responses
    seed: int = 0
    manifest: Manifest | None = None
    models: NestedAnalysis | None = None
    plan: PlannedAnalysis | None = None
    compared: pd.DataFrame | None = None
    progress: Progress = silent
    draws: int = SamplerSettings.draws
    _kept: dict[Callable[..., Any], Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def once(self, compute: Callable[[AnalysedStudy], Value]) -> Value:
        """Return what a function computes of this study; the analyses that need it share one result."""
        if compute not in self._kept:
            self._kept[compute] = compute(self)
        value: Value = self._kept[compute]
        return value

    @property
    def frame(self) -> pd.DataFrame:
        """One row per response."""
        return self.data.frame

    @property
    def rng(self) -> np.random.Generator:
        """A generator that starts at the seed."""
        return np.random.default_rng(self.seed)

    @property
    def level(self) -> float:
        """The p below which a test counts as evidence."""
        return LEVEL if self.plan is None else self.plan.level

    @property
    def trials(self) -> dict[str, Trial]:
        """Return the frozen trials by id; none if the study is unknown."""
        return {trial.id: trial for trial in self.manifest.trials} if self.manifest else {}

    @property
    def fitted_models(self) -> NestedAnalysis:
        """The three models; an error if they were not fitted."""
        if self.models is None:
            raise ForetellError("This analysis needs the fitted models.")
        return self.models


def has_trials(study: AnalysedStudy) -> bool:
    """Say whether the study is known, so that responses can be compared with its trials."""
    return study.manifest is not None


def asks_prediction(study: AnalysedStudy) -> bool:
    """Say whether participants predicted the AI's choice of two: what they did not choose is then a class, too."""
    return study.data.task.name == DEFAULT_TASK and not study.data.task.has_several


def asks_prediction_of_trials(study: AnalysedStudy) -> bool:
    """Say whether participants predicted the AI on trials that are known."""
    return has_trials(study) and asks_prediction(study)


def has_times(study: AnalysedStudy) -> bool:
    """Say whether the responses have response times, each of its own; the attributes of a trial share one."""
    if study.data.task.of_attributes:
        return False
    return "rt_ms" in study.frame and bool((study.frame["rt_ms"] > 0).any())


def has_confidence(study: AnalysedStudy) -> bool:
    """Say whether participants gave their confidence."""
    return "confidence" in study.frame and bool(study.frame["confidence"].notna().any())


def has_models(study: AnalysedStudy) -> bool:
    """Say whether the three models were fitted."""
    return study.models is not None


@dataclass(frozen=True)
class ExploratoryAnalysis:
    """One exploratory analysis.

    Attributes
    ----------
    says
        How to read it; a function where that depends on the data.
    compute
        Its table and figure; raises `ForetellError` where the responses do not allow it.
    needs
        Whether it applies to a study; it is not offered otherwise.
    conclude
        Says in a sentence what its table shows.
    seconds
        Estimates the processor time of one that takes long: a report has it only on request.
    request
        The name of that request.
    is_of_levels
        Whether it applies where no response is right or wrong, too.
    is_of_predictions
        Whether it needs trials in which the AI is right or wrong: those about units or attributes are neither.
    is_drawn
        Whether it is of the draws of a Bayesian fit (`AnalysedStudy.draws`).
    """

    title: str
    says: str | Callable[[AnalysedStudy], str]
    compute: Callable[[AnalysedStudy], TableAndFigure]
    needs: Callable[[AnalysedStudy], bool] = lambda _: True
    conclude: Callable[[AnalysedStudy, pd.DataFrame], str] = lambda *_: ""
    seconds: Callable[[AnalysedStudy], float] | None = None
    request: str = ROBUSTNESS
    is_of_levels: bool = False
    is_of_predictions: bool = False
    is_drawn: bool = False

    def explain(self, study: AnalysedStudy) -> str:
        """Say how to read it."""
        return self.says if isinstance(self.says, str) else self.says(study)


@dataclass(frozen=True)
class ExploratoryResult:
    """A computed analysis: its name in `EXPLORATORY`, title, how to read it, table, figure and what they show."""

    name: str
    title: str
    says: str
    table: pd.DataFrame
    figure: go.Figure | None
    conclusion: str = ""


def with_figure(table: pd.DataFrame, draw: Callable[[pd.DataFrame], go.Figure]) -> TableAndFigure:
    """Draw a table and return both."""
    return table, draw(table)


def list_analyses(study: AnalysedStudy) -> dict[str, ExploratoryAnalysis]:
    """List the analyses that apply to the study, whether or not the responses allow them."""
    task = study.data.task
    offered = {
        name: one
        for name, one in EXPLORATORY.items()
        if (task.is_scored or one.is_of_levels) and (task.is_of_predictions or not one.is_of_predictions)
    }
    return {name: analysis for name, analysis in offered.items() if analysis.needs(study)}


def explain_unscored(task: Task) -> str:
    """Say in a sentence which analyses do not apply where no response is right or wrong; empty where they do."""
    if task.is_scored:
        return ""
    return (
        f"No response to the task {task.name} is right or wrong, so analyses of correct responses do not apply: signal "
        "detection (d'), calibration, reliance and team accuracy, robustness checks, Bayesian fits, and equivalence in "
        "percentage points."
    )


def compute(name: str, study: AnalysedStudy) -> ExploratoryResult:
    """Compute one analysis; a figure of simulated participants is marked as such.

    Raises
    ------
    ForetellError
        The responses do not allow it.
    """
    analysis: ExploratoryAnalysis = EXPLORATORY[name]
    table, figure = analysis.compute(study)
    if figure is not None and study.data.has_simulated:
        plots.mark(figure, MODES["sim"])
    says, conclusion = analysis.explain(study), analysis.conclude(study, table)
    return ExploratoryResult(name, analysis.title, says, table, figure, conclusion)


def compute_all(
    study: AnalysedStudy, progress: Progress = silent, *, requests: Collection[str] = ()
) -> tuple[list[ExploratoryResult], list[str]]:
    """Compute the analyses that the responses allow, and explain each one that is absent.

    Whatever goes wrong in one of them costs neither the others nor the planned results.

    Parameters
    ----------
    requests
        Of those that take long, the ones to compute, too: `ROBUSTNESS`, ``"bayes"``.
    """
    study = replace(study, progress=progress)
    results, absent, offered = [], [], list_analyses(study)
    offered = {name: one for name, one in offered.items() if one.seconds is None or one.request in requests}
    for done, (name, analysis) in enumerate(offered.items()):
        progress(done, len(offered), analysis.title)
        try:
            results.append(compute(name, study))
        except ForetellError as error:
            absent.append(f"{analysis.title}: {error}")
        except Exception as error:
            absent.append(f"{analysis.title}: failed with an unexpected {type(error).__name__} ({error}). Report it.")
    absent += filter(None, [explain_unscored(study.data.task)])
    progress(len(offered), len(offered), "Measures made")
    return results, absent
