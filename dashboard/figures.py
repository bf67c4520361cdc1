"""Pictures of the Explore page, put together from `core.rendering`."""

from __future__ import annotations

import io

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage
from torch import Tensor

from core.rendering import Scale, fitted, heatmap, overlay, scale_of, with_scale
from core.types import Explanation

SIDE = 448
"""Width of the drawn pictures, px."""
LEGIBLE = 300
"""Width of a map with its scale, px: about as it is shown, so that the numbers can be read."""
LINE = np.array([255, 255, 255], dtype=np.uint8)
EDGE = np.array([20, 20, 20], dtype=np.uint8)


class Drawing:
    """One explained picture, ready to be drawn in several ways.

    Parameters
    ----------
    picture
        As it was opened, any size.
    shape
        (H, W) of the network's input.
    explanation
        Of this picture alone.
    mask
        Pixels of the object (H, W), or None where they are not known.
    """

    def __init__(
        self,
        picture: Image.Image,
        shape: tuple[int, int],
        explanation: Explanation,
        mask: NDArray[np.bool_] | None = None,
    ) -> None:
        self.seen = fitted(picture, shape)
        self.size = (SIDE, round(SIDE * self.seen.height / self.seen.width))
        self.scale: Scale = scale_of(explanation)
        self._values: Tensor = explanation.map[0]
        self._error = None if explanation.error is None else explanation.error[0]
        self._mask = None if mask is None else fitted(Image.fromarray(mask), shape)

    def picture(self, *, outline: bool = False) -> Image.Image:
        """What the network saw, enlarged."""
        return self._outlined(self.seen.resize(self.size, Image.Resampling.LANCZOS), outline)

    def over(self, opacity: float, *, outline: bool = False) -> Image.Image:
        """The map over the grey picture; what chance explains is faded."""
        signed = self.scale.signed(self._values, self._error)
        return self._outlined(overlay(self.seen, signed, self.size, opacity), outline)

    def alone(self, caption: str) -> Image.Image:
        """The map as it is, with its scale."""
        size = (LEGIBLE, round(LEGIBLE * self.size[1] / self.size[0]))
        return with_scale(heatmap(self._values, self.scale, size), self.scale, caption)

    def sheet(self, opacity: float, caption: str) -> Image.Image:
        """Picture and map side by side with the scale: what a paper prints."""
        sheet = Image.new("RGB", (2 * self.size[0], self.size[1]))
        sheet.paste(self.picture(), (0, 0))
        sheet.paste(self.over(opacity), (self.size[0], 0))
        return with_scale(sheet, self.scale, caption)

    def _outlined(self, drawn: Image.Image, outline: bool) -> Image.Image:
        """The object's edge as a light line with a dark rim, to be seen on any ground."""
        if not outline or self._mask is None:
            return drawn
        inside = np.asarray(self._mask.convert("L").resize(self.size, Image.Resampling.BICUBIC)) > 127
        pixels = np.array(drawn)
        rim = ndimage.binary_dilation(inside, iterations=3) & ~ndimage.binary_erosion(inside, iterations=2)
        line = ndimage.binary_dilation(inside, iterations=2) & ~ndimage.binary_erosion(inside, iterations=1)
        pixels[rim], pixels[line] = EDGE, LINE
        return Image.fromarray(pixels)


def thumbnail(picture: Image.Image, side: int = 96) -> bytes:
    """A small square WebP of a picture, short side fitted and centre cropped."""
    buffer = io.BytesIO()
    fitted(picture, (1, 1)).resize((side, side), Image.Resampling.LANCZOS).save(buffer, "WEBP", quality=80)
    return buffer.getvalue()


def png(picture: Image.Image) -> bytes:
    """The bytes of a PNG file."""
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    return buffer.getvalue()


def npy(values: Tensor) -> bytes:
    """The bytes of an NPY file: (H, W) float32."""
    buffer = io.BytesIO()
    np.save(buffer, values.numpy())
    return buffer.getvalue()
