"""Metacognition: does participants' confidence tell their correct responses from their incorrect ones?

Type 2 AUC is the probability that a participant is more confident in a correct response than in an incorrect one
(Clarke, Birdsall & Tanner, 1959, doi:10.1121/1.1907764; Fleming & Lau, 2014, doi:10.3389/fnhum.2014.00443). It also
grows with accuracy, which meta-d' relative to d' does not (`study.analysis.exploratory.meta_d`).
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from scipy.stats import mannwhitneyu

from core.errors import ForetellError
from core.names import lower_first
from study import plots
from study.analysis.exploratory import calibration, detection, groups, meta_d
from study.analysis.exploratory.analysis import ExploratoryAnalysis, has_confidence, with_figure
from study.analysis.exploratory.groups import Estimate
from study.analysis.responses import accuracies
from study.analysis.words.headings import METACOGNITION_MEASURES, format_heading
from study.conditions import format_condition

MORE = "more confident in correct responses than in incorrect ones"


def conditions(frame: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """Tabulate condition, participants, and `METACOGNITION_MEASURES` with limits; missing where not determined.

    ``participants`` are those of the AUC: with correct and incorrect responses, and ratings that differ.
    """
    rows = [
        {"condition": name, "participants": one["auc2"].people, **groups.write_row(one, level)}
        for name, one in estimate_each(select_rated(frame)).items()
    ]
    table = pd.DataFrame(rows)
    return table.assign(auc2_low=table["auc2_low"].clip(0, 1), auc2_high=table["auc2_high"].clip(0, 1))


def differences(frame: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """Compare each condition with the first, as `groups.compare` does.

    Raises
    ------
    ForetellError
        There is one condition, or a participant was in several.
    """
    rated = select_rated(frame)
    groups.check_independent(rated)
    return groups.compare([({}, estimate_each(rated))], level)


def estimate_each(rated: pd.DataFrame) -> dict[str, dict[str, Estimate]]:
    """Estimate the measures of each condition, the first one first."""
    return {name: estimate(rated[rated["condition"] == name]) for name in accuracies.order(rated)}


def estimate(own: pd.DataFrame) -> dict[str, Estimate]:
    """Estimate the measures of one condition."""
    areas = [area for _, part in own.groupby("participant") if (area := compute_auc(part)) is not None]
    made = dict.fromkeys(METACOGNITION_MEASURES, Estimate()) | {"auc2": groups.average(np.array(areas))}
    try:
        fitted = meta_d.fit(count(own))
    except ForetellError:
        return made
    return made | {
        "meta_d": Estimate(fitted.meta_d, fitted.meta_d_se, fitted.participants),
        "efficiency": Estimate(fitted.efficiency, fitted.efficiency_se, fitted.participants),
    }


def compute_auc(own: pd.DataFrame) -> float | None:
    """Compute the type 2 AUC of one participant's responses; None where they do not determine it."""
    right, wrong = (own.loc[own["correct"] == value, "confidence"].to_numpy() for value in (1, 0))
    if not len(right) or not len(wrong) or own["confidence"].nunique() < 2:
        return None
    return float(mannwhitneyu(right, wrong).statistic / (len(right) * len(wrong)))


def count(own: pd.DataFrame) -> meta_d.Floats:
    """Count responses (participants, signal, said, rating), as signal detection reads them.

    Raises
    ------
    ForetellError
        There are more than two options, or trials of one kind only.
    """
    coded = detection.code_signals(own)
    if coded["signal"].nunique() < 2:
        raise ForetellError("the AI is right, or wrong, on all of these trials")
    people, _ = pd.factorize(coded["participant"])
    counts = np.zeros((people.max() + 1, 2, 2, int(coded["rating"].max()) + 1))
    np.add.at(counts, (people, *(coded[name].to_numpy() for name in ("signal", "said", "rating"))), 1)
    return counts


def select_rated(frame: pd.DataFrame) -> pd.DataFrame:
    """Select the responses with a confidence, with `rating`, its number from 0, the same in all conditions.

    Raises
    ------
    ForetellError
        There are none, or all are the same.
    """
    rated = calibration.select_rated(frame)
    if rated["confidence"].nunique() < 2:
        raise ForetellError("Every response has the same confidence: it cannot tell correct from incorrect ones.")
    return rated.assign(rating=meta_d.bin_levels(rated["confidence"].to_numpy(np.float64)))


def describe_absent(frame: pd.DataFrame) -> str:
    """Say which conditions have no meta-d' and why, in a sentence each; empty if all have one."""
    rated, said = select_rated(frame), []
    for name in accuracies.order(rated):
        try:
            meta_d.fit(count(rated[rated["condition"] == name]))
        except ForetellError as error:
            said.append(f" {format_condition(name)}: no meta-d', because {lower_first(str(error)).rstrip('.')}.")
    return "".join(said)


def figure(table: pd.DataFrame) -> go.Figure:
    """Plot the type 2 AUC by condition, from `conditions`; at one half confidence says nothing."""
    title = format_heading("auc2")
    points = table.assign(measure=title, low=table["auc2_low"], high=table["auc2_high"])
    return plots.intervals(points, x="condition", y="auc2", by="measure", title=title, line=0.5)


def conclude(table: pd.DataFrame) -> str:
    """Say in which conditions confidence tells correct responses from incorrect ones, from `conditions`."""
    known = table[table["auc2_low"].notna()]
    if known.empty:
        return "Too few participants have correct and incorrect responses for an interval."
    told, others = known[known["auc2_low"] > 0.5], known[known["auc2_low"] <= 0.5]
    said = [f"Participants were {MORE} with {_name(told)}."] if len(told) else []
    subject = "they were" if len(told) else f"participants were {MORE}"
    if len(others):
        said.append(f"There is no clear evidence that {subject} with {_name(others)}.")
    return " ".join(said)


def _name(rows: pd.DataFrame) -> str:
    each = [
        f"{lower_first(format_condition(str(row['condition'])))} (AUC {row['auc2']:.2f})"
        for row in rows.to_dict("records")
    ]
    return " and ".join(filter(None, [", ".join(each[:-1]), each[-1]]))


_READING = (
    "Type 2 AUC: the probability that a participant is more confident in a correct response than in an incorrect one, "
    "averaged over participants; 0.5 says nothing. It grows with accuracy too. meta-d' is the sensitivity to the AI's "
    "errors that an ideal observer with these ratings would have (Maniscalco & Lau, 2012): where meta-d' / d' is 1, "
    "confidence uses all the evidence that the response used. It is estimated from all responses of a condition "
    "together. 95% intervals over participants."
)
BY_CONDITION = ExploratoryAnalysis(
    "Metacognition: confidence in correct and incorrect responses",
    lambda study: f"{_READING}{describe_absent(study.frame)}",
    lambda study: with_figure(conditions(study.frame), figure),
    needs=has_confidence,
    conclude=lambda _, table: conclude(table),
    is_of_predictions=True,
)
DIFFERENCES = ExploratoryAnalysis(
    "Metacognition: differences between conditions",
    groups.READING,
    lambda study: (differences(study.frame), None),
    needs=has_confidence,
    conclude=lambda study, table: groups.conclude(table, study.level),
    is_of_predictions=True,
)
