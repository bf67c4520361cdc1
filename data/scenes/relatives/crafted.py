"""Crafted images and the relatives' predictions for them, written by `inquiry.layers.training.craft_queries`."""

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
    classes = np.eye(len(CATEGORIES), dtype=np.float32)
    features = {
        "prob": decode(stored["log_p"]),
        "ranking": stored["places"].astype(np.float32) / (len(CATEGORIES) - 1),
        "bottom-1": classes[stored["least"]],
        "top-1": classes[stored["most"]],
    }
    return {
        output: CraftedQueries(outputs, partial(_open, stored[output].reshape(-1, *stored[output].shape[2:])))
        for output, outputs in features.items()
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


def store_several(output: str, images: Bytes, log_p: NDArray[np.float32]) -> None:
    """Write images (F, n, h, w, 3) that were crafted for networks that disclose ``output``; others stay as they are.

    Of the log probabilities (F, R, n, K) of the relatives, what such networks disclose is written.
    """
    name, values = _disclose(log_p, output)
    _write({output: images, name: values})


def store_single(images: Bytes, predicted: Bytes) -> None:
    """Write images (A, h, w, 3) that disclose one attribute each.

    Also write the classes (R, A) that relatives predict of images that were crafted without them.
    """
    _write({"single": images, "predicted": predicted})


def _disclose(log_p: NDArray[np.float32], output: str) -> tuple[str, Bytes]:
    """Return what a network with these log probabilities (..., K) discloses, and under which name it is stored."""
    if output == "prob":
        return "log_p", encode(log_p)
    order = (-log_p).argsort(-1, kind="stable").astype(np.uint8)
    if output == "ranking":
        return "places", order.argsort(-1).astype(np.uint8)
    return ("most", order[..., 0]) if output == "top-1" else ("least", order[..., -1])


def _write(arrays: Mapping[str, Bytes]) -> None:
    kept = _read() if FILE.is_file() else {}
    np.savez_compressed(FILE, **dict(kept) | arrays)  # type: ignore[arg-type]


def _read() -> Mapping[str, Bytes]:
    if not FILE.is_file():
        raise DataError(f"The file {FILE} is missing. Create it again: python -m inquiry.layers.training.craft_queries")
    with np.load(FILE) as stored:
        return dict(stored)


def _open(images: Bytes, index: int) -> Image.Image:
    """Return an image at the size of the scenes: each of its pixels is a square, which relatives shrink to it again."""
    return Image.fromarray(images[index]).resize((SIZE, SIZE), Image.Resampling.NEAREST)
