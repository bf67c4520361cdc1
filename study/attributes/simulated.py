"""Sets of attributes that simulated participants choose: each by its probability of a correct judgement."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from study.attributes.rows import ask_each
from study.attributes.sets import LETTERS
from study.bundle import Trial


def draw_set(trial: Trial, p_right: Callable[[Trial], float], rng: np.random.Generator) -> frozenset[str]:
    """Draw a set; ``p_right`` gives the probability of a hit, or of a correct rejection, of each of `ask_each`."""
    asked = ask_each(trial)
    right = rng.random(len(asked)) < [p_right(one) for one in asked]
    chosen = right == [one.trial_type == "used" for one in asked]
    return frozenset(letter for letter, is_chosen in zip(LETTERS, chosen, strict=False) if is_chosen)
