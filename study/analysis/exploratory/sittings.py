"""Several sittings: what participants still know in a later one, and whether as many return in every condition."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from scipy.stats import binomtest, t

from study import plots
from study.analysis.exploratory.analysis import AnalysedStudy, ExploratoryAnalysis, with_figure
from study.analysis.models.sentences import describe_p
from study.analysis.responses import accuracies
from study.analysis.responses.periods import are_crossed
from study.analysis.responses.sittings import number_sittings
from study.plan.covariates import SITTING

ALL = "all conditions"
DRAWS = 9_999
"""Tables drawn for a test of returning: p is known to within .005."""


def has_sittings(study: AnalysedStudy) -> bool:
    """Say whether participants had several sittings."""
    return SITTING in study.frame and study.frame[SITTING].nunique() > 1


def tabulate_accuracy(frame: pd.DataFrame) -> pd.DataFrame:
    """Tabulate condition, sitting, participants, `responses`, accuracy, low, high (95%, over participants)."""
    numbered, rows = frame.assign(**{SITTING: number_sittings(frame)}), []
    for name in accuracies.order(numbered):
        right, given = accuracies.count_by_participant(numbered[numbered["condition"] == name], SITTING)
        share, low, high = accuracies.compute_intervals(right.to_numpy(), given.to_numpy(), 0.95)
        rows += [
            (
                *(name, int(number), int((given[number] > 0).sum()), int(given[number].sum())),
                *(float(share[k]), float(low[k]), float(high[k])),
            )
            for k, number in enumerate(right.columns)
        ]
    columns = ["condition", SITTING, "participants", "responses", "accuracy", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


def draw_accuracy(table: pd.DataFrame) -> go.Figure:
    """Plot the accuracy in each sitting, one line for each condition."""
    made = plots.curves(table, x=SITTING, y="accuracy", by="condition", title="Correct responses", x_title="Sitting")
    return made.update_xaxes(dtick=1)


def describe_change(study: AnalysedStudy) -> str:
    """Say how accuracy changes from the first sitting to the last, in the participants who were in both."""
    numbered = study.frame.assign(**{SITTING: number_sittings(study.frame)})
    right, given = accuracies.count_by_participant(numbered, SITTING)
    first, last = given.columns[0], given.columns[-1]
    both = (given[first] > 0) & (given[last] > 0)
    change = 100 * (right[last] / given[last] - right[first] / given[first])[both]
    if len(change) < 2:
        return f"Too few participants were in sittings {first} and {last} to say how accuracy changes."
    half = float(t.ppf(0.975, len(change) - 1) * change.std() / np.sqrt(len(change)))
    return (
        f"From sitting {first} to {last}, the accuracy of the {len(change):,} participants who were in both changes by "
        f"{change.mean():+.1f} percentage points (95% interval {change.mean() - half:+.1f} to "
        f"{change.mean() + half:+.1f}), over all conditions."
    )


def tabulate_attrition(frame: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Tabulate who returned to each later sitting, by condition and in all, with a test between conditions.

    Returns
    -------
    pandas.DataFrame
        sitting, condition, participants (in the first sitting), returned, proportion, low, high (95%, Wilson), p: of as
        many returns as there were, dealt to the conditions at random (Pearson's statistic, `DRAWS` draws).
    """
    numbered = frame.assign(**{SITTING: number_sittings(frame)})
    if are_crossed(numbered):
        numbered = numbered.assign(condition=ALL)
    present = numbered.groupby(["participant", "condition", SITTING], observed=True).size().unstack(SITTING).notna()
    started = present[present[1]].reset_index("condition")
    groups = accuracies.order(numbered)
    rows: list[tuple[object, ...]] = []
    for number in present.columns[1:]:
        counts = started.groupby("condition")[number].agg(["size", "sum"]).reindex(groups, fill_value=0).astype(int)
        if len(groups) > 1:
            rows += [(number, name, *_compute_share(counts.loc[name]), np.nan) for name in groups]
        p = compute_p(counts["size"].to_numpy(), counts["sum"].to_numpy(), rng)
        rows.append((number, ALL, *_compute_share(counts.sum()), p))
    columns = [SITTING, "condition", "participants", "returned", "proportion", "low", "high", "p"]
    return pd.DataFrame(rows, columns=columns)


def compute_p(sizes: np.ndarray, returned: np.ndarray, rng: np.random.Generator) -> float:
    """Compute how often returns at random differ as much between groups; NaN where nothing can differ."""
    total, count = int(returned.sum()), int(sizes.sum())
    if len(sizes) < 2 or total in (0, count):
        return float("nan")
    expected = sizes * total / count
    used = expected > 0

    def measure(given: np.ndarray) -> np.ndarray:
        return np.asarray((((given - expected) ** 2)[..., used] / expected[used]).sum(axis=-1))

    drawn = rng.multivariate_hypergeometric(sizes, total, size=DRAWS)
    as_extreme = int((measure(drawn) >= measure(returned) - 1e-9).sum())
    return (1 + as_extreme) / (1 + DRAWS)


def _compute_share(counts: pd.Series[int]) -> tuple[float, ...]:
    """Return the participants of a group, how many returned, their share and its limits."""
    started, returned = int(counts["size"]), int(counts["sum"])
    if not started:
        return (0, 0, np.nan, np.nan, np.nan)
    interval = binomtest(returned, started).proportion_ci(method="wilson")
    return (started, returned, returned / started, interval.low, interval.high)


def conclude_attrition(study: AnalysedStudy, table: pd.DataFrame) -> str:
    """Say how many returned, and whether conditions differ in it, with what follows."""
    said = []
    for row in table[table["condition"] == ALL].itertuples():
        said.append(f"{row.returned:,} of {row.participants:,} participants returned for sitting {row.sitting}.")
        if pd.isna(row.p):
            continue
        if row.p < study.level:
            said.append(
                f"Conditions differ in it ({describe_p(row.p)}): the participants who returned need not be alike, so "
                "that conditions are no longer compared as they were assigned. Report sitting 1 alone next to it."
            )
        else:
            said.append(f"There is no evidence that conditions differ in it ({describe_p(row.p)}).")
    return " ".join(said)


ACCURACY = ExploratoryAnalysis(
    "Accuracy by sitting",
    "Whether responses are as often correct, or more often, in a later sitting; 95% intervals over participants. "
    "Participants who did not return are in the earlier sittings only.",
    lambda study: with_figure(tabulate_accuracy(study.frame), draw_accuracy),
    needs=has_sittings,
    conclude=lambda study, _: describe_change(study),
)
ATTRITION = ExploratoryAnalysis(
    "Participants who returned",
    "Of the participants with responses in the first sitting, those with responses in each later one, with 95% Wilson "
    "intervals; p compares the conditions. Participants whose next sitting is still open count as not returned; those "
    "who withdrew are not counted.",
    lambda study: (tabulate_attrition(study.frame, study.rng), None),
    needs=has_sittings,
    conclude=conclude_attrition,
    is_of_levels=True,
)
