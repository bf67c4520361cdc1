"""Random seeds of a study's choices, each independent of the order in which choices are made."""

from __future__ import annotations

import hashlib


def seed_of(seed: int, *parts: object) -> int:
    """Derive a 62-bit random seed for one named choice of a study."""
    text = "|".join(map(str, (seed, *parts)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 2
