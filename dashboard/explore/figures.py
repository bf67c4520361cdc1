"""Images of the Explore page, put together from `core.drawing.rendering`."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage
from torch import Tensor

from core.drawing.rendering import AGAINST, FOR, QUANTILE, Scale, heatmap, overlay, scale_of, with_scale
from core.drawing.views import View
from core.types import Explanation

SIDE = 448
"""Width of the drawn images, px."""
LEGIBLE = 300
"""Width of a heatmap with its scale, px: about as it is shown, so that the numbers can be read."""
MOST_WIDTH = 1460
"""Width to which Streamlit reduces an image that fills the page, px."""
LINE = np.array([255, 255, 255], dtype=np.uint8)
EDGE = np.array([20, 20, 20], dtype=np.uint8)
DELETION, INSERTION = "#b2460a", "#2166ac"
"""Colours of the two curves of a heatmap."""
FAINTEST = 1e-3
"""Share of a heatmap's largest value that counts as evidence: a heatmap of zeros has no outline."""
FOR_CLASS, AGAINST_CLASS = (f"rgb({', '.join(f'{part:.0f}' for part in colour)})" for colour in (FOR, AGAINST))
"""The heatmaps' two colours for plots: one meaning of each colour on every page."""
Style = Literal["Colours", "Outline", "Heatmap alone"]
"""How a heatmap is drawn: as colours over the image, as the outline of where most of its evidence is, or without it."""


@dataclass(frozen=True)
class HeatmapStyle:
    """How heatmaps are drawn: opacity is the colours', percent the outline's; ``outline`` draws the object's edge.

    ``clip`` is the percentage of pixels, the strongest ones, that all get the full colour.
    """

    style: Style = "Colours"
    opacity: float = 0.8
    percent: float = 10.0
    outline: bool = False
    clip: float = 100 * (1 - QUANTILE)

    @property
    def quantile(self) -> float:
        """Return the quantile of the absolute values that gets the full colour."""
        return 1 - self.clip / 100


class HeatmapDrawing:
    """One explained image, ready to be drawn in several ways.

    Parameters
    ----------
    seen
        The image as the network sees it.
    explanation
        Of this image alone.
    mask
        Pixels of the object (h, w) in the whole image, or None where they are not known.
    scale
        The value of the full colour; the heatmap's own by default.
    """

    def __init__(
        self,
        seen: View,
        explanation: Explanation,
        mask: NDArray[np.bool_] | None = None,
        scale: Scale | None = None,
    ) -> None:
        self.size = seen.size(SIDE)
        self._seen = seen
        self.scale: Scale = scale or scale_of(explanation)
        self._values: Tensor = explanation.map[0]
        self._error = None if explanation.error is None else explanation.error[0]
        self._mask = None if mask is None or seen.note else seen.cut(mask, self.size)

    def draw_input(self, *, outline: bool = False) -> Image.Image:
        """Draw the network's input, enlarged."""
        return self._add_outline(self._seen.draw(self.size), outline)

    def draw_overlay(self, opacity: float, *, outline: bool = False) -> Image.Image:
        """Draw the heatmap over the grey image; values within sampling error are faded."""
        signed = self.scale.normalise_map(self._values, self._error)
        return self._add_outline(overlay(self._seen.draw(self.size, "L"), signed, self.size, opacity), outline)

    def draw_strongest(self, percent: float, *, outline: bool = False) -> Image.Image:
        """Draw the image with an orange line around the ``percent``% of pixels with the strongest evidence.

        Only evidence for the class counts; values within sampling error count as faded.
        """
        drawn = self.draw_input(outline=outline)
        signed = Scale(self.scale.zero, float(self._values.sub(self.scale.zero).abs().max()) or 1.0)
        # Bilinear: a bicubic overshoot next to a strong edge would be outlined as evidence.
        evidence = np.asarray(
            Image.fromarray(signed.normalise_map(self._values, self._error)).resize(
                self.size, Image.Resampling.BILINEAR
            )
        )
        inside = (evidence >= np.quantile(evidence, 1 - percent / 100)) & (evidence > FAINTEST)
        pixels = np.array(drawn)
        pixels[_edge(inside, 4, 2)], pixels[_edge(inside, 3, 1)] = EDGE, FOR.astype(np.uint8)
        return Image.fromarray(pixels)

    def draw(self, look: HeatmapStyle) -> Image.Image:
        """Draw the heatmap over its image in the chosen style."""
        if look.style == "Outline":
            return self.draw_strongest(look.percent, outline=look.outline)
        if look.style == "Heatmap alone":
            return self._add_outline(heatmap(self._values, self.scale, self.size), look.outline)
        return self.draw_overlay(look.opacity, outline=look.outline)

    def draw_with_scale(self, caption: str) -> Image.Image:
        """Draw the heatmap alone, with its scale."""
        size = (LEGIBLE, round(LEGIBLE * self.size[1] / self.size[0]))
        return with_scale(heatmap(self._values, self.scale, size), self.scale, caption)

    def _add_outline(self, drawn: Image.Image, outline: bool) -> Image.Image:
        """Draw the object's edge as a light line with a dark rim, visible on any ground."""
        if not outline or self._mask is None:
            return drawn
        pixels = np.array(drawn)
        pixels[_edge(self._mask, 3, 2)], pixels[_edge(self._mask, 2, 1)] = EDGE, LINE
        return Image.fromarray(pixels)


def _edge(inside: NDArray[np.bool_], out: int, into: int) -> NDArray[np.bool_]:
    """Return the pixels near a mask's edge, on both sides; the image border is not an edge."""
    grown = ndimage.binary_dilation(inside, iterations=out)
    shrunk = ndimage.binary_erosion(inside, iterations=into, border_value=1)
    edge: NDArray[np.bool_] = grown & ~shrunk
    return edge


def encode_for_page(image: Image.Image, width: int = MOST_WIDTH) -> bytes:
    """Encode an image as PNG for a page that shows it at most ``width`` px wide.

    Streamlit reduces and compresses a larger image each time the page is drawn; and the strongest compression takes
    four times as long as the weakest, for a file a tenth smaller.
    """
    if image.width > width:
        size = (width, max(1, round(image.height * width / image.width)))
        image = image.resize(size, Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    image.save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()


def encode_npy(values: Tensor) -> bytes:
    """Encode an array as NPY: (H, W) float32."""
    buffer = io.BytesIO()
    np.save(buffer, values.numpy())
    return buffer.getvalue()
