"""The columns of responses to trials that a policy chose."""

from __future__ import annotations

from study.collection.tables.columns import TEXT, WHOLE, Column
from study.collection.tables.stored import StoredResponse

ADAPTED: tuple[Column[StoredResponse], ...] = (
    Column(
        "difficulty_level",
        "of a study with a staircase, the level of the trial, within its type; empty elsewhere, as the next two",
        lambda one: one.mark and one.mark.level,
        unit="1 is the easiest",
        dtype=WHOLE,
    ),
    Column(
        "aimed_level",
        "level that the staircase aimed at: another one than difficulty_level where that had no trials left",
        lambda one: one.mark and one.mark.aimed,
        unit="1 is the easiest",
        dtype=WHOLE,
    ),
    Column(
        "target_share",
        "share of correct responses at which the staircase is in balance",
        lambda one: one.adapted and one.adapted.target,
        dtype=float,
    ),
    Column(
        "chosen_by",
        "of a study that chooses trials by responses, why this one: the first; the staircase went up, stayed or went "
        "down; or it was informative. Empty in other studies, as the next two",
        lambda one: one.mark and one.mark.chosen_by,
        values="start; harder, same, easier; information",
        dtype=TEXT,
    ),
    Column(
        "ability",
        "of such a study, the participant's ability after the response: mean of its posterior in the Rasch model",
        lambda one: one.adapted and one.adapted.ability,
        unit="log-odds",
        dtype=float,
    ),
    Column("ability_sd", "SD of that posterior", lambda one: one.adapted and one.adapted.ability_sd, dtype=float),
)
"""Empty in a study whose order of trials is drawn before the first response."""
