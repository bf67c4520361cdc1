"""Images from Python: files, folders, PIL images and arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from core.errors import ForetellError
from inquiry.files.image_files import find_images, open_image

OneImage = str | Path | Image.Image | NDArray[Any]
Images = OneImage | Sequence[OneImage]
"""One or several: a file, a folder, a pattern, a PIL image, or an array (H, W, 3) of uint8."""


@dataclass(frozen=True)
class NamedImage:
    """A photograph as RGB, and a name that files can have."""

    name: str
    photograph: Image.Image


def open_images(images: Images) -> list[NamedImage]:
    """Open images, also those of a folder or a pattern.

    Raises
    ------
    ForetellError
        None at all, a file that cannot be read, or something that is no image.
    """
    given = [images] if isinstance(images, str | Path | Image.Image | np.ndarray) else list(images)
    opened = [one for number, image in enumerate(given, 1) for one in _open(image, number)]
    if not opened:
        raise ForetellError("No image given: give a file, a folder, a PIL image or an array (H, W, 3).")
    return opened


def _open(image: Any, number: int) -> list[NamedImage]:
    if isinstance(image, str | Path):
        return [NamedImage(name, open_image(file)) for name, file in find_images([Path(image)]).items()]
    if isinstance(image, Image.Image):
        return [NamedImage(f"image{number}", image.convert("RGB"))]
    if isinstance(image, np.ndarray) and image.ndim == 3 and image.shape[2] == 3 and image.dtype == np.uint8:
        return [NamedImage(f"image{number}", Image.fromarray(image))]
    shape = f" {image.dtype} {tuple(image.shape)}" if hasattr(image, "shape") else ""
    raise ForetellError(
        f"Image {number} is {type(image).__name__}{shape}: give a file, a PIL image, or an array (H, W, 3) of uint8."
    )
