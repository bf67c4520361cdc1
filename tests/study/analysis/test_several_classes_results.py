"""Results of `predict` with several classes: what chance is, what does not apply, and contradictions in files."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from core.errors import ForetellError
from study.analysis.exploratory.analysis import AnalysedStudy, compute, list_analyses
from study.analysis.report.composition import list_facts
from study.analysis.report.figures import accuracy_figure
from study.analysis.responses.reading import prepare
from study.bundle import TRIAL_TYPES


def _answers(**columns: Any) -> pd.DataFrame:
    """Twelve participants of two conditions, a trial of each type in four categories."""
    rng = np.random.default_rng(4)
    rows = [
        (f"p{who}", f"c{k}", kind, who % 2, 0, int(rng.random() < 0.4))
        for who in range(12)
        for k in range(4)
        for kind in TRIAL_TYPES
    ]
    frame = pd.DataFrame(rows, columns=["participant", "category", "trial_type", "saliency", "examples", "correct"])
    return frame.assign(**columns)


def test_chance_is_one_in_as_many_classes() -> None:
    """Catches a line at one half in Figure 1, and a report that does not say what accuracies are compared with."""
    data = prepare(_answers(n_classes=4))
    assert data.task.chance == 1 / 4
    figure, _ = accuracy_figure(data)
    assert figure.layout.shapes[0].y0 == 1 / 4
    assert figure.layout.annotations[0].text == "chance (25%)"
    facts = list_facts(data, None, None)
    assert facts["Chance"] == "Participants chose from 4 classes, so chance is 1/4 (25%)."
    two = prepare(_answers())
    assert accuracy_figure(two)[0].layout.shapes[0].y0 == 1 / 2
    assert "Chance" not in list_facts(two, None, None)


def test_what_needs_two_options_says_so() -> None:
    """Catches d' of responses that may be neither the truth nor the AI's class, and a projection index of them."""
    study = AnalysedStudy(prepare(_answers(n_classes=5)))
    for name in ("detection", "detection_differences"):
        with pytest.raises(ForetellError, match=r"d' does not apply to 5 options.* of which chance is 20%\."):
            compute(name, study)
    assert "projection" not in list_analyses(study)
    assert "projection" in list_analyses(AnalysedStudy(prepare(_answers(n_classes=2))))


def test_two_classes_leave_the_rows_as_they_were() -> None:
    """Catches a column that changes the hash of the rows of every study of two classes."""
    before, after = prepare(_answers()), prepare(_answers(n_classes=2, task="predict"))
    assert after.sha256 == before.sha256
    assert prepare(_answers(n_classes=3)).sha256 != before.sha256
    again = prepare(prepare(_answers(n_classes=3)).frame)
    assert again.sha256 == prepare(_answers(n_classes=3)).sha256


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"n_classes": [2, 3] * 72}, "must have one whole number: chance is one in so many"),
        ({"n_classes": 2.5}, "must have one whole number"),
        ({"n_classes": [4, None] * 72}, "must have one whole number"),
        ({"n_classes": ["4", "few"] * 72}, "must have one whole number"),
        ({"n_classes": 9}, "trials.options is 9, but a trial of the task 'predict' has 2 to 5"),
        ({"n_classes": 4, "task": "agreement"}, "but a trial of the task 'agreement' has 2"),
    ],
)
def test_numbers_of_classes_that_cannot_be_are_refused(columns: dict[str, Any], said: str) -> None:
    """Catches two levels of chance in one model, and a level of chance that is guessed."""
    with pytest.raises(ForetellError, match=said):
        prepare(_answers(**columns))
