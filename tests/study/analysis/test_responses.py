"""Responses are checked as a whole; every refusal says where, what and what to do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from core.errors import ForetellError
from study.analysis.models import mixed
from study.analysis.responses import reading as responses
from tests.study.analysis.simulated import study


@pytest.fixture
def frame() -> pd.DataFrame:
    return study(8, 4, 4, seed=2)


def refusal(frame: pd.DataFrame, columns: dict[str, str] | None = None) -> str:
    with pytest.raises(ForetellError) as caught:
        responses.prepare(frame, columns)
    return str(caught.value)


def test_good_responses_come_out_typed(frame: pd.DataFrame) -> None:
    tidy = responses.prepare(frame).frame
    assert list(tidy["trial_type"].cat.categories) == ["adv_incorrect", "std_incorrect", "std_correct"]
    assert set(tidy["condition"]) == {"none", "saliency", "examples", "both"}
    assert (tidy["correct"].to_numpy() == frame["correct"].to_numpy()).all()
    assert set(tidy.loc[(tidy["saliency"] == 1) & (tidy["examples"] == 0), "condition"]) == {"saliency"}


def test_preparing_twice_changes_nothing(frame: pd.DataFrame) -> None:
    once = responses.prepare(frame)
    twice = responses.prepare(once.frame)
    pd.testing.assert_frame_equal(once.frame, twice.frame)
    assert once.sha256 == twice.sha256


def test_one_changed_answer_changes_the_hash(frame: pd.DataFrame) -> None:
    before = responses.prepare(frame).sha256
    frame.loc[5, "correct"] = 1 - frame.loc[5, "correct"]
    assert responses.prepare(frame).sha256 != before


@pytest.mark.parametrize(
    "spelling", [{1: "true", 0: "false"}, {1: True, 0: False}, {1: 1.0, 0: 0.0}, {1: "1", 0: " 0"}]
)
def test_true_and_false_are_one_and_zero(frame: pd.DataFrame, spelling: dict[int, object]) -> None:
    spelled = frame.assign(correct=frame["correct"].map(spelling), saliency=frame["saliency"].map(spelling))
    pd.testing.assert_frame_equal(responses.prepare(spelled).frame, responses.prepare(frame).frame)


def test_other_names_are_mapped(frame: pd.DataFrame) -> None:
    other = frame.rename(columns={"participant": "who", "correct": "hit"})
    mapped = responses.prepare(other, {"participant": "who", "correct": "hit"})
    pd.testing.assert_frame_equal(mapped.frame, responses.prepare(frame).frame)


def test_missing_column_names_the_nearest(frame: pd.DataFrame) -> None:
    said = refusal(frame.rename(columns={"saliency": "salience"}))
    assert "Column 'saliency' is missing. Did you mean 'salience'? Name yours with saliency=NAME." in said


def test_unknown_key_of_the_mapping(frame: pd.DataFrame) -> None:
    assert "Column 'person' is unknown" in refusal(frame, {"person": "participant"})


def test_all_problems_come_at_once(frame: pd.DataFrame) -> None:
    frame = frame.assign(participant="p0", saliency=2, correct=1, trial=0)
    frame["trial_type"] = "standard"
    said = refusal(frame)
    assert "5 problems" in said
    for part in (
        "'trial_type' has the unknown value 'standard'",
        "'saliency' must be 0 or 1, but 96 of its values are not (row 1: '2')",
        "names only one participant",
        "'correct' never varies: every response is correct",
        "rows repeat a participant's trial (first: participant p0, trial 0, row 2)",
    ):
        assert part in said


def test_no_rows(frame: pd.DataFrame) -> None:
    assert "There are no rows" in refusal(frame.head(0))


def test_missing_values_are_left_out_and_said(frame: pd.DataFrame) -> None:
    frame["correct"] = frame["correct"].astype(float)
    frame.loc[[3, 7], "correct"] = np.nan
    data = responses.prepare(frame)
    assert (data.dropped, len(data.frame)) == (2, 94)
    assert data.messages == ("2 of 96 rows lack a required value and were left out (rows 4, 8).",)


def test_a_file_pasted_twice_is_told(frame: pd.DataFrame) -> None:
    """Catches standard errors that are too small by the square root of two, without a word."""
    known = frame.drop(columns="trial").drop_duplicates()
    assert responses.prepare(known).messages == ()
    (said,) = responses.prepare(pd.concat([known, known])).messages
    assert said.startswith(f"{len(known)} of {2 * len(known)} rows repeat another one")


def test_missing_optional_values_cost_no_answers(frame: pd.DataFrame) -> None:
    gaps = frame.assign(trial=frame["trial"].where(frame["trial"] != 2), condition=None)
    data = responses.prepare(gaps)
    assert (data.dropped, len(data.frame), data.messages) == (0, 96, ())
    assert set(data.frame["condition"]) == {"none", "saliency", "examples", "both"}


def test_only_missing_values(frame: pd.DataFrame) -> None:
    assert "Every row lacks a required value" in refusal(frame.assign(correct=np.nan))


def test_condition_that_contradicts_its_flags(frame: pd.DataFrame) -> None:
    frame["condition"] = "none"
    said = refusal(frame)
    assert "72 rows contradict themselves: row 13 says condition 'none', but its saliency and examples say" in said


def test_conditions_of_other_names_stay(frame: pd.DataFrame) -> None:
    frame["condition"] = np.where(frame["saliency"] == 1, "placebo", "none")
    frame["examples"] = 0
    assert set(responses.prepare(frame).frame["condition"]) == {"placebo", "none"}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "No table"),
        (b"", "is empty"),
        (b"\xff\xfe\x00\x01\x02", "is not a CSV file in UTF-8"),
        (b'a,b\n1,2,3,4\n"1', "is not a CSV file in UTF-8"),
        (b"participant,category\n", "'trial_type' is missing"),
    ],
)
def test_files_that_are_none(tmp_path: Path, content: bytes | None, said: str) -> None:
    path = tmp_path / "answers.csv"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ForetellError, match=said):
        responses.read(path)


def test_names_that_look_like_numbers_stay_names(tmp_path: Path, frame: pd.DataFrame) -> None:
    path = tmp_path / "answers.csv"
    frame.assign(participant=frame["participant"].str.replace("p", "00")).to_csv(path, index=False)
    assert "000" in set(responses.read(path).frame["participant"])


def test_file_is_read_as_the_frame_it_was(tmp_path: Path, frame: pd.DataFrame) -> None:
    path = tmp_path / "answers.csv"
    frame.to_csv(path, index=False)
    assert responses.read(path).sha256 == responses.prepare(frame).sha256


def test_simulated_and_preview_answers_are_said(frame: pd.DataFrame) -> None:
    data = responses.prepare(frame.assign(mode=["sim"] * 12 + ["preview"] * 3 + ["live"] * 81))
    assert data.has_simulated
    assert data.messages == (
        "Simulated participants: not evidence (12 of 96 responses).",
        "Previews by the researchers: not evidence (3 of 96 responses).",
    )
    assert not responses.prepare(frame.assign(mode="live")).has_simulated


@pytest.mark.parametrize(
    ("separator", "encoding"), [(",", "utf-8"), (";", "utf-8-sig"), ("\t", "utf-16"), (";", "utf-16")]
)
def test_files_of_spreadsheets_are_read(tmp_path: Path, separator: str, encoding: str) -> None:
    """Catches the files that a spreadsheet writes in another country or as Unicode text."""
    frame = study(seed=11)
    path = tmp_path / "responses.csv"
    path.write_bytes(frame.to_csv(index=False, sep=separator).encode(encoding))
    pd.testing.assert_frame_equal(responses.read(path).frame, responses.prepare(frame.astype(str)).frame)


def test_spaces_around_an_id_make_no_other_participant(frame: pd.DataFrame) -> None:
    """Catches " p1" and "p1" as two participants, whose responses then seem independent."""
    spaced = frame["participant"].where(frame.index % 2 == 0, " " + frame["participant"] + " ")
    kinds = frame["trial_type"] + " "
    data = responses.prepare(frame.assign(participant=spaced, trial_type=kinds))
    pd.testing.assert_frame_equal(data.frame, responses.prepare(frame).frame)
    said = "Column 'participant': names that differ only by spaces around them, such as 'p0', were taken as one"
    assert data.messages == (f"{said} (8 in all).",)
    lacking = frame.assign(participant=frame["participant"].where(frame.index > 3, "  "))
    assert responses.prepare(lacking).dropped == 4


def test_items_pasted_twice_are_refused(frame: pd.DataFrame) -> None:
    """Catches half of the rows twice in a file that names items and numbers no trials."""
    items = frame.rename(columns={"trial": "item"})
    pasted = pd.concat([items, items.head(len(items) // 2)], ignore_index=True)
    said = refusal(pasted)
    assert f"{len(items) // 2} rows repeat a participant's item (first: participant p0, item 0, row 97)" in said
    assert "or tell repeated items apart by a column 'trial'" in said
    responses.prepare(pasted.assign(trial=range(len(pasted))))


def test_rows_pasted_twice_are_told_by_their_response_times(frame: pd.DataFrame) -> None:
    """Catches half of the rows twice in a file without trials and items: response times do not repeat by chance."""
    times = np.random.default_rng(0).uniform(500, 4000, len(frame))
    timed = frame.drop(columns="trial").assign(rt_ms=times)
    assert responses.prepare(timed).messages == ()
    pasted = pd.concat([timed, timed.head(len(timed) // 2)], ignore_index=True)
    assert responses.prepare(pasted).messages[0].startswith("48 of 144 rows repeat another one")


def test_participants_in_several_conditions_are_told(frame: pd.DataFrame) -> None:
    """Catches a wrong column of ids: each "participant" is then in all four conditions."""
    assert responses.prepare(frame).messages == ()
    wrong = frame.assign(participant=frame["category"], trial=range(len(frame)))
    said = responses.prepare(wrong).messages
    assert said[0].startswith("4 of 4 participants have responses in several conditions: check that column")


def test_seconds_are_no_milliseconds(frame: pd.DataFrame) -> None:
    """Catches response times of 1.8 s that are shown and excluded as 1.8 ms."""
    seconds = np.random.default_rng(0).uniform(0.4, 4.0, len(frame))
    said = refusal(frame.assign(rt_ms=seconds))
    assert f"half of its values are below {np.median(seconds):.4g}: if they are seconds, multiply them by 1,000" in said
    responses.prepare(frame.assign(rt_ms=1000 * seconds))
    responses.prepare(frame.assign(rt_ms=np.where(frame.index < 40, 3.0, 900.0)))  # some anticipate: a plan's rule


def test_yes_and_no_are_what_glmm_takes_them_for(frame: pd.DataFrame) -> None:
    """Catches a response of yes and no that one command refuses and the other fits."""
    words = {1: "Yes", 0: "no"}
    spelled = frame.assign(correct=frame["correct"].map(words), examples=frame["examples"].map(words))
    pd.testing.assert_frame_equal(responses.prepare(spelled).frame, responses.prepare(frame).frame)
    formula = "correct ~ trial_type + (1|participant)"
    one, other = (mixed.fit(rows, formula) for rows in (spelled, frame))
    assert [c.estimate for c in one.coefficients] == [c.estimate for c in other.coefficients]
