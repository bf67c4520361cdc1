"""Read an image from an untrusted file: as an image and nothing else, within limits."""

from __future__ import annotations

import io

from PIL import Image, ImageOps, UnidentifiedImageError

from core.errors import ForetellError
from data.sets.images import as_rgb

FORMATS = ("PNG", "JPEG", "WEBP")
ENDINGS = ["png", "jpg", "jpeg", "webp"]
MOST_BYTES = 20 * 2**20
MOST_PIXELS = 40_000_000
"""Checked before anything is unpacked: a small file can hold an image that fills the memory."""


def decode_image(content: bytes, name: str) -> Image.Image:
    """Read the image of a file as RGB, with its orientation applied.

    Raises
    ------
    ForetellError
        Too large, cut off, or no PNG, JPEG or WebP.
    """
    if len(content) > MOST_BYTES:
        raise ForetellError(f"{name} is larger than {MOST_BYTES // 2**20} MB. Choose a smaller file.")
    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as image:
            _check_size(image, name)
            return as_rgb(ImageOps.exif_transpose(image), image.format)
    except Image.DecompressionBombError:
        raise _too_many_pixels(name) from None
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError):
        raise ForetellError(f"{name} cannot be read as an image. Choose a PNG, JPEG or WebP file.") from None


def _check_size(image: Image.Image, name: str) -> None:
    if image.width * image.height > MOST_PIXELS:
        raise _too_many_pixels(name)


def _too_many_pixels(name: str) -> ForetellError:
    return ForetellError(f"{name} has more than {MOST_PIXELS // 10**6} million pixels. Reduce its size first.")
