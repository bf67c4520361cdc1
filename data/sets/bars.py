"""Generated bars as an image set: red or green, horizontal or vertical."""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image

from data.bars import generator
from data.bars.generator import COLOURS, ORIENTATIONS, Bar, render
from data.errors import DataError
from data.types import Factor, ImageSet

SIZE = 400
"""Default number of images of a set."""


def load(*, red_horizontal: int = 60, red_vertical: int = 40, size: int = SIZE, seed: int = 0) -> ImageSet:
    """Open bars drawn on demand (a quarter of a millisecond each), horizontal and vertical by turns.

    Parameters
    ----------
    red_horizontal, red_vertical
        How many of a hundred horizontal and of a hundred vertical bars are red.
    size, seed
        Number of images, and set seed; another seed gives other images.

    Raises
    ------
    DataError
        A share that is none, or a size or seed out of range.
    """
    if not 1 <= size < 2**32 or not 0 <= seed < 2**64:
        raise DataError(f"Size {size} or seed {seed} does not fit: choose 1 <= size < 2**32 and 0 <= seed < 2**64.")
    bar = partial(_bar, seed, (red_horizontal / 100, red_vertical / 100))
    every = [bar(i) for i in range(size)]
    ids = tuple(f"{red_horizontal}-{red_vertical}/{seed}/{i:06d}" for i in range(size))
    total = hashlib.sha256("\n".join([*ids, *(one.colour for one in every)]).encode())
    total.update(Path(generator.__file__).read_bytes())
    return ImageSet(
        name=f"bars/{red_horizontal}-{red_vertical}",
        categories=ORIENTATIONS,
        labels=np.arange(size, dtype=np.int64) % len(ORIENTATIONS),
        ids=ids,
        open=lambda i: every[i].image.copy(),
        digest=total.hexdigest(),
        factors={
            "colour": Factor(tuple(COLOURS), lambda i, to: _again(every[i], colour=to), _own(every, "colour")),
            "orientation": Factor(
                ORIENTATIONS, lambda i, to: _again(every[i], orientation=to), _own(every, "orientation")
            ),
        },
    )


def _bar(seed: int, red: tuple[float, float], index: int) -> Bar:
    return render(seed << 32 | index, orientation=ORIENTATIONS[index % len(ORIENTATIONS)], red=red)


def _own(bars: list[Bar], factor: str) -> tuple[str, ...]:
    return tuple(getattr(bar, factor) for bar in bars)


def _again(bar: Bar, **changed: str) -> Image.Image:
    return render(bar.seed, **{"orientation": bar.orientation, "colour": bar.colour} | changed).image
