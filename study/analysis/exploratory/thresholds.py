"""Studies that choose trials by responses: the threshold and the ability of each participant, compared by condition."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.errors import ForetellError
from study.adaptive.thresholds import LAST, average_reversals, fit_thresholds
from study.analysis.exploratory import groups
from study.analysis.exploratory.analysis import AnalysedStudy, ExploratoryAnalysis, TableAndFigure
from study.analysis.responses.adaptive import ABILITY, ABILITY_SD, AIMED, LEVEL, NOT_COMPARED, TARGET, has_choices
from study.conditions import format_condition

REVERSALS, THRESHOLD = "reversal_level", "threshold"
WORDS = {THRESHOLD: "threshold (fit)", REVERSALS: "level of the last reversals", ABILITY: "ability"}
MOST_AT_EDGE = 0.4
"""Share of trials at the easiest or the hardest level above which readers are warned."""
COLUMNS = ["condition", "participant", "responses", "accuracy"]


def estimate_each(frame: pd.DataFrame) -> pd.DataFrame:
    """Estimate each participant's ability and, of a staircase, their threshold in two ways.

    Parameters
    ----------
    frame
        One row per response: participant, condition, trial, correct, ability, ability_sd; of a staircase also
        difficulty_level, aimed_level and target_share.

    Returns
    -------
    pandas.DataFrame
        condition, participant, `responses`, accuracy, ability and ability_sd after the last response; of a staircase
        threshold and threshold_se, reversal_level, reversal_level_se and reversals, in levels.
    """
    ordered = frame.sort_values(["participant", "trial"]) if "trial" in frame else frame
    of_people = ordered.groupby("participant", sort=False, observed=True)
    made = of_people.agg(
        condition=("condition", "first"),
        responses=("correct", "size"),
        accuracy=("correct", "mean"),
        **{name: (name, "last") for name in (ABILITY, ABILITY_SD)},
    ).reset_index()
    if LEVEL not in ordered:
        return made[[*COLUMNS, ABILITY, ABILITY_SD]]
    turned = [average_reversals(own[AIMED].tolist()) for _, own in of_people]
    fitted = fit_thresholds(
        of_people.ngroup().to_numpy(np.int64),
        ordered[LEVEL].to_numpy(np.float64),
        ordered["correct"].to_numpy(np.int64) == 1,
        float(ordered[TARGET].iloc[0]),
    )
    made[[REVERSALS, f"{REVERSALS}_se", "reversals"]] = turned
    made = made.assign(**{THRESHOLD: fitted.values, f"{THRESHOLD}_se": fitted.ses}).astype({"reversals": "int64"})
    of_levels = [column for name in (THRESHOLD, REVERSALS) for column in (name, f"{name}_se")]
    return made[[*COLUMNS, ABILITY, ABILITY_SD, *of_levels, "reversals"]]


def average_conditions(each: pd.DataFrame) -> dict[str, dict[str, groups.Estimate]]:
    """Average the estimates of `estimate_each` over the participants of each condition that have them.

    Raises
    ------
    ForetellError
        No estimate could be made.
    """
    measures = [name for name in WORDS if name in each and each[name].notna().any()]
    if not measures:
        raise ForetellError("No participant has an estimate.")
    by_measure = {name: groups.average_each(each[each[name].notna()], [name]) for name in measures}
    names = [*by_measure[measures[-1]]]
    return {name: {one: by_measure[one].get(name, {one: groups.Estimate()})[one] for one in measures} for name in names}


def tabulate(each: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """Tabulate the mean of each estimate by condition, with its interval over participants."""
    people = each.groupby("condition")["participant"].nunique()
    rows = [
        {"condition": name, "participants": int(people[name]), **groups.write_row(estimates, level)}
        for name, estimates in average_conditions(each).items()
    ]
    return pd.DataFrame(rows)


def compare(each: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """Compare each condition with the first: see `groups.compare`."""
    groups.check_independent(each)
    return groups.compare([({}, average_conditions(each))], level)


def figure(each: pd.DataFrame, table: pd.DataFrame) -> go.Figure:
    """Plot the thresholds of a staircase by condition, else the abilities."""
    names = [name for name in (THRESHOLD, REVERSALS) if name in table] or [ABILITY]
    title = "Level of difficulty" if names != [ABILITY] else "Ability (log-odds)"
    middle = float(each[names[0]].mean())
    return groups.plot_measures(table, {name: WORDS[name] for name in names}, title=title, line=middle)


def warn(each: pd.DataFrame) -> str:
    """Say where no threshold could be fitted, and why."""
    if THRESHOLD not in each:
        return ""
    missing = int(each[THRESHOLD].isna().sum())
    if missing == len(each):
        return (
            " Responses do not become less often correct with the level, so the measure of difficulty says nothing "
            "about these participants and no threshold can be fitted: compare conditions by the planned models."
        )
    said = f" {missing} of {len(each)} participants have no fitted threshold: all their responses are alike."
    return said if missing else ""


def warn_of_edge(frame: pd.DataFrame) -> str:
    """Say that a staircase was at its easiest or hardest level in many trials, beyond which thresholds are a guess."""
    if AIMED not in frame:
        return ""
    said = []
    for name, edge in (("easiest", 1), ("hardest", int(frame[LEVEL].max()))):
        share = float((frame[AIMED] == edge).mean())
        if share > MOST_AT_EDGE:
            said.append(
                f" The staircase was at its {name} level in {share:.0%} of the trials: thresholds beyond it are "
                "extrapolated, and accuracy is not at the target."
            )
    return "".join(said)


READING = (
    "Ability: mean and SD of the posterior in the Rasch model, log-odds. Threshold, in levels: of a logistic "
    "psychometric function with one slope for all participants, where the share of correct responses is the "
    f"staircase's target, by maximum likelihood. Level of the last reversals: the mean of up to {LAST} of them. "
)
_HARDER = "Higher values mean harder trials at the same accuracy. "


def _estimate(study: AnalysedStudy) -> pd.DataFrame:
    return estimate_each(study.data.every)


def _show(study: AnalysedStudy) -> TableAndFigure:
    each = study.once(_estimate)
    table = tabulate(each)
    return table, figure(each, table)


def _describe(study: AnalysedStudy, table: pd.DataFrame) -> str:
    name = next(one for one in WORDS if one in table)
    each = "; ".join(
        f"{format_condition(str(row['condition']))} {row[name]:.2f} "
        f"[{row[f'{name}_low']:.2f}, {row[f'{name}_high']:.2f}]"
        for row in table.to_dict("records")
    )
    return f"{WORDS[name].capitalize()}: {each}.{warn(study.once(_estimate))}{warn_of_edge(study.data.every)}"


PARTICIPANTS = ExploratoryAnalysis(
    "Adaptive choice: each participant",
    lambda _: READING + NOT_COMPARED,
    lambda study: (study.once(_estimate), None),
    needs=lambda study: has_choices(study.frame),
)
BY_CONDITION = ExploratoryAnalysis(
    "Adaptive choice: thresholds and abilities",
    lambda _: READING + _HARDER + NOT_COMPARED,
    _show,
    needs=lambda study: has_choices(study.frame),
    conclude=_describe,
)
DIFFERENCES = ExploratoryAnalysis(
    "Adaptive choice: differences between conditions",
    groups.READING,
    lambda study: (compare(study.once(_estimate)), None),
    needs=lambda study: has_choices(study.frame) and study.frame["condition"].nunique() > 1,
    conclude=lambda study, table: groups.conclude(table, study.level),
)
