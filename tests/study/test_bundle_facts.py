"""Facts frozen with a trial: what is written is what was measured, with the numbers as they were."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from study.bundle import HeatmapFacts, StratumFacts, TeachingFacts


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


def test_an_unknown_fact_is_refused() -> None:
    """Catches a misspelt key, which a dictionary would keep and no page would show."""
    with pytest.raises(ValidationError, match="p_leaner"):
        TeachingFacts.model_validate({"p_leaner": 0.9})
