"""Where the randomness of a scene comes from: the one place that says so.

A scene is a function of one integer. Its streams (choice of category and context, object, context, light) are spawned
from that integer, so changing the context draws nothing from the object's stream.

The pictures of a set are numbered from a 128-bit-safe layout that no two sets share::

    scene seed = split << 96 | set seed << 32 | index

``index`` < 2^32 is the number of the picture, ``set seed`` < 2^64 is the user's, ``split`` tells pool, standard,
adversarial and training pictures apart. Plain small integers (split 0, set seed 0) are free for playing.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

Split = Literal["free", "pool", "standard", "adversarial", "training"]

SPLITS: dict[Split, int] = {"free": 0, "pool": 1, "standard": 2, "adversarial": 3, "training": 4}


def scene_seed(split: Split, seed: int, index: int) -> int:
    """The integer of picture ``index`` of a set: different for every (split, seed, index)."""
    if not 0 <= seed < 2**64 or not 0 <= index < 2**32:
        raise ValueError(f"seed {seed} or index {index} is out of range (0 <= seed < 2**64, 0 <= index < 2**32).")
    return SPLITS[split] << 96 | seed << 32 | index


def streams(seed: int) -> tuple[np.random.Generator, ...]:
    """Independent generators for the choice, the object, the context and the light of a scene."""
    return tuple(np.random.Generator(np.random.PCG64(child)) for child in np.random.SeedSequence(seed).spawn(4))
