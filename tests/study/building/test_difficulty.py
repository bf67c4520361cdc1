"""A study that chooses trials by responses is built, and made again by `verify`."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import ForetellError
from study.building.build import build, verify
from study.building.check import check
from tests.study.studies import TINY

pytestmark = pytest.mark.usefixtures("shared_predictions")

ADAPTIVE = TINY.replace("categories = 3\n", "categories = 3\nper_type = 2\n").replace(
    "size = 400", "size = 800"
).replace('adversarial"\nsize = 160', 'adversarial"\nsize = 320') + (
    '[adaptive]\npolicy = "staircase"\ntrials = 8\nlevels = 3\n'
)


def test_the_difficulty_is_frozen_and_made_again(tmp_path: Path) -> None:
    """Catches a build that leaves the difficulty out, ranks practice trials, too, or cannot be verified.

    And a check before the build that says nothing of a measure that trials do not have.
    """
    path = tmp_path / "tiny.toml"
    path.write_text(ADAPTIVE)
    assert check(path, tmp_path).obstacles == ()
    bundle = build(path, tmp_path)
    trials = bundle.manifest.trials
    levels = [trial.difficulty.level for trial in trials if trial.difficulty]
    assert sorted(levels) == sorted([1, 2, 3] * 6)  # type: ignore[type-var]
    assert all(one.difficulty.value == one.teaching.p_learner for one in trials if one.difficulty)
    assert {trial.difficulty for trial in bundle.manifest.practice} == {None}
    assert verify(bundle) == []
    path.write_text(ADAPTIVE.replace("levels = 3", "levels = 4"))
    (obstacle,) = check(path, tmp_path).obstacles
    assert "4 levels need 8 trials of each type, and 6 are of the type" in obstacle
    with pytest.raises(ForetellError, match="4 levels need 8 trials"):
        build(path, tmp_path)
