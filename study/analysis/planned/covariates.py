"""Covariates of a plan's models: joined to the responses, and standardised.

A covariate enters in standard deviations from its mean over the analysed responses, as of R's ``scale``: its
coefficient is the effect of one SD, and the other coefficients and the contrasts are those at its mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from core.errors import ForetellError
from study.analysis.responses.reading import Responses
from study.analysis.words.cells import write_rounded
from study.plan.covariates import COVARIATES, POSITION, SITTING

COLUMNS = {POSITION: "trial", SITTING: SITTING}
"""The columns of covariates of the responses, which differ between the rows of an image."""
REMEDY = (
    "Analyse the study itself or a file that this version exported, which have it; or leave it out of the plan's "
    "models."
)


def attach(data: Responses, names: Sequence[str]) -> Responses:
    """Return the responses with a column for each covariate, as it was measured.

    Raises
    ------
    ForetellError
        The responses do not have it, it is no number, differs between rows of an image, or is missing for some.
    """
    for name in names:
        column = COLUMNS.get(name, "")
        values = data.every[column] if column in data.every else _by_item(data, name)
        data = _assign(data, name, _read_numbers(values, name))
    return data


def standardise(data: Responses, names: Sequence[str]) -> Responses:
    """Return the responses with each covariate in SDs from its mean, and a message that says what both are.

    Raises
    ------
    ForetellError
        A covariate does not vary.
    """
    said = []
    for name in names:
        own = data.frame[name]
        mean, sd = float(own.mean()), float(own.std())
        if own.nunique() < 2:
            raise ForetellError(f"Covariate {name}: every response has the same. Leave it out of the plan's models.")
        data = _assign(data, name, (data.every[name] - mean) / sd)
        said.append(
            f"In the models, {name} ({COVARIATES[name]}) is in standard deviations ({write_rounded(sd, 3)}) from its "
            f"mean ({write_rounded(mean, 3)}), at which the contrasts are."
        )
    return replace(data, messages=(*data.messages, *said))


def _by_item(data: Responses, name: str) -> pd.Series[float]:
    """Return a covariate of the trials for each response."""
    if name not in data.covariates or "item" not in data.every:
        column = COLUMNS.get(name, name)
        raise ForetellError(f"The plan's models name {name}, but the responses have no column {column!r}. {REMEDY}")
    known = data.covariates[["item", name]].drop_duplicates()
    if known["item"].duplicated().any():
        first = known.loc[known["item"].duplicated(), "item"].iloc[0]
        raise ForetellError(f"Column {name!r} differs between the rows of item {first}: give each image one value.")
    return data.every["item"].map(known.set_index("item")[name])


def _read_numbers(values: pd.Series[float], name: str) -> pd.Series[float]:
    numbers = pd.to_numeric(values, errors="coerce")
    if wrong := int(numbers.isna().sum()):
        raise ForetellError(
            f"The plan's models name {name}, but {wrong:,} of {len(numbers):,} responses have no number there. {REMEDY}"
        )
    return numbers.astype("float64")


def _assign(data: Responses, name: str, values: pd.Series[float]) -> Responses:
    """Give both parts of the responses a column; `values` are in the order of `Responses.every`."""
    count, given = len(data.frame), values.to_numpy()
    placebos = data.placebos.assign(**{name: given[count:]}) if len(data.placebos) else data.placebos
    return replace(data, frame=data.frame.assign(**{name: given[:count]}), placebos=placebos)
