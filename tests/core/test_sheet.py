"""The two ways a sheet is written down say the same."""

from __future__ import annotations

import base64
import io
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from core.drawing.sheet import PIXELS, ImageItem, Line, Rectangle, Sheet, Words, render_png, render_svg, wrap_text

NOISE = Image.fromarray(np.random.default_rng(0).integers(0, 255, (20, 30, 3), dtype=np.uint8))
NASTY = "</text><script>alert(1)</script> & \"quoted\" 'ünïcode' 鱼"
SHEET = Sheet(
    100,
    60,
    (
        ImageItem(10, 5, 15, 10, NOISE),
        Rectangle(40, 5, 20, 10, "#e66101"),
        Line(((70, 5), (90, 5), (90, 25)), "#2166ac", 2),
        Words(10, 40, NASTY, 10),
    ),
)
SPACE = "{http://www.w3.org/2000/svg}"


def test_pixels_are_where_they_were_put() -> None:
    drawn = render_png(SHEET)
    assert drawn.size == (100 * PIXELS, 60 * PIXELS)
    inside = drawn.crop((10 * PIXELS, 5 * PIXELS, 25 * PIXELS, 15 * PIXELS))
    assert np.array_equal(np.asarray(inside), np.asarray(NOISE))
    assert drawn.getpixel((50 * PIXELS, 10 * PIXELS)) == (230, 97, 1)
    assert drawn.getpixel((90 * PIXELS, 20 * PIXELS)) == (33, 102, 172)
    assert drawn.getpixel((99, 110)) != (255, 255, 255) or np.asarray(drawn)[80:100].min() < 128
    assert drawn.getpixel((5, 5)) == (255, 255, 255)


def test_svg_holds_the_same_images_and_words_and_nothing_that_runs() -> None:
    root = ElementTree.fromstring(render_svg(SHEET))
    assert (root.get("width"), root.get("height"), root.get("viewBox")) == ("100", "60", "0 0 100 60")
    (image,) = root.findall(f"{SPACE}image")
    form, _, content = (image.get("href") or "").partition(",")
    assert form == "data:image/png;base64"
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(base64.b64decode(content)))), np.asarray(NOISE))
    assert [text.text for text in root.findall(f"{SPACE}text")] == [NASTY]
    assert {element.tag.removeprefix(SPACE) for element in root} == {"rect", "image", "polyline", "text"}


@pytest.mark.parametrize("size", [9.0, 14.0])
def test_lines_fit_and_keep_every_word(size: float) -> None:
    text = "a classifier says of a picture what an unbelievablylongwordthatfitsnowhereatall is"
    lines = wrap_text(text, 90, size)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    sheet = Sheet(200, 20, tuple(Words(0, 0, line, size) for line in lines))
    ink = np.nonzero((np.asarray(render_png(sheet)) < 128).any(axis=(0, 2)))[0]
    assert 50 * PIXELS < ink.max() < 90 * PIXELS
    assert wrap_text("", 90, size) == []
