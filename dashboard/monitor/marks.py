"""A participant's mark on an image, next to the region that it was to be in."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw
from scipy.ndimage import binary_erosion

from study.places.grid import Mask
from study.places.marks import Brush, Kind, Point, read_mark
from study.places.region import Region

MARKED, REGION = (255, 196, 0), (43, 138, 107)
"""Colours of the mark, as on the participants' page, and of the border of the region."""
OPACITY = 0.6
BORDER_PX, POINT_PX = 3, 7
WORDS = "Yellow: what the participant marked. Green: the border of the region that holds the evidence."


def draw_mark(image: Image.Image, kind: Kind, text: str, region: Region) -> Image.Image:
    """Draw a mark as it is stored, and the border of the region, over an image."""
    drawn, mark = np.asarray(image.convert("RGB"), dtype=np.float64), read_mark(kind, text)
    if isinstance(mark, Brush):
        brushed = _enlarge(mark.cells, image.size)
        drawn = np.where(brushed[..., None], (1 - OPACITY) * drawn + OPACITY * np.array(MARKED), drawn)
    inside = _enlarge(region.inside, image.size)
    border = inside & ~binary_erosion(inside, iterations=BORDER_PX)
    made = Image.fromarray(np.where(border[..., None], np.array(REGION), drawn).astype(np.uint8))
    if isinstance(mark, Point):
        x, y = mark.x * image.width, mark.y * image.height
        around = (x - POINT_PX, y - POINT_PX, x + POINT_PX, y + POINT_PX)
        ImageDraw.Draw(made).ellipse(around, fill=MARKED, outline="black", width=2)
    return made


def _enlarge(cells: Mask, size: tuple[int, int]) -> Mask:
    """Return the pixels (H, W) of cells."""
    return np.asarray(Image.fromarray(cells.astype(np.uint8)).resize(size, Image.Resampling.NEAREST), dtype=bool)
