"""A pen that draws parts of an object in unit coordinates, posed and supersampled."""

from __future__ import annotations

import colorsys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw

SIZE = 96
"""Side of a picture, px."""
OVERSAMPLING = 4
CLEAR = (0, 0, 0, 0)

Colour = tuple[int, int, int]
Point = tuple[float, float]


def hsv(hue: float, saturation: float, value: float) -> Colour:
    """8-bit RGB from hue (any real, one turn = 1), saturation and value in [0, 1]."""
    red, green, blue = colorsys.hsv_to_rgb(hue % 1.0, min(max(saturation, 0.0), 1.0), min(max(value, 0.0), 1.0))
    return round(255 * red), round(255 * green), round(255 * blue)


def shade(colour: Colour, factor: float) -> Colour:
    """Darker for ``factor`` < 1; mixed with white for ``factor`` > 1 (2 is white)."""
    if factor <= 1:
        return tuple(round(c * factor) for c in colour)  # type: ignore[return-value]
    return tuple(round(c + (255 - c) * (factor - 1)) for c in colour)  # type: ignore[return-value]


@dataclass(frozen=True)
class Pose:
    """Where an object stands: centre and half extent in px, rotation in radians, mirrored left to right or not."""

    centre: Point
    radius: float
    angle: float = 0.0
    mirrored: bool = False
    aspect: float = 1.0

    def matrix(self) -> np.ndarray:
        """(2, 2) map from unit coordinates (x right, y down) to supersampled px."""
        cos, sin = np.cos(self.angle), np.sin(self.angle)
        stretch = np.diag([(-1 if self.mirrored else 1) * self.aspect, 1 / self.aspect])
        return OVERSAMPLING * self.radius * np.array([[cos, -sin], [sin, cos]]) @ stretch


class Pen:
    """Draws on a transparent canvas (384, 384); every part covers what was drawn before it.

    Parameters
    ----------
    pose
        Turns unit coordinates, about [-1, 1] in both directions, into px.
    outline
        Width of the outline around each part, in unit coordinates.
    """

    def __init__(self, pose: Pose, outline: float = 0.045) -> None:
        side = SIZE * OVERSAMPLING
        self.canvas = Image.new("RGBA", (side, side), CLEAR)
        self._draw = ImageDraw.Draw(self.canvas)
        self._matrix = pose.matrix()
        self._centre = OVERSAMPLING * np.asarray(pose.centre)
        self._unit = OVERSAMPLING * pose.radius
        self._outline = outline

    def name(self, part: str) -> None:
        """Name the part that is drawn next, up to the next name; the drawing does not depend on it."""

    def polygon(self, points: Sequence[Point], colour: Colour, *, outline: float = 0.5) -> None:
        """Fill a closed polygon; its outline is the colour times ``outline`` (1: none)."""
        place = self._place(points)
        self._draw.polygon(place, fill=(*colour, 255))
        if outline < 1:
            self._stroke([*place, place[0], place[1]], shade(colour, outline), self._outline)

    def curve(self, points: Sequence[Point], colour: Colour, *, outline: float = 0.5) -> None:
        """Fill a smooth closed curve through the points (Catmull-Rom spline)."""
        self.polygon(_spline(np.asarray(points, dtype=float)), colour, outline=outline)

    def ellipse(
        self,
        centre: Point,
        radii: Point,
        colour: Colour,
        *,
        turn: float = 0.0,
        arc: Point = (0.0, 1.0),
        outline: float = 0.5,
    ) -> None:
        """Fill an ellipse turned by ``turn`` radians, or the segment of it between two parts ``arc`` of a turn."""
        self.polygon(oval(centre, radii, turn=turn, arc=arc), colour, outline=outline)

    def line(self, points: Sequence[Point], colour: Colour, width: float) -> None:
        """A stroke of ``width`` unit coordinates through the points, with round ends."""
        place = self._place(points)
        self._stroke(place, colour, width)
        half = width * self._unit / 2
        for x, y in (place[0], place[-1]):
            self._draw.ellipse((x - half, y - half, x + half, y + half), fill=(*colour, 255))

    def erase(self, points: Sequence[Point]) -> None:
        """Cut a hole."""
        self._draw.polygon(self._place(points), fill=CLEAR)

    def _stroke(self, place: list[Point], colour: Colour, width: float) -> None:
        joint = "curve" if len(place) < 20 else None  # dense curves have no visible gaps
        self._draw.line(place, fill=(*colour, 255), width=max(1, round(width * self._unit)), joint=joint)

    def _place(self, points: Sequence[Point]) -> list[Point]:
        placed = np.asarray(points, dtype=float) @ self._matrix.T + self._centre
        return [(x, y) for x, y in placed.tolist()]


class PartPen(Pen):
    """Also records which named part is where, for the same drawing.

    Attributes
    ----------
    names
        Of the parts, in the order of their first drawing.
    """

    def __init__(self, pose: Pose) -> None:
        super().__init__(pose)
        self.names: list[str] = []
        self._recorded = Image.new("L", self.canvas.size, 0)
        self._recorder = ImageDraw.Draw(self._recorded)
        self._number = 0

    def name(self, part: str) -> None:
        """Record what is drawn next as this part."""
        self.names += [] if part in self.names else [part]
        self._number = self.names.index(part) + 1

    def polygon(self, points: Sequence[Point], colour: Colour, *, outline: float = 0.5) -> None:
        """Fill a closed polygon and record it."""
        self._recorder.polygon(self._place(points), fill=self._number)
        super().polygon(points, colour, outline=outline)

    def erase(self, points: Sequence[Point]) -> None:
        """Cut a hole."""
        super().erase(points)
        self._recorder.polygon(self._place(points), fill=0)

    def read_parts(self) -> np.ndarray:
        """Return the number of the part (96, 96) at the middle of each pixel, uint8: 0 for none, 1 for the first."""
        middle = OVERSAMPLING // 2
        return np.asarray(self._recorded)[middle::OVERSAMPLING, middle::OVERSAMPLING].copy()

    def _stroke(self, place: list[Point], colour: Colour, width: float) -> None:
        super()._stroke(place, colour, width)
        self._recorder.line(place, fill=self._number, width=max(1, round(width * self._unit)))


def oval(centre: Point, radii: Point, *, turn: float = 0.0, arc: Point = (0.0, 1.0)) -> list[Point]:
    """Points of an ellipse, or of the arc between two parts of a turn (0 is right, 0.25 is down)."""
    angles = 2 * np.pi * np.linspace(*arc, 29)
    x, y = radii[0] * np.cos(angles), radii[1] * np.sin(angles)
    cos, sin = np.cos(turn), np.sin(turn)
    return list(zip(centre[0] + cos * x - sin * y, centre[1] + sin * x + cos * y, strict=True))


def _spline(knots: np.ndarray, steps: int = 6) -> list[Point]:
    """Closed Catmull-Rom spline through (n, 2) knots, ``steps`` points a segment."""
    t = np.linspace(0, 1, steps, endpoint=False)[:, None, None]
    before, after, beyond = (np.roll(knots, shift, axis=0) for shift in (1, -1, -2))
    bend = 2 * before - 5 * knots + 4 * after - beyond
    twist = -before + 3 * knots - 3 * after + beyond
    points = knots + 0.5 * (t * (after - before) + t**2 * bend + t**3 * twist)
    return [(x, y) for x, y in points.transpose(1, 0, 2).reshape(-1, 2).tolist()]
