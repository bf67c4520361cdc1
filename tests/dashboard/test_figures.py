"""Pictures of the Explore page against hand-made maps."""

from __future__ import annotations

import io

import numpy as np
import pytest
import torch
from PIL import Image

from core.types import Certificate, Explanation
from dashboard import figures

SHAPE = (20, 20)


@pytest.fixture
def drawing() -> figures.Drawing:
    values = torch.zeros(1, 20, 20)
    values[0, :10, :10], values[0, 10:, 10:] = 1.0, -1.0
    mask = np.zeros((60, 80), dtype=bool)
    mask[:, 40:] = True
    explanation = Explanation(values, 0.0, (Certificate("gradient", 0, "f", 0.5),))
    return figures.Drawing(Image.new("RGB", (80, 60), (90, 90, 90)), SHAPE, explanation, mask)


def at(picture: Image.Image, x: float, y: float) -> tuple[int, ...]:
    pixel = picture.getpixel((round(x * picture.width), round(y * picture.height)))
    assert isinstance(pixel, tuple)
    return pixel


def test_orange_for_blue_against_grey_where_silent(drawing: figures.Drawing) -> None:
    over = drawing.over(1.0)
    assert over.size == (figures.SIDE, figures.SIDE)
    assert at(over, 0.25, 0.25) == pytest.approx((230, 97, 1), abs=2)
    assert at(over, 0.75, 0.75) == pytest.approx((33, 102, 172), abs=2)
    assert at(over, 0.75, 0.25) == pytest.approx((90, 90, 90), abs=2)
    assert at(drawing.over(0.0), 0.25, 0.25) == pytest.approx((90, 90, 90), abs=2)


def test_the_outline_is_where_the_mask_ends_in_what_the_network_sees(drawing: figures.Drawing) -> None:
    """An 80 x 60 picture is cut to its middle 60 x 60: the mask from x = 40 then begins at (40 - 10) / 60 = 1/2."""
    plain, lined = (np.asarray(drawing.picture(outline=o)) for o in (False, True))
    _, columns = np.nonzero((plain != lined).any(axis=2))
    assert abs(columns.min() / figures.SIDE - 0.5) < 0.02
    assert abs(columns.max() / figures.SIDE - 0.5) < 0.02


def test_downloads_are_what_they_say(drawing: figures.Drawing) -> None:
    sheet = Image.open(io.BytesIO(figures.png(drawing.sheet(0.8, "gradient: fish"))))
    assert sheet.format == "PNG"
    assert sheet.width == 2 * figures.SIDE
    values = torch.randn(4, 5)
    assert np.array_equal(np.load(io.BytesIO(figures.npy(values))), values.numpy())


def test_a_thumbnail_is_the_square_middle() -> None:
    wide = Image.new("RGB", (300, 100), "red")
    wide.paste((0, 0, 255), (100, 0, 200, 100))
    small = Image.open(io.BytesIO(figures.thumbnail(wide))).convert("RGB")
    assert small.size == (96, 96)
    assert all(at(small, x, 0.5)[2] > 200 for x in (0.05, 0.5, 0.95))
