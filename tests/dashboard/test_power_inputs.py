"""Sizes, multipliers, slopes and pay are read as they were meant, or refused with a remedy."""

from __future__ import annotations

import re

import pytest
from typer.testing import CliRunner

from core.errors import ForetellError
from dashboard.cli.main import build_app
from dashboard.power.inputs import parse_multiples, parse_sizes, parse_slopes
from dashboard.power.jobs import PowerAnalysis
from study.plan.config import read
from tests.conftest import ROOT

DEMO = ROOT / "data" / "studies" / "demo.toml"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"category": "nan"}, "numbers of 0 or more, like 0.8"),
        ({"category": "9"}, "from 0 to 5"),
        ({"category": "1,2"}, "one number"),
        ({"trial_type": "1"}, "participant, category"),
    ],
)
def test_wrong_slopes_are_a_sentence(given: dict[str, str], said: str) -> None:
    with pytest.raises(ForetellError, match=said):
        parse_slopes(given, "--slope-sd")
    assert parse_slopes({"participant": "0.8"}, "--slope-sd") == {"participant": 0.8}


@pytest.mark.parametrize("text", ["nan", "-1,1e9", "1,inf", "1e9", "0.5,x"])
def test_multiples_that_are_no_multiples_are_refused_in_words(text: str) -> None:
    """Catches numbers that end in an unexpected error far inside."""
    with pytest.raises(ForetellError, match="effects"):
        parse_multiples(text, "effects")
    assert parse_multiples("0.5,1", "effects") == (0.5, 1.0)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--participants", "0"], "--participants '0': give between 2 and 2,000 participants per condition."),
        (["--participants", "10,2e9"], "--participants '10,2e9' is not a list of numbers"),
        (["--pay", "nan"], "--pay nan: give an amount of 0 or more."),
        (["--pay=-3"], "--pay -3: give an amount of 0 or more."),
    ],
)
def test_the_command_refuses_what_no_study_has(options: list[str], said: str) -> None:
    """Catches a size of 0 that ended in an IndexError, and costs below 0 or none."""
    with pytest.raises(ForetellError, match=re.escape(said)):
        CliRunner().invoke(build_app(), ["power", str(DEMO), *options], catch_exceptions=False)


@pytest.mark.parametrize("text", ["10;20", "20, 10", "20 10", "10,20,20", " 10 ; 20 "])
def test_sizes_are_read_with_any_separator_and_sorted(text: str) -> None:
    """Catches "10;20" refused, a curve drawn backwards, and a size that is simulated twice for one interval."""
    assert parse_sizes(text, "sizes") == (10, 20)


@pytest.mark.parametrize("text", ["0,5", "1; 0,5", "1 0,5", "0,5;1"])
def test_a_decimal_comma_is_not_two_multipliers(text: str) -> None:
    """Catches "0,5" read as 0 and 5: power for no effect and for one five times as large."""
    with pytest.raises(ForetellError, match=r"write 0\.5 with a decimal point.* the two numbers 0 and 5"):
        parse_multiples(text, "effects")
    assert parse_multiples("0, 5", "effects") == (0.0, 5.0)
    assert parse_multiples("0,0.5,1", "effects") == (0.0, 0.5, 1.0)
    assert parse_multiples("1; 0.5 1", "effects") == (1.0, 0.5)


@pytest.mark.parametrize("text", ["", "  "])
def test_an_empty_field_asks_for_a_number(text: str) -> None:
    """Catches "'' is not a list of numbers like 10,20,40", for multipliers too."""
    with pytest.raises(ForetellError, match=r"effects: give at least one number, like 1, 0\.5\."):
        parse_multiples(text, "effects")
    with pytest.raises(ForetellError, match=r"sizes: give at least one number, like 10, 20, 40\."):
        parse_sizes(text, "sizes")
    with pytest.raises(ForetellError, match=r"effects 'half' is not a list of numbers like 1, 0\.5\."):
        parse_multiples("half", "effects")


def test_the_papers_accuracies_are_not_those_of_several_classes() -> None:
    """Catches a sample size for five options from accuracies of two, of which chance is one half."""
    study = read(ROOT / "data" / "studies" / "several-classes.toml")
    with pytest.raises(ForetellError, match=r"are of two options, and this study has 5\. Build the study and assume"):
        PowerAnalysis(study, (10,)).truth()
