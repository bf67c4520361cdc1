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
from study.analysis.planned.contrasts import FACTORS, Contrast, list_averaged_types
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
_FACTORS = ("trial_type", "saliency", "examples")
_TEMPLATES = load_templates(Path(__file__).parent / "templates")


class Cell(NamedTuple):
    """A cell that a contrast averages: the contrast's row in ``contrasts.csv`` from 1, and which side it is on."""

    row: int
    is_more: bool
    trial_type: str
    saliency: int
    examples: int
    weight: float


def describe(
    analysis: NestedAnalysis,
    data: Responses,
    table: pd.DataFrame,
    plan: PlannedAnalysis | None,
    level: float,
    made_from: Mapping[str, str],
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
    """
    model = analysis.largest
    wanted = list_contrasts(plan.plan) if plan is not None else placebos.list_all_default_contrasts(data)
    cells, left_out = list_cells(model, wanted, table)
    random, columns, stand_in = write_random(data.frame, analysis.random)
    factors = [name for name in _FACTORS if name in formulas.extract_fixed_effects(model.formula)]
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
        "conditions": list(FACTORS),
        "trial_types": list(model.levels.get("trial_type", data.frame["trial_type"].cat.categories)),
        "models": {name: formulas.extract_fixed_effects(one.formula)[2:] for name, one in analysis.models.items()},
        "formulas": {name: one.formula for name, one in analysis.models.items()},
        "random": random,
        "columns": columns,
        "terms": [c.term for c in model.coefficients],
        "deviations": [(effect.group, stand_in.get(effect.term, effect.term)) for effect in model.random],
        "tests": [(test.smaller, test.larger) for test in analysis.tests],
        "cells": cells,
        "left_out": left_out,
        "factors": factors,
        "covariates": [] if plan is None else list(plan.plan.covariates),
        "contrasts": _write_contrasts(cells, factors),
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


def list_cells(model: MixedModel, wanted: Sequence[Contrast], table: pd.DataFrame) -> tuple[list[Cell], list[str]]:
    """List the cells of each contrast that has an estimate, and the contrasts that another model estimates."""
    named = {one.name: one for one in wanted}
    cells, left_out = [], []
    for row, line in enumerate(table.to_dict("records"), start=1):
        contrast = named[str(line["contrast"])]
        if not {contrast.more, contrast.less} <= set(FACTORS):
            left_out.append(contrast.name)
        elif pd.notna(line["estimate"]):
            kinds = list_averaged_types(model, contrast)
            for condition, is_more in ((contrast.more, True), (contrast.less, False)):
                own = FACTORS[condition]
                cells += [Cell(row, is_more, kind, own["saliency"], own["examples"], 1 / len(kinds)) for kind in kinds]
    return cells, left_out


def write_random(frame: pd.DataFrame, random: str) -> tuple[str, dict[str, list[tuple[str, str]]], dict[str, str]]:
    """Write random effects for R, each slope as a column of its own; its factors and levels, and columns by slope.

    lme4 reads ``(trial_type || participant)`` as correlated slopes of the factor's levels, and clmm not at all.
    """
    columns: dict[str, list[tuple[str, str]]] = {}
    stand_in: dict[str, str] = {}
    written = []
    for term in formulas.terms(f"~{random}"):
        names, _ = formulas.effects(frame, term)
        for name in names:
            if name != "(Intercept)" and name not in stand_in:
                stand_in[name] = f"slope{len(stand_in) + 1}"
                columns[stand_in[name]] = [_split_term(part) for part in name.split(":")]
        pieces = ["1" if name == "(Intercept)" else stand_in[name] for name in names]
        if term.correlated:
            written.append(f"({' + '.join([*([] if '1' in pieces else ['0']), *pieces])} | {term.group})")
        else:
            written += [f"({piece if piece == '1' else f'0 + {piece}'} | {term.group})" for piece in pieces]
    return " + ".join(written), columns, stand_in


def _split_term(part: str) -> tuple[str, str]:
    """Split a part of a term into its factor and level; a number has none."""
    return ("trial_type", part.removeprefix("trial_type")) if part.startswith("trial_type") else (part, "")


def _write_contrasts(cells: Sequence[Cell], factors: Sequence[str]) -> dict[int, str]:
    """Write the weights of each contrast, by its row, for `study.analysis.means`."""
    weights: dict[int, dict[str, Fraction]] = {}
    for cell in cells:
        name = label({factor: getattr(cell, factor) for factor in factors})
        own = weights.setdefault(cell.row, {})
        own[name] = own.get(name, Fraction(0)) + Fraction(cell.weight).limit_denominator(9) * (
            1 if cell.is_more else -1
        )
    return {row: ", ".join(f"{name}={weight}" for name, weight in own.items()) for row, own in weights.items()}
