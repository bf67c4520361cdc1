"""Exploratory analyses: a table and a figure each, labelled as exploratory wherever they appear."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.errors import ForetellError
from core.types import Progress, silent
from study.analysis import (
    calibration,
    cognitive,
    crosschecks,
    detection,
    items,
    learning,
    projection,
    slopes,
    speed,
    times,
)
from study.analysis.contrasts import Contrast
from study.analysis.intervals import wald
from study.analysis.nested import NestedAnalysis
from study.analysis.planned import PlannedAnalysis
from study.analysis.records import MixedModel
from study.analysis.responses import Responses
from study.analysis.sentences import words
from study.bundle import Manifest, Trial

TableAndFigure = tuple[pd.DataFrame, go.Figure | None]


@dataclass(frozen=True)
class Measure:
    """One exploratory result: a file name, a title, a sentence on how to read it, its table and figure."""

    name: str
    title: str
    says: str
    table: pd.DataFrame
    figure: go.Figure | None


@dataclass(frozen=True)
class Offer:
    """A measure that is computed on request."""

    name: str
    title: str
    says: str
    make: Callable[[], TableAndFigure]

    def measure(self) -> Measure:
        """Compute the measure.

        Raises
        ------
        ForetellError
            The data do not allow it.
        """
        return Measure(self.name, self.title, self.says, *self.make())


def measures(offered: Sequence[Offer], progress: Progress = silent) -> tuple[list[Measure], list[str]]:
    """Compute the measures that the data allow, and explain each one that they do not."""
    found, absent = [], []
    for done, offer in enumerate(offered):
        progress(done, len(offered), offer.title)
        try:
            found.append(offer.measure())
        except ForetellError as error:
            absent.append(f"{offer.title}: {error}")
    progress(len(offered), len(offered), "Measures made")
    return found, absent


def offers(frame: pd.DataFrame, *, seed: int, manifest: Manifest | None = None) -> list[Offer]:
    """List every measure, whatever the data allow; those of trials and theories only if the study is known."""
    about_people = [Offer(*each) for each in _of_participants(frame, seed)]
    return about_people if manifest is None else [*about_people, *_of_trials(frame, manifest)]


def offer_robustness_checks(frame: pd.DataFrame, model: MixedModel) -> Offer:
    """Offer the model's coefficients by other methods (`study.analysis.crosschecks`), terms in words."""

    def make() -> TableAndFigure:
        table = crosschecks.table(frame, model)
        return table.assign(term=table["term"].map(words)), None

    return Offer(
        "crosschecks", "Robustness checks: GEE and Bayesian fits", " ".join(crosschecks.explanations(len(frame))), make
    )


def with_slopes(data: Responses, analysis: NestedAnalysis, plan: PlannedAnalysis | None) -> Offer:
    """Offer tests and contrasts with random intercepts only next to those with slopes (`study.analysis.slopes`)."""

    def make() -> TableAndFigure:
        if plan is None:
            return slopes.compare(data, analysis), None
        wanted = [Contrast(c.more, c.less, c.trial_types) for c in plan.plan.contrasts]
        return slopes.compare(data, analysis, plan.plan.models, wanted, level=1 - plan.level), None

    return Offer("slopes", slopes.TITLE, slopes.says(data.frame, analysis), make)


def _of_trials(frame: pd.DataFrame, manifest: Manifest) -> Iterator[Offer]:
    scores = items.trials(manifest)
    known = {trial.id: trial for trial in manifest.trials}
    yield Offer(
        "associations",
        "Trials and their explanations",
        "Over trials, Spearman's rank correlation between participants' accuracy and each property of the explanation, "
        "in each condition and trial type; p_holm is corrected for the number of rows (Holm).",
        lambda: (items.associations(frame, scores), None),
    )
    for name in scores.columns.drop("item"):
        yield Offer(
            f"items_{name}",
            f"Trials by {items.SCORES[name]}",
            "Each mark is a trial in one condition.",
            partial(_against, frame, scores, name),
        )
    yield Offer(
        "theories",
        "Theories of participants",
        "Maximum-likelihood parameters, assuming that all participants are alike; the smallest AIC first.",
        lambda: (cognitive.comparison(cognitive.rank_theories(frame, known)), None),
    )
    yield Offer(
        "overlay",
        "Participants and the best theory",
        "Share of correct responses in each cell: of participants, and predicted by the theory with the smallest AIC.",
        lambda: _overlaid(frame, known),
    )


def _against(frame: pd.DataFrame, scores: pd.DataFrame, name: str) -> TableAndFigure:
    joined = items.against(frame, scores, name)
    return joined, items.figure(joined, name)


def _overlaid(frame: pd.DataFrame, known: Mapping[str, Trial]) -> TableAndFigure:
    best = cognitive.rank_theories(frame, known)[0]
    cells = cognitive.overlay(frame, known, best)
    return cells, cognitive.figure(cells, best.name)


def _of_participants(frame: pd.DataFrame, seed: int) -> Iterator[tuple[str, str, str, Callable[[], TableAndFigure]]]:
    yield (
        "detection",
        "Signal detection: when the AI errs",
        "Sensitivity d' above 0: participants tell the AI's errors from its correct predictions. Criterion above 0: "
        "they rarely say that it errs. Probit mixed model (DeCarlo, 1998), each participant with their own d' and "
        "criterion.",
        lambda: _with(detection.conditions(frame), detection.figure),
    )
    yield (
        "detection_differences",
        "Signal detection: differences between conditions",
        "Differences in d' and criterion from the first condition, with 95% intervals; p_holm is corrected for the "
        "number of rows (Holm). A change of the criterion alone is no change of sensitivity.",
        lambda: (detection.differences(frame), None),
    )
    yield (
        "projection",
        "Belief projection",
        "1: participants predict what they see themselves; 0.5: their predictions do not depend on it.",
        lambda: _with(projection.table(frame, rng=np.random.default_rng(seed)), projection.figure),
    )
    yield (
        "learning",
        "Learning over trials",
        "Accuracy in blocks of trials; 95% intervals, participants resampled.",
        lambda: _with(learning.table(frame, rng=np.random.default_rng(seed)), learning.figure),
    )
    yield (
        "calibration",
        "Calibration of confidence",
        "On the dotted line, accuracy equals confidence; 95% intervals, participants resampled.",
        lambda: _with(calibration.bins(frame, rng=np.random.default_rng(seed)), calibration.figure),
    )
    yield ("categories", "Categories", "Wilson intervals.", lambda: (items.table(frame), None))
    yield (
        "speed",
        "Response times",
        "Median and quartiles of each participant's correct responses, averaged over participants.",
        lambda: _with(speed.table(frame), speed.figure),
    )
    yield (
        "log_times",
        "Log response times: the interaction model",
        "Linear mixed model, REML, Satterthwaite's degrees of freedom.",
        lambda: (_times(frame), None),
    )


def _with(table: pd.DataFrame, draw: Callable[[pd.DataFrame], go.Figure]) -> TableAndFigure:
    return table, draw(table)


def _times(frame: pd.DataFrame) -> pd.DataFrame:
    model = times.analyze(frame).reml
    tested = pd.DataFrame([(c.se, c.df, c.z, c.p) for c in model.coefficients], columns=["se", "df", "t", "p"])
    return wald(model).join(tested)
