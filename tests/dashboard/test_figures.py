"""Pictures of the Explore page against hand-made maps."""

from __future__ import annotations

import io

import numpy as np
import pytest
import torch
from PIL import Image

from core.drawing.views import View
from core.network.geometry import Geometry
from core.types import Certificate, Explanation
from dashboard.explore import figures
from dashboard.shared.imagegrid import make_thumbnail

HALF = ((3.0, 0.0, 10.0), (0.0, 3.0, 0.0))
"""A network that sees the middle 60 x 60 of 80 x 60 px in 20 x 20."""


def seen(width: int, height: int) -> View:
    grey = (90, 90, 90)
    geometry = Geometry((width, height), (20, 20), HALF if width == 80 else ((3.0, 0.0, 0.0), (0.0, 3.0, 0.0)))
    return View(Image.new("RGB", (width, height), grey), Image.new("RGB", (20, 20), grey), geometry)


@pytest.fixture
def drawing() -> figures.HeatmapDrawing:
    values = torch.zeros(1, 20, 20)
    values[0, :10, :10], values[0, 10:, 10:] = 1.0, -1.0
    mask = np.zeros((60, 80), dtype=bool)
    mask[:, 40:] = True
    explanation = Explanation(values, 0.0, (Certificate("gradient", 0, "f", 0.5),))
    return figures.HeatmapDrawing(seen(80, 60), explanation, mask)


def at(picture: Image.Image, x: float, y: float) -> tuple[int, ...]:
    pixel = picture.getpixel((round(x * picture.width), round(y * picture.height)))
    assert isinstance(pixel, tuple)
    return pixel


def test_orange_for_blue_against_grey_where_silent(drawing: figures.HeatmapDrawing) -> None:
    over = drawing.draw_overlay(1.0)
    assert over.size == (figures.SIDE, figures.SIDE)
    assert at(over, 0.25, 0.25) == pytest.approx((230, 97, 1), abs=2)
    assert at(over, 0.75, 0.75) == pytest.approx((33, 102, 172), abs=2)
    assert at(over, 0.75, 0.25) == pytest.approx((90, 90, 90), abs=2)
    assert at(drawing.draw_overlay(0.0), 0.25, 0.25) == pytest.approx((90, 90, 90), abs=2)


def test_the_outline_is_where_the_mask_ends_in_what_the_network_sees(drawing: figures.HeatmapDrawing) -> None:
    """An 80 x 60 picture is cut to its middle 60 x 60: the mask from x = 40 then begins at (40 - 10) / 60 = 1/2."""
    plain, lined = (np.asarray(drawing.draw_input(outline=o)) for o in (False, True))
    _, columns = np.nonzero((plain != lined).any(axis=2))
    assert abs(columns.min() / figures.SIDE - 0.5) < 0.02
    assert abs(columns.max() / figures.SIDE - 0.5) < 0.02


def test_the_line_goes_around_what_speaks_most_for_the_class(drawing: figures.HeatmapDrawing) -> None:
    """A quarter of the picture speaks for the class: its inside keeps its colours, its edge is orange, nothing else."""
    plain, lined = (np.asarray(picture) for picture in (drawing.draw_input(), drawing.draw_strongest(25)))
    rows, columns = np.nonzero((plain != lined).any(axis=2))
    assert abs(rows.max() / figures.SIDE - 0.5) < 0.05
    assert abs(columns.max() / figures.SIDE - 0.5) < 0.05
    assert at(drawing.draw_strongest(25), 0.25, 0.25) == at(drawing.draw_input(), 0.25, 0.25)
    orange = (lined == np.array([230, 97, 1])).all(axis=2)
    assert orange.any()


@pytest.mark.parametrize("values", [0.0, -1.0])
def test_a_map_that_says_nothing_for_the_class_has_no_line(values: float) -> None:
    explanation = Explanation(torch.full((1, 20, 20), values), 0.0, (Certificate("gradient", 0, "f", 0.5),))
    silent = figures.HeatmapDrawing(seen(60, 60), explanation)
    assert np.array_equal(np.asarray(silent.draw_input()), np.asarray(silent.draw_strongest(10)))


def test_the_line_leaves_out_what_says_nothing_however_much_is_asked_for(drawing: figures.HeatmapDrawing) -> None:
    """A quarter speaks for the class, half says nothing: the 60 % are that quarter."""
    drawn = np.nonzero((np.asarray(drawing.draw_strongest(60)) != np.asarray(drawing.draw_input())).any(axis=2))
    assert all(0.45 < along.max() / figures.SIDE < 0.55 for along in drawn)


def test_a_line_around_fewer_pixels_is_inside_one_around_more(drawing: figures.HeatmapDrawing) -> None:
    generator = torch.Generator().manual_seed(0)
    explanation = Explanation(torch.randn(1, 20, 20, generator=generator), 0.0, (Certificate("g", 0, "f", 0.5),))
    noisy = figures.HeatmapDrawing(seen(60, 60), explanation)
    few, many = ((np.asarray(noisy.draw_strongest(q)) != 90).any(axis=2).sum() for q in (2, 20))
    assert few < many


def test_arrays_are_what_they_say() -> None:
    values = torch.randn(4, 5)
    assert np.array_equal(np.load(io.BytesIO(figures.encode_npy(values))), values.numpy())


def test_a_thumbnail_is_the_square_middle() -> None:
    wide = Image.new("RGB", (300, 100), "red")
    wide.paste((0, 0, 255), (100, 0, 200, 100))
    small = Image.open(io.BytesIO(make_thumbnail(wide))).convert("RGB")
    assert small.size == (96, 96)
    assert all(at(small, x, 0.5)[2] > 200 for x in (0.05, 0.5, 0.95))
