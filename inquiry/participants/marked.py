"""How far heatmap methods agree with participants, who marked what they think the AI used.

The importance of a cell of an image is the share of the brushes on it (Linsley et al., 2019, arXiv:1805.08819); a
point counts as the brush that covers it. A method's agreement is Spearman's rank correlation over cells with its
positive evidence for the AI's prediction; by chance it is that with the method's evidence for the other images, which
is above 0 where both prefer the middle.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from scipy.stats import t

from core.attribution import METHODS
from core.attribution.method import HeatmapMethod
from core.attribution.records import cost_of
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.types import Progress, silent
from study.analysis.exploratory.importance import average, spread_points
from study.building.reopening import ReopenedStudy
from study.bundle import Trial
from study.places.grid import Floats, pool
from study.places.marks import correlate_with_each
from study.plan.config import Saliency

MOST_PASSES = 256
"""Of a heatmap by a method that is compared without being asked for; a pass back counts as two."""
LEVEL = 0.95
COLUMNS = ["method", "condition", "images", "rank_correlation", "permuted", "difference", "low", "high", "note"]
Importance = Mapping[tuple[str, str], tuple[Floats, int]]
"""Of each item and condition, with the number of its brushes (`study.analysis.exploratory.importance.average`)."""


def choose_quick(classifier: Classifier) -> tuple[list[str], list[str]]:
    """List the methods of at most `MOST_PASSES`, and those that take more or do not say how many."""
    quick: list[str] = []
    slow: list[str] = []
    for name in METHODS:
        cost = cost_of(name, {}, classifier)
        is_quick = cost is not None and cost.forwards + 2 * cost.gradients <= MOST_PASSES
        (quick if is_quick else slow).append(name)
    return quick, slow


def compare_methods(
    study: ReopenedStudy, frame: pd.DataFrame, methods: Mapping[str, HeatmapMethod], progress: Progress = silent
) -> pd.DataFrame:
    """Compare methods with participants' marks, in each condition.

    Parameters
    ----------
    frame
        Responses with item, condition, and ``cells`` or ``x`` and ``y``.
    methods
        Opened, by name. The study's own has the study's parameters, others their defaults.

    Returns
    -------
    pandas.DataFrame
        method, condition, images, rank_correlation and permuted (means over images; the latter with the evidence for
        the other images), difference with its 95% limits (t over images), and note: why there is no number. The
        methods that agree most are first.

    Raises
    ------
    ForetellError
        No response is a brush.
    """
    marked = spread_points(frame)
    importance = average(marked) if "cells" in marked else {}
    if not importance:
        raise ForetellError(
            "No response is a mark: methods are compared with participants in studies of the tasks 'localise' and "
            "'highlight'."
        )
    items = {item for item, _ in importance}
    trials = [trial for trial in study.bundle.manifest.trials if trial.id in items]
    rows = []
    for k, (name, method) in enumerate(methods.items()):
        progress(k, len(methods), "methods")
        rows += _compare(name, _explain_all(study, name, method, trials), importance)
    progress(len(methods), len(methods), "methods")
    table = pd.DataFrame(rows, columns=COLUMNS)
    return table.sort_values(["condition", "difference"], ascending=[True, False], ignore_index=True)


def _explain_all(
    study: ReopenedStudy, name: str, method: HeatmapMethod, trials: Sequence[Trial]
) -> dict[str, Floats] | str:
    """Return the positive evidence (SIDE, SIDE) of a method for each trial's image, or why there is none."""
    own = study.sources.config.saliency
    settings = own if name == own.method else Saliency(method=name)
    try:
        explained = {trial.id: study.explain_target(trial, method, settings) for trial in trials}
    except ForetellError as error:
        return str(error)
    return {item: pool(one.evidence[0].numpy().clip(min=0)) for item, one in explained.items()}


def _compare(name: str, evidence: Mapping[str, Floats] | str, importance: Importance) -> list[tuple[object, ...]]:
    """List the rows of a method, one for each condition."""
    rows: list[tuple[object, ...]] = []
    for condition in dict.fromkeys(condition for _, condition in importance):
        if isinstance(evidence, str):
            rows.append((name, condition, 0, *[math.nan] * 5, evidence))
            continue
        drawn = {item: values for (item, of), (values, _) in importance.items() if of == condition}
        each = [correlate_with_each(values, item, evidence) for item, values in drawn.items()]
        pairs = [pair for pair in each if None not in pair]
        rows.append((name, condition, len(pairs), *_summarise(np.array(pairs).reshape(-1, 2)), _note(pairs, drawn)))
    return rows


def _summarise(pairs: Floats) -> tuple[float, float, float, float, float]:
    """Return both means of pairs (n, 2), and their difference with the limits of Student's t over images."""
    if not len(pairs):
        return (math.nan,) * 5
    differences, n = pairs[:, 0] - pairs[:, 1], len(pairs)
    middle = float(differences.mean())
    half = math.nan
    if n > 1:
        half = float(t.ppf((1 + LEVEL) / 2, n - 1) * differences.std(ddof=1) / math.sqrt(n))
    return float(pairs[:, 0].mean()), float(pairs[:, 1].mean()), middle, middle - half, middle + half


def _note(pairs: Sequence[object], drawn: Mapping[str, Floats]) -> str:
    """Say of how many images a correlation is not defined."""
    lost = len(drawn) - len(pairs)
    return f"of {lost} images the marks or the evidence are the same in all cells, or there is no other" if lost else ""
