"""What is computed of a frozen study once belongs to that study alone."""

from __future__ import annotations

from pathlib import Path

from study.bundle import Bundle
from study.plan.procedure import procedure_of
from study.plan.texts import texts_of
from study.workspace.same import Same
from tests.conftest import write_bundle


def test_a_study_with_other_settings_has_its_own_procedure(tmp_path: Path) -> None:
    """Defect: a study is answered from the cache with the settings of another."""
    first = Bundle(write_bundle(tmp_path / "a", name="a", config={"pacing": {"hold_minutes": 7}})).manifest
    other = first.model_copy(update={"config": {**first.config, "pacing": {"hold_minutes": 9}}})
    assert [procedure_of(m).pacing.hold_minutes for m in (first, other, first)] == [7, 9, 7]
    assert procedure_of(first) is procedure_of(first)


def test_texts_that_a_caller_changes_are_not_the_studys(tmp_path: Path) -> None:
    """Defect: the words of one participant's condition stay in the texts of all."""
    manifest = Bundle(write_bundle(tmp_path / "a", name="a")).manifest
    texts_of(manifest)["title"] = "changed"
    assert texts_of(manifest)["title"] == manifest.texts["title"]


def test_equal_objects_are_not_the_same() -> None:
    """Defect: two studies with equal settings share what belongs to one of them."""
    one, two = {"a": 1}, {"a": 1}
    assert Same(one) == Same(one)
    assert hash(Same(one)) == hash(Same(one))
    assert Same(one) != Same(two)
