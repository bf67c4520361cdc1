"""Responses from a file of the researcher's own."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dashboard.results.mapping import make_template
from study.analysis.responses import reading as responses
from study.workspace.spreadsheets import csv_text
from study.workspace.tables import mark_missing, parse_table
from tests.dashboard.conftest import made
from tests.dashboard.views.results.conftest import choose, section, table, upload
from tests.study.analysis.simulated import study


def test_unusable_responses_are_refused_in_words(app: AppTest) -> None:
    choose(app, "Broken")
    assert app.error[0].value.startswith("Broken: Column 'correct' is missing.")


def test_one_participant_of_a_study_is_no_error(app: AppTest) -> None:
    """Catches a red box that asks a researcher whose collection has just begun to correct a file."""
    choose(app, "Alone")
    assert not app.error
    assert app.info[0].value.startswith("18 responses of 1 participant so far. Models compare participants")


def column(app: AppTest, ours: str) -> Any:
    """The choice of a column, by its label: its key is of the file's columns."""
    return next(box for box in app.selectbox if box.label.removesuffix(" (optional)") == ours)


def test_own_file_with_other_names(app: AppTest) -> None:
    choose(app, "Upload a CSV file")
    assert app.info[0].value.startswith("Choose a CSV file with one row per response.")
    upload(app, study(24, 8, 6, seed=5).rename(columns={"correct": "as_the_ai", "participant": "Subject ID"}))
    assert column(app, "participant").value == "Subject ID"
    assert [box.value for box in app.warning] == ["No column for correct yet. Choose the columns below."]
    assert "correct" not in app.dataframe[0].value.columns  # the first rows as they will be read
    assert not app.error
    made(column(app, "correct").select("as_the_ai").run())
    assert not app.error
    assert len(table(app, "figure1")) == 12
    times = study(24, 8, 6, seed=5).assign(took=700.0)
    upload(app, times)
    made(column(app, "rt_ms").select("took").run())
    section(app, "Exploratory")
    made(app.selectbox(key="measure").select("Response times").run())
    assert set(table(app, "exploratory_speed")["q50"]) == {700.0}


def test_a_file_of_another_country_is_read_and_its_missing_words_are_said(app: AppTest) -> None:
    """Catches times with decimal commas that are refused, and a category NA left out as if its cells were empty."""
    frame = study(24, 8, 6, seed=5).assign(rt_ms=700.5)
    frame.loc[:3, "category"] = "NA"
    upload(choose(app, "Upload a CSV file"), frame.to_csv(index=False, sep=";", decimal=",").encode("utf-16"))
    assert not app.error
    assert any("read as missing values: 4 in column 'category'." in box.value for box in app.warning)
    section(app, "Exploratory")
    made(app.selectbox(key="measure").select("Response times").run())
    assert set(table(app, "exploratory_speed")["q50"]) == {700.5}


def test_a_second_file_is_matched_afresh(app: AppTest) -> None:
    """Catches columns that stay at "Not in the file" after the file of somebody else, and a preview of nothing."""
    choose(app, "Upload a CSV file")
    upload(app, pd.DataFrame({"colour": ["red"]}))
    assert not app.dataframe
    assert app.warning[0].value.startswith("No column for participant, category, trial_type, saliency, examples, ")
    upload(app, study(24, 8, 6, seed=5))
    assert not any("No column" in box.value for box in app.warning)
    assert all(column(app, ours).value == ours for ours in responses.REQUIRED)
    assert len(table(app, "figure1")) == 12


def test_other_trial_types_are_matched_by_hand(app: AppTest) -> None:
    """Catches a refusal that names codes of ours which the page shows nowhere; a label of ours is known."""
    frame = study(24, 8, 6, seed=5)
    theirs = {"std_correct": "ai right", "adv_incorrect": "hard", "std_incorrect": "easy"}
    upload(choose(app, "Upload a CSV file"), frame.replace({"trial_type": theirs}))
    assert [box.value for box in app.warning] == ["No trial type for 'easy', 'hard' yet. Choose each below."]
    assert not app.error
    for value, kind in (("hard", "adv_incorrect"), ("easy", "std_incorrect")):
        made(next(box for box in app.selectbox if box.label == f"Trial type of “{value}”").select(kind).run())
    upper = table(app, "figure1")
    upload(app, frame)
    pd.testing.assert_frame_equal(table(app, "figure1"), upper)


def match_a_file() -> None:
    """A file with groups in place of the factors, and words of a language that nobody translated."""
    import pandas as pd
    import streamlit as st

    from dashboard.results.values import match_values

    file = pd.DataFrame(
        {
            "who": ["p1", "p2", "p3", "p4"],
            "group": ["Saliency maps", "A", "random_maps", " A"],
            "kind": ["AI right"] * 4,
            "hit": ["oui", "non", "1", "NON"],
            "received_at": ["2026-05-01"] * 4,
        }
    )
    mapping = {"participant": "who", "condition": "group", "trial_type": "kind", "correct": "hit"}
    st.session_state["matched"] = match_values(file, mapping, "results")


def test_a_group_is_a_condition_with_its_factors_and_words_are_yes_or_no() -> None:
    """Catches a file of six columns that is refused for want of two more, a word that counts as no by default, and a
    guess that nobody made. What participants of each condition see is that of its definition."""
    app = AppTest.from_function(match_a_file).run()
    assert [box.value for box in app.warning] == [
        "No condition for 'A' yet. Choose each below.",
        "No meaning for 'NON', 'non', 'oui' yet. Choose each below.",
    ]
    assert app.session_state["matched"] is None
    choices = {"Condition of “A”": "examples", "correct: “NON”": "0", "correct: “non”": "0", "correct: “oui”": "1"}
    for label, code in choices.items():
        next(box for box in app.selectbox if box.label == label).select(code)
    app.run()
    assert not app.warning
    frame = app.session_state["matched"]
    assert list(frame["condition"]) == ["saliency", "examples", "random_maps", "examples"]
    assert list(frame["saliency"]) == ["1", "0", "1", "0"]
    assert list(frame["examples"]) == ["0", "1", "0", "1"]
    assert list(frame["correct"]) == ["1", "0", "1", "0"]
    assert list(frame["trial_type"]) == ["std_correct"] * 4
    assert list(frame["received_at"]) == ["2026-05-01"] * 4  # the report has the days


def test_every_column_says_what_it_holds(app: AppTest) -> None:
    upload(choose(app, "Upload a CSV file"), study(24, 8, 6, seed=5))
    for ours in (*responses.REQUIRED, *responses.OPTIONAL):
        assert column(app, ours).help.endswith(".")
    assert "adv_incorrect: AI wrong (adversarial)" in column(app, "trial_type").help
    assert column(app, "saliency").help.startswith("1: ")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "mine.csv is empty"),
        (b"\xff\xfe\x00", "mine.csv is not a CSV file in UTF-8"),
        (
            study(24, 8, 6, seed=5).assign(trial_type=[str(k) for k in range(432)]),
            "The column of trial types has 432 other",
        ),
        (study(24, 8, 6, seed=5).head(0), "There are no rows"),
        (study(1, 8, 6, seed=5), "names only one participant"),
        (study(24, 8, 6, seed=5).assign(correct=1), "Column 'correct' never varies"),
        (study(24, 8, 6, seed=5).assign(correct=0.5), "Column 'correct' must be 0 or 1"),
        (study(24, 8, 6, seed=5).assign(correct=None), "Every row lacks a required value"),
        (pd.concat([study(24, 8, 6, seed=5)] * 2), "rows repeat a participant's trial"),
    ],
)
def test_a_broken_file_is_one_sentence(app: AppTest, content: pd.DataFrame | bytes, said: str) -> None:
    upload(choose(app, "Upload a CSV file"), content)
    assert len(app.error) == 1
    assert said in app.error[0].value


def test_a_thousand_categories_and_missing_values_have_an_answer(app: AppTest) -> None:
    """Also of the cross-checks, whose search once kept a matrix over every category: a minute."""
    frame = study(40, 1000, 30, seed=1)
    upload(choose(app, "Upload a CSV file"), frame.assign(correct=frame["correct"].where(frame.index % 7 > 0)))
    assert not app.error
    assert any("rows lack a required value and were left out" in warning.value for warning in app.warning)
    section(app, "Checks")
    assert table(app, "exploratory_crosschecks")["bayes"].notna().all()


def test_the_template_is_a_file_that_can_be_analysed() -> None:
    """Catches a template whose own columns or values are refused."""
    template = make_template()
    found = responses.prepare(mark_missing(parse_table(csv_text(template).encode(), "template.csv"))[0])
    assert len(found.frame) == len(template) == 12
    assert set(found.frame["condition"]) == {"none", "saliency", "examples", "both"}
    assert found.dropped == 0
