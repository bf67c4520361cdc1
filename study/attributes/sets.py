"""A set of attributes as participants choose it: written in letters, read with a reason, and scored.

An attribute is its letter in the order in which the attributes are frozen, a for the first; ``-`` is the explicit
choice of none. A set is written in the order of its letters: ``acd``.
"""

from __future__ import annotations

from core.errors import ForetellError
from study.facts import AttributeFacts

MOST = 12
"""Attributes that a study may ask about."""
LETTERS = "abcdefghijkl"
NONE = "-"
"""How the explicit choice of none is written."""
SHOWN = 40
"""Characters of an unreadable set that its refusal repeats."""


def read_set(text: str, count: int) -> frozenset[str]:
    """Read a set of so many attributes as participants' pages write it.

    Raises
    ------
    ForetellError
        It is empty without the choice of none, has an attribute that is not asked about or has one twice.
    """
    if text == NONE:
        return frozenset()
    if not text:
        raise ForetellError("No attribute is chosen: choose at least one, or that it is none of them.")
    if unknown := sorted({*text} - {*LETTERS[:count]}):
        raise ForetellError(
            f"The attributes {text[:SHOWN]!r} have {unknown[0]!r}, which this study does not ask about: it asks about "
            f"{LETTERS[0]} to {LETTERS[count - 1]}."
        )
    if list(text) != sorted({*text}):
        raise ForetellError(f"The attributes {text[:SHOWN]!r} are not each named once and in order. Name each once.")
    return frozenset(text)


def write_set(letters: frozenset[str]) -> str:
    """Write a set as it is stored."""
    return "".join(sorted(letters)) or NONE


def find_used(facts: AttributeFacts) -> frozenset[str]:
    """Find the attributes that the AI uses."""
    return frozenset(letter for letter, used in zip(LETTERS, facts.used, strict=False) if used)


def name_set(facts: AttributeFacts, text: str) -> tuple[str, ...]:
    """Name the attributes of a stored set."""
    chosen = read_set(text, len(facts.names))
    return tuple(name for letter, name in zip(LETTERS, facts.names, strict=False) if letter in chosen)
