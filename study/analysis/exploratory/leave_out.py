"""Leave one out: what the result would be without any one participant, and without any one image.

Every model is fitted again without the rows of each (`study.analysis.models.refits`), so that tests, differences and
their corrected p are those of an analysis that never had them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.errors import ForetellError
from study import plots
from study.analysis.exploratory.analysis import AnalysedStudy, ExploratoryAnalysis, TableAndFigure, has_models
from study.analysis.means.adjustment import holm
from study.analysis.models import random_effects
from study.analysis.models.records import Floats, MixedModel
from study.analysis.models.refits import Refits
from study.analysis.models.sentences import alpha_text, coverage_text
from study.analysis.models.separation import Mask
from study.analysis.planned import analysis as planned
from study.analysis.planned import contrasts, nested, placebos
from study.analysis.planned.contrasts import Contrast
from study.analysis.planned.nested import RatioTest
from study.analysis.words.cells import write_rounded
from study.analysis.words.wording import write_contrast, write_whole_contrast
from study.plan.preregistration import Tests

DRAWN = 15
"""Levels in the figure: those that move the difference most."""
NAMED = 3
"""Changed verdicts that the sentence names."""
REFIT_S, REFIT_ROW_S = 0.06, 4e-5
"""Processor time of one refit of a model, and what each response adds."""
WORDS = {"participant": "participant", random_effects.ITEM: "image"}


@dataclass(frozen=True)
class Outcome:
    """Tests and contrasts of one set of rows, in the order of their names: points and interval (contrasts), and p."""

    points: Floats
    low: Floats
    high: Floats
    p: Floats


class Headline:
    """The tests and contrasts of a study, computed again without some of its rows.

    Raises
    ------
    ForetellError
        There are no contrasts between conditions of the two factors, or the models cannot be refitted.
    """

    def __init__(self, study: AnalysedStudy) -> None:
        self.study, analysis = study, study.fitted_models
        self.level = study.level
        self.contrasts = list_contrasts(study)
        self.names = [*(test.name for test in analysis.tests), *(one.name for one in self.contrasts)]
        self._refits = {name: Refits(study.frame, model) for name, model in analysis.models.items()}
        self.whole = self._judge(dict(analysis.models))

    def without(self, rows: Mask) -> Outcome:
        """Return the outcome without `rows`."""
        largest = list(self._refits)[-1]
        return self._judge({name: one.without(rows, errors=name == largest) for name, one in self._refits.items()})

    def _judge(self, models: Mapping[str, MixedModel]) -> Outcome:
        tests = self._test(models)
        table = contrasts.table(list(models.values())[-1], self.contrasts, level=1 - self.level)
        corrected = correct_p(self.study, table)
        none = np.full(len(tests), np.nan)
        points, low, high = (
            np.concatenate([none, table[name].to_numpy(np.float64)]) for name in ("points", "points_low", "points_high")
        )
        p = [np.nan if test.decisive_p is None else test.decisive_p for test in tests]
        return Outcome(points, low, high, np.concatenate([p, corrected]))

    def _test(self, models: Mapping[str, MixedModel]) -> tuple[RatioTest, ...]:
        tests = self.study.fitted_models.tests
        is_corrected = any(test.p_holm is not None for test in tests)
        kind: Tests = "corrected" if is_corrected else "chi_square"
        made = [nested.ratio_test(t.smaller, models[t.smaller], t.larger, models[t.larger], kind) for t in tests]
        return nested.correct(made) if is_corrected else tuple(made)


def list_contrasts(study: AnalysedStudy) -> list[Contrast]:
    """List the contrasts of the headline that are of the nested models: those without placebos.

    Raises
    ------
    ForetellError
        There are none.
    """
    frame = study.frame
    wanted = contrasts.list_default(frame) if study.plan is None else planned.list_contrasts(study.plan.plan)
    factorial = [one for one in wanted if not placebos.is_separate(one)]
    kept = contrasts.select_testable(frame, factorial)
    if not kept:
        raise ForetellError(contrasts.NO_CONTRAST)
    return kept


def correct_p(study: AnalysedStudy, table: pd.DataFrame) -> Floats:
    """Correct p of contrasts by Holm's method for their number, the planned ones with placebos among them."""
    return holm(np.concatenate([table["p"].to_numpy(np.float64), _list_other_p(study)]))[: len(table)]


def _list_other_p(study: AnalysedStudy) -> Floats:
    """List p of the planned contrasts with placebos, which Holm's method counts too."""
    table = None if study.plan is None else study.plan.contrasts
    if table is None or table.empty:
        return np.zeros(0)
    own = {one.name for one in list_contrasts(study)}
    return np.asarray(table.loc[~table["contrast"].isin(own), "p"], dtype=np.float64)


def find_headline(points: Floats, p: Floats, level: float) -> int:
    """Find the contrast that the results open with: the largest with p below `level`, or else the largest."""
    clear = (p < level) & np.isfinite(points)
    sizes = np.where(clear if clear.any() else np.isfinite(points), np.abs(points), -np.inf)
    return int(np.argmax(sizes))


def measure(study: AnalysedStudy, group: str) -> pd.DataFrame:
    """Tabulate each test and contrast without each level of a grouping, changed verdicts and large shifts first.

    Parameters
    ----------
    group
        ``"participant"`` or ``"item"``.

    Returns
    -------
    pandas.DataFrame
        The level, result, points_all, points_without, points_without_low, points_without_high, shift (in percentage
        points), p_all, p_without (corrected as in the results), change (``"yes"`` if one is below the level and the
        other is not, else ``"no"``). Missing where the rest of the rows does not determine a result.

    Raises
    ------
    ForetellError
        The responses name no images, or the models cannot be refitted.
    """
    reason = random_effects.explain_no_items(study.frame) if group == random_effects.ITEM else None
    if reason is not None:
        raise ForetellError(f"The result without each image is not computed, because {reason}.")
    headline = Headline(study)
    rows = [row for level, made in _leave_out(study, headline, group) for row in _compare(headline, level, made)]
    table = pd.DataFrame(rows, columns=[group, *COLUMNS])
    order = pd.DataFrame({"same": table["change"] == "no", "size": -table["shift"].abs()})
    return table.loc[order.sort_values(["same", "size"], kind="stable").index].reset_index(drop=True)


COLUMNS = (
    *("result", "points_all", "points_without", "points_without_low", "points_without_high"),
    *("shift", "p_all", "p_without", "change"),
)


def _leave_out(study: AnalysedStudy, headline: Headline, group: str) -> Iterator[tuple[str, Outcome | None]]:
    """Yield each level and the outcome without it; None where the other rows cannot be analysed."""
    column = study.frame[group].astype(str)
    levels = list(column.unique())
    for done, level in enumerate(levels):
        study.progress(done, len(levels), f"Fitting without each {WORDS[group]}")
        try:
            yield level, headline.without((column == level).to_numpy())
        except ForetellError:
            yield level, None
    study.progress(len(levels), len(levels), f"Fitting without each {WORDS[group]}")


def _compare(headline: Headline, level: str, made: Outcome | None) -> Iterator[tuple[object, ...]]:
    whole = headline.whole
    none = np.full(len(headline.names), np.nan)
    made = made or Outcome(none, none, none, none)
    change = ~np.isnan(made.p) & ~np.isnan(whole.p) & ((made.p < headline.level) != (whole.p < headline.level))
    for k, name in enumerate(headline.names):
        shift = made.points[k] - whole.points[k]
        limits = (made.points[k], made.low[k], made.high[k])
        yield level, name, whole.points[k], *limits, shift, whole.p[k], made.p[k], "yes" if change[k] else "no"


def select_headline(table: pd.DataFrame, level: float) -> pd.DataFrame:
    """Select the rows of a table of `measure` on the contrast that the results open with."""
    sizes = table[table["points_all"].notna()].drop_duplicates("result")
    if sizes.empty:
        return table.iloc[:0]
    points, p = (sizes[name].to_numpy(np.float64) for name in ("points_all", "p_all"))
    return table[table["result"] == sizes["result"].iloc[find_headline(points, p, level)]]


def describe(table: pd.DataFrame, level: float) -> str:
    """Say in sentences how far the main difference moves, and whose absence changes a verdict."""
    group = str(table.columns[0])
    word, own = WORDS[group], select_headline(table, level)
    known = own[own["points_without"].notna()]
    if known.empty:
        return f"No difference is determined without any one {word}."
    low, high = known["points_without"].min(), known["points_without"].max()
    name = write_whole_contrast(str(own["result"].iloc[0]))
    lost = len(own) - len(known)
    said = [
        f"{name}: without any one {word}, the difference stays between {write_rounded(low, 1)} and "
        f"{write_rounded(high, 1)} percentage points ({write_rounded(own['points_all'].iloc[0], 1)} with all).",
        _describe_changes(table[table["change"] == "yes"], group, level),
        f"It cannot be estimated without {lost} of the {len(own)} {word}s." if lost else "",
    ]
    return " ".join(filter(None, said))


def _describe_changes(changed: pd.DataFrame, group: str, level: float) -> str:
    if changed.empty:
        return f"No verdict changes: each p stays on its side of {alpha_text(level)}."
    named = [f"{write_contrast(row['result'])} without {row[group]}" for row in changed.head(NAMED).to_dict("records")]
    more = f"; and {len(changed) - NAMED} more" if len(changed) > NAMED else ""
    count = f"{len(changed)} verdict{'s change' if len(changed) > 1 else ' changes'}"
    return f"{count}, because p crosses {alpha_text(level)}: {'; '.join(named)}{more}."


def figure(table: pd.DataFrame, level: float) -> go.Figure | None:
    """Plot the main difference without each of the levels that move it most; the dashed line is with all."""
    own = select_headline(table, level)
    own = own[own["points_without"].notna()]
    shown = own.loc[own["shift"].abs().sort_values(ascending=False, kind="stable").index].head(DRAWN)[::-1]
    if shown.empty:
        return None
    color, symbol = plots.PALETTE[0], plots.MARKS[0]
    bars = pd.DataFrame(
        {
            "points": shown["points_without"],
            "low": shown["points_without_low"],
            "high": shown["points_without_high"],
        }
    )
    drawn = go.Figure(
        go.Scatter(
            x=bars["points"],
            y=[f"without {name}" for name in shown.iloc[:, 0]],
            error_x=plots.whiskers(bars, "points", color),
            mode="markers",
            marker={"color": color, "symbol": symbol, "size": 9},
            customdata=shown[["shift", "points_without_low", "points_without_high"]].to_numpy(),
            hovertemplate=(
                "%{y}: %{x:.1f} points [%{customdata[1]:.1f}, %{customdata[2]:.1f}], shift %{customdata[0]:+.2f}"
                f"<extra>{coverage_text(level)} CI</extra>"
            ),
        )
    )
    drawn.add_vline(x=0, line=plots.DOTTED, layer="below")
    drawn.add_vline(x=float(own["points_all"].iloc[0]), line={**plots.DOTTED, "dash": "dash"}, layer="below")
    plots.apply_layout(drawn, "", percent=False)
    drawn.update_layout(height=130 + 26 * len(shown)).update_yaxes(showgrid=False, type="category", **plots.LABELS)
    name = write_whole_contrast(str(own["result"].iloc[0])).replace(", ", ",<br>", 1)
    return drawn.update_xaxes(title=f"{name}<br>(percentage points)", gridcolor=plots.GRID)


def estimate_seconds(study: AnalysedStudy, group: str) -> float:
    """Estimate the processor time of `measure`, s."""
    levels = study.frame[group].nunique() if group in study.frame else 0
    return levels * len(study.fitted_models.models) * (REFIT_S + REFIT_ROW_S * len(study.frame))


def _explain(study: AnalysedStudy, group: str) -> str:
    word = WORDS[group]
    others = (
        " Contrasts with placebos are of another model and not among them, but count in Holm's correction."
        if len(study.data.placebos)
        else ""
    )
    return (
        f"Tests and differences of the models with the random effects {study.fitted_models.random}, fitted again "
        f"without the responses {'of' if group == 'participant' else 'to'} each {word}: verdicts that change first, "
        "then by the size of the shift. Shift: the difference without, minus that with all, in percentage points. p is "
        "corrected as in the results; change: p is on the other side of alpha. In the figure, the dashed line is the "
        f"main difference with all responses, and the dotted one no difference; up to {DRAWN} {word}s, those that "
        f"move it most at the top.{others}"
    )


def _make(group: str, title: str) -> ExploratoryAnalysis:
    def compute(study: AnalysedStudy) -> TableAndFigure:
        table = measure(study, group)
        return table, figure(table, study.level)

    return ExploratoryAnalysis(
        title,
        lambda study: _explain(study, group),
        compute,
        has_models,
        lambda study, table: describe(table, study.level),
        lambda study: estimate_seconds(study, group),
    )


PARTICIPANTS = _make("participant", "Without each participant")
IMAGES = _make(random_effects.ITEM, "Without each image")
