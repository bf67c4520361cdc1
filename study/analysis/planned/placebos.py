"""Placebo conditions against the others: the two factors cannot tell them apart, so the condition itself is the factor.

One logistic mixed model of trial type by condition over the responses in all conditions; a contrast between two of the
paper's four is tested in the factors' model as ever (`study.analysis.planned.contrasts`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from core.errors import ForetellError
from study.analysis.means.adjustment import holm
from study.analysis.models import random_effects, reduction
from study.analysis.models.records import MixedModel
from study.analysis.planned import contrasts
from study.analysis.planned.contrasts import FACTORS, Cells, Contrast
from study.analysis.responses.outcome import find_outcome
from study.analysis.responses.reading import Responses
from study.bundle import TRIAL_TYPES
from study.conditions import CONDITIONS
from study.plan.comparisons import list_separate_comparisons

FIXED = "trial_type * condition"


class ContrastResults(NamedTuple):
    """Contrasts, and the model of those that have a condition outside the two factors; None where none has one."""

    table: pd.DataFrame
    condition_model: MixedModel | None = None


def list_default_contrasts(data: Responses) -> list[Contrast]:
    """List the default contrasts for each trial type: the study's explanation against its placebo and against examples
    of another policy, and any other explanation against the image alone."""
    pairs = list_separate_comparisons(set(data.every["condition"]))
    return [Contrast(more, less, (kind,)) for more, less in pairs for kind in TRIAL_TYPES]


def list_all_default_contrasts(data: Responses) -> list[Contrast]:
    """List the contrasts of a study without a plan: between conditions of the two factors, then those with others."""
    return [*contrasts.list_default(data.frame), *list_default_contrasts(data)]


def code_conditions(data: Responses) -> tuple[pd.DataFrame, Cells]:
    """Return the responses in all conditions with the condition as a factor, and the cell of each condition.

    The conditions of the two factors come first.
    """
    frame = data.every
    present = set(frame["condition"])
    names = [name for name in dict.fromkeys((*FACTORS, *CONDITIONS)) if name in present]
    return frame.assign(condition=pd.Categorical(frame["condition"], categories=names)), _list_cells(names)


def _list_cells(names: Sequence[str]) -> Cells:
    return {name: {"condition": pd.Categorical([name], categories=names)} for name in names}


def fit(data: Responses, random: str = random_effects.INTERCEPTS, *, has_df: bool = False) -> MixedModel:
    """Fit the model of trial type by condition to the responses in all conditions.

    Parameters
    ----------
    random
        Random effects of the factors' model; slopes of explanations become slopes of conditions. A singular fit is
        reduced by `random_effects.RULE`.
    has_df
        As of `study.analysis.models.mixed.fit`; slopes among the random effects have degrees of freedom anyway.
    """
    outcome, asked = find_outcome(data.every), random_effects.by_condition(random)
    settings = {"has_df": True} if has_df else {}
    fixed = f"{outcome.column} ~ {FIXED}"
    return reduction.fit_reduced(code_conditions(data)[0], fixed, asked, family=outcome.family, **settings)[0]


def table(model: MixedModel, wanted: Sequence[Contrast], *, level: float = 0.95) -> pd.DataFrame:
    """Tabulate contrasts between any conditions by the model of `fit`, as `study.analysis.planned.contrasts.table`.

    Raises
    ------
    ForetellError
        A condition that nobody was in.
    """
    names = model.levels["condition"]
    if absent := sorted({name for c in wanted for name in (c.more, c.less)} - set(names)):
        raise ForetellError(f"No participants were in the condition {absent[0]!r}; leave its contrasts out.")
    return contrasts.table(model, wanted, level=level, cells=_list_cells(names))


def is_separate(contrast: Contrast) -> bool:
    """Tell whether a contrast has a condition outside the two factors."""
    return not {contrast.more, contrast.less} <= set(FACTORS)


def tabulate_in_order(
    wanted: Sequence[Contrast],
    of_factors: Callable[[list[Contrast]], pd.DataFrame],
    of_conditions: Callable[[list[Contrast]], pd.DataFrame],
) -> pd.DataFrame:
    """Tabulate contrasts in the order asked, each by the function for its conditions; at least one is needed."""
    separate = [is_separate(contrast) for contrast in wanted]
    parts = []
    for kind, tabulate in ((False, of_factors), (True, of_conditions)):
        if some := [contrast for contrast, is_other in zip(wanted, separate, strict=True) if is_other == kind]:
            parts.append(tabulate(some))
    whole = pd.concat(parts, ignore_index=True).iloc[np.argsort(np.argsort(separate, kind="stable"))]
    return whole.reset_index(drop=True)


def together(data: Responses, model: MixedModel, wanted: Sequence[Contrast], *, level: float = 0.95) -> ContrastResults:
    """Return contrasts with and without placebos in the order asked, corrected together for their number.

    Those without responses are left out (`contrasts.describe_untestable` names them). The model of the placebos has the
    random slopes of `model`.
    """
    wanted = contrasts.select_testable(data.every, wanted)
    if not wanted:
        return ContrastResults(pd.DataFrame())
    random = random_effects.split({"largest": model.formula.split("~", 1)[1]})[1]
    other = fit(data, random, has_df=bool(model.parts)) if any(map(is_separate, wanted)) else None
    whole = tabulate_in_order(
        wanted,
        lambda some: contrasts.table(model, some, level=level),
        lambda some: pd.DataFrame() if other is None else table(other, some, level=level),
    )
    return ContrastResults(whole.assign(p_holm=holm(whole["p"].to_numpy(np.float64))), other)
