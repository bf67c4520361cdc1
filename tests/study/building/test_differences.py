"""What `verify` says where a study made again is not the frozen one."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from core.network.device import describe_arithmetic
from study.building.differences import ARITHMETIC, differences
from study.bundle import Bundle, Manifest, Trial
from study.facts import HeatmapFacts, TeachingFacts
from tests.study.participants import MakeBundle


@pytest.fixture
def frozen(bundle: MakeBundle) -> Manifest:
    made = Bundle(bundle(trials=3, practice=1)).manifest
    return made.model_copy(update={"environment": {ARITHMETIC: "AVX2, 1 thread(s)"}, "sets": {}})


def again(frozen: Manifest, index: int, **values: Any) -> Manifest:
    """Made once more, one trial another."""
    trials: list[Trial] = list(frozen.trials)
    trials[index] = trials[index].model_copy(update=values)
    return frozen.model_copy(update={"trials": tuple(trials), "environment": {ARITHMETIC: "AVX512, 8 thread(s)"}})


def faults(frozen: Manifest, index: int, **values: Any) -> list[str]:
    known = frozen.model_copy(update={"classifier": {"name": "test", "fingerprint": "f"}})
    return differences(known, again(known, index, **values))


def test_a_study_frozen_under_former_names_has_no_fault(frozen: Manifest) -> None:
    """Catches names of settings that count as a difference."""
    former = {"road": {"catch": 1}, "trials": {"strata": {"measure": "doubt"}}}
    present = {"pacing": {"catch": 1}, "trials": {"strata": {"measure": "least_confidence"}}}
    facts = {"classifier": {"name": "test", "fingerprint": "f"}}
    known, same = (frozen.model_copy(update={"config": config, **facts}) for config in (former, present))
    assert differences(known, same) == []
    assert differences(known, same.model_copy(update={"config": {"pacing": {"catch": 2}}})) != []


def test_the_same_study_has_no_fault(frozen: Manifest) -> None:
    """Catches an environment that counts as a difference."""
    assert faults(frozen, 1) == []


@pytest.mark.parametrize(
    ("values", "off"),
    [
        ({"saliency": HeatmapFacts(effective_samples=303.0)}, "0.01"),  # 3 / 303
        ({"ai_probability": 0.7500075}, "1e-05"),
        ({"teaching": TeachingFacts(p_learner=-0.9)}, "2"),
    ],
)
def test_other_arithmetic_is_told_from_other_images(frozen: Manifest, values: dict[str, Any], off: str) -> None:
    """Catches a study said to render differently of which every picture is the same to the byte."""
    assert faults(frozen, 1, **values) == [
        "1 trial(s) show the same images, and their measured values differ by up to "
        f"{off} of their value: main-1. Other arithmetic can do that "
        "(frozen with: AVX2, 1 thread(s); now: AVX512, 8 thread(s))."
    ]


def test_what_is_more_than_arithmetic_is_said_so(frozen: Manifest) -> None:
    """Catches another picture, another example, another fact or another answer of the AI excused as rounding."""
    trial = frozen.trials[1]
    assets = trial.assets.model_copy(update={"target_map": "0" * 64})
    for values in (
        {"assets": assets},
        {"options": trial.options[::-1]},
        {"saliency": HeatmapFacts(effective_samples=300.0, seed=2)},
        {"teaching": TeachingFacts(policy="none")},
    ):
        assert faults(frozen, 1, **values) == ["1 trial(s) render differently now: main-1."]


def test_texts_that_a_later_version_words_differently_are_no_fault(frozen: Manifest) -> None:
    """Catches a `verify` that asks for a new build of a running study because a default text has changed."""
    other = frozen.model_copy(update={"texts": {}})
    assert other.compute_hash() != frozen.compute_hash()
    assert differences(other, frozen) == []


def test_practice_is_compared_too(frozen: Manifest) -> None:
    """Catches practice trials passed over."""
    known = frozen.model_copy(update={"classifier": {"name": "test", "fingerprint": "f"}})
    practice = tuple(trial.model_copy(update={"ai_probability": 0.5}) for trial in known.practice)
    assert "practice-0" in differences(known, known.model_copy(update={"practice": practice}))[0]


def test_the_arithmetic_names_the_threads() -> None:
    """Catches a record that does not tell one thread from several."""
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        assert describe_arithmetic(torch.device("cpu")).endswith("2 thread(s)")
    finally:
        torch.set_num_threads(threads)
