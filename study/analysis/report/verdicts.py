"""What the tests say: the verdict of the default analysis, and beneath it the same test as in the paper.

The verdict is always that of models with random slopes. Where a plan has random intercepts only, as in the paper, its
test is reported as planned, beneath.
"""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from core.names import lower_first
from study.analysis.exploratory import slopes
from study.analysis.models.sentences import LEVEL, alpha_text, describe_hypothesis, describe_p, name_test
from study.analysis.planned.nested import NestedAnalysis, RatioTest
from study.analysis.responses.reading import Responses
from study.tasks.predict import TASK as PREDICT

PAPER = "Intercepts only, as in the paper"
UNPLANNED = "by the default analysis with random slopes, which was not planned"
_PHRASES = {
    (True, True): "there is evidence without random slopes too",
    (True, False): "there is no clear evidence without random slopes",
    (False, True): "there is evidence only if participants, categories and images do not differ in these effects",
    (False, False): "there is no clear evidence without random slopes either",
}
"""By whether there is evidence with random slopes, and without them."""


@dataclass(frozen=True)
class Verdict:
    """What one test says: the main sentence, if it could be made, and the one beneath, if any."""

    main: str | None
    beneath: str | None = None

    @property
    def text(self) -> str:
        """Both sentences."""
        return " ".join(filter(None, [self.main, self.beneath]))


@dataclass(frozen=True)
class VerdictTable:
    """The tests in a table, and in sentences what it leaves open.

    Attributes
    ----------
    cells
        A row for each test, and one that counts contrasts; a column for its name and for each choice of random effects.
    notes
        Another alpha than .05, and each test whose verdicts differ.
    """

    cells: pd.DataFrame
    notes: list[str]


def describe_test(test: RatioTest, level: float = LEVEL, *, by: str = "", act: str = PREDICT.act) -> str:
    """Describe a likelihood-ratio test in one sentence; p below `level` counts as evidence.

    Parameters
    ----------
    by
        What the test is made by, if that must be said before its numbers.
    act
        What correct participants do, in the words of `study.tasks.task.Task`.
    """
    added = describe_hypothesis(test.smaller, test.larger, act=act)
    if test.decisive_p is None:
        return f"These data cannot say whether {added}: both models have the same parameters."
    verdict = "There is evidence that" if test.decisive_p < level else "There is no clear evidence that"
    against = "" if level == LEVEL else f", tested at alpha = {alpha_text(level)}"
    return f"{verdict} {added} ({by}{describe_numbers(test)}{against})."


def describe_numbers(test: RatioTest) -> str:
    """Write a test's statistic and p: ``"F(2, 96) = 4.61, Holm-corrected p = .024"``."""
    p = describe_p(test.decisive_p) if test.p_holm is None else f"Holm-corrected {describe_p(test.p_holm)}"
    if test.df2 is None or test.f is None:
        return f"χ²({test.df}) = {test.chisq:.2f}, {p}"
    return f"F({test.df}, {test.df2:,.{1 if test.df2 < 10 else 0}f}) = {test.f:.2f}, {p}"


def list_verdicts(
    analysis: NestedAnalysis, data: Responses, compared: pd.DataFrame | None, level: float = LEVEL
) -> list[Verdict]:
    """List the verdict of each test.

    Parameters
    ----------
    compared
        The tests with slopes and with intercepts only (`slopes.compare`); None where the comparison was not made.
    """
    act = data.task.act
    planned_without = slopes.are_left_out(data, analysis)
    if compared is None:
        each = [describe_test(test, level, act=act) for test in analysis.tests]
        return [Verdict(None, f"As planned: {line}") if planned_without else Verdict(line) for line in each]
    pairs = zip(slopes.list_tests(compared, with_slopes=True), slopes.list_tests(compared), strict=True)
    return [_state(main, paper, level, act, planned_without=planned_without) for main, paper in pairs]


def _state(main: RatioTest, paper: RatioTest, level: float, act: str, *, planned_without: bool) -> Verdict:
    line = describe_test(main, level, by=f"{UNPLANNED}: " if planned_without else "", act=act)
    if paper.decisive_p is None or main.decisive_p is None:
        return Verdict(line)
    label = "As planned, with" if planned_without else "With"
    said = "" if planned_without else " (exploratory)"
    phrase = _PHRASES[main.decisive_p < level, paper.decisive_p < level]
    return Verdict(line, f"{label} random intercepts only, as in the paper: {describe_numbers(paper)}{said}: {phrase}.")


def tabulate_verdicts(
    analysis: NestedAnalysis, data: Responses, compared: pd.DataFrame | None, level: float = LEVEL
) -> VerdictTable:
    """Tabulate what `list_verdicts` says in sentences."""
    against = [] if level == LEVEL else [f"Tested at alpha = {alpha_text(level)}."]
    if compared is None:
        heading = f"As planned: {lower_first(PAPER)}" if slopes.are_left_out(data, analysis) else "Verdict"
        rows = [(name_test(test.smaller, test.larger), _conclude(test, level)) for test in analysis.tests]
        return VerdictTable(pd.DataFrame(rows, columns=["Test", heading]), against)
    pairs = list(zip(slopes.list_tests(compared, with_slopes=True), slopes.list_tests(compared), strict=True))
    both = [(name_test(main.smaller, main.larger), _conclude(main, level), _number(paper)) for main, paper in pairs]
    if (counted := slopes.count_contrasts(compared, level)) is not None:
        named = ": ".join(filter(None, [counted.with_slopes, counted.names]))
        both.append((f"Contrasts with p (Holm) below {alpha_text(level)}", named, counted.without))
    cells = pd.DataFrame(both, columns=["Test", *_head_columns(data, analysis)])
    return VerdictTable(cells, against + [note for pair in pairs if (note := _note_difference(*pair, level))])


def _head_columns(data: Responses, analysis: NestedAnalysis) -> tuple[str, str]:
    if slopes.are_left_out(data, analysis):
        return "Random slopes, not planned", f"{PAPER} (planned)"
    return "Random slopes", f"{PAPER} (exploratory)"


def _conclude(test: RatioTest, level: float) -> str:
    if test.decisive_p is None:
        return "Cannot be tested: both models have the same parameters"
    return f"{'Evidence' if test.decisive_p < level else 'No clear evidence'}: {describe_numbers(test)}"


def _number(test: RatioTest) -> str:
    return "–" if test.decisive_p is None else describe_numbers(test)


def _note_difference(main: RatioTest, paper: RatioTest, level: float) -> str | None:
    if main.decisive_p is None or paper.decisive_p is None:
        return None
    evidence = (main.decisive_p < level, paper.decisive_p < level)
    return None if evidence[0] == evidence[1] else f"{name_test(main.smaller, main.larger)}: {_PHRASES[evidence]}."
