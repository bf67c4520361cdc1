"""Random slopes: which ones a design supports, which ones a model leaves out, and how a singular fit is reduced.

An effect that varies within participants (or categories) differs between them. A model without the slope takes that
variation for more evidence than there is, and its tests reject true null hypotheses too often (Barr, Levy, Scheepers
& Tily, 2013, doi:10.1016/j.jml.2012.11.001).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations, product
from typing import TypeVar

import numpy as np
import pandas as pd

from study.analysis.models import formula as formulas
from study.analysis.models.formula import NOTHING, RandomTerm
from study.analysis.models.records import Floats
from study.conditions import CONDITIONS
from study.plan.preregistration import PREDICTORS

INTERCEPTS = "(1|participant) + (1|category)"
"""The paper's random effects."""
EffectColumns = Sequence[tuple[str, Sequence[str], Floats]]
Fit = TypeVar("Fit")
GROUPS = ("participant", "category")
EDGE = 1e-5
"""Smallest eigenvalue of a term's correlation matrix that is not a boundary."""
RULE = (
    "A singular fit is reduced in this order, until it is not singular: correlations of random effects are set to 0; "
    "then slopes whose standard deviations are estimated as 0 are left out, as Matuschek, Kliegl, Vasishth, Baayen & "
    "Bates (2017) do with every component that the likelihood does not need. Random intercepts always stay, and so "
    "does the slope of a factor while one of its levels has a standard deviation above 0: those at 0 change no "
    "likelihood. The largest model decides, and all models get the same random effects."
)


def find_supported_slopes(frame: pd.DataFrame) -> dict[str, tuple[str, ...]]:
    """List the predictors that vary within each grouping's levels, so that their effect can differ between them."""
    return {group: tuple(name for name in PREDICTORS if _varies(frame, group, name)) for group in GROUPS}


def _varies(frame: pd.DataFrame, group: str, name: str) -> bool:
    """Tell whether at least two levels of the grouping have met different values of the predictor."""
    return int((frame.groupby(group, observed=True)[name].nunique() > 1).sum()) > 1


def find_omitted_slopes(frame: pd.DataFrame, random: str) -> dict[str, tuple[str, ...]]:
    """Find the slopes that the design supports and the random effects leave out, by grouping."""
    return {
        group: tuple(name for name in names if name not in _slopes(random, group))
        for group, names in find_supported_slopes(frame).items()
    }


def omission(frame: pd.DataFrame, random: str) -> str | None:
    """Return a sentence on the slopes that are left out; None where none is."""
    lost = _name_omitted_slopes(frame, random)
    if not lost:
        return None
    return (
        f"These models leave out random slopes that the design supports: {lost}. If participants or "
        "categories differ in these effects, the tests reject too often. Compare the result with slopes."
    )


def planned_omission(
    models: Mapping[str, str], conditions: Sequence[str], trials: Iterable[tuple[str, str]]
) -> str | None:
    """Return a sentence on the slopes that planned models will leave out; None where none is.

    Parameters
    ----------
    trials
        Category and trial type of each.
    """
    shown = {name: CONDITIONS[name] for name in conditions if not CONDITIONS[name].is_separate}
    design = [
        (f"{name} {number}", category, kind, condition.shows_saliency, condition.shows_examples)
        for (name, condition), number, (category, kind) in product(shown.items(), range(2), trials)
    ]
    lost = _name_omitted_slopes(pd.DataFrame(design, columns=[*GROUPS, *PREDICTORS]), split(models)[1])
    return lost and (
        "The planned models (“Mixed models” under Plan in Design; [analysis.models] in the study file) leave out "
        f"random slopes that the design supports ({lost}): if participants or categories differ in these effects, the "
        "tests reject too often."
    )


def _name_omitted_slopes(frame: pd.DataFrame, random: str) -> str | None:
    words = {"trial_type": "trial type"}
    lost = [
        f"of {' and '.join(words.get(n, n) for n in names)} by {group}"
        for group, names in find_omitted_slopes(frame, random).items()
        if names
    ]
    return "; ".join(lost) or None


def sensible(frame: pd.DataFrame) -> str:
    """Return the slopes that the tests of explanations need, without correlations.

    Trial type by participant and each explanation by category, where the design supports them.
    """
    within = find_supported_slopes(frame)
    kinds = [name for name in within["participant"] if name == "trial_type"]
    shown = [name for name in within["category"] if name != "trial_type"]
    return f"{_term(kinds, 'participant')} + {_term(shown, 'category')}"


def _term(slopes: Sequence[str], group: str) -> str:
    return f"({' + '.join(slopes)}||{group})" if slopes else f"(1|{group})"


def split(models: Mapping[str, str]) -> tuple[dict[str, str], str]:
    """Separate each model's fixed effects from the random effects, which all share; intercepts where there are none."""
    fixed = {
        name: formulas.extract_fixed_effects(f"~{terms}").removeprefix("~").strip() for name, terms in models.items()
    }
    random = formulas.random(f"~{next(iter(models.values()))}").removeprefix(" + ")
    return fixed, random or INTERCEPTS


def by_condition(random: str) -> str:
    """Return the random effects with slopes of the condition in place of those of the explanations it is made of.

    ``(trial_type || participant) + (saliency + examples || category)`` becomes
    ``(trial_type || participant) + (condition || category)``.
    """
    return " + ".join(_by_condition(term) for term in formulas.terms(f"~{random}"))


def _by_condition(term: RandomTerm) -> str:
    kept: dict[str, None] = {}
    for piece in _pieces(term.columns):
        names = dict.fromkeys("trial_type" if name == "trial_type" else "condition" for name in piece.split(":"))
        kept[":".join(names)] = None
    columns = [] if term.has_intercept else ["0"]
    return f"({' + '.join([*columns, *kept]) or '1'}{'|' if term.correlated else '||'}{term.group})"


def reduce(random: str, fit: Callable[[str], Fit], effects: Callable[[Fit], EffectColumns]) -> tuple[Fit, str]:
    """Return the fit with as many of the random effects as it is not singular with (`RULE`), and those.

    Parameters
    ----------
    effects
        Of a fit: grouping, names and covariance of each set of correlated effects.
    """
    made = fit(random)
    while (less := simpler(random, effects(made))) is not None:
        random, made = less, fit(less)
    return made, random


def simpler(random: str, effects: EffectColumns) -> str | None:
    """Return the next random effects by `RULE`; None where the fit is not singular, or only intercepts are left."""
    if not any(is_singular(covariance) for _, _, covariance in effects):
        return None
    terms = formulas.terms(f"~{random}")
    if any(len(names) > 1 for _, names, _ in effects):
        return " + ".join(
            f"({term.columns}||{term.group})" if _pieces(term.columns) else f"(1|{term.group})" for term in terms
        )
    zero = {(group, name) for group, names, covariance in effects for name in names if is_singular(covariance)}
    every = {(group, name) for group, names, _ in effects for name in names}
    left = " + ".join(filter(None, (_without(term, zero, every) for term in terms)))
    return left if left.replace(" ", "") != random.replace(" ", "") else None


def is_singular(covariance: Floats) -> bool:
    """Tell whether a standard deviation is 0, or the effects repeat each other."""
    sds = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    if sds.min() < NOTHING:
        return True
    return bool(np.linalg.eigvalsh(covariance / np.outer(sds, sds)).min() < EDGE)


def _slopes(random: str, group: str) -> set[str]:
    """Return predictors that have a slope by a grouping; ``(1|participant:trial_type)`` is one of trial types."""
    slopes: set[str] = set()
    for term in formulas.terms(f"~{random}"):
        first, *others = term.group.split(":")
        if first == group:
            slopes |= {*_pieces(term.columns), *others}
    return slopes


def _pieces(columns: str) -> list[str]:
    """Return the effects of a term without its intercept: ``["a", "b", "a:b"]`` of ``a * b``."""
    pieces: dict[str, None] = {}
    for part in columns.replace(" ", "").split("+"):
        crossed = part.split("*")
        for size in range(1, len(crossed) + 1):
            pieces |= dict.fromkeys(":".join(some) for some in combinations(crossed, size))
    return [name for name in pieces if name not in ("", "0", "1")]


def _without(term: RandomTerm, zero: set[tuple[str, str]], every: set[tuple[str, str]]) -> str | None:
    """Return the term without the effects that have no variance in any of their columns; None where nothing is left."""
    if ":" in term.group:
        return None if (term.group, "(Intercept)") in zero else f"({term.columns}||{term.group})"
    left = [name for group, name in every - zero if group == term.group]
    kept = [piece for piece in _pieces(term.columns) if any(_is_column(name, piece) for name in left)]
    if not term.has_intercept:
        return f"(0 + {' + '.join(kept)}||{term.group})" if kept else None
    return _term(kept, term.group)


def _is_column(name: str, piece: str) -> bool:
    """Tell whether a column of the design belongs to an effect: ``trial_typestd_correct:saliency`` to that of both."""
    parts, effects = name.split(":"), piece.split(":")
    return len(parts) == len(effects) and all(
        part.startswith(effect) for part, effect in zip(parts, effects, strict=True)
    )
