"""Columns of other people's files are guessed, and never more than one could be meant."""

from __future__ import annotations

import pytest

from study.analysis.responses.reading import OPTIONAL, REQUIRED
from study.analysis.responses.spellings import SPELLINGS, guess_column


@pytest.mark.parametrize(
    ("ours", "columns", "guess"),
    [
        ("participant", ["subject", "rt"], "subject"),
        ("participant", ["Subject ID", "image"], "Subject ID"),
        ("participant", ["subject", "participant"], "participant"),
        ("participant", ["subject", "pid"], None),  # either could be meant
        ("trial_type", ["Trial Type"], "Trial Type"),
        ("rt_ms", ["rt"], None),  # of jsPsych in milliseconds, of PsychoPy in seconds
        ("correct", ["acc"], "acc"),
    ],
)
def test_a_guess_is_the_only_column_that_is_called_so(ours: str, columns: list[str], guess: str | None) -> None:
    """Catches a file whose subjects must be chosen by hand, and a guess between two columns."""
    assert guess_column(ours, columns) == guess


def test_no_name_stands_for_two_columns() -> None:
    """Catches one column of a file that is offered as two of ours, and a column of ours without a list."""
    assert set(SPELLINGS) == {*REQUIRED, *OPTIONAL}
    names = [name for spelled in SPELLINGS.values() for name in spelled]
    assert len(names) == len(set(names))
