"""The predictions of the relatives for fixed scenes: written by `data.scenes.relatives.train`, read by `load`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from data.errors import DataError
from data.scenes.generator import USUAL_SHARE
from data.scenes.relatives.networks import ATTRIBUTES
from data.scenes.shapes import CATEGORIES
from data.scenes.splits import label_of
from data.scenes.zoo.material import HELD_OUT_SEED, draw_scene
from data.types import Relatives

FILE = Path(__file__).with_name("outputs.npz")
EACH = 50
"""Images that the networks are asked about, of standard and of adversarial scenes each; none was trained on."""
FLOOR = -12.0
"""Log probability at which smaller ones are cut off."""
LEVELS = 255
"""Steps from the floor to 0 in which log probabilities are stored."""


def load() -> Relatives:
    """Load the relatives' attributes and predictions, with the scenes that they are of.

    Raises
    ------
    DataError
        The file is missing.
    """
    if not FILE.is_file():
        raise DataError(f"The file {FILE} is missing. Create it again: python -m data.scenes.relatives.train")
    with np.load(FILE) as stored:
        log_p = stored["log_p"].astype(np.float32) / LEVELS * -FLOOR + FLOOR
        most, least, values = (stored[name].astype(np.int64) for name in ("most", "least", "values"))
    return Relatives(tuple(CATEGORIES), ATTRIBUTES, values, log_p, most, least, FLOOR, 2 * EACH, open_query)


def open_query(index: int) -> Image.Image:
    """Draw one of the scenes: standard ones, then adversarial ones."""
    split, share = ("standard", USUAL_SHARE) if index < EACH else ("adversarial", 0.0)
    return draw_scene(split, HELD_OUT_SEED, share, index % EACH).image  # type: ignore[arg-type]


def list_query_labels() -> list[int]:
    """List the index of the category of each of the scenes."""
    return [label_of(index % EACH) for index in range(2 * EACH)]


def store(values: NDArray[np.int64], log_p: NDArray[np.float32]) -> None:
    """Write the attributes (R, A) of the relatives, as numbers of values, and their log probabilities (R, n, K).

    The classes with the highest and the lowest probability are written too: cut off and rounded, they would be tied.
    """
    codes = np.rint((np.maximum(log_p, FLOOR) - FLOOR) / -FLOOR * LEVELS)
    extremes = {"most": log_p.argmax(2), "least": log_p.argmin(2)}
    bytes_of = {"log_p": codes, "values": values, **extremes}
    np.savez_compressed(FILE, **{name: array.astype(np.uint8) for name, array in bytes_of.items()})
