"""Generated scenes as an image set: nothing to download, and the ground truth is known."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
from PIL import Image

from data.errors import DataError
from data.scenes import generator
from data.scenes.contexts import CONTEXTS
from data.scenes.generator import Scene, find_parts, render
from data.scenes.interventions import HUES, recolour_object
from data.scenes.shapes import CATEGORIES
from data.scenes.splits import Split, context_of, label_of, picture, scene_seed
from data.types import Factor, ImageSet

SIZES: dict[str, int] = {"pool": 1_200, "standard": 2_400, "adversarial": 1_200}
"""Default sizes: ten categories always find a standard correct, a standard incorrect and an adversarial incorrect
image among them."""
KEPT = 2_048
"""Drawn scenes that a process keeps (36 kB each): pages, checks and builds open the same sets again and again."""
SAMPLE = 64
"""Images whose pixels enter the digest."""
DRAWING = ("pen.py", "noise.py", "contexts.py", "generator.py", "splits.py", "shapes/*.py")
"""The files that decide what an image looks like."""
SAME = {
    "a4064e9d9efd164466134f2ad7c5c757adf80457ec89d8f646d2326c601e203d": (
        "d6d45997ae6f37eb7519caf0cad27386516ff5238a248a828568ac296b4305dd"
    ),
}
"""Sources (SHA-256) that draw each pixel as an earlier one, as which they count in the digest: a study that was made
with the earlier one has the same images. The first names parts of objects, which changes no drawing."""


def load(
    *, split: Literal["pool", "standard", "adversarial"] = "standard", size: int | None = None, seed: int = 0
) -> ImageSet:
    """Open scenes drawn on demand (about 2 ms each). A process keeps the last `KEPT` and opens each set once.

    Parameters
    ----------
    split
        ``pool`` and ``standard``: the contexts the built-in network was trained on, nearly all usual;
        ``adversarial``: each category in contexts that are not its usual one. No two splits share an image, nor does
        any with the training images (`data.scenes.splits`).
    size
        Number of images; None is the split's default (`SIZES`). Categories take turns.
    seed
        Set seed; another seed gives other images.

    Raises
    ------
    DataError
        Unknown split, or a size or seed out of range.
    """
    if split not in SIZES:
        raise DataError(f"Unknown split {split!r} of the scenes. Known: {', '.join(SIZES)}.")
    count = SIZES[split] if size is None else size
    if count < 1:
        raise DataError(f"A set of {count} scenes is empty: choose a size of at least 1.")
    scene_seed(split, seed, count - 1)  # both in range, or a DataError that says so
    return _open(split, count, seed)


@lru_cache(maxsize=KEPT)
def _draw(split: Split, seed: int, index: int) -> tuple[np.ndarray, np.ndarray]:
    drawn = picture(split, seed, index)
    return np.asarray(drawn.image), drawn.mask


@lru_cache(maxsize=16)
def _open(split: Split, count: int, seed: int) -> ImageSet:
    def scene(index: int) -> tuple[np.ndarray, np.ndarray]:
        return _draw(split, seed, range(count)[index])

    sample = np.unique(np.linspace(0, count - 1, SAMPLE, dtype=int)).tolist()
    labels = np.array([label_of(i) for i in range(count)], dtype=np.int64)
    labels.flags.writeable = False  # all who open the set share it
    ids = tuple(f"{split}/{seed}/{i:06d}" for i in range(count))
    contexts = tuple(context_of(split, seed, i) for i in range(count))
    return ImageSet(
        name=f"scenes/{split}",
        categories=tuple(CATEGORIES),
        labels=labels,
        ids=ids,
        open=lambda i: Image.fromarray(scene(i)[0]),
        digest=_digest(ids, labels, contexts, [scene(i)[0] for i in sample]),
        mask=lambda i: scene(i)[1].copy(),
        parts=lambda i: find_parts(picture(split, seed, range(count)[i])),
        contexts=contexts,
        factors=_factors(lambda i: picture(split, seed, range(count)[i]), labels, contexts),
    )


def _factors(scene: Callable[[int], Scene], labels: np.ndarray, contexts: tuple[str, ...]) -> dict[str, Factor]:
    """Return every factor of a scene that can be changed while all else stays the same."""

    def place_in_context(i: int, context: str) -> Image.Image:
        known = scene(i)
        return render(known.seed, category=known.label, context=context).image

    def replace_object(i: int, category: str) -> Image.Image:
        known = scene(i)
        return render(known.seed, category=category, context=known.context).image

    return {
        "context": Factor(tuple(CONTEXTS), place_in_context, contexts),
        "object": Factor(tuple(CATEGORIES), replace_object, tuple(list(CATEGORIES)[k] for k in labels)),
        "colour": Factor(tuple(HUES), lambda i, colour: recolour_object(scene(i), colour)),
    }


def _digest(ids: tuple[str, ...], labels: np.ndarray, contexts: tuple[str, ...], sample: list[np.ndarray]) -> str:
    """Hash (SHA-256) ids, labels, contexts, the source that draws, and the pixels of a sample.

    All pixels of a default set cost 2 to 5 s, too much at every start. The source finds a change of the generator
    that the sample misses; the sample finds what the source cannot: another version of Pillow or NumPy that draws
    otherwise. An edited comment changes the digest too: that errs on the safe side.
    """
    total = hashlib.sha256()
    for part in ("\n".join(ids), "\n".join(contexts)):
        total.update(hashlib.sha256(part.encode()).digest())
    source = hashlib.sha256(_source().encode()).hexdigest()
    total.update(bytes.fromhex(SAME.get(source, source)))
    total.update(labels.astype("<i8").tobytes())
    for pixels in sample:
        total.update(pixels.tobytes())
    return total.hexdigest()


def _source() -> str:
    folder = Path(generator.__file__).parent
    files = sorted(path for pattern in DRAWING for path in folder.glob(pattern))
    return "\f".join(path.read_text(encoding="utf-8") for path in files)
