"""Headings in words of every column that a table of the pages can have."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import fields

import pytest
from streamlit.testing.v1 import AppTest

from core.names import format_name
from core.training.record import TrainingMoment
from study.analysis.words.headings import FORMS, HEADINGS, format_heading
from tests.conftest import ROOT

SOURCES = ("study/analysis", "inquiry", "dashboard/teaching", "dashboard/power", "dashboard/explore")
"""Where the tables of the pages are made."""
NOTATION = {"p", "z", "t", "x", "y", "df", "to", "from", "χ²", "log p", "p (like relatives)", "x-feature"}
NOTATION |= {"meta-d'", "meta-d' / d'"}
NOTATION |= {f"p ({which})" for which in ("Holm", "TOST", "TOST, Holm", "difference", "all", "without", "bootstrap")}
"""Headings that start with a small letter, as in articles."""
SYMBOLS = set("p z t F x y s c d df χ² ρ R hat Mu Tau AI CI ID SE SD AIC BIC AUC GEE".split())  # noqa: SIM905
WORDS = set("a all at bin by for in is log low met non of on out per set the to top".split())  # noqa: SIM905
"""Short words; any other of up to three letters is an abbreviation that nobody explained."""
CODES = {"bayes", "chisq", "dprime", "loglik"}
NOT_SHOWN = {"log_rt", "icc", "r2_conditional", "r2_marginal"}
"""Columns of tables that are on no page."""


def is_written_out(heading: str) -> bool:
    """Whether a heading reads as words: no underscore, no small first letter, no abbreviation but the field's."""
    if "_" in heading or (heading[0].islower() and heading not in NOTATION):
        return False
    words = re.findall(r"\w+", heading.replace("'s", ""))
    return all(_is_known(word) for word in words)


def _is_known(word: str) -> bool:
    if len(word) > 3 or word[0].isdigit():
        return word.lower() not in CODES
    return word in SYMBOLS or word in WORDS or word[:1].lower() + word[1:] in WORDS


def list_columns() -> Iterator[tuple[str, str]]:
    """Yield every name of a column in the code that makes tables, with its file."""
    for folder in SOURCES:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                for name in _names_of(node):
                    yield name, str(path.relative_to(ROOT))
    yield from ((field.name, "core/training/record.py") for field in fields(TrainingMoment))


def _names_of(node: ast.AST) -> Iterator[str]:
    """Yield the names in ``columns=[...]``, ``DataFrame({...})``, ``COLUMNS = (...)``, ``.assign(name=...)``."""
    if isinstance(node, ast.Call):
        called = getattr(node.func, "attr", getattr(node.func, "id", ""))
        yield from (key.arg for key in node.keywords if called == "assign" and key.arg)
        yield from (text for key in node.keywords if key.arg == "columns" for text in _texts(key.value))
        if called == "DataFrame":
            dicts = [part for argument in node.args for part in ast.walk(argument) if isinstance(part, ast.Dict)]
            yield from (text for one in dicts for key in one.keys if key is not None for text in _texts(key))
    elif isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in ("COLUMNS", "names"):
        yield from _texts(node.value)


def _texts(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str) and part.value.isidentifier():
            yield part.value


def test_every_column_of_a_table_reads_as_words() -> None:
    """Catches a column of an analysis, or of a question on Explore, that would be shown as a code."""
    columns = dict(list_columns())
    assert {"loglik", "chisq_df", "gee_rescaled", "p_holm", "sets_scored", "gini"} <= set(columns)
    written = {f"{file}: {name}": format_heading(name) for name, file in columns.items() if name not in NOT_SHOWN}
    assert {where: heading for where, heading in written.items() if not is_written_out(heading)} == {}


@pytest.mark.parametrize(
    ("name", "heading"),
    [
        ("loglik", "Log-likelihood"),
        ("chisq", "χ²"),
        ("chisq_df", "df"),
        ("p_holm", "p (Holm)"),
        ("odds_ratio", "Odds ratio"),
        ("mixed_se", "SE"),
        ("dprime_low", "95% CI from"),
        ("dprime_high", "to"),
        ("q10", "10th percentile"),
        ("q50", "Median"),
        ("do_context", "Context, effect"),
        ("purity_less", "Purity, difference"),
        ("purity_less_low", "95% CI from"),
        ("label_error", "Label error"),
        ("gain_error", "SE"),
        ("n_participants", "N participants"),
    ],
)
def test_names_are_written_as_in_articles(name: str, heading: str) -> None:
    """Catches a rule that takes a column it was not made for, such as a label error for a standard error."""
    assert format_heading(name) == heading


@pytest.mark.parametrize(
    "code", ["se", "Se", "chisq_df", "loglik", "Df", "Rho", "hours slept", "Icc", "Sd of it", "Loglik"]
)
def test_the_check_refuses_codes(code: str) -> None:
    """Negative control."""
    assert not is_written_out(code)


def test_no_heading_is_what_the_rules_give_anyway() -> None:
    """Catches an entry that says nothing: the table holds exceptions alone."""
    derived = {name for name in HEADINGS if not any(re.fullmatch(form, name) for form in FORMS)}
    assert [name for name in derived if HEADINGS[name] == format_name(name)] == []


def test_dropped_trials_are_listed_in_words() -> None:
    """Catches the codes of a study file over and in the table of dropped trials."""

    def page() -> None:
        from dashboard.studies.trials import _show_dropped

        _show_dropped(({"category": "fish", "trial_type": "std_correct", "reason": "too few images"},))

    (table,) = AppTest.from_function(page).run().table
    assert list(table.value.columns) == ["Category", "Trial type", "Reason"]
    assert table.value.iloc[0].tolist() == ["fish", "AI right", "too few images"]
