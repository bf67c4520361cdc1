"""Formulas in lme4's notation, as far as they must be read outside `glmm`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import glmm
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.errors import ForetellError

NOTHING = 1e-3
"""A standard deviation (link scale) below this is a variance estimated as zero."""
RANDOM = re.compile(r"\(([^()|]*)(\|\|?)([^()|]*)\)")
_DIFFERENCE = re.compile(r",\s*([A-Za-z_.][\w.]*)\s*-\s*([A-Za-z_.][\w.]*)\s*\)")
_NAME = re.compile(r"[A-Za-z_.][\w.]*")
_OFFSET = re.compile(r"\boffset\s*\(\s*([\w.]+)\s*\)")
_QUOTED = re.compile(r"`([^`]*)`")
_FUNCTION_OF_NAME = r"(log|log2|log10|sqrt)\s*\(\s*([A-Za-z_.][\w.]*)\s*\)"
_TRANSFORMED = re.compile(rf"^\s*{_FUNCTION_OF_NAME}\s*~")
_TRANSFORMED_OFFSET = re.compile(rf"\boffset\s*\(\s*{_FUNCTION_OF_NAME}\s*\)")
_OTHER_OFFSET = re.compile(r"\boffset\s*\((?!\s*[A-Za-z_.][\w.]*\s*\))")


@dataclass(frozen=True)
class RandomTerm:
    """One random term.

    Attributes
    ----------
    columns
        Its effects in R's notation: ``"1"``, ``"x"``, ``"0 + x"``.
    group
        Its grouping: ``"id"`` or ``"class:school"``.
    correlated
        False of ``(x || id)``.
    """

    columns: str
    group: str
    correlated: bool

    @property
    def has_intercept(self) -> bool:
        """Whether the levels differ in their intercept."""
        return not re.search(r"(^|\+)\s*0\s*(\+|$)|-\s*1\b", self.columns)


def prepare_formula(frame: pd.DataFrame, formula: str) -> tuple[pd.DataFrame, str]:
    """Put data and formula into the notation of `glmm`: backticks, ``log(y) ~``, offsets and differences as columns.

    Raises
    ------
    ForetellError
        A column is missing, or has no logarithm, or an offset is something else.
    """
    frame, formula = _replace_quoted_names(frame, formula)
    frame, formula = _apply_transformation(frame, formula)
    frame, formula = _transform_offsets(frame, formula)
    return _replace_difference(frame, formula)


def _replace_quoted_names(frame: pd.DataFrame, formula: str) -> tuple[pd.DataFrame, str]:
    """Replace ``my x`` in backticks by ``my_x``."""
    for name in dict.fromkeys(_QUOTED.findall(formula)):
        if name not in frame.columns:
            raise ForetellError(f"The formula {formula!r} names {name!r}, which is no column of the data.")
        plain = write_plain_name(name)
        while plain != name and plain in frame.columns:
            plain += "_"
        frame, formula = frame.rename(columns={name: plain}), formula.replace(f"`{name}`", plain)
    return frame, formula


def write_plain_name(name: str) -> str:
    """Write a name that needs backticks in letters, digits and underscores."""
    plain = re.sub(r"\W", "_", name)
    return plain if _NAME.fullmatch(plain) else f"x_{plain}"


def _apply_transformation(frame: pd.DataFrame, formula: str) -> tuple[pd.DataFrame, str]:
    """Replace ``log(y) ~ x`` by ``log_y ~ x``."""
    match = _TRANSFORMED.match(formula)
    if match is None:
        return frame, formula
    frame, name = _transform_column(frame, formula, *match.groups())
    return frame, f"{name} ~{formula[match.end() :]}"


def _transform_offsets(frame: pd.DataFrame, formula: str) -> tuple[pd.DataFrame, str]:
    """Replace ``offset(log(x))`` by ``offset(log_x)``."""
    while (match := _TRANSFORMED_OFFSET.search(formula)) is not None:
        frame, name = _transform_column(frame, formula, *match.groups())
        formula = formula.replace(match.group(0), f"offset({name})")
    if _OTHER_OFFSET.search(formula):
        raise ForetellError(
            f"The formula {formula!r} has an offset that is no column: write offset(x), or log, log2, log10 or sqrt of "
            "a column, as in offset(log(x)); compute anything else as a column of the data."
        )
    return frame, formula


def _transform_column(frame: pd.DataFrame, formula: str, function: str, name: str) -> tuple[pd.DataFrame, str]:
    """Add a function of a column, named ``log_x``."""
    if name not in frame.columns or not pd.api.types.is_numeric_dtype(frame[name]):
        raise ForetellError(f"The formula {formula!r} takes {function} of {name!r}, which is no column of numbers.")
    with np.errstate(invalid="ignore", divide="ignore"):
        values = getattr(np, function)(frame[name].to_numpy(dtype=np.float64))
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        raise ForetellError(
            f"{function}({name}) does not exist in row {row + 1}, where {name} is {frame[name].iloc[row]:g}: leave "
            "such rows out, or transform the column otherwise."
        )
    return frame.assign(**{f"{function}_{name}": values}), f"{function}_{name}"


def _replace_difference(frame: pd.DataFrame, formula: str) -> tuple[pd.DataFrame, str]:
    """Replace the difference in ``cbind(hits, size - hits)`` by a column, because `glmm` takes only names there."""
    match = _DIFFERENCE.search(formula)
    if match is None:
        return frame, formula
    whole, part = match.groups()
    for name in (whole, part):
        if name not in frame.columns:
            raise ForetellError(f"The formula {formula!r} names {name!r}, which is no column of the data.")
    counts = frame.assign(foretell_difference=frame[whole] - frame[part])
    return counts, formula.replace(match.group(0), ", foretell_difference)", 1)


def columns(frame: pd.DataFrame, formula: str) -> list[str]:
    """Return columns of the frame that a formula reads, in its order."""
    return [name for name in dict.fromkeys(_NAME.findall(formula)) if name in frame.columns]


def list_levels(frame: pd.DataFrame, formula: str) -> dict[str, tuple[Any, ...]]:
    """List the levels of each factor that a formula reads, those of text in the order of the alphabet."""
    read = " ".join([extract_fixed_effects(formula), *(term.columns for term in terms(formula))])
    return {
        name: tuple(frame[name].cat.categories) if _is_categorical(frame[name]) else tuple(sorted(frame[name].unique()))
        for name in columns(frame, read)
        if not pd.api.types.is_numeric_dtype(frame[name])
    }


def drop_unused_levels(frame: pd.DataFrame, formula: str) -> pd.DataFrame:
    """Return the frame without levels of factors that no row has, as R does: the first of the others is the reference.

    An empty level that stays makes another column take its place, and its coefficient a wrong name.
    """
    used = {
        name: frame[name].cat.remove_unused_categories()
        for name in columns(frame, formula)
        if _is_categorical(frame[name])
    }
    return frame.assign(**used)


def _is_categorical(column: pd.Series[Any]) -> bool:
    return isinstance(column.dtype, pd.CategoricalDtype)


def extract_fixed_effects(formula: str) -> str:
    """Extract the right-hand side of a formula without its random terms and offsets."""
    right = _OFFSET.sub("", RANDOM.sub("", formula.split("~", 1)[1]))
    right = re.sub(r"\+(\s*\+)+", "+", right).strip().strip("+").strip()
    return f"~ {right or '1'}"


def terms(formula: str) -> list[RandomTerm]:
    """Return the random terms, ``(x | a / b)`` as ``(x | a) + (x | a:b)``."""
    random_terms = []
    for columns_, bars, group in RANDOM.findall(formula):
        levels_ = [part.strip() for part in group.split("/")]
        groups = [":".join(levels_[: k + 1]) for k in range(len(levels_))]
        random_terms += [RandomTerm(columns_.strip(), name.replace(" ", ""), bars == "|") for name in groups]
    return random_terms


def groupings(formula: str) -> list[str]:
    """Return columns that only group rows: those after the bars that no other part of the formula reads."""
    plain, quoted = _hide_quoted_names(formula)
    return [quoted.get(name, name) for name in _list_groupings(plain)]


def list_names(formula: str) -> set[str]:
    """List what a formula names: columns, and functions."""
    plain, quoted = _hide_quoted_names(formula)
    return set(_NAME.findall(plain)) | set(quoted.values())


def _hide_quoted_names(formula: str) -> tuple[str, dict[str, str]]:
    """Replace names in backticks, which may hold anything, by names that can be read; return both by the latter."""
    stand_in = {name: f"foretell_quoted_{k}" for k, name in enumerate(dict.fromkeys(_QUOTED.findall(formula)))}
    plain = _QUOTED.sub(lambda match: stand_in[match[1]], formula)
    return plain, {plain_name: name for name, plain_name in stand_in.items()}


def _list_groupings(formula: str) -> list[str]:
    groups = dict.fromkeys(name for term in terms(formula) for name in term.group.split(":"))
    elsewhere = {name for term in terms(formula) for name in _NAME.findall(term.columns)}
    if "~" in formula:
        elsewhere |= set(_NAME.findall(extract_fixed_effects(formula))) | set(_NAME.findall(formula.split("~", 1)[0]))
    return [name for name in groups if name not in elsewhere]


def random(formula: str) -> str:
    """Write the random terms of a formula, each with a plus before it."""
    return "".join(f" + ({columns_}{bars}{group})" for columns_, bars, group in RANDOM.findall(formula))


def write_in_columns(
    frame: pd.DataFrame, formula: str, rows: NDArray[np.bool_], stand_in: dict[str, str]
) -> tuple[str, dict[str, NDArray[np.float64]], list[tuple[str, str]]]:
    """Write the random terms in columns of numbers, for some of the rows, so that no level of a factor is missing.

    Parameters
    ----------
    rows
        (n,) the rows to keep.
    stand_in
        Columns by the name of the effect; those of further effects are added.

    Returns
    -------
    tuple
        The terms, each with a plus before it; their columns; the effect and grouping of those that are 0 in all
        of the rows, which are left out.
    """
    text, data, left_out = "", {}, []
    for term in terms(formula):
        names, values = effects(frame, term)
        pieces = [] if "(Intercept)" in names else ["0"]
        for name, column in zip(names, values[rows].T, strict=True):
            if not column.any():
                left_out.append((name, term.group))
            elif name == "(Intercept)":
                pieces.append("1")
            else:
                pieces.append(stand_in.setdefault(name, f"foretell_z{len(stand_in)}"))
                data[pieces[-1]] = column
        if pieces != ["0"]:
            text += f" + ({' + '.join(pieces)}{'|' if term.correlated else '||'}{term.group})"
    return text, data, left_out


def intercepts(formula: str) -> str:
    """Return the formula with an intercept for each of its groupings in place of its random terms."""
    response_, right = formula.split("~", 1)
    offsets = "".join(f" + offset({name})" for name in _OFFSET.findall(right))
    groups = "".join(f" + (1|{group})" for group in dict.fromkeys(term.group for term in terms(formula)))
    return f"{response_}{extract_fixed_effects(formula)}{offsets}{groups}"


def put_largest_first(frame: pd.DataFrame, formula: str) -> str:
    """The formula with its random terms in the order of their numbers of levels."""
    matches = list(RANDOM.finditer(formula))
    matches.sort(key=lambda term: -len(levels(frame, re.sub(r"\s", "", term[3]).replace("/", ":"))[1]))
    ordered = iter(matches)
    return RANDOM.sub(lambda _: next(ordered)[0], formula)


def list_offsets(formula: str) -> list[str]:
    """List the columns that ``offset(x)`` adds."""
    return list(dict.fromkeys(_OFFSET.findall(formula)))


def offset(frame: pd.DataFrame, formula: str) -> NDArray[np.float64]:
    """Return the (n,) values that ``offset(x)`` adds to each row's linear predictor."""
    total = np.zeros(len(frame))
    for name in _OFFSET.findall(formula):
        total = total + frame[name].to_numpy(dtype=np.float64)
    return total


def effects(frame: pd.DataFrame, term: RandomTerm) -> tuple[list[str], NDArray[np.float64]]:
    """Return names and (n, q) values of a random term's columns."""
    design, names = glmm.model_matrix(frame, f"~ {term.columns}")
    return list(names), np.asarray(design, dtype=np.float64)


def slopes(frame: pd.DataFrame, formula: str) -> Mapping[str, NDArray[np.float64]]:
    """Return the column of each random term by its name, ``"(Intercept)"`` among them."""
    by_name: dict[str, NDArray[np.float64]] = {"(Intercept)": np.ones(len(frame))}
    for term in terms(formula):
        names, values = effects(frame, term)
        by_name |= dict(zip(names, values.T, strict=True))
    return by_name


def blocks(frame: pd.DataFrame, formula: str) -> list[tuple[str, Sequence[str], NDArray[np.float64]]]:
    """List group, names and (n, q) values of each set of correlated effects; ``||`` makes a set of each column."""
    terms_of: list[tuple[str, Sequence[str], NDArray[np.float64]]] = []
    for term in terms(formula):
        names, values = effects(frame, term)
        if term.correlated:
            terms_of.append((term.group, names, values))
        else:
            terms_of += [(term.group, [name], values[:, [k]]) for k, name in enumerate(names)]
    return terms_of


def count_covariance_parameters(frame: pd.DataFrame, formula: str) -> int:
    """Count variances and covariances of the random terms."""
    return sum(len(names) * (len(names) + 1) // 2 for _, names, _ in blocks(frame, formula))


def has_slopes(formula: str) -> bool:
    """Tell whether any random term is more than an intercept."""
    return any(term.columns.strip() != "1" for term in terms(formula))


def is_known_to_glmm(formula: str) -> bool:
    """Tell whether `glmm` fits the random terms: correlated, with an intercept, every slope a fixed effect as well."""
    among_fixed = set(re.split(r"[\s~+*]+", extract_fixed_effects(formula)))
    for term in terms(formula):
        names = {name.strip() for name in term.columns.split("+")} - {"1"}
        if not (term.correlated and term.has_intercept and names <= among_fixed):
            return False
    return True


def levels(frame: pd.DataFrame, group: str) -> tuple[NDArray[np.int64], list[str]]:
    """Return (n,) number of each row's level of a grouping (``"id"`` or ``"class:school"``), and the levels' names."""
    first, *others = (frame[name].astype(str) for name in group.split(":"))
    codes, names = pd.factorize(sum((":" + other for other in others), first), sort=True)
    return codes.astype(np.int64), [str(name) for name in names]
