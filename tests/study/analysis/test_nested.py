"""The nested models against lme4 and glmmTMB, and their likelihood-ratio tests."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chi2
from scipy.stats import f as f_distribution
from statsmodels.stats.multitest import multipletests

from core.errors import ForetellError
from study.analysis.models.sentences import words
from study.analysis.planned import nested
from study.analysis.report import results
from study.analysis.responses import reading as responses
from tests.study.analysis.simulated import analyze_as_in_the_paper, study, study_with_images

TERMS = [
    "(Intercept)",
    "trial_typestd_incorrect",
    "trial_typestd_correct",
    "saliency",
    "examples",
    "trial_typestd_incorrect:saliency",
    "trial_typestd_correct:saliency",
    "trial_typestd_incorrect:examples",
    "trial_typestd_correct:examples",
    "saliency:examples",
    "trial_typestd_incorrect:saliency:examples",
    "trial_typestd_correct:saliency:examples",
]
"""The paper's order (Table 1)."""


@pytest.fixture(scope="module")
def small() -> nested.NestedAnalysis:
    return analyze_as_in_the_paper(study(32, 8, 8, seed=11))


def test_models_have_the_papers_terms(small: nested.NestedAnalysis) -> None:
    terms = {name: [c.term for c in model.coefficients] for name, model in small.models.items()}
    assert terms == {"null": TERMS[:3], "explanation": TERMS[:5], "interaction": TERMS}
    assert [model.df for model in small.models.values()] == [5, 7, 14]


def test_tests_are_twice_the_difference(small: nested.NestedAnalysis) -> None:
    for test, df in zip(small.tests, (2, 7), strict=True):
        gain = small.models[test.larger].loglik - small.models[test.smaller].loglik
        assert test.chisq == pytest.approx(2 * gain, abs=1e-10)
        assert test.chisq >= 0
        assert test.df == df
        assert test.p == pytest.approx(1 - chi2.cdf(test.chisq, df), abs=1e-12)


def test_the_default_has_slopes_and_tests_by_f_together() -> None:
    """Catches a default as in the paper, a p by chi-square next to an F, and two verdicts at .05 each.

    Oracles: the F distribution of scipy, and Holm's correction by statsmodels.
    """
    analysis = nested.analyze(study_with_images(3))
    assert (
        analysis.requested_random
        == "(trial_type||participant) + (saliency + examples||category) + (saliency + examples||item)"
    )
    for test in analysis.tests:
        assert test.df2 is not None
        assert test.f is not None
        assert test.f < test.chisq / test.df
        assert test.p == pytest.approx(f_distribution.sf(test.f, test.df, test.df2), rel=1e-9)
        assert test.p > chi2.sf(test.chisq, test.df)
    corrected = multipletests([test.p for test in analysis.tests], method="holm")[1]
    np.testing.assert_allclose([test.decisive_p for test in analysis.tests], corrected)


def test_json_contract(small: nested.NestedAnalysis) -> None:
    content = small.as_dict()
    assert list(content) == ["models", "lrt"]
    assert list(content["models"]) == ["null", "explanation", "interaction"]
    assert [list(test) for test in content["lrt"]] == [
        ["smaller", "larger", "chisq", "df", "p", "df2", "p_holm", "f"]
    ] * 2
    assert [(t["smaller"], t["larger"]) for t in content["lrt"]] == [
        ("null", "explanation"),
        ("explanation", "interaction"),
    ]
    json.dumps(content, allow_nan=False)


def test_progress_is_told_and_can_cancel() -> None:
    told: list[tuple[int, int]] = []
    nested.analyze(study(seed=11), progress=lambda done, total, what: told.append((done, total)))
    assert told == [(0, 3), (1, 3), (2, 3), (3, 3)]

    def stop(done: int, total: int, what: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        nested.analyze(study(seed=11), progress=stop)


def test_one_condition_alone_cannot_be_tested() -> None:
    frame = study(seed=11)
    analysis = nested.analyze(frame[(frame["saliency"] == 0) & (frame["examples"] == 0)])
    assert [(test.df, test.p) for test in analysis.tests] == [(0, None), (0, None)]
    assert analysis.models["interaction"].dropped == tuple(TERMS[3:])


def test_absent_trial_type_is_said_and_analysed() -> None:
    frame = study(seed=11)
    analysis = nested.analyze(frame[frame["trial_type"] != "std_correct"])
    assert "No responses to trials of type AI right." in analysis.messages
    assert analysis.models["null"].dropped == ()  # no level without rows, as in R


def test_models_of_different_rows_are_not_compared(small: nested.NestedAnalysis) -> None:
    other = nested.analyze(study(seed=12))
    with pytest.raises(ForetellError, match="fitted to different rows"):
        nested.ratio_test("null", small.models["null"], "explanation", other.models["explanation"])


def test_file_to_files(tmp_path: Path) -> None:
    path = tmp_path / "answers.csv"
    study(seed=11).rename(columns={"participant": "who"}).to_csv(path, index=False)
    analysis = results.write(responses.read(path, {"participant": "who"}), tmp_path / "out", seed=1).analysis
    assert json.loads((tmp_path / "out" / "models.json").read_text()) == analysis.as_dict()


# Oracle: lme4 1.1-31 with tight tolerances, standard errors of glmmTMB 1.1.5 (the folder's README).
REFERENCES = ["paper_size", "unequal", "zero_variance", "absent_condition", "separation", "tiny"]
SEPARATED = {TERMS[2], TERMS[6], TERMS[8], TERMS[11]}


@pytest.mark.real
@pytest.mark.parametrize("name", REFERENCES)
def test_agrees_with_the_reference(real: Path, name: str) -> None:
    analysis = analyze_as_in_the_paper(responses.read(real / "responses" / f"{name}.csv"))
    reference = json.loads((real / "responses" / f"{name}_reference.json").read_text())
    for model_name, model in analysis.models.items():
        expected = reference[model_name]
        assert [c.term for c in model.coefficients] == list(expected["coefficients"])
        assert model.loglik == pytest.approx(expected["logLik"], abs=1e-3)
        assert model.df == expected["df"]
        assert {r.group: r.sd for r in model.random} == pytest.approx(expected["sd"], abs=1e-3)
        for c in model.coefficients:
            if c.term in model.diverging:
                continue
            assert c.estimate == pytest.approx(expected["coefficients"][c.term], abs=1e-4)
            if (se := expected["standard_errors_glmmTMB"][c.term]) is not None:
                assert c.se == pytest.approx(se, abs=1e-4)
    for test, expected in zip(analysis.tests, reference["lrt"], strict=True):
        assert test.chisq == pytest.approx(expected["chisq"], abs=1e-3)
        assert test.df == expected["df"]
        assert test.p == pytest.approx(expected["p"], rel=1e-3)


@pytest.mark.real
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("zero_variance", "Boundary (singular) fit: the standard deviation between levels of participant is"),
        ("separation", "AI right with no explanation: all 1,200 responses are correct"),
        (
            "absent_condition",
            "saliency × examples, AI wrong (standard) × saliency × examples, AI right × saliency × examples.",
        ),
        ("tiny", "AI right with no explanation: all 8 responses are correct"),
    ],
)
def test_what_not_to_believe_is_said(real: Path, name: str, said: str) -> None:
    analysis = analyze_as_in_the_paper(responses.read(real / "responses" / f"{name}.csv"))
    model = analysis.models["interaction"]
    assert any(said in message for message in model.messages)
    diverging = SEPARATED if name in ("separation", "tiny") else set()
    assert set(model.diverging) == diverging
    assert {c.term for c in model.coefficients if c.p is None} == diverging
    for term in diverging:
        assert any(words(term) in message for message in model.messages)
    assert not any("trial_type" in message for message in model.messages)


@pytest.mark.real
def test_good_data_raise_no_doubts(real: Path) -> None:
    for name in ("paper_size", "unequal"):
        assert analyze_as_in_the_paper(responses.read(real / "responses" / f"{name}.csv")).messages == ()


def test_separation_in_a_study_is_named_in_its_words() -> None:
    frame = study(32, 8, 8, seed=11)
    cell = (frame["trial_type"] == "std_correct") & (frame["saliency"] == 1) & (frame["examples"] == 1)
    frame.loc[cell, "correct"] = 1
    model = nested.analyze(frame).models["interaction"]
    assert f"AI right with both explanations: all {int(np.sum(cell))} responses are correct" in model.messages[0]
    assert dict(model.diverging) == {TERMS[11]: 1}
