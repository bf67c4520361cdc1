"""Specification curve: each difference under every combination of defensible choices of the analysis.

Simonsohn, Simmons & Nelson (2020, doi:10.1038/s41562-020-0912-z). The choices are those of a reader who would have
planned otherwise: exclusions, random effects and link. A choice that makes no other specification in these responses,
and a specification without an estimate, are named with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from core.errors import ForetellError
from study import plots
from study.analysis.exploratory.analysis import AnalysedStudy, ExploratoryAnalysis, TableAndFigure, has_models
from study.analysis.exploratory.leave_out import correct_p, find_headline, list_contrasts
from study.analysis.models import formula as formulas
from study.analysis.models import random_effects, reduction
from study.analysis.models.records import MixedModel
from study.analysis.planned import contrasts
from study.analysis.planned.contrasts import Contrast
from study.analysis.responses.reading import Responses
from study.analysis.words.cells import write_rounded
from study.analysis.words.wording import write_whole_contrast

CHOICES = ("exclusions", "random_effects", "link")
COLUMNS = ("contrast", "points", "points_low", "points_high", "p", *CHOICES, "responses", "reported", "reason")
PLANNED, NONE = "as planned", "none"
SLOPES, PAPER, INTERCEPTS = "random slopes (default)", "as in the paper", "random intercepts"
LINKS = ("logit", "probit")
NO_INTERVAL = "a cell has only correct or only incorrect responses, or no responses"
_LABELS = {"exclusions": "exclusions", "random_effects": "effects", "link": "link"}
FIT_S, FIT_ROW_S = 0.5, 4e-4
"""Processor time of one specification, and what each response adds."""


@dataclass(frozen=True)
class Choices:
    """The values of each choice, and sentences on the values that make no other specification."""

    data: Mapping[str, Responses]
    random: Mapping[str, str]
    omitted: tuple[str, ...]

    def combine(self) -> list[tuple[str, str, str]]:
        """List all specifications: exclusions, random effects, link."""
        return list(product(self.data, self.random, LINKS))


def list_choices(study: AnalysedStudy) -> Choices:
    """List the choices that the responses of a study leave."""
    data, omitted = {PLANNED if study.plan else NONE: study.data}, []
    if study.plan is None:
        omitted.append("exclusions, because there is no plan")
    elif len(study.plan.given.every) == len(study.data.every):
        omitted.append("no exclusions, because the plan excludes none of these responses")
    else:
        data[NONE] = study.plan.given
    slopes = random_effects.sensible(study.frame)
    intercepts = " + ".join(f"(1|{term.group})" for term in formulas.terms(f"~{slopes}"))
    asked, _ = random_effects.restrict(study.frame, study.fitted_models.requested_random)
    random: dict[str, str] = {}
    for name, text in ((SLOPES, slopes), (PAPER, random_effects.INTERCEPTS), (INTERCEPTS, intercepts)):
        same = [other for other, known in random.items() if _normalise(known) == _normalise(text)]
        if same:
            omitted.append(f"{name}, because in these responses they are those of “{same[0]}”")
        else:
            random[name] = text
    if _normalise(asked) not in map(_normalise, random.values()):
        random = {PLANNED: asked, **random}
    return Choices(data, random, tuple(omitted))


def _normalise(random: str) -> frozenset[str]:
    """Return the random terms without their order and spaces."""
    return frozenset(random.replace(" ", "").replace(")+(", ")|(").split(")|("))


def compute_curve(study: AnalysedStudy) -> pd.DataFrame:
    """Tabulate every contrast in every specification, the contrast that the results open with first.

    Returns
    -------
    pandas.DataFrame
        contrast, points (percentage points), points_low, points_high and p (not corrected), the choices, `responses`,
        reported (``"yes"`` of the specification of the results, else ``"no"``), reason (why there is no interval). The
        smallest difference of each contrast first, and those without one last.

    Raises
    ------
    ForetellError
        There are no contrasts between conditions of the two factors.
    """
    wanted, choices = list_contrasts(study), study.once(list_choices)
    specifications = choices.combine()
    reported = _find_reported(study, choices)
    parts = []
    for done, one in enumerate(specifications):
        study.progress(done, len(specifications), "Fitting specifications")
        model = study.fitted_models.largest if one == reported else None
        parts.append(_estimate(study, choices, one, wanted, model))
    study.progress(len(specifications), len(specifications), "Fitting specifications")
    table = pd.concat(parts, ignore_index=True).reindex(columns=list(COLUMNS))
    names = [contrast.name for contrast in wanted]
    names.insert(0, names.pop(find_main(study)))
    place = table["contrast"].map(names.index)
    return table.assign(place=place).sort_values(["place", "points"], kind="stable", ignore_index=True)[list(COLUMNS)]


def find_main(study: AnalysedStudy) -> int:
    """Find the contrast that the results open with, among those of `list_contrasts`."""
    table = contrasts.table(study.fitted_models.largest, list_contrasts(study), level=1 - study.level)
    return find_headline(table["points"].to_numpy(np.float64), correct_p(study, table), study.level)


def _find_reported(study: AnalysedStudy, choices: Choices) -> tuple[str, str, str]:
    asked, _ = random_effects.restrict(study.frame, study.fitted_models.requested_random)
    random = next(name for name, text in choices.random.items() if _normalise(text) == _normalise(asked))
    return next(iter(choices.data)), random, LINKS[0]


def _estimate(
    study: AnalysedStudy,
    choices: Choices,
    one: tuple[str, str, str],
    wanted: list[Contrast],
    model: MixedModel | None,
) -> pd.DataFrame:
    """Estimate the contrasts in one specification; ``model`` is the reported one, which is fitted already."""
    frame = choices.data[one[0]].frame
    known = {**dict(zip(CHOICES, one, strict=True)), "responses": len(frame), "reported": "yes" if model else "no"}
    try:
        made = model or _fit(study, frame, choices.random[one[1]], one[2])
        table = contrasts.table(made, wanted, level=1 - study.level)
    except ForetellError as error:
        names = [contrast.name for contrast in wanted]
        missing = dict.fromkeys(("points", "points_low", "points_high", "p"), np.nan)
        return pd.DataFrame({"contrast": names, **missing, **known, "reason": str(error)})
    return table.assign(**known, reason=np.where(table["points_low"].isna(), NO_INTERVAL, ""))


def _fit(study: AnalysedStudy, frame: pd.DataFrame, random: str, link: str) -> MixedModel:
    fixed = formulas.extract_fixed_effects(study.fitted_models.largest.formula).removeprefix("~")
    asked, _ = random_effects.restrict(frame, random)
    link_given = None if link == LINKS[0] else link
    return reduction.fit_reduced(frame, f"correct ~ {fixed}", asked, link=link_given)[0]


def select_main(table: pd.DataFrame) -> pd.DataFrame:
    """Select the specifications of the first contrast of a table of `compute_curve`."""
    return table[table["contrast"] == table["contrast"].iloc[0]]


def describe(table: pd.DataFrame, omitted: tuple[str, ...] = ()) -> str:
    """Say in how many specifications the main difference has the same sign, and in how many it excludes 0."""
    whole = select_main(table)
    own = whole[whole["points_low"].notna()]
    name, count = write_whole_contrast(str(whole["contrast"].iloc[0])), len(own)
    lost = "; ".join(_describe_missing(whole[whole["points_low"].isna()]))
    notes = [
        f"Without an interval: {lost}." if lost else "",
        f"Not among them: {'; '.join(omitted)}." if omitted else "",
    ]
    if not count:
        return " ".join(filter(None, [f"{name}: no specification has an interval.", *notes]))
    more = int((own["points"] > 0).sum())
    same = max(more, count - more)
    direction = f"all {count}" if same == count else f"{same} of {count}"
    apart = int(((own["points_low"] > 0) | (own["points_high"] < 0)).sum())
    low, high = (write_rounded(own["points"].agg(end), 1) for end in ("min", "max"))
    said = (
        f"{name}: {direction} specifications point the same way, with differences from {low} to {high} percentage "
        f"points; {apart} of {count} uncorrected intervals exclude zero."
    )
    return " ".join(filter(None, [said, *notes]))


def _describe_missing(lost: pd.DataFrame) -> Iterator[str]:
    for reason, part in lost.groupby("reason", sort=False):
        yield f"{len(part)} of the specifications, because {str(reason).rstrip('.')}"


def figure(table: pd.DataFrame) -> go.Figure | None:
    """Plot the main difference in every specification, and the choices of each below it."""
    own = select_main(table)
    own = own[own["points_low"].notna()].reset_index(drop=True)
    if own.empty:
        return None
    rows = [(choice, value) for choice in CHOICES for value in dict.fromkeys(own[choice].sort_values())][::-1]
    drawn = make_subplots(rows=2, shared_xaxes=True, vertical_spacing=0.04, row_heights=[0.6, 0.4])
    for k, (reported, name) in enumerate((("no", "Other specifications"), ("yes", "Reported specification"))):
        part = own[own["reported"] == reported]
        color, symbol = plots.PALETTE[k], plots.MARKS[k]
        bars = pd.DataFrame({"points": part["points"], "low": part["points_low"], "high": part["points_high"]})
        marker = {"color": color, "symbol": symbol, "size": 9}
        drawn.add_scatter(
            x=part.index,
            y=bars["points"],
            error_y=plots.whiskers(bars, "points", color),
            mode="markers",
            marker=marker,
            name=name,
            customdata=bars[["low", "high"]].to_numpy(),
            hovertemplate="%{y:.1f} points [%{customdata[0]:.1f}, %{customdata[1]:.1f}]<extra></extra>",
            row=1,
            col=1,
        )
        at = [(x, y) for x in part.index for y, (choice, value) in enumerate(rows) if own.loc[x, choice] == value]
        drawn.add_scatter(
            x=[x for x, _ in at], y=[y for _, y in at], mode="markers", marker=marker, showlegend=False, row=2, col=1
        )
    drawn.add_hline(y=0, line=plots.DOTTED, layer="below", row=1, col=1)
    plots.apply_layout(drawn, "", percent=False)
    drawn.update_layout(height=420 + 26 * len(rows))
    drawn.update_xaxes(showticklabels=False, showgrid=False)
    name = write_whole_contrast(str(own["contrast"].iloc[0])).replace(", ", ",<br>", 1)
    drawn.update_yaxes(title=f"{name}<br>(percentage points)", row=1, col=1)
    labels = [f"{_LABELS[choice]}: {value}" for choice, value in rows]
    return drawn.update_yaxes(
        tickvals=list(range(len(rows))), ticktext=labels, showgrid=False, **plots.LABELS, row=2, col=1
    )


def _compute(study: AnalysedStudy) -> TableAndFigure:
    table = compute_curve(study)
    return table, figure(table)


EXPLANATION = (
    "The largest model, fitted with every combination of exclusions (those of the plan, or none), random effects "
    f"({SLOPES}, {PAPER}: {random_effects.INTERCEPTS}, or {INTERCEPTS} also of images) and link (logit or probit): "
    "the difference in percentage points with its interval, uncorrected, from the smallest to the largest. Marks "
    "below the curve show the choices of each specification (Simonsohn, Simmons & Nelson, 2020). Specifications of "
    "the same responses are not independent, so their share is no probability. "
    f"{random_effects.RULE}"
)


def estimate_seconds(study: AnalysedStudy) -> float:
    """Estimate the processor time of `compute_curve`, s."""
    return len(study.once(list_choices).combine()) * (FIT_S + FIT_ROW_S * len(study.frame))


ANALYSIS = ExploratoryAnalysis(
    "Specification curve",
    EXPLANATION,
    _compute,
    has_models,
    lambda study, table: describe(table, study.once(list_choices).omitted),
    estimate_seconds,
)
