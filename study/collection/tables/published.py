"""Responses under the column names of the published data of Bayesian teaching.

Names and meanings are those of the code book and the analysis of Yang, Vong, Sojitra, Folke & Shafto (2021),
"Mitigating belief projection in explainable artificial intelligence via Bayesian teaching", Scientific Reports 11:9863
(github.com/CoDaS-Lab/XAI-BT-SR). There ``correct`` is the AI's choice, and whether a participant predicted it is
``correct_response``. Columns that those data do not have keep Foretell's names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pandas as pd

NAMES = {
    "participant": "subject_id",
    "trial": "trial_number",
    "trial_type": "prediction_type",
    "category": "target_category",
    "alternative": "other_category",
    "truth": "ground_truth",
    "choice": "response",
    "correct": "correct_response",
    "rt_ms": "rt",
}
"""Foretell's columns under the published names."""

_VALUES = {
    "trial_type": "kind of trial, in Foretell's values; the published data know true and false positives and negatives"
}

_ADDED: dict[str, tuple[dict[str, str], Callable[[pd.DataFrame], pd.Series[object]]]] = {
    "correct": ({"meaning": "what the AI chose, as target_category"}, lambda frame: frame["target_category"]),
    "trial_index": (
        {"meaning": "as trial_number; in the published data an artefact of the experiment's software"},
        lambda frame: frame["trial_number"],
    ),
    "examples_condition": (
        {"meaning": "as examples, in words", "values": "examples, no_examples"},
        lambda frame: frame["examples"].map({1: "examples", 0: "no_examples"}),
    ),
    "highlights_condition": (
        {"meaning": "as saliency, in words", "values": "highlights, no_highlights"},
        lambda frame: frame["saliency"].map({1: "highlights", 0: "no_highlights"}),
    ),
}
"""Published columns that repeat others in another form."""


def frame(ours: pd.DataFrame) -> pd.DataFrame:
    """Rename a table's columns to the published names, and add the published columns that repeat others."""
    renamed = ours.rename(columns=NAMES)
    if "target_category" not in renamed:  # participants, not responses
        return renamed
    return renamed.assign(**{name: make(renamed) for name, (_, make) in _ADDED.items()})


def columns(ours: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
    """Describe the columns of `frame`, each with the origin of its name."""
    told = {
        NAMES.get(name, name): {
            **text,
            **({"meaning": _VALUES[name]} if name in _VALUES else {}),
            "name": "published" if name in NAMES else "Foretell",
        }
        for name, text in ours.items()
    }
    if "target_category" not in told:
        return told
    return {**told, **{name: {**text, "name": "published"} for name, (text, _) in _ADDED.items()}}
