"""The keys that answer: which the study file may name, and what they change."""

from __future__ import annotations

import re
from typing import Any

import pytest
from pydantic import ValidationError

from dashboard.server.api import RUNNER
from study.plan.procedure import TAKEN, Keys, Procedure


@pytest.mark.parametrize(
    ("named", "sentence"),
    [
        ({"left": "j"}, "left and right are both 'j': give each side its own key."),
        ({"left": "a", "right": "A"}, "left and right are both 'a'"),
        ({"left": "fj"}, "'fj' is not one key: give the one character it types"),
        ({"left": "ArrowLeft"}, "'ArrowLeft' is not one key"),
        ({"right": ""}, "'' is not one key"),
        ({"right": " "}, "' ' is not one key"),
        ({"right": "\t"}, r"'\\t' is not one key"),
        ({"right": "ß"}, "'ß' is not one key"),
        ({"left": "5"}, "'5' rates confidence (1 to 5): choose another key."),
    ],
)
def test_what_cannot_answer_is_refused(named: dict[str, str], sentence: str) -> None:
    """Catches two sides on one key, a key no keyboard has, and one that presses a button or answers something else."""
    with pytest.raises(ValidationError, match=re.escape(sentence).replace(r"\\\\", r"\\")) as caught:
        Keys(**named)
    assert caught.value.error_count() == 1


def test_capitals_name_the_same_keys() -> None:
    """Catches a key that is compared with what a keyboard writes without Shift and never met."""
    assert Keys(left="Q", right="É") == Keys(left="q", right="é")


def test_studies_without_keys_keep_their_hash() -> None:
    """Catches a new section that changes the hash of every study frozen before there was one."""
    written: dict[str, Any] = Procedure().model_dump(mode="json")
    assert "keys" not in written
    assert "keys" not in Procedure.model_validate({"keys": {"left": "F"}}).model_dump()
    assert Procedure.model_validate({"keys": {"left": "a"}}).model_dump()["keys"] == {"left": "a", "right": "j"}


def test_the_taken_keys_are_the_pages() -> None:
    """Catches a scale of another length on the page than the keys kept free for it."""
    steps = re.search(r"const SURE = (\d+);", (RUNNER / "trials.js").read_text(encoding="utf-8"))
    assert steps
    assert "".join(str(1 + step) for step in range(int(steps[1]))) == TAKEN
