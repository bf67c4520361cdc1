"""Tables as spreadsheets of any country write them, and what is refused instead of being read as something else."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from core.errors import ForetellError
from study.analysis.responses import reading as responses
from study.workspace.tables import Comma, is_numeric, mark_missing, parse_numbers, parse_table
from tests.study.analysis.simulated import study

ROOT = Path(__file__).parents[2]


def column(*values: str) -> pd.Series[str]:
    return pd.Series(values, dtype="str")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_cell_is_the_text_that_was_written(separator: str, encoding: str) -> None:
    """Catches ids read as numbers, and a separator that is counted within a quoted name."""
    rows = [('"Zeit, Ort, Tag; x"', "id"), ("1", "007"), ("é", "10000000000000000001"), ("NA", "")]
    content = "".join(f"{separator.join(row)}\r\n" for row in rows).encode(encoding)
    frame = parse_table(content, "x.csv")
    assert list(frame) == ["Zeit, Ort, Tag; x", "id"]
    assert frame.to_numpy().tolist() == [["1", "007"], ["é", "10000000000000000001"], ["NA", ""]]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("a,b\n1,31,2\n1,3,2\n", "its rows have more cells than its header"),
        ("a,b\n1,2\n1,31,2\n", "line 3 has 3 cells, but the header 2"),
        ("a,b\n1,2,\n", "its rows have more cells than its header"),
    ],
)
def test_rows_that_are_too_long_are_refused(content: str, said: str) -> None:
    """Catches a decimal comma that moves every value by a column: pandas takes the first for names of rows."""
    with pytest.raises(ForetellError, match=rf"{said}\. Numbers with a decimal comma need semicolons"):
        parse_table(content.encode(), "x.csv")


def test_texts_that_mean_a_missing_value_are_counted() -> None:
    """Catches a class that is called NA and left out without a word, and an empty cell counted as one."""
    frame, words = mark_missing(pd.DataFrame({"a": column("NA", "x", ""), "b": column("NaN", "nan", "na")}))
    assert frame.isna().to_numpy().tolist() == [[True, True], [False, True], [True, False]]
    assert words == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("values", "numbers"),
    [
        (["1,5", "2", "-0,25", "1,5e3"], [1.5, 2.0, -0.25, 1500.0]),
        (["1,234", "0,5"], [1.234, 0.5]),
        (["0,987", "0,123"], [0.987, 0.123]),
        (["1.5", "2"], [1.5, 2.0]),
    ],
)
def test_a_decimal_comma_is_one(values: list[str], numbers: list[float]) -> None:
    """Catches a factor made of a spreadsheet's numbers."""
    found = parse_numbers(column(*values))
    assert found is not None
    assert found.tolist() == numbers


@pytest.mark.parametrize(
    "values", [["1,234", "2,345"], ["1.234,5"], ["1,234.5"], ["1,2,3"], ["1 234,5"], ["1,5", "1.500"]]
)
def test_a_comma_that_may_be_either_is_not_guessed(values: list[str]) -> None:
    """Catches 1,234 read as a thousandth of what an English spreadsheet meant."""
    assert parse_numbers(column(*values)) is None
    assert is_numeric(column(*values))


@pytest.mark.parametrize("values", [["a,b"], ["1,2", "x"], [","], ["fish"]])
def test_text_with_commas_is_text(values: list[str]) -> None:
    assert parse_numbers(column(*values)) is None
    assert not is_numeric(column(*values))


def test_responses_with_decimal_commas_are_the_same(tmp_path: Path) -> None:
    """Catches times and confidences of a German spreadsheet that are refused, and rows that are lost."""
    frame = study(seed=11).assign(rt_ms=[1000.5 + k for k in range(len(study(seed=11)))], confidence=0.75)
    frame.to_csv(tmp_path / "point.csv", index=False)
    frame.to_csv(tmp_path / "comma.csv", index=False, sep=";", decimal=",", encoding="utf-16")
    point, comma = (responses.read(tmp_path / f"{name}.csv") for name in ("point", "comma"))
    pd.testing.assert_frame_equal(point.frame, comma.frame)
    assert comma.frame["rt_ms"].iloc[0] == 1000.5


def test_responses_say_what_was_read_as_missing(tmp_path: Path) -> None:
    """Catches a category called NA whose rows are left out as if they were empty."""
    frame = study(seed=11).assign(notes="NA")
    frame.loc[:3, "category"] = "NA"
    frame.to_csv(tmp_path / "x.csv", index=False)
    messages = responses.read(tmp_path / "x.csv").messages
    assert messages[0] == "The texts NA, NaN and nan were read as missing values: 4 in column 'category'."
    assert messages[1].startswith("4 of")


def test_a_table_of_responses_with_unclear_commas_names_its_row(tmp_path: Path) -> None:
    frame = study(seed=11).assign(rt_ms="1,234")
    frame.to_csv(tmp_path / "x.csv", index=False)
    with pytest.raises(ForetellError, match=r"Column 'rt_ms' has numbers whose commas .* such as '1,234'\..* --comma"):
        responses.read(tmp_path / "x.csv")


def test_no_table_is_read_another_way() -> None:
    """Catches a new command that reads a user's table with pandas' own guesses; two read what Foretell wrote."""
    found = {
        path.relative_to(ROOT).as_posix()
        for folder in ("study", "inquiry", "dashboard", "core", "data")
        for path in (ROOT / folder).rglob("*.py")
        if ".read_csv(" in path.read_text(encoding="utf-8")
    }
    assert found <= {"study/workspace/tables.py", "dashboard/cli/layers.py", "dashboard/cli/concepts.py"}


@pytest.mark.parametrize(
    ("cells", "comma", "read"),
    [
        (["1,234", "5,678"], None, None),
        (["1,234", "5,678"], "decimal", [1.234, 5.678]),
        (["1,234", "5,678"], "thousands", [1234.0, 5678.0]),
        (["1,234,567.5", "12"], "thousands", [1234567.5, 12.0]),
        (["1,5", "1,234"], "thousands", None),
        (["1,234", "1.5"], "decimal", None),
        (["1,5", "1,234"], None, [1.5, 1.234]),
    ],
)
def test_a_comma_separates_what_it_is_said_to_separate(
    cells: list[str], comma: Comma | None, read: list[float] | None
) -> None:
    """Catches 1,234 taken for 1.234, and a number that contradicts what was said and is read all the same."""
    numbers = parse_numbers(pd.Series(cells), comma)
    assert (None if numbers is None else numbers.tolist()) == read
