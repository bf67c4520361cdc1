"""Power analysis: simulated studies, each analysed with the planned nested models.

Power is the share of simulated studies in which a likelihood-ratio test falls below alpha, with the interval of
Clopper & Pearson for the number simulated. What is assumed is a guess, and power inherits it: look at half the effect
as well.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from statsmodels.stats.proportion import proportion_confint

from core.errors import ForetellError
from core.types import Progress, silent
from study import plots
from study.analysis.models import formula as formulas
from study.analysis.models import random_effects
from study.analysis.planned.contrasts import Contrast
from study.analysis.power.outcomes import run_contrasts, run_tests
from study.analysis.power.truths import AdditiveTruth, Truth
from study.analysis.responses.notices import MODES
from study.analysis.words.wording import write_contrast
from study.plan.equivalence import Bounds
from study.plan.preregistration import DEFAULT, Tests
from study.workspace import parallel

TARGET = 0.8
"""The power that a study should have at least."""
CONTRAST, EQUIVALENCE = "contrast: ", "equivalence: "
"""Begin the names of a contrast's test and of its equivalence test."""
SHIFT = 0.012
"""Between the marks of neighbouring lines at one size, as a share of the figure's width."""
DASHES = ("solid", "dash", "dashdot", "longdash")
"""Of the lines of each multiple of the effects."""
COLUMNS = ["per_condition", "effect", "test", "power", "low", "high", "studies", "failed"]


@dataclass(frozen=True)
class _Task:
    """One study to simulate."""

    per_condition: int
    effect: float
    seed: tuple[int, ...]


def curve(
    truth: Truth,
    sizes: Sequence[int],
    *,
    studies: int = 200,
    seed: int = 0,
    alpha: float = 0.05,
    effects: Sequence[float] = (1.0,),
    models: Mapping[str, str] = DEFAULT,
    tests: Tests = "corrected",
    contrasts: Sequence[Contrast] = (),
    equivalence: Bounds | None = None,
    workers: int | None = None,
    engine: str = "processes",
    progress: Progress = silent,
) -> pd.DataFrame:
    """Return the power of each test of neighbouring models, and of contrasts of the largest one.

    Parameters
    ----------
    sizes
        Participants per condition.
    studies
        Simulated for each size and effect.
    models, tests
        As of `study.plan.preregistration.AnalysisPlan`.
    effects
        Multiples of the assumed effects of explanations; others than 1 only where the truth is `AdditiveTruth`.
    contrasts
        Corrected for their number by Holm's method, as in the analysis; their tests are named `CONTRAST` and the
        contrast. One without a finite estimate counts as not significant.
    equivalence
        Bounds in percentage points: each contrast is also tested for lying between them, as in the analysis; those
        tests are named `EQUIVALENCE` and the contrast. Their power is at the true differences that are simulated.
    workers, engine
        As of `study.workspace.parallel.each`; they change no result.

    Returns
    -------
    pandas.DataFrame
        per_condition, effect, test, power, low, high (95 % for the studies simulated), studies, failed (not fitted).

    Raises
    ------
    ForetellError
        Nothing to simulate, or effects that cannot be scaled.
    """
    if studies < 1 or not sizes or min(sizes) < 2:
        raise ForetellError(
            "Power needs at least 1 simulated study and sizes of at least 2 participants per condition."
        )
    if set(effects) != {1.0} and not isinstance(truth, AdditiveTruth):
        raise ForetellError(
            "Only effects stated as coefficients can be made larger or smaller, not theories of people."
        )
    tasks = [
        _Task(size, effect, (seed, number, size, round(1000 * effect)))
        for size, effect, number in product(sizes, effects, range(studies))
    ]
    work = partial(_study, truth, dict(models), tests, tuple(contrasts), equivalence)
    simulations = parallel.each(
        work, tasks, workers=workers, engine=engine, what="Simulated studies", progress=progress
    )
    outcome = pd.DataFrame(
        [
            (task.per_condition, task.effect, test, p)
            for task, ps in zip(tasks, simulations, strict=True)
            for test, p in ps.items()
        ],
        columns=["per_condition", "effect", "test", "p"],
    )
    return _summary(outcome, alpha)


def _study(
    truth: Truth,
    models: Mapping[str, str],
    tests: Tests,
    contrasts: Sequence[Contrast],
    bounds: Bounds | None,
    task: _Task,
) -> dict[str, float]:
    """Return p of each test in one simulated study, corrected as in the analysis; NaN where a fit failed."""
    world = truth.scale(task.effect) if isinstance(truth, AdditiveTruth) else truth
    frame = world.study(task.per_condition, np.random.default_rng(task.seed))
    made, random, near = run_tests(frame, models, tests)
    judged = {
        f"{test.smaller} - {test.larger}": math.nan if test.decisive_p is None else test.decisive_p for test in made
    }
    if not contrasts:
        return judged
    fixed, asked = random_effects.split(models)
    has_df = formulas.has_slopes(f"y ~ {asked}")
    largest = list(fixed.values())[-1]
    made = run_contrasts(frame, largest, random, contrasts, near, bounds, has_df=has_df).set_index("contrast")
    for prefix, column in ((CONTRAST, "p_holm"), (EQUIVALENCE, "p_equivalence_holm")):
        judged |= {f"{prefix}{name}": float(p) for name, p in made.get(column, pd.Series(dtype=float)).items()}
    return judged


def time_study(
    truth: Truth,
    models: Mapping[str, str],
    tests: Tests,
    per_condition: int,
    contrasts: Sequence[Contrast] = (),
    bounds: Bounds | None = None,
) -> float:
    """Return seconds that one simulated study takes in this process, after another that loads what it needs."""
    seconds = 0.0
    for number in range(2):
        began = time.perf_counter()
        _study(truth, models, tests, contrasts, bounds, _Task(per_condition, 1.0, (0, number, per_condition, 1000)))
        seconds = time.perf_counter() - began
    return seconds


def start() -> None:
    """Do nothing: what a process does first is import this module."""


def _summary(outcome: pd.DataFrame, alpha: float) -> pd.DataFrame:
    rows = []
    for key, part in outcome.groupby(["per_condition", "effect", "test"], sort=False):
        known = part["p"].dropna()
        hits = int((known < alpha).sum())
        low, high = proportion_confint(hits, len(known), method="beta") if len(known) else (math.nan, math.nan)
        power = hits / len(known) if len(known) else math.nan
        rows.append((*key, power, float(low), float(high), len(known), int(part["p"].isna().sum())))
    return pd.DataFrame(rows, columns=COLUMNS)


def with_cost(table: pd.DataFrame, conditions: int, pay: float) -> pd.DataFrame:
    """Return the table with participants in all and what they cost, at `pay` for each."""
    people = table["per_condition"] * conditions
    return table.assign(participants=people, cost=people * pay)


def enough(table: pd.DataFrame, target: float = TARGET) -> pd.DataFrame:
    """Tabulate effect, test and the fewest participants per condition whose power is surely `target`, if any."""
    sure = table[table["low"] >= target].groupby(["effect", "test"], sort=False)["per_condition"].min()
    asked = table[["effect", "test"]].drop_duplicates()
    return asked.merge(sure.reset_index(), how="left", on=["effect", "test"])


def smallest_effect(table: pd.DataFrame, target: float = TARGET) -> pd.DataFrame:
    """Tabulate per_condition, test and the smallest simulated multiple of the effects of power `target`, if any."""
    sure = table[table["low"] >= target].groupby(["per_condition", "test"], sort=False)["effect"].min()
    asked = table[["per_condition", "test"]].drop_duplicates()
    return asked.merge(sure.reset_index(), how="left", on=["per_condition", "test"])


def is_contrast(table: pd.DataFrame) -> pd.Series[bool]:
    """Whether each row is about a contrast or its equivalence, and not about two nested models."""
    return table["test"].str.startswith((CONTRAST, EQUIVALENCE))


def name_test(test: str) -> str:
    """Name a contrast, its equivalence, or two nested models, the larger one first: ``"explanation vs null"``."""
    if test.startswith(CONTRAST):
        return write_contrast(test.removeprefix(CONTRAST))
    if test.startswith(EQUIVALENCE):
        return f"{write_contrast(test.removeprefix(EQUIVALENCE))}: equivalence"
    smaller, larger = test.split(" - ", 1)
    return f"{larger} vs {smaller}"


def _name_lines(table: pd.DataFrame) -> pd.Series[str]:
    """Name the line of each row: its test and, where there are several, the multiple of the effects."""
    many = table["effect"].nunique() > 1
    return table["test"].map(name_test) + (", effect × " + table["effect"].map("{:g}".format) if many else "")


def figure(table: pd.DataFrame, *, planned: int | None = None, simulated: bool = False) -> go.Figure:
    """Plot the power by participants per condition, a line for each test and multiple of the effects.

    Parameters
    ----------
    planned
        Participants per condition of the plan, marked where they are simulated.
    simulated
        Whether the effects are those of simulated participants: the figure then says so.
    """
    sizes, lines = table["per_condition"], _name_lines(table)
    drawn = plots.curves(
        table.assign(line=lines, x=sizes + _shift(lines, float(sizes.max() - sizes.min() or sizes.max()))),
        x="x",
        y="power",
        by="line",
        title="Power",
        x_title="Participants per condition",
    )
    for trace, effect in zip(drawn.data, table.groupby(lines, sort=False)["effect"].first(), strict=True):
        trace.update(line={"dash": DASHES[list(table["effect"].unique()).index(effect) % len(DASHES)]})
    drawn.add_hline(y=TARGET, line=plots.DOTTED)
    if planned in set(sizes):
        side = "left" if planned == sizes.max() else "right"
        drawn.add_vline(
            x=planned, line=plots.DOTTED, annotation_text=f"planned: {planned}", annotation_position=f"bottom {side}"
        )
    if simulated:
        plots.mark(drawn, MODES["sim"])
    return drawn.update_yaxes(range=[0, 1.03])


def _shift(lines: pd.Series[str], width: float) -> pd.Series[float]:
    """Shift each line a little: at a power of 100% they would cover each other."""
    places = lines.map({line: place for place, line in enumerate(lines.unique())})
    return (places - places.max() / 2) * SHIFT * width
