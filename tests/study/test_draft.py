"""A study file that is changed by widgets stays the file that its author wrote."""

from __future__ import annotations

import difflib
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import ForetellError
from study.plan.draft import MISSING, StudyDraft
from study.workspace.workspace import ROOT
from tests.study.studies import TINY

DEMO = (ROOT / "data" / "studies" / "demo.toml").read_text(encoding="utf-8")


def changed(before: str, after: str) -> list[str]:
    """The lines that differ, as a diff marks them."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), n=0)
    return [line for line in lines if line[0] in "+-" and line[:3] not in ("+++", "---")]


def test_nothing_but_the_line_of_a_setting_changes_and_its_comment_stays() -> None:
    """Catches a file that is rewritten as a whole, which would lose comments and order."""
    draft = StudyDraft(DEMO)
    draft.set("trials.per_type", 2)
    assert changed(DEMO, draft.text) == [
        "-per_type = 1                        # of each of the three types in each category",
        "+per_type = 2                        # of each of the three types in each category",
    ]


def test_setting_a_value_to_itself_changes_nothing() -> None:
    draft = StudyDraft(DEMO)
    for place in ("study.title", "saliency.parameters", "conditions", "check.tries", "sets.pool"):
        if (value := draft.get(place)) is not MISSING:
            draft.set(place, value)
    assert draft.content == tomllib.loads(DEMO)
    assert draft.text == DEMO.replace('{ samples = 256, fill = "mean" }', '{samples = 256, fill = "mean"}')


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("language", "de"),
        ("conditions", ["none", "both"]),
        ("analysis.alpha", 0.01),
        ("analysis.exclusions.fastest_ms", 150.0),
        ("saliency.parameters.samples", 512),
        ("saliency.parameters", {}),
        ("check.questions", [{"text": "Which?", "options": ["a", "b"], "answer": "a"}]),
        ("questionnaire", [{"id": "age", "kind": "text", "text": "How old?"}]),
        ("sets.pool", {"set": "folder", "path": "../pictures/mine"}),
        ("trials.strata", {"measure": "margin"}),
        ("texts.consent", 'Two "lines"\n\n[not.a.table]\nand more'),
        ("trials.categories", ["bird", "boat"]),
    ],
)
def test_what_is_set_is_what_the_file_says_and_nothing_else_changes(place: str, value: object) -> None:
    """The oracle is Python's own parser. Catches keys that end in the wrong table, such as `language` after one."""
    draft = StudyDraft(DEMO)
    draft.set(place, value)
    expected = tomllib.loads(DEMO)
    *tables, key = place.split(".")
    holder = expected
    for name in tables:
        holder = holder.setdefault(name, {})
    holder[key] = value
    assert tomllib.loads(draft.text) == expected
    assert draft.check()[1] == []


def test_a_text_that_looks_like_a_table_is_left_alone() -> None:
    """Catches a blank line put before what is not the head of a table but a line of a text."""
    text = TINY + '\n[texts]\nconsent = """\nYou read:\n[study]\nand agree."""\n'
    draft = StudyDraft(text)
    draft.set("trials.per_type", 2)
    assert tomllib.loads(draft.text)["texts"]["consent"] == "You read:\n[study]\nand agree."


@given(st.text(max_size=60), st.integers(0, 2**53), st.lists(st.text(max_size=8), max_size=4))
def test_any_text_and_number_is_read_back(text: str, number: int, names: list[str]) -> None:
    """Catches quotes, line breaks and control characters that are not escaped."""
    draft = StudyDraft(TINY)
    for place, value in (("study.title", text), ("study.seed", number), ("consent.boxes", names)):
        draft.set(place, value)
    content = tomllib.loads(draft.text)
    assert (content["study"]["title"], content["study"]["seed"]) == (text, number)
    assert content["consent"]["boxes"] == names


def test_removing_brings_the_default_back_and_leaves_no_empty_table() -> None:
    draft = StudyDraft(DEMO)
    draft.set("analysis.exclusions.fastest_ms", 150.0)
    draft.remove("analysis.exclusions.fastest_ms")
    draft.remove("pacing.nothing")
    assert draft.content == tomllib.loads(DEMO)
    settings, faults = draft.check()
    assert settings is not None
    assert not faults
    assert settings.analysis.exclusions.fastest_ms is None


def test_every_fault_has_its_place() -> None:
    draft = StudyDraft(DEMO)
    for place, value in (("trials.per_type", 0), ("contact.email", "nobody"), ("saliency.method", "grad_kam")):
        draft.set(place, value)
    settings, faults = draft.check()
    assert settings is None
    assert [fault.place for fault in faults] == ["contact.email", "trials.per_type", "saliency"]
    assert "grad_cam" in faults[2].text


def test_bad_files_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ForetellError, match=r"not valid TOML. Line 2: a value is missing"):
        StudyDraft("[study]\nname = \n")
    with pytest.raises(ForetellError, match="cannot be read"):
        StudyDraft.read(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b'title = "caf\xe9"')
    with pytest.raises(ForetellError, match="UTF-8"):
        StudyDraft.read(tmp_path / "latin.toml")
    draft = StudyDraft("trials = 3\n")
    with pytest.raises(ForetellError, match="trials is a value and not a table"):
        draft.set("trials.per_type", 2)
