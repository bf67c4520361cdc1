"""The exploratory ordinal model: levels and confidence by condition, where the AI was right and where it was wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from core.errors import ForetellError
from study.analysis.exploratory import analysis as exploratory
from study.analysis.exploratory import ordinal
from study.analysis.exploratory.analysis import AnalysedStudy
from study.analysis.models import mixed
from study.analysis.responses import reading
from study.tasks import TASKS
from tests.study.analysis.simulated import study

CHOICES = tuple(TASKS["agreement"].choices or ())


@pytest.fixture(scope="module")
def data() -> reading.Responses:
    """Agreement of 32 participants: saliency raises the level by 1.5 where the AI is right, lowers it where wrong."""
    frame = study(32, 6, 8, seed=3)
    rng = np.random.default_rng(4)
    right = np.where(frame["trial_type"] == "std_correct", 1.0, -1.0)
    own = dict(zip(frame["participant"].unique(), rng.normal(0, 0.6, 32), strict=True))
    eta = right * (0.4 + 1.5 * frame["saliency"]) + frame["participant"].map(own) + rng.logistic(size=len(frame))
    level = np.searchsorted([-1.5, 0.0, 1.5], eta)
    correct = ((level > 1) == (right > 0)).astype(int)
    return reading.prepare(frame.assign(choice=[CHOICES[k] for k in level], task="agreement", correct=correct))


@pytest.fixture(scope="module")
def result(data: reading.Responses) -> exploratory.ExploratoryResult:
    return exploratory.compute("ordinal", AnalysedStudy(data))


def test_odds_ratios_are_those_of_the_model_in_other_columns(
    data: reading.Responses, result: exploratory.ExploratoryResult
) -> None:
    """Catches a contrast of the wrong cells, a scale upside down, and means of another cell. The same model with a 0/1
    column for each condition and kind of trial, whose coefficients are the logarithms of the odds ratios."""
    rated = ordinal.rate_choices(data.frame, CHOICES)
    wrong = (rated["trial_type"] != "std_correct").astype(int)
    table = result.table.set_index(["trials", "condition"])
    names = [(kind, name) for kind, name in table.index if name != "none"]
    columns = {
        f"x{k}": ((rated["condition"] == name) & (wrong == int(kind == "AI wrong"))).astype(int)
        for k, (kind, name) in enumerate(names)
    }
    conditions = pd.Categorical(rated["condition"], ["none", "saliency", "examples", "both"])
    _, _, effects = ordinal.fit(rated)[1].formula.partition(" + (")
    other = mixed.fit(
        rated.assign(wrong=wrong, condition=conditions, **columns),
        f"rank ~ wrong + {' + '.join(columns)} + ({effects}",
        family="ordinal",
    )
    expected = [next(c.estimate for c in other.coefficients if c.term == column) for column in columns]
    np.testing.assert_allclose(np.log(table.loc[names, "odds_ratio"]), expected, atol=2e-3)
    assert table.loc[("AI right", "saliency"), "odds_ratio"] > 2
    assert table.loc[("AI wrong", "saliency"), "odds_ratio"] < 0.5
    own = rated[(rated["condition"] == "both") & (wrong == 1)]
    assert table.loc[("AI wrong", "both"), "mean"] == own["rank"].mean()
    assert table.loc[("AI wrong", "both"), "responses"] == len(own)
    assert table["odds_ratio"].isna().sum() == 2


def test_the_sentence_says_what_changed_and_which_way(result: exploratory.ExploratoryResult) -> None:
    """Catches a change that is called higher where it is lower, and conditions without one that are listed."""
    said = result.conclusion
    assert said.startswith(
        "Against no explanation, levels changed: higher with saliency maps where the AI was right (odds"
    )
    assert "lower with saliency maps where the AI was wrong (odds ratio 0." in said
    assert "; the other 3 did not change detectably." in said
    assert "Holm-corrected p < .001; mean " in said
    assert "Levels 1 (fairly wrong) to 4 (fairly right)." in result.says
    none = result.table.assign(p_holm=result.table["p_holm"] * 0 + 0.2)
    assert ordinal.conclude(none, 0.05).startswith(
        "No condition changed the levels detectably (against no explanation:"
    )
    assert result.figure is not None
    assert result.figure.layout.yaxis.type == "log"


def test_it_is_offered_where_there_are_levels_or_confidence(data: reading.Responses) -> None:
    """Catches an ordinal model of two options, and of a confidence that nobody gave."""
    plain = replace(data, frame=data.frame.drop(columns=["choice", "task"]))
    empty = replace(plain, frame=plain.frame.assign(confidence=np.nan))
    rated = replace(plain, frame=plain.frame.assign(confidence=0.5))
    offered = ["ordinal" in exploratory.list_analyses(AnalysedStudy(one)) for one in (data, plain, empty, rated)]
    assert offered == [True, False, False, True]
    with pytest.raises(ForetellError, match="has one level only, 0"):
        exploratory.compute("ordinal", AnalysedStudy(rated))
    alone = replace(data, frame=data.frame[data.frame["condition"] == "none"])
    with pytest.raises(ForetellError, match="needs responses in at least two"):
        exploratory.compute("ordinal", AnalysedStudy(alone))


def test_confidence_is_ranked_by_its_values_or_in_tenths() -> None:
    """Catches bins where the five steps of a study are levels, a threshold for each percent, and an eleventh bin."""
    steps = pd.DataFrame({"confidence": [0.25, 1.0, np.nan, 0.0, 0.25]})
    assert list(ordinal.rate_confidence(steps)["rank"]) == [1, 2, 0, 1]
    percent = pd.DataFrame({"confidence": np.arange(101) / 100})
    ranked = ordinal.rate_confidence(percent)
    assert list(ranked.loc[[0, 9, 10, 99, 100], "rank"]) == [0, 0, 1, 9, 9]
    assert list(ranked["value"]) == list(percent["confidence"])


def test_trials_of_one_kind_have_a_row_for_each_condition(data: reading.Responses) -> None:
    """Catches a model with an empty half where the AI was always right."""
    rated = ordinal.rate_choices(data.frame[data.frame["trial_type"] == "std_correct"], CHOICES)
    table = ordinal.tabulate(*ordinal.fit(rated))
    assert list(table["trials"]) == [ordinal.ALL] * 4
    assert " where " not in ordinal.conclude(table, 0.99)


def test_proportional_odds_are_of_the_same_contrasts(
    data: reading.Responses, result: exploratory.ExploratoryResult
) -> None:
    """Catches thresholds of another condition: a common odds ratio lies between those at each threshold, which are near
    those of the responses that were simulated with proportional odds."""
    made = exploratory.compute("proportional_odds", AnalysedStudy(data))
    compared = result.table.dropna(subset=["odds_ratio"])
    assert list(made.table["odds_ratio"]) == list(compared["odds_ratio"])
    assert (made.table["lowest"] < made.table["odds_ratio"]).all()
    assert (made.table["odds_ratio"] < made.table["highest"]).all()
    assert made.table["df"].eq(7 * 2).all()
    assert made.conclusion.startswith("No evidence against proportional odds (χ²(14) = ")
    rare = data.frame[(data.frame["condition"] != "none") | (data.frame["choice"] != CHOICES[0])]
    with pytest.raises(ForetellError, match="a level never occurs in one of the combinations"):
        exploratory.compute("proportional_odds", AnalysedStudy(replace(data, frame=rare)))


def _draw() -> None:
    import pandas as pd

    from dashboard.results.exploratory import _measure
    from study.analysis.exploratory.analysis import ExploratoryResult

    _measure(
        ExploratoryResult("ordinal", "Title", "How to read it.", pd.DataFrame({"p": [0.5]}), None, "What changed.")
    )


def test_the_page_says_what_a_measure_concludes() -> None:
    """Catches a conclusion that only the report has."""
    app = AppTest.from_function(_draw).run()
    assert not app.exception
    assert [text.value for text in app.markdown] == ["What changed."]
