"""What a formula in lme4's notation says, as far as it must be known outside `glmm`."""

from __future__ import annotations

import re
from collections.abc import Mapping

import glmm
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.errors import ForetellError
from study.analysis.coding import coded_response

RANDOM = re.compile(r"\(([^()|]*)\|([^()]*)\)")
_DIFFERENCE = re.compile(r",\s*([A-Za-z_.][\w.]*)\s*-\s*([A-Za-z_.][\w.]*)\s*\)")
_NAME = re.compile(r"[A-Za-z_.][\w.]*")
_FUNCTION = re.compile(r"[A-Za-z_.][\w.]*\s*\(")


def grouped(frame: pd.DataFrame, formula: str) -> tuple[pd.DataFrame, str]:
    """``cbind(hits, size - hits)`` with its difference as a column, because `glmm` takes only names there."""
    found = _DIFFERENCE.search(formula)
    if found is None:
        return frame, formula
    whole, part = found.groups()
    for name in (whole, part):
        if name not in frame.columns:
            raise ForetellError(f"The formula {formula!r} names {name!r}, which is no column of the data.")
    counts = frame.assign(foretell_difference=frame[whole] - frame[part])
    return counts, formula.replace(found.group(0), ", foretell_difference)", 1)


def columns(frame: pd.DataFrame, formula: str) -> list[str]:
    """Columns of the frame that a formula reads, in its order."""
    return [name for name in dict.fromkeys(_NAME.findall(formula)) if name in frame.columns]


def fixed(formula: str) -> str:
    """The right-hand side of a formula without its random terms."""
    right = RANDOM.sub("", formula.split("~", 1)[1])
    right = re.sub(r"\+(\s*\+)+", "+", right).strip().strip("+").strip()
    return f"~ {right or '1'}"


def random(formula: str, stand_in: Mapping[str, str] | None = None) -> str:
    """The random terms of a formula, each with a plus before it, slopes under the names that stand in for them."""
    renamed = stand_in or {}
    return "".join(
        f" + ({_NAME.sub(lambda name: renamed.get(name.group(0), name.group(0)), term.group(1))}|{term.group(2)})"
        for term in RANDOM.finditer(formula)
    )


def response(frame: pd.DataFrame, formula: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(n,) successes and (n,) answers of each row of a binomial response, single or ``cbind(hits, misses)``."""
    names = _NAME.findall(_FUNCTION.sub("", formula.split("~", 1)[0]))
    hits = coded_response(frame, formula)[0][names[0]].to_numpy(dtype=np.float64)
    misses = frame[names[1]].to_numpy(dtype=np.float64) if len(names) > 1 else 1.0 - hits
    return hits, hits + misses


def slopes(frame: pd.DataFrame, formula: str) -> Mapping[str, NDArray[np.float64]]:
    """The column of each random term by its name, ``"(Intercept)"`` among them."""
    found: dict[str, NDArray[np.float64]] = {"(Intercept)": np.ones(len(frame))}
    for term in RANDOM.finditer(formula):
        design, names = glmm.model_matrix(frame, f"~ {term.group(1)}")
        found |= dict(zip(names, np.asarray(design, dtype=np.float64).T, strict=True))
    return found


def levels(frame: pd.DataFrame, group: str) -> tuple[NDArray[np.int64], list[str]]:
    """(n,) number of each row's level of a grouping (``"id"`` or ``"class:school"``), and the levels' names."""
    texts = frame[group.split(":")].astype(str).agg(":".join, axis=1) if ":" in group else frame[group].astype(str)
    codes, names = pd.factorize(texts, sort=True)
    return codes.astype(np.int64), [str(name) for name in names]
