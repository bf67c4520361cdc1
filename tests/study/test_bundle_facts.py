"""Facts frozen with a trial: what is written is what was measured, with the numbers as they were."""

from __future__ import annotations

import json

import pytest

from study.facts import HeatmapFacts, StratumFacts, TeachingFacts


@pytest.mark.parametrize(
    ("record", "text"),
    [
        (TeachingFacts, '{"p_learner": 0.9}'),
        (TeachingFacts, '{"curve": [[1, 0.5], [8, 1.0]], "gain": 2, "weight": 128.0}'),
        (HeatmapFacts, '{"standard_error": null, "parameters": {"grid": 8, "p": 0.5}, "warnings": []}'),
        (StratumFacts, '{"measure": "entropy", "value": null, "error": 0.0, "stratum": 0, "strata": 2}'),
    ],
)
def test_what_is_read_is_written_again(record: type[TeachingFacts], text: str) -> None:
    """Catches a key added, a null left out or 2 written as 2.0: any of these changes the hash of an older study."""
    assert json.dumps(json.loads(record.model_validate_json(text).model_dump_json()), sort_keys=True) == json.dumps(
        json.loads(text), sort_keys=True
    )


def test_a_fact_of_another_version_is_kept_as_it_was_frozen() -> None:
    """Catches a fact that this version does not know and drops, or refuses: the study would lose its hash."""
    stored = {"p_learner": 0.9, "damping": 0.0, "tries": 3}
    facts = TeachingFacts.model_validate(stored)
    assert facts.model_dump(mode="json") == stored
    assert type(facts.model_dump(mode="json")["damping"]) is float
