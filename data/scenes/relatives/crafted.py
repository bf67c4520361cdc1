"""Crafted images and the relatives' predictions for them: written by `scripts.craft_queries`, read by `load`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from data.errors import DataError
from data.scenes.pen import SIZE
from data.scenes.shapes import CATEGORIES
from data.types import CraftedQueries, SingleQueries

FILE = Path(__file__).with_name("crafted.npz")
PARTS = 5
"""Parts of the relatives, one of which is left out of each crafting."""
FLOOR = -12.0
"""Log probability at which smaller ones are cut off."""
LEVELS = 255
"""Steps from the floor to 0 in which log probabilities are stored."""
Bytes = NDArray[np.uint8]


def number_parts(relatives: int) -> NDArray[np.int64]:
    """Return the part of each relative, from 0 to `PARTS` - 1."""
    return np.arange(relatives) % PARTS


def encode(log_p: NDArray[np.float32]) -> Bytes:
    """Return log probabilities in steps from the floor."""
    codes: Bytes = np.rint((np.maximum(log_p, FLOOR) - FLOOR) / -FLOOR * LEVELS).astype(np.uint8)
    return codes


def decode(codes: Bytes) -> NDArray[np.float32]:
    """Return the log probabilities of what `encode` returned."""
    return codes.astype(np.float32) / LEVELS * -FLOOR + FLOOR


def load_crafted() -> Mapping[str, CraftedQueries]:
    """Load the images that were crafted for metamodels, by what a network discloses.

    Raises
    ------
    DataError
        The file is missing.
    """
    stored = _read()
    log_p, most = decode(stored["log_p"]), np.eye(len(CATEGORIES), dtype=np.float32)[stored["most"]]
    return {
        output: CraftedQueries(outputs, partial(_open, stored[output].reshape(-1, *stored[output].shape[2:])))
        for output, outputs in (("prob", log_p), ("top-1", most))
    }


def load_single() -> SingleQueries:
    """Load the images that were crafted to disclose one attribute each.

    Raises
    ------
    DataError
        The file is missing.
    """
    stored = _read()
    return SingleQueries(stored["predicted"].astype(np.int64), partial(_open, stored["single"]))


def store(images: Mapping[str, Bytes], log_p: NDArray[np.float32], most: Bytes, single: Bytes, held_out: Bytes) -> None:
    """Write crafted images and predictions, as `CraftedQueries` and `SingleQueries` describe them.

    Parameters
    ----------
    images
        Images (F, n, h, w, 3) for networks that disclose ``prob``, and for those that disclose ``top-1``.
    log_p
        Log probabilities (F, R, n, K) for the former.
    most
        Classes (F, R, n) with the highest probability for the latter.
    single
        Images (A, h, w, 3) that disclose one attribute each.
    held_out
        Classes (R, A) that relatives predict of images that were crafted without them.
    """
    predictions = {"log_p": encode(log_p), "most": most, "predicted": held_out}
    np.savez_compressed(FILE, **images, **predictions, single=single)  # type: ignore[arg-type]


def _read() -> Mapping[str, Bytes]:
    if not FILE.is_file():
        raise DataError(f"The file {FILE} is missing. Create it again: python -m scripts.craft_queries")
    with np.load(FILE) as stored:
        return dict(stored)


def _open(images: Bytes, index: int) -> Image.Image:
    """Return an image at the size of the scenes: each of its pixels is a square, which relatives shrink to it again."""
    return Image.fromarray(images[index]).resize((SIZE, SIZE), Image.Resampling.NEAREST)
