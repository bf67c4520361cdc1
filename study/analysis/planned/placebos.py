"""Placebo conditions against the others: the two factors cannot tell them apart, so the condition itself is the factor.

One logistic mixed model of trial type by condition over the responses in all conditions; a contrast between two of the
paper's four is tested in the factors' model as ever (`study.analysis.planned.contrasts`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from core.errors import ForetellError
from study.analysis.means.adjustment import holm
from study.analysis.models import random_effects, reduction
from study.analysis.models.records import MixedModel
from study.analysis.planned import contrasts
from study.analysis.planned.contrasts import FACTORS, Contrast
from study.analysis.responses.outcome import find_outcome
from study.analysis.responses.reading import Responses
from study.bundle import TRIAL_TYPES
from study.conditions import CONDITIONS
from study.plan.comparisons import list_separate_comparisons

FIXED = "trial_type * condition"


def list_default_contrasts(data: Responses) -> list[Contrast]:
    """List the default contrasts for each trial type: the study's explanation against its placebo and against examples
    of another policy, and any other explanation against the image alone."""
    pairs = list_separate_comparisons(set(data.every["condition"]))
    return [Contrast(more, less, (kind,)) for more, less in pairs for kind in TRIAL_TYPES]


def list_all_default_contrasts(data: Responses) -> list[Contrast]:
    """List the contrasts of a study without a plan: between conditions of the two factors, then those with others."""
    return [*contrasts.list_default(data.frame), *list_default_contrasts(data)]


def table(
    data: Responses,
    wanted: Sequence[Contrast],
    *,
    level: float = 0.95,
    random: str = random_effects.INTERCEPTS,
    **settings: Any,
) -> pd.DataFrame:
    """Tabulate contrasts between any conditions, as `study.analysis.planned.contrasts.table` gives them.

    Parameters
    ----------
    random
        Random effects of the factors' model; slopes of explanations become slopes of conditions. A singular fit is
        reduced by `random_effects.RULE`.
    settings
        As of `study.analysis.models.reduction.fit_reduced`.

    Raises
    ------
    ForetellError
        A condition that nobody was in.
    """
    frame, outcome = data.every, find_outcome(data.every)
    names = [name for name in (*FACTORS, *CONDITIONS) if name in set(frame["condition"])]
    names = list(dict.fromkeys(names))
    if absent := sorted({name for c in wanted for name in (c.more, c.less)} - set(names)):
        raise ForetellError(f"No participants were in the condition {absent[0]!r}; leave its contrasts out.")
    coded = frame.assign(condition=pd.Categorical(frame["condition"], categories=names))
    model, _ = reduction.fit_reduced(
        coded, f"{outcome.column} ~ {FIXED}", random_effects.by_condition(random), family=outcome.family, **settings
    )
    cells = {name: {"condition": pd.Categorical([name], categories=names)} for name in names}
    return contrasts.table(model, wanted, level=level, cells=cells)


def together(data: Responses, model: MixedModel, wanted: Sequence[Contrast], *, level: float = 0.95) -> pd.DataFrame:
    """Return contrasts with and without placebos in the order asked, corrected together for their number.

    Those without responses are left out (`contrasts.describe_untestable` names them). The model of the placebos has the
    random slopes of `model`.
    """
    wanted = contrasts.select_testable(data.every, wanted)
    if not wanted:
        return pd.DataFrame()
    random = random_effects.split({"largest": model.formula.split("~", 1)[1]})[1]
    misled = [not {contrast.more, contrast.less} <= set(FACTORS) for contrast in wanted]
    parts = []
    if not all(misled):
        parts.append(contrasts.table(model, [c for c, m in zip(wanted, misled, strict=True) if not m], level=level))
    if any(misled):
        others = [c for c, m in zip(wanted, misled, strict=True) if m]
        parts.append(table(data, others, level=level, random=random, has_df=bool(model.parts)))
    whole = pd.concat(parts, ignore_index=True).iloc[np.argsort(np.argsort(misled, kind="stable"))]
    whole = whole.reset_index(drop=True)
    return whole.assign(p_holm=holm(whole["p"].to_numpy(np.float64)))
