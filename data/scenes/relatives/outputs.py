"""The predictions of the relatives for fixed scenes: written by `data.scenes.relatives.train`, read by `load`.

Those for crafted images are in `data.scenes.relatives.crafted`.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from data.errors import DataError
from data.scenes.generator import USUAL_SHARE
from data.scenes.relatives.crafted import FLOOR, decode, encode, load_crafted, load_single, number_parts
from data.scenes.relatives.networks import ATTRIBUTES, SIDE
from data.scenes.shapes import CATEGORIES
from data.scenes.splits import label_of
from data.scenes.zoo.material import HELD_OUT_SEED, draw_scene
from data.types import Relatives

FILE = Path(__file__).with_name("outputs.npz")
EACH = 50
"""Images that the networks are asked about, of standard and of adversarial scenes each; none was trained on."""


def load() -> Relatives:
    """Load the relatives' attributes and predictions, with the scenes and crafted images that they are of.

    Raises
    ------
    DataError
        A file is missing.
    """
    if not FILE.is_file():
        raise DataError(f"The file {FILE} is missing. Create it again: python -m data.scenes.relatives.train")
    with np.load(FILE) as stored:
        log_p = decode(stored["log_p"])
        order, values = (stored[name].astype(np.int64) for name in ("order", "values"))
    return Relatives(
        tuple(CATEGORIES),
        ATTRIBUTES,
        values,
        log_p,
        order,
        FLOOR,
        2 * EACH,
        open_query,
        number_parts(len(values)),
        load_crafted(),
        load_single(),
        SIDE,
    )


def open_query(index: int) -> Image.Image:
    """Draw one of the scenes: standard ones, then adversarial ones."""
    return _draw_query(index).copy()


@lru_cache(2 * EACH)
def _draw_query(index: int) -> Image.Image:
    split, share = ("standard", USUAL_SHARE) if index < EACH else ("adversarial", 0.0)
    return draw_scene(split, HELD_OUT_SEED, share, index % EACH).image  # type: ignore[arg-type]


def list_query_labels() -> list[int]:
    """List the index of the category of each of the scenes."""
    return [label_of(index % EACH) for index in range(2 * EACH)]


def store(values: NDArray[np.int64], log_p: NDArray[np.float32]) -> None:
    """Write the attributes (R, A) of the relatives, as numbers of values, and their log probabilities (R, n, K).

    The order of the classes is written too: cut off and rounded, some would be tied.
    """
    order = (-log_p).argsort(2, kind="stable").astype(np.uint8)
    np.savez_compressed(FILE, log_p=encode(log_p), values=values.astype(np.uint8), order=order)
