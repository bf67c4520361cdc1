"""Coloured MNIST: the user's own MNIST files, every digit in the colour of its class."""

from __future__ import annotations

import gzip
import hashlib
import struct
from math import prod
from pathlib import Path
from typing import Literal

import numpy as np
from PIL import Image

from data.errors import DataError
from data.types import Factor, ImageSet

FILES = {"train": "train", "test": "t10k"}
COLOURS = {
    "red": (0.86, 0.08, 0.24), "teal": (0.0, 0.5, 0.5), "yellow": (0.99, 0.91, 0.06), "blue": (0.0, 0.58, 0.71),
    "orange": (0.93, 0.57, 0.13), "purple": (0.57, 0.12, 0.71), "sky": (0.27, 0.94, 0.94), "pink": (0.98, 0.75, 0.83),
    "green": (0.24, 0.71, 0.29), "grey": (0.5, 0.5, 0.5),
}  # fmt: skip
"""Mean colour, RGB in [0, 1], of the digits 0 to 9."""


def load(*, path: str | Path, part: Literal["train", "test"] = "test", sigma: float | str = 0.03) -> ImageSet:
    """Read ``train-images-idx3-ubyte`` and ``train-labels-idx1-ubyte`` (or ``t10k-...``) in ``path``, also gzipped.

    Goyal et al. 2019 (arXiv:1907.07165, table 2): the smaller ``sigma``, the more the colour says of the digit.

    Parameters
    ----------
    path
        The folder with the files.
    part
        ``train`` has 60,000 digits, ``test`` 10,000.
    sigma
        Standard deviation of an image's colour about that of its digit, RGB in [0, 1].

    Raises
    ------
    DataError
        A file that is missing or not of that format, digits and labels that do not belong together, or no such part.
    """
    if part not in FILES:
        raise DataError(f"MNIST has no part {part!r}: use {' or '.join(FILES)}.")
    spread, names = _deviation(sigma), list(COLOURS)
    digits = _idx(Path(path), f"{FILES[part]}-images-idx3-ubyte", 3)
    labels = _idx(Path(path), f"{FILES[part]}-labels-idx1-ubyte", 1).astype(np.int64)
    if len(digits) != len(labels) or not len(labels) or labels.max() >= len(names):
        raise DataError(f"{len(digits)} digits and {len(labels)} labels in {path} do not match: download both again.")
    shades = np.random.default_rng(0).normal(size=(len(labels), 3)) * spread

    def draw_digit(i: int, colour: str) -> Image.Image:
        shade = np.clip(np.array(COLOURS[colour]) + shades[i], 0, 1)
        return Image.fromarray(np.rint(digits[i][..., None] * shade).astype(np.uint8), "RGB")

    own = tuple(names[label] for label in labels)
    total = hashlib.sha256(digits.tobytes() + labels.tobytes() + repr((COLOURS, spread)).encode())
    return ImageSet(
        name=f"coloured_mnist/{part}-{spread:g}",
        categories=tuple(str(k) for k in range(10)),
        labels=labels,
        ids=tuple(f"{part}/{i:05d}" for i in range(len(labels))),
        open=lambda i: draw_digit(i, own[i]),
        digest=total.hexdigest(),
        factors={"colour": Factor(tuple(names), draw_digit, own)},
    )


def _deviation(sigma: float | str) -> float:
    try:
        value = float(sigma)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise DataError(f"A sigma of {sigma!r} is no deviation of a colour: choose one between 0 and 1, such as 0.03.")
    return value


def _idx(folder: Path, name: str, dimensions: int) -> np.ndarray:
    """Read unsigned bytes in the IDX format: two zeros, 8, the dimensions' number, their sizes, the values."""
    file = next((path for path in (folder / name, folder / f"{name}.gz") if path.is_file()), None)
    if file is None:
        raise DataError(f"There is no {name} (or {name}.gz) in {folder}: put the four files of MNIST there.")
    try:
        content = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    except (OSError, EOFError) as error:
        raise DataError(f"{file} cannot be read ({error}): download it again.") from None
    start = 4 + 4 * dimensions
    sizes = struct.unpack(f">{dimensions}I", content[4:start]) if len(content) >= start else ()
    if content[:4] != bytes([0, 0, 8, dimensions]) or len(content) != start + prod(sizes):
        raise DataError(f"{file} is not a whole IDX file of {dimensions} dimension(s) of bytes: download it again.")
    return np.frombuffer(content, np.uint8, offset=start).reshape(sizes)
