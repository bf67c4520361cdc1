"""Everything that no plan named: a table and a figure each, labelled as exploratory wherever they are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.errors import ForetellError
from study.analysis import calibration, detection, items, learning, projection, speed, times
from study.analysis.intervals import wald

Made = tuple[pd.DataFrame, go.Figure | None]


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
    """A measure that is made when it is asked for."""

    name: str
    title: str
    says: str
    make: Callable[[], Made]

    def measure(self) -> Measure:
        """Make it.

        Raises
        ------
        ForetellError
            These data do not allow it.
        """
        return Measure(self.name, self.title, self.says, *self.make())


def measures(frame: pd.DataFrame, *, seed: int) -> tuple[list[Measure], list[str]]:
    """What these data allow, and a sentence for each measure that they do not."""
    found, absent = [], []
    for offer in offers(frame, seed=seed):
        try:
            found.append(offer.measure())
        except ForetellError as error:
            absent.append(f"{offer.title}: {error}")
    return found, absent


def offers(frame: pd.DataFrame, *, seed: int) -> list[Offer]:
    """Every measure there is, whatever the data allow."""
    return [Offer(*each) for each in _all(frame, seed)]


def _all(frame: pd.DataFrame, seed: int) -> Iterator[tuple[str, str, str, Callable[[], Made]]]:
    yield (
        "detection",
        "Telling when the AI errs",
        "Sensitivity d' above 0: people tell the AI's errors from its right answers. Criterion above 0: they rarely "
        "say that it errs. Mixed model with each person's own bias and sensitivity.",
        lambda: _with(detection.conditions(frame), detection.figure),
    )
    yield (
        "projection",
        "Belief projection",
        "1: people predict what they see themselves; 0.5: their predictions do not depend on it.",
        lambda: _with(projection.table(frame, rng=np.random.default_rng(seed)), projection.figure),
    )
    yield (
        "learning",
        "Learning over trials",
        "Accuracy in blocks of trials, people resampled.",
        lambda: _with(learning.table(frame, rng=np.random.default_rng(seed)), learning.figure),
    )
    yield (
        "calibration",
        "Calibration of confidence",
        "On the dotted line people are as often right as they think.",
        lambda: _with(calibration.bins(frame), calibration.figure),
    )
    yield ("categories", "Categories", "Wilson intervals.", lambda: (items.table(frame), None))
    yield (
        "speed",
        "Response times",
        "Median and quartiles of each person's right answers, averaged over people.",
        lambda: _with(speed.table(frame), speed.figure),
    )
    yield (
        "log_times",
        "Log response times: the interaction model",
        "Linear mixed model, REML, Satterthwaite's degrees of freedom.",
        lambda: (_times(frame), None),
    )


def _with(table: pd.DataFrame, draw: Callable[[pd.DataFrame], go.Figure]) -> Made:
    return table, draw(table)


def _times(frame: pd.DataFrame) -> pd.DataFrame:
    model = times.analyze(frame).reml
    tested = pd.DataFrame([(c.se, c.df, c.z, c.p) for c in model.coefficients], columns=["se", "df", "t", "p"])
    return wald(model).join(tested)
