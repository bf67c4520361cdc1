"""Simulated raters, who code the texts of simulated participants through the same door as real ones."""

from __future__ import annotations

import numpy as np

from core.errors import ForetellError
from core.types import Progress, silent
from study.collection.researcher import Researcher
from study.names.simulated import choose_code
from study.store.rows import Mode
from study.workspace.seeds import seed_of

SIMULATED: tuple[Mode, ...] = ("sim",)
RATERS = ("simulated rater 1", "simulated rater 2")


def simulate_raters(
    researcher: Researcher, study: str, reliability: float, seed: int, progress: Progress = silent
) -> int:
    """Let two simulated raters code every text that has no code of theirs; return the number of new codes.

    Repeating a call changes nothing: each code depends on the rater, the text and the seed alone. They never see texts
    of real participants.

    Parameters
    ----------
    reliability
        How often a rater gives the code that fits the text, in [0, 1]; otherwise one of the others.
    """
    new = 0
    for number, rater in enumerate(RATERS):
        listed = researcher.load_coding(study, SIMULATED, rater)
        if not listed.texts:
            raise ForetellError(f"{study!r} has no texts of simulated participants. Simulate some first.")
        given = {}
        for text in (text for text in listed.texts if text.code is None):
            if text.trial.unit is None:
                raise ForetellError(f"Trial {text.trial.id!r} has no unit to ask about. Build the study again.")
            rng = np.random.default_rng(seed_of(seed, "code", rater, text.id))
            unit = text.trial.unit.name
            given[text.id] = choose_code(text.text, unit, listed.codes, listed.correct, reliability, rng)
        new += researcher.code_texts(study, given, SIMULATED, rater)
        progress(number + 1, len(RATERS), f"simulated raters of {study}")
    return new
