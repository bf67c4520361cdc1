"""The analysed rows, and scripts in R and Python that compute the results again and print them next to the report's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from study.analysis.means import bayes_factors
from study.analysis.means.grid import label
from study.analysis.models import formula as formulas
from study.analysis.models.records import MixedModel
from study.analysis.planned import placebos
from study.analysis.planned.analysis import PlannedAnalysis, list_contrasts
from study.analysis.planned.contrasts import FACTORS, Contrast, list_averaged_types, list_trial_types
from study.analysis.planned.nested import NestedAnalysis
from study.analysis.responses.outcome import LEVEL, find_outcome
from study.analysis.responses.reading import Responses
from study.plan.covariates import COVARIATES
from study.workspace.jinja import load_templates
from study.workspace.spreadsheets import csv_text

ROWS = "rows.csv"
SCRIPTS = ("analysis.R", "analysis.py")
COLUMNS = ("participant", "category", "item", "trial_type", "condition", "saliency", "examples", "correct")
"""Of the analysed rows, before the covariates of the plan's models; images only where they are known."""
_FACTORS = ("trial_type", "saliency", "examples", "condition")
_TEMPLATES = load_templates(Path(__file__).parent / "templates")


class Cell(NamedTuple):
    """A cell that a contrast averages: the contrast's row in ``contrasts.csv`` from 1, and which side it is on."""

    row: int
    is_more: bool
    trial_type: str
    condition: str
    weight: float


class RandomInR(NamedTuple):
    """Random effects for R: their text, the factors and levels of each slope's column, and the columns by slope."""

    text: str
    columns: dict[str, list[tuple[str, str]]]
    stand_in: dict[str, str]


class ContrastedModel(NamedTuple):
    """A model of which a report has contrasts, as the scripts write it.

    Attributes
    ----------
    fixed
        Its fixed effects, without a tilde.
    factors
        Columns that tell its cells apart.
    contrasts
        Weights of the cells for `study.analysis.means`, by the row of ``contrasts.csv`` from 1.
    """

    formula: str
    fixed: str
    random: RandomInR
    factors: list[str]
    cells: list[Cell]
    contrasts: dict[int, str]


def describe(
    analysis: NestedAnalysis,
    data: Responses,
    table: pd.DataFrame,
    plan: PlannedAnalysis | None,
    level: float,
    made_from: Mapping[str, str],
    condition_model: MixedModel | None = None,
) -> dict[str, str]:
    """Return the contents of the rows and of both scripts, by name.

    Parameters
    ----------
    table
        The contrasts, as in ``contrasts.csv``.
    level
        That of their intervals.
    made_from
        Versions and hashes, for the scripts' heads.
    condition_model
        The model of the contrasts that have a condition outside the two factors, if any.
    """
    model = analysis.largest
    wanted = list_contrasts(plan.plan) if plan is not None else placebos.list_all_default_contrasts(data)
    contrasted = list_contrasted_models(analysis, data, wanted, table, condition_model)
    random = contrasted[0].random
    outcome = find_outcome(data.frame)
    bounds, prior_sd = (plan.plan.equivalence, plan.plan.prior_sd) if plan is not None else (None, None)
    values: dict[str, Any] = {
        "made_from": made_from,
        "is_rated": not data.task.is_scored,
        "package": "lme4" if data.task.is_scored else "ordinal",
        "unit": outcome.unit,
        "difference": [outcome.difference, outcome.low, outcome.high],
        "rows": ROWS,
        "text_columns": [name for name in COLUMNS[:5] if name in data.frame],
        "factorial": list(FACTORS),
        "conditions": [] if condition_model is None else list(condition_model.levels["condition"]),
        "trial_types": list_trial_types(data.every),
        "models": {name: _write_fixed(one) for name, one in analysis.models.items()},
        "formulas": {name: one.formula for name, one in analysis.models.items()},
        "random": random.text,
        "columns": {name: parts for one in contrasted for name, parts in one.random.columns.items()},
        "terms": [c.term for c in model.coefficients],
        "deviations": [(effect.group, random.stand_in.get(effect.term, effect.term)) for effect in model.random],
        "tests": [(test.smaller, test.larger) for test in analysis.tests],
        "contrasted": [one for one in contrasted if one.cells],
        "covariates": [] if plan is None else list(plan.plan.covariates),
        "level": level,
        "bounds": bounds,
        "priors": [] if prior_sd is None else [f"{multiple * prior_sd:g}" for multiple in bayes_factors.SENSITIVITY],
    }
    scripts = {name: _TEMPLATES.get_template(f"{name}.jinja").render(**values) for name in SCRIPTS}
    return {ROWS: csv_text(tabulate_rows(data)), **scripts}


def tabulate_rows(data: Responses) -> pd.DataFrame:
    """Tabulate the analysed rows; participants are numbered, because names of participants are not for others."""
    every = data.every
    codes, people = pd.factorize(every["participant"])
    width = len(str(len(people)))
    numbers = [f"p{code + 1:0{width}d}" for code in codes]
    return every[[name for name in (*COLUMNS, LEVEL.column, *COVARIATES) if name in every]].assign(participant=numbers)


def list_contrasted_models(
    analysis: NestedAnalysis,
    data: Responses,
    wanted: Sequence[Contrast],
    table: pd.DataFrame,
    condition_model: MixedModel | None,
) -> list[ContrastedModel]:
    """List the largest model, then that of contrasts with conditions outside the two factors, if any."""
    inside, outside = ([one for one in wanted if placebos.is_separate(one) == side] for side in (False, True))
    random = write_random(data.frame, analysis.random)
    made = [describe_contrasts(analysis.largest, inside, table, random)]
    if condition_model is not None:
        effects = formulas.random(condition_model.formula)
        random = write_random(placebos.code_conditions(data)[0], effects, "condition_slope")
        made.append(describe_contrasts(condition_model, outside, table, random))
    return made


def describe_contrasts(
    model: MixedModel, wanted: Sequence[Contrast], table: pd.DataFrame, random: RandomInR
) -> ContrastedModel:
    """Describe a model and those of the wanted contrasts that the table tests."""
    fixed = _write_fixed(model)
    factors = [name for name in _FACTORS if name in formulas.columns(pd.DataFrame(columns=_FACTORS), fixed)]
    cells = list_cells(model, wanted, table)
    return ContrastedModel(model.formula, fixed, random, factors, cells, _write_contrasts(cells, factors))


def list_cells(model: MixedModel, wanted: Sequence[Contrast], table: pd.DataFrame) -> list[Cell]:
    """List the cells of each of the wanted contrasts that the table tests.

    The others have no estimate, or are 0 by the model's formula, which does not tell their conditions apart.
    """
    named = {one.name: one for one in wanted}
    cells = []
    for row, line in enumerate(table.to_dict("records"), start=1):
        contrast = named.get(str(line["contrast"]))
        if contrast is not None and pd.notna(line["p"]):
            kinds = list_averaged_types(model, contrast)
            sides = ((contrast.more, True), (contrast.less, False))
            cells += [Cell(row, is_more, kind, name, 1 / len(kinds)) for name, is_more in sides for kind in kinds]
    return cells


def write_random(frame: pd.DataFrame, random: str, prefix: str = "slope") -> RandomInR:
    """Write random effects for R, each slope as a column of its own whose name has the prefix.

    lme4 reads ``(trial_type || participant)`` as correlated slopes of the factor's levels, and clmm not at all.
    """
    columns: dict[str, list[tuple[str, str]]] = {}
    stand_in: dict[str, str] = {}
    written = []
    for term in formulas.terms(f"~{random}"):
        names, _ = formulas.effects(frame, term)
        for name in names:
            if name != "(Intercept)" and name not in stand_in:
                stand_in[name] = f"{prefix}{len(stand_in) + 1}"
                columns[stand_in[name]] = [_split_term(part) for part in name.split(":")]
        pieces = ["1" if name == "(Intercept)" else stand_in[name] for name in names]
        if term.correlated:
            written.append(f"({' + '.join([*([] if '1' in pieces else ['0']), *pieces])} | {term.group})")
        else:
            written += [f"({piece if piece == '1' else f'0 + {piece}'} | {term.group})" for piece in pieces]
    return RandomInR(" + ".join(written), columns, stand_in)


def _write_fixed(model: MixedModel) -> str:
    """Write a model's fixed effects without a tilde."""
    return formulas.extract_fixed_effects(model.formula)[2:]


def _split_term(part: str) -> tuple[str, str]:
    """Split a part of a term into its factor and level; a number has none."""
    factor = next((name for name in ("trial_type", "condition") if part.startswith(name)), part)
    return factor, part.removeprefix(factor)


def _write_contrasts(cells: Sequence[Cell], factors: Sequence[str]) -> dict[int, str]:
    """Write the weights of each contrast, by its row, for `study.analysis.means`."""
    weights: dict[int, dict[str, Fraction]] = {}
    for cell in cells:
        levels = {"trial_type": cell.trial_type, "condition": cell.condition, **FACTORS.get(cell.condition, {})}
        name = label({factor: levels[factor] for factor in factors})
        own = weights.setdefault(cell.row, {})
        own[name] = own.get(name, Fraction(0)) + Fraction(cell.weight).limit_denominator(9) * (
            1 if cell.is_more else -1
        )
    return {row: ", ".join(f"{name}={weight}" for name, weight in own.items()) for row, own in weights.items()}
