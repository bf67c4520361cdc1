"""Texts of simulated participants, and simulated raters who read them. Every text says that it is simulated."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

COLOURS = ("red", "blue", "green", "yellow", "dark", "bright")
SHAPES = ("round shapes", "stripes", "corners", "grids", "long edges", "small spots")
MARK = "simulated: "


def describe_unit(unit: str) -> str:
    """Describe what a unit responds to in the eyes of simulated participants: made up, the same for all of them."""
    number = int.from_bytes(hashlib.sha256(unit.encode()).digest()[:4])
    return f"{COLOURS[number % len(COLOURS)]} {SHAPES[number // len(COLOURS) % len(SHAPES)]}"


def draw_text(unit: str, right: bool, rng: np.random.Generator) -> str:
    """Draw the text of a simulated participant: the description of the unit, or another one."""
    known = describe_unit(unit)
    others = [text for text in (f"{a} {b}" for a in COLOURS for b in SHAPES) if text != known]
    return MARK + (known if right else str(rng.choice(others)))


def choose_code(
    text: str,
    unit: str,
    codes: Sequence[str],
    correct: Sequence[str],
    reliability: float,
    rng: np.random.Generator,
) -> str:
    """Choose the code of a simulated rater, who reads the text alone.

    A text that is the description of the unit gets the first correct code, one that shares its colour or its shapes the
    first of the codes between, and any other the last that is not correct. With probability 1 - ``reliability`` the
    code is another one.
    """
    wrong = [code for code in codes if code not in correct]
    known, said = describe_unit(unit).split(" ", 1), text.removeprefix(MARK).split(" ", 1)
    if said == known:
        meant = correct[0]
    elif len(wrong) > 1 and set(said) & set(known):
        meant = wrong[0]
    else:
        meant = wrong[-1]
    if rng.random() < reliability:
        return meant
    return str(rng.choice([code for code in codes if code != meant]))
