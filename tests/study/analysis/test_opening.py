"""The sentence that opens the results. Its expected words are written by hand from each table."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from study.analysis.models import random_effects
from study.analysis.planned.nested import NestedAnalysis, RatioTest
from study.analysis.report.opening import write_opening
from study.analysis.responses import reading as responses
from tests.study.analysis.simulated import study

CLEAR = ("saliency - none, adv_incorrect", 0.344, 0.136, 20.8, 11.2, 30.4, 0.002)
LOWER = ("examples - saliency, std_correct", 0.62, 0.81, -19.0, -28.0, -10.0, 0.01)
VAGUE = ("both - none", 0.50, 0.20, 30.0, -2.0, 62.0, 0.3)
UNDETERMINED = ("both - none, std_correct", 1.0, 0.4, 60.0, None, None, None)
OUTSIDE = ("class_maps - none, std_correct", 0.46, 0.78, -32.0, -49.0, -14.0, 0.03)
NO_EVIDENCE = "No clear evidence that explanations change how often participants predict the AI correctly"
EVIDENCE = NO_EVIDENCE.replace("No clear e", "E")


def tabulate(*rows: tuple[object, ...]) -> pd.DataFrame:
    names = ["contrast", "accuracy_more", "accuracy_less", "points", "points_low", "points_high", "p_holm"]
    return pd.DataFrame(rows, columns=names).astype(dict.fromkeys(names[1:], float))


def analyse(p: float | None, random: str = "(saliency || participant)") -> NestedAnalysis:
    return NestedAnalysis({}, (RatioTest("null", "explanation", 9.0, 2, p, 30.0, p, 4.5),), random=random)


@pytest.fixture(scope="module")
def data() -> responses.Responses:
    return responses.prepare(study(24, 8, 6, seed=5))


@pytest.mark.parametrize(
    ("p", "rows", "said"),
    [
        (
            0.01,
            (CLEAR, LOWER, VAGUE, UNDETERMINED),  # whole numbers would be 14, 34 and +21, which do not add up
            "Saliency maps raised correct predictions of the AI from 13.6% to 34.4% where the AI was wrong on "
            "adversarial images: +20.8 percentage points (95% CI 11.2 to 30.4). It is the largest of the 2 of 3 "
            "planned differences with Holm-corrected p < .05; the interval is not corrected for their number.",
        ),
        (
            0.01,
            (LOWER,),
            "Examples, compared with saliency maps, lowered correct predictions of the AI from 81% to 62% where the AI "
            "was right: −19 percentage points (95% CI −28 to −10). It is the only planned difference.",
        ),
        (
            0.01,
            (VAGUE,),
            f"{EVIDENCE}, but no single difference is clear. The only planned difference: both explanations vs no "
            "explanation, 50% vs 20%, +30 percentage points (95% CI −2 to 62, uncorrected; Holm-corrected p = .300).",
        ),
        (
            0.06,
            (CLEAR, LOWER),
            f"{NO_EVIDENCE}. The largest of 2 planned differences: saliency maps vs no explanation, AI wrong "
            "(adversarial), 34.4% vs 13.6%, +20.8 percentage points (95% CI 11.2 to 30.4, uncorrected; Holm-corrected "
            "p = .002).",
        ),
        (
            0.06,
            (("saliency - none", 0.3, 0.2, 10.0, 10.0, 10.0, None),),  # without a standard error there is no p
            f"{NO_EVIDENCE}. The only planned difference: saliency maps vs no explanation, 30% vs 20%, +10 percentage "
            "points (95% CI 10 to 10, uncorrected; Holm-corrected p –).",
        ),
        (
            0.06,
            (CLEAR, OUTSIDE),  # no test of the factors has the condition: the correction alone decides
            "A heatmap of each class lowered correct predictions of the AI from 78% to 46% where the AI was right: −32 "
            "percentage points (95% CI −49 to −14). It is the only one of 2 planned differences with Holm-corrected "
            "p < .05 and a condition outside the two factors; the interval is not corrected for their number.",
        ),
        (0.06, (), f"{NO_EVIDENCE}."),
        (None, (), f"{NO_EVIDENCE.replace('No clear evidence that', 'These data cannot say whether')}."),
    ],
)
def test_the_opening_claims_what_tests_and_correction_allow(
    data: responses.Responses, p: float | None, rows: tuple[tuple[object, ...], ...], said: str
) -> None:
    """Catches a claim without a test, a vague difference named as the effect, and a direction without its sign."""
    opening = write_opening(analyse(p), data, tabulate(*rows), None, planned=True)
    assert opening is not None
    assert opening.sentence == said
    simulated = replace(data, frame=data.frame.assign(mode="sim"))
    marked = write_opening(analyse(p), simulated, tabulate(*rows), None, planned=True)
    assert marked is not None
    assert marked.sentence == f"Simulated participants: {said[0].lower()}{said[1:]}"


def test_the_opening_is_never_of_a_model_without_slopes(data: responses.Responses) -> None:
    """Catches the size of the planned intercepts under the verdict of the slopes, and a verdict before there is one."""
    planned = analyse(0.001, random_effects.INTERCEPTS)
    assert write_opening(planned, data, tabulate(CLEAR), None) is None
    rows = [
        {"result": "explanation vs null", "chisq": 9.0, "df": 2, "df2": 30.0, "f": 4.5, "p": 0.01, "p_holm": 0.02},
        {"result": "explanation vs null", "chisq": 9.0, "df": 2, "p": 0.5},
        {**tabulate(LOWER).rename(columns={"contrast": "result"}).iloc[0]},
        {**tabulate(CLEAR).assign(contrast=LOWER[0]).rename(columns={"contrast": "result"}).iloc[0]},
    ]
    opening = write_opening(planned, data, tabulate(CLEAR), pd.DataFrame(rows))
    assert opening is not None
    assert opening.verdict.startswith("Examples, compared with saliency maps, lowered")
    assert list(opening.contrasts["points"]) == [-19.0]
