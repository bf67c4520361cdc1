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
from study.analysis.models.records import EffectColumns, Floats
from study.conditions import CONDITIONS
from study.plan.preregistration import GROUPS, PREDICTORS

INTERCEPTS = "(1|participant) + (1|category)"
"""The paper's random effects."""
Fit = TypeVar("Fit")
ITEM = GROUPS[2]
"""The column that names the image of a response."""
EDGE = 1e-5
"""Smallest eigenvalue of a term's correlation matrix that is not a boundary."""
RULE = (
    "A singular fit is reduced in this order, until it is not singular: correlations of random effects are set to 0; "
    "then slopes whose standard deviations are estimated as 0 are left out, as Matuschek, Kliegl, Vasishth, Baayen & "
    "Bates (2017) do with every component that the likelihood does not need. Random intercepts always stay, and so "
    "does the slope of a factor while one of its levels has a standard deviation above 0: those at 0 change no "
    "likelihood. The largest model decides, and all models get the same random effects."
)


def find_needed_slopes(frame: pd.DataFrame) -> dict[str, tuple[str, ...]]:
    """List by grouping the slopes that the tests of explanations need and the design supports.

    Explanations by every grouping that meets both of their values, and trial types by participant. Those by category
    are images' intercepts and no error of an explanation's effect.
    """
    groups = [GROUPS[0], GROUPS[1], *([ITEM] if explain_no_items(frame) is None else [])]
    return {
        group: tuple(
            name
            for name in PREDICTORS
            if (name != "trial_type" or group == "participant") and _varies(frame, group, name)
        )
        for group in groups
    }


def explain_no_items(frame: pd.DataFrame) -> str | None:
    """Say in a clause why the responses support no random effects of images; None where they do."""
    if ITEM not in frame:
        return f"the responses have no column {ITEM}"
    if frame[ITEM].isna().any():
        return f"the column {ITEM} has missing values"
    if not frame[ITEM].duplicated().any():
        return "no image has two responses"
    kinds = frame.groupby("category", observed=True)[ITEM].nunique()
    if kinds.max() == 1 and frame[ITEM].nunique() == len(kinds):
        return "each category has one image, so that their effects are those of categories"
    return None


def _varies(frame: pd.DataFrame, group: str, name: str) -> bool:
    """Tell whether at least two levels of the grouping have met different values of the predictor."""
    return int((frame.groupby(group, observed=True)[name].nunique() > 1).sum()) > 1


def restrict(frame: pd.DataFrame, random: str) -> tuple[str, tuple[str, ...]]:
    """Leave out what the responses cannot support, and say what of images is left out.

    Random effects of images where `explain_no_items` says why; slopes by image of a predictor that no two images met
    at different values; and slopes of a predictor with a single value.
    """
    kept, said = [], []
    reason = explain_no_items(frame)
    for term in formulas.terms(f"~{random}"):
        is_of_images = ITEM in term.group.split(":")
        if is_of_images and reason is not None:
            said.append(f"The models have no random effects of images, because {reason}.")
            continue
        pieces = _pieces(term.columns)
        met = [piece for piece in pieces if _is_met(frame, piece, ITEM if is_of_images else None)]
        kept.append(_write(term, None if met == pieces else met))
        lost = [name for name in pieces if name not in met and ":" not in name and frame[name].nunique() > 1]
        if lost:
            said.append(f"The models have no slopes of {' and '.join(lost)} by image, because no images were in both.")
    return " + ".join(kept), tuple(dict.fromkeys(said))


def _is_met(frame: pd.DataFrame, piece: str, group: str | None) -> bool:
    names = piece.split(":")
    return all(frame[name].nunique() > 1 and (group is None or _varies(frame, group, name)) for name in names)


def _write(term: RandomTerm, slopes: Sequence[str] | None = None) -> str:
    """Write a term, with only some of its slopes if they are given."""
    columns = term.columns
    if slopes is not None:
        columns = " + ".join([*([] if term.has_intercept else ["0"]), *slopes]) or "1"
    return f"({columns}{'|' if term.correlated or columns == '1' else '||'}{term.group})"


def find_omitted_slopes(frame: pd.DataFrame, random: str) -> dict[str, tuple[str, ...]]:
    """Find the slopes that the tests need, the design supports and the random effects leave out, by grouping."""
    return {
        group: tuple(name for name in names if name not in _slopes(random, group))
        for group, names in find_needed_slopes(frame).items()
    }


def omission(frame: pd.DataFrame, random: str) -> str | None:
    """Return a sentence on the slopes that are left out; None where none is."""
    lost = _name_omitted_slopes(frame, random)
    if not lost:
        return None
    return (
        f"These models leave out random slopes that the design supports: {lost}. If participants, categories or images "
        "differ in these effects, the tests reject too often."
    )


def planned_omission(
    models: Mapping[str, str],
    conditions: Sequence[str],
    trials: Iterable[tuple[str, str]],
    *,
    within: bool = False,
) -> str | None:
    """Return a sentence on the slopes that planned models will leave out; None where none is.

    Parameters
    ----------
    trials
        Category and trial type of each, which is an image of its own.
    within
        Whether each participant sees every condition.
    """
    shown = {name: CONDITIONS[name] for name in conditions if not CONDITIONS[name].is_separate}
    images = [(str(number), *one) for number, one in enumerate(trials)]
    design = [
        (str(number) + name * (not within), category, image, kind, condition.shows_saliency, condition.shows_examples)
        for (name, condition), number, (image, category, kind) in product(shown.items(), range(2), images)
    ]
    lost = _name_omitted_slopes(pd.DataFrame(design, columns=[*GROUPS, *PREDICTORS]), split(models)[1])
    return lost and (
        "The planned models (“Mixed models” under Plan in Design; [analysis.models] in the study file) leave out "
        f"random slopes that the design supports ({lost}): if participants, categories or images differ in these "
        "effects, the tests reject too often."
    )


def _name_omitted_slopes(frame: pd.DataFrame, random: str) -> str | None:
    words = {"trial_type": "trial type", ITEM: "image"}
    lost = [
        f"of {' and '.join(words.get(n, n) for n in names)} by {words.get(group, group)}"
        for group, names in find_omitted_slopes(frame, random).items()
        if names
    ]
    return "; ".join(lost) or None


def sensible(frame: pd.DataFrame) -> str:
    """Return the random effects that the tests of explanations need, without correlations (`find_needed_slopes`)."""
    return " + ".join(_term(slopes, group) for group, slopes in find_needed_slopes(frame).items())


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
        if set(piece.split(":")) <= set(PREDICTORS):  # the model of conditions has no covariates
            kept[":".join(names)] = None
    columns = [] if term.has_intercept else ["0"]
    return f"({' + '.join([*columns, *kept]) or '1'}{'|' if term.correlated else '||'}{term.group})"


def reduce(
    random: str, fit: Callable[[str, EffectColumns], Fit], effects: Callable[[Fit], EffectColumns]
) -> tuple[Fit, str]:
    """Return the fit with as many of the random effects as it is not singular with (`RULE`), and those.

    Parameters
    ----------
    fit
        Fits random effects, given those of the fit before, which are near.
    effects
        Of a fit: grouping, names and covariance of each set of correlated effects.
    """
    made = fit(random, ())
    while (less := simpler(random, effects(made))) is not None:
        random, made = less, fit(less, effects(made))
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
        return None if (term.group, "(Intercept)") in zero else _write(term)
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
