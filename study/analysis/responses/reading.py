"""Trial-level responses: read, mapped, and checked as a whole before anything is computed from them."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from core.errors import ForetellError
from study.analysis.models.coding import OUTCOMES
from study.analysis.responses.adaptive import list_choice_columns
from study.analysis.responses.blocks import find_wrong_blocks, leave_out_training, list_seen_columns
from study.analysis.responses.codes import find_uncoded, list_code_columns
from study.analysis.responses.covariates import read_covariates
from study.analysis.responses.faults import (
    describe_missing_column,
    find_mixed_tasks,
    find_repeats,
    list_first_columns,
    list_task_columns,
    name_task,
)
from study.analysis.responses.levels import find_wrong_levels, list_required, read_levels, separate
from study.analysis.responses.notices import describe_missing_words, find_dates, list_notices, strip_names
from study.analysis.responses.periods import list_period_columns
from study.analysis.responses.places import list_place_columns
from study.analysis.responses.sittings import list_sitting_columns
from study.bundle import EVERY_TYPE, TRIAL_TYPES
from study.conditions import list_separate_conditions
from study.tasks.task import Task
from study.workspace.tables import Comma, is_numeric, mark_missing, parse_numbers, read_parquet, read_table

REQUIRED = ("participant", "category", "trial_type", "saliency", "examples", "correct")
OPTIONAL = (
    "condition", "trial", "mode", "item", "truth", "choice", "first_choice", "task", "n_classes",
    "block", "n_training", "period", "sitting", "level", "n_levels", "rt_ms", "confidence",
)  # fmt: skip
NUMBERS = ("rt_ms", "confidence")
CONFIDENCE = "the participant's confidence: the probability that the response is correct, from 0 to 1"
"""Meaning of the one column that Foretell's own export does not have."""
FLAGS = ("saliency", "examples", "correct")
CONDITION_OF_FACTORS = {(0, 0): "none", (1, 0): "saliency", (0, 1): "examples", (1, 1): "both"}
"""(saliency, examples) -> the name of the condition."""

_FLAGS = {"1": 1.0, "0": 0.0, "1.0": 1.0, "0.0": 0.0, **OUTCOMES}
FASTEST_MS = 50.0
"""Half of all responses can be no faster than this (ms)."""


@dataclass(frozen=True)
class Responses:
    """Responses fit for analysis.

    Attributes
    ----------
    frame
        One row per response: participant and category (text), trial_type (categorical, in the order of `TRIAL_TYPES`,
        those that have responses), saliency, examples and correct (0/1 integers; where no response is right or wrong, a
        whole number level instead of correct), condition (text); where given: trial, mode (``"live"``, ``"sim"`` or
        ``"preview"``), item, truth, choice, rt_ms and confidence (numbers, NaN where missing); task and n_classes, if
        not the default ones; first_choice, in tasks of two steps; n_training with blocks (tests alone); period; and
        sitting.
    dropped
        Rows left out because a required value was missing.
    messages
        What a reader of the results must know about the data.
    placebos
        The responses in placebo conditions, in the same form: the two factors do not tell them from those of `frame`.
    excluded
        rule, people, `responses` that researchers excluded during the collection: not among the rows.
    dates
        Of the first and the last row (ISO 8601, UTC), where the server recorded them.
    covariates
        item and the columns of `study.plan.covariates.TRIAL_COVARIATES` that the responses have, as they were read.
    """

    frame: pd.DataFrame
    dropped: int = 0
    messages: tuple[str, ...] = ()
    placebos: pd.DataFrame = field(default_factory=pd.DataFrame)
    excluded: pd.DataFrame = field(default_factory=pd.DataFrame)
    dates: tuple[str, str] | None = None
    covariates: pd.DataFrame = field(default_factory=pd.DataFrame)

    @property
    def every(self) -> pd.DataFrame:
        """The responses in all conditions, the placebos last."""
        return pd.concat([self.frame, self.placebos], ignore_index=True) if len(self.placebos) else self.frame

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the rows as analysed, in the canonical order of columns."""
        text = self.every.to_csv(index=False, lineterminator="\n")
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def task(self) -> Task:
        """What participants were asked."""
        return name_task(self.frame)

    @property
    def has_simulated(self) -> bool:
        """Whether any response is a simulated participant's."""
        return "mode" in self.frame and bool((self.frame["mode"] == "sim").any())


def read(path: Path, columns: Mapping[str, str] | None = None, *, comma: Comma | None = None) -> Responses:
    """Read a CSV or Parquet file of responses; `columns` gives the file's name of each of our columns.

    Parameters
    ----------
    comma
        What commas in numbers separate; None where the numbers show it.

    Raises
    ------
    ForetellError
        The file is missing, empty or no CSV, or its content is not as it should be (all problems at once).
    """
    if path.suffix == ".parquet":
        return prepare(read_parquet(path), columns, name=path.name)
    frame, words = mark_missing(read_table(path))
    return prepare(frame, columns, name=path.name, missing_words=words, comma=comma)


def table(
    path: Path,
    factors: Sequence[str] = (),
    *,
    optional: int = 0,
    among: Collection[str] | None = None,
    comma: Comma | None = None,
) -> pd.DataFrame:
    """Read any CSV to fit a formula to, columns of numbers as numbers except `factors`, and only those `among` names.

    The last `optional` of the factors may be missing: what a formula names in vain is said where it is fitted.

    Raises
    ------
    ForetellError
        The file is missing, empty or no CSV, or lacks one of the `factors`, or the commas of numbers may be decimal
        or not.
    """
    texts = mark_missing(read_table(path))[0]
    known = [str(column) for column in texts.columns]
    required = len(factors) - optional
    factors = [name for k, name in enumerate(factors) if k < required or name in known]
    for name in factors:
        if name not in known:
            raise ForetellError(f"{path.name} has no column {name!r} to take as a factor; it has {', '.join(known)}.")
    candidates = [name for name in known if name not in factors and (among is None or name in among)]
    return texts.assign(**{name: _read_column(texts[name], comma) for name in candidates})


def _read_column(column: pd.Series[str], comma: Comma | None) -> pd.Series[Any]:
    numbers = parse_numbers(column, comma)
    if numbers is None and is_numeric(column):
        raise ForetellError(f"{_describe_commas(column)}. To read the column as text: --factor {column.name}.")
    return column if numbers is None else numbers


def _describe_commas(column: pd.Series[str]) -> str:
    """Describe numbers of which commas may separate either, or something else than was said, up to the remedy."""
    first = column[column.astype("str").str.contains(",", regex=False)].iloc[0]
    return (
        f"Column {column.name!r} has numbers whose commas may separate decimals or thousands, such as {first!r}. Write "
        "them with a decimal point and without separators of thousands, or say in the command what they separate: "
        "--comma decimal or --comma thousands"
    )


def prepare(
    frame: pd.DataFrame,
    columns: Mapping[str, str] | None = None,
    *,
    name: str = "The responses",
    missing_words: Mapping[str, int] | None = None,
    comma: Comma | None = None,
) -> Responses:
    """Check responses and bring them into the form of `Responses`. Preparing twice changes nothing.

    Rows that lack a required value are left out, counted and named in `Responses.messages`, as lme4 does in silence;
    so are the texts of each column that were read as missing values, if `missing_words` counts them (`mark_missing`);
    everything else that is wrong is refused.

    Raises
    ------
    ForetellError
        All problems at once, each with where, what and remedy.
    """
    required = list_required(frame, columns or {}, REQUIRED)
    renamed, problems = _rename_columns(frame, columns or {}, comma, required)
    if not problems and renamed.empty:
        problems = ["There are no rows: collect or export some responses first."]
    if problems := problems or list(find_uncoded(renamed)):
        raise _refusal(name, problems)
    renamed, stripped = strip_names(renamed)
    renamed, trained = leave_out_training(renamed)
    complete = renamed.dropna(subset=list(required))
    if problems := list(_problems(complete)):
        raise _refusal(name, problems)
    tidy = _tidy(complete)
    if problems := list(_contradictions(tidy)):
        raise _refusal(name, problems)
    misled = tidy["condition"].isin(list_separate_conditions())
    if misled.all():
        outside = "Every response is from a condition outside the two factors: there is nothing to compare it with."
        raise _refusal(name, [outside])
    true, placebo = (tidy[rows].reset_index(drop=True) for rows in (~misled, misled))
    used = {(columns or {}).get(ours, ours) for ours in renamed}
    words = describe_missing_words({column: n for column, n in (missing_words or {}).items() if column in used})
    messages = (*stripped, *words, *trained, *list_notices(renamed, complete))
    lost, measured = len(renamed) - len(complete), read_covariates(frame, (columns or {}).get("item", "item"))
    return Responses(true, lost, messages, placebo, dates=find_dates(frame), covariates=measured)


def _refusal(name: str, problems: list[str]) -> ForetellError:
    listed = "\n".join(f"- {problem}" for problem in problems)
    return ForetellError(f"{name}: " + (problems[0] if len(problems) == 1 else f"{len(problems)} problems.\n{listed}"))


def _rename_columns(
    frame: pd.DataFrame, columns: Mapping[str, str], comma: Comma | None, required: Sequence[str]
) -> tuple[pd.DataFrame, list[str]]:
    """Return our columns under our names, and the problems found."""
    problems = [
        f"Column {ours!r} is unknown: use one of {', '.join(REQUIRED + OPTIONAL)}."
        for ours in columns
        if ours not in REQUIRED + OPTIONAL
    ]
    sources = {ours: columns.get(ours, ours) for ours in REQUIRED + OPTIONAL}
    for ours, theirs in sources.items():
        if theirs not in frame.columns and (ours in required or ours in columns):
            problems.append(describe_missing_column(ours, theirs, [str(column) for column in frame.columns]))
    if problems:
        return frame, problems
    present = {ours: frame[theirs] for ours, theirs in sources.items() if theirs in frame.columns}
    read = {ours: parse_numbers(present[ours], comma) for ours in NUMBERS if ours in present}
    present |= {ours: numbers for ours, numbers in read.items() if numbers is not None}
    present |= list_place_columns(frame) | list_code_columns(frame) | list_choice_columns(frame)
    return separate(pd.DataFrame(present).reset_index(drop=True), required), []


def _problems(frame: pd.DataFrame) -> Iterator[str]:
    if frame.empty:
        yield "Every row lacks a required value: fill the columns " + ", ".join(REQUIRED) + "."
        return
    unknown = sorted(set(frame["trial_type"].astype(str)) - set(EVERY_TYPE))
    if unknown:
        yield (
            f"Column 'trial_type' has the unknown value{'s' if len(unknown) > 1 else ''} "
            f"{', '.join(repr(u) for u in unknown[:5])}: use {', '.join(TRIAL_TYPES)}."
        )
    for name in (flag for flag in FLAGS if flag in frame):
        wrong = frame[name][read_flags(frame[name]).isna()]
        if len(wrong):
            yield (
                f"Column {name!r} must be 0 or 1, but {len(wrong)} of its values are not "
                f"(row {wrong.index[0] + 1}: {str(wrong.iloc[0])!r}): recode them."
            )
    yield from find_wrong_blocks(frame)
    yield from find_mixed_tasks(frame)
    yield from _not_numbers(frame)
    if frame["participant"].astype(str).nunique() < 2:
        yield "Column 'participant' names only one participant: the models compare participants, so add others."
    yield from find_wrong_levels(frame)
    outcome = read_flags(frame["correct"]) if "correct" in frame else None
    if outcome is not None and outcome.notna().all() and outcome.nunique() < 2:
        right = "correct" if outcome.iloc[0] == 1 else "incorrect"
        yield (
            f"Column 'correct' never varies: every response is {right}, so there is nothing to model. Collect more "
            "responses; if the file is your own, check how it is coded."
        )
    yield from find_repeats(frame)


def _not_numbers(frame: pd.DataFrame) -> Iterator[str]:
    for name in (n for n in NUMBERS if n in frame):
        wrong = frame[name].notna() & pd.to_numeric(frame[name], errors="coerce").isna()
        if wrong.any() and is_numeric(frame[name]):
            yield f"{_describe_commas(frame[name])}."
        elif wrong.any():
            first = wrong.idxmax()
            yield f"Column {name!r} must hold numbers, but row {first + 1} says {frame[name][first]!r}: correct it."
    times = pd.to_numeric(frame["rt_ms"], errors="coerce") if "rt_ms" in frame else pd.Series(dtype=float)
    if 0 < (median := times[times > 0].median()) < FASTEST_MS:
        yield (
            f"Column 'rt_ms' must hold milliseconds, but half of its values are below {median:.4g}: if they are "
            "seconds, multiply them by 1,000."
        )
    sure = pd.to_numeric(frame["confidence"], errors="coerce").dropna() if "confidence" in frame else pd.Series()
    if not sure.between(0, 1).all():
        yield "Column 'confidence' must be a probability from 0 to 1: divide percentages by 100."


def _contradictions(frame: pd.DataFrame) -> Iterator[str]:
    """Report rows whose condition contradicts its coding by the two factors."""
    coded = _code_condition(frame)
    wrong = frame[frame["condition"].isin(CONDITION_OF_FACTORS.values()) & (frame["condition"] != coded)]
    if len(wrong):
        row = wrong.index[0]
        yield (
            f"{len(wrong)} rows contradict themselves: row {row + 1} says condition {wrong['condition'].iloc[0]!r}, "
            f"but its saliency and examples say {coded[row]!r}. Correct one of them."
        )


def read_flags(column: pd.Series[object]) -> pd.Series[float]:
    """Read 0 and 1, as numbers or in words (`OUTCOMES`); anything else becomes missing."""
    return column.astype(str).str.strip().str.casefold().map(_FLAGS)


def _code_condition(frame: pd.DataFrame) -> pd.Series[str]:
    pairs = zip(frame["saliency"], frame["examples"], strict=True)
    return pd.Series([CONDITION_OF_FACTORS[pair] for pair in pairs], index=frame.index, dtype="str")


def _tidy(frame: pd.DataFrame) -> pd.DataFrame:
    tidy = pd.DataFrame(
        {
            "participant": frame["participant"].astype(str),
            "category": frame["category"].astype(str),
            "trial_type": _code_trial_types(frame["trial_type"].astype(str)),
            **{flag: read_flags(frame[flag]).astype(np.int64) for flag in FLAGS if flag in frame},
            **read_levels(frame),
        }
    )
    coded = _code_condition(tidy)
    tidy["condition"] = coded
    if "condition" in frame:
        tidy["condition"] = frame["condition"].astype("str").where(frame["condition"].notna(), coded)
    for name in ("trial", "mode", "item", "truth", "choice", *list_first_columns(frame), *list_task_columns(frame)):
        if name in frame:
            tidy[name] = frame[name]
    for name in (*NUMBERS, *list_seen_columns(frame), *list_period_columns(frame), *list_sitting_columns(frame)):
        if name in frame:
            tidy[name] = pd.to_numeric(frame[name]).astype(np.float64)
    return tidy.assign(**list_place_columns(frame), **list_code_columns(frame), **list_choice_columns(frame))


def _code_trial_types(kinds: pd.Series[str]) -> pd.Categorical:
    """Code trial types as a factor of those that have responses: an empty level would take another one's name."""
    return pd.Categorical(kinds, categories=[kind for kind in EVERY_TYPE if kind in set(kinds)])
