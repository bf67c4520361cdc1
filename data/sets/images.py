"""Open a user's image file as RGB, or raise an error of one sentence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from data.errors import DataError

EXTENSIONS = (".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp")
LIMIT = 89_478_485
"""Most pixels of an image (Pillow's own limit for decompression bombs: a quarter of 2^30 bytes at 3 bytes a pixel)."""
DIRECT = ("RGB", "L", "1", "CMYK", "YCbCr", "LAB", "HSV", "P")
ALPHA = ("RGBA", "RGBa", "LA", "La", "PA")


def read_image(path: Path) -> Image.Image:
    """Decode the whole file, upright (EXIF), as RGB; of an animation the first frame.

    Transparent images are laid on white, 16-bit grey is scaled to 8 bits.

    Raises
    ------
    DataError
        In one sentence: not an image, damaged, too large, or of a mode without a known way to RGB.
    """
    try:
        with Image.open(path) as image:
            if image.width * image.height > LIMIT:
                raise DataError(f"{image.width} x {image.height} px is more than {LIMIT:,} pixels")
            return as_rgb(ImageOps.exif_transpose(image), image.format)
    except DataError:
        raise
    except Image.DecompressionBombError:
        raise DataError(f"it has more than {LIMIT:,} pixels") from None
    except UnidentifiedImageError:
        raise DataError("it is not an image that can be read") from None
    except (OSError, SyntaxError, ValueError, EOFError) as error:  # what Pillow's decoders raise on damaged files
        raise DataError(f"it is damaged or cut short ({error})") from None


def as_rgb(image: Image.Image, file_format: str | None) -> Image.Image:
    """Convert an opened image to RGB; raise `DataError` for a mode without a known conversion."""
    if image.mode in ALPHA or "transparency" in image.info:
        layered = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", layered.size, "white"), layered).convert("RGB")
    if image.mode.startswith("I;16") or (image.mode == "I" and file_format in ("PNG", "PPM")):
        eight = np.rint(np.asarray(image).astype(np.float64) / 257)
        return Image.fromarray(np.clip(eight, 0, 255).astype(np.uint8)).convert("RGB")
    if image.mode in DIRECT:
        return image.convert("RGB")
    raise DataError(f"mode {image.mode} has no known scale, so it cannot become RGB: save it with 8 bits a channel")
