"""The comparison of two study files: what differs, in the words of the page."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from study.plan.draft import StudyDraft
from tests.dashboard.views.conftest import DEMO, Open


@pytest.fixture
def compared(mine: Path, open_page: Open) -> AppTest:
    """The demo's copy with a few changes, against the demo."""
    draft = StudyDraft.read(mine)
    questions = draft.get("check.questions")
    for place, value in {
        "trials.spread": "accuracy",
        "sets.pool": {"set": "folder", "path": "birds"},
        "check.questions": questions[1:],
        "consent.boxes": ["I am *18*."],
        "conditions": ["none", "both"],
    }.items():
        draft.set(place, value)
    draft.save(mine)
    app = open_page(study="mine")
    app.button(key="compare_studies").click().run()
    assert not app.exception
    assert app.selectbox(key="compare_with").value == DEMO
    return app


def test_differences_are_in_the_words_of_the_page_by_section(compared: AppTest) -> None:
    """Catches keys of the file and Python's way to write lists, ``default`` for a value that is known, and markup of a
    text that is read as bold."""
    rows = {row[0]: row[1:] for table in compared.table for row in table.value.to_numpy().tolist()}
    assert rows["Balance categories by"] == ["accuracy", "rank by accuracy (default)"]
    assert rows["Example pool"][0] == "folder: path birds"
    assert not [name for name in rows if "sets" in name]
    assert rows["Boxes to tick, one per line"][0] == r"I am \*18\*."
    assert rows["Conditions"][0] == "No explanation; Both explanations"
    assert rows["Conditions"][1] == "No explanation; Saliency maps; Examples; Both explanations (default)"
    sections = [one.value for one in compared.subheader]
    in_order = ("Study", "Trials", "Procedure", "Texts")
    assert sections == [name for name in in_order if name in sections]
    assert {"Study", "Trials", "Procedure"} <= set(sections)


def test_of_two_lists_only_what_differs_is_shown(compared: AppTest) -> None:
    """Catches two long lists in which the reader has to find the one question that is missing."""
    rows = {row[0]: row[1:] for table in compared.table for row in table.value.to_numpy().tolist()}
    mine, demo = rows["Comprehension check"]
    first, second, *_ = StudyDraft.read(DEMO).get("check.questions")
    assert mine == "none of its own"
    assert first["text"][:30] in demo
    assert second["text"][:30] not in demo
