"""Shapes of things people make (and of a star)."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from data.scenes.pen import Colour, Pen, Point, hsv, oval, shade

WHITE: Colour = (250, 250, 250)
BLACK: Colour = (25, 25, 30)
GLASS: Colour = (170, 215, 240)


def _paint(rng: np.random.Generator) -> Colour:
    """Any strong colour."""
    return hsv(rng.uniform(), rng.uniform(0.5, 0.95), rng.uniform(0.6, 1.0))


def _wood(rng: np.random.Generator) -> Colour:
    return hsv(rng.uniform(0.05, 0.1), rng.uniform(0.5, 0.75), rng.uniform(0.4, 0.7))


def boat(pen: Pen, rng: np.random.Generator) -> None:
    """Sailing boat: hull with a stripe and portholes, mast, main sail, jib and flag."""
    hull, sail = _paint(rng), shade(_paint(rng), rng.uniform(1.2, 1.95))
    mast, lean = _wood(rng), rng.uniform(-0.08, 0.08)
    pen.name("mast")
    pen.line([(0, 0.5), (lean, -0.98)], shade(mast, 0.7), 0.08)
    pen.name("main sail")
    pen.curve([(lean + 0.1, -0.85), (0.45, -0.3), (0.82, 0.28), (0.45, 0.32), (0.08, 0.3), (0.08, -0.3)], sail)
    pen.name("jib")
    pen.curve(
        [(lean - 0.08, -0.72), (-0.08, -0.2), (-0.08, 0.3), (-0.4, 0.32), (-0.7, 0.28), (-0.36, -0.2)],
        shade(sail, 0.88),
    )
    pen.name("main sail")
    for y in (-0.35, 0.0):
        pen.line([(0.1, y), (0.42 + 0.55 * (y + 0.35), y + 0.02)], shade(sail, 0.7), 0.03)
    pen.name("flag")
    pen.polygon([(lean, -1.02), (lean + 0.26, -0.94), (lean, -0.86)], _paint(rng))
    pen.name("hull")
    pen.curve(
        [(-0.98, 0.44), (-0.4, 0.5), (0.4, 0.5), (1.0, 0.4), (0.82, 0.72), (0.55, 0.92), (-0.55, 0.92), (-0.84, 0.72)],
        hull,
    )
    pen.polygon([(-0.92, 0.5), (0.93, 0.48), (0.88, 0.6), (-0.88, 0.61)], shade(hull, 1.6), outline=1)
    for x in (-0.4, 0, 0.4):
        pen.ellipse((x, 0.74), (0.075, 0.075), GLASS, outline=0.4)


def balloon(pen: Pen, rng: np.random.Generator) -> None:
    """Hot-air balloon: envelope of coloured gores, ropes and a basket."""
    first, second, basket = _paint(rng), _paint(rng), _wood(rng)
    pen.name("ropes")
    for x in (-0.3, -0.1, 0.1, 0.3):
        pen.line([(x, 0.35), (x * 0.55, 0.78)], shade(basket, 0.5), 0.035)
    pen.name("envelope")
    edge = np.array([(-0.16, 0.45), (-0.5, 0.16), (-0.72, -0.25), (-0.6, -0.7), (0, -1.0)])
    for k, wide in enumerate((1.0, 0.72, 0.42, 0.14)):
        left = edge * [wide, 1]
        right = left[-2::-1] * [-1, 1]
        colour = first if k % 2 == 0 else second
        pen.curve([tuple(p) for p in np.vstack([left, right])], colour, outline=0.55 if k == 0 else 0.75)
    pen.ellipse((-0.36, -0.5), (0.09, 0.22), shade(first, 1.5), turn=0.45, outline=1)
    pen.ellipse((0, 0.44), (0.19, 0.06), shade(second, 0.6))
    pen.name("basket")
    pen.polygon([(-0.21, 0.74), (0.21, 0.74), (0.16, 1.02), (-0.16, 1.02)], basket)
    for y in (0.83, 0.92):
        pen.line([(-0.17, y), (0.17, y)], shade(basket, 0.65), 0.03)


def car(pen: Pen, rng: np.random.Generator) -> None:
    """Body, cabin with two windows, door, lights, bumpers, two wheels with hubs."""
    paint, roof, rear = _paint(rng), rng.uniform(-0.6, -0.48), rng.uniform(-0.78, -0.55)
    pen.name("cabin")
    pen.curve(
        [(rear, -0.02), (rear + 0.14, roof + 0.08), (-0.2, roof - 0.03), (0.18, roof), (0.5, -0.06), (0, 0.1)],
        shade(paint, 0.92),
    )
    pen.polygon([(rear + 0.12, -0.06), (rear + 0.22, roof + 0.12), (-0.14, roof + 0.07), (-0.14, -0.06)], GLASS)
    pen.polygon([(-0.06, -0.06), (-0.06, roof + 0.07), (0.14, roof + 0.1), (0.38, -0.06)], GLASS)
    pen.line([(rear + 0.28, -0.1), (rear + 0.36, roof + 0.18)], WHITE, 0.045)
    pen.name("body")
    pen.curve(
        [
            (-0.98, 0.3),
            (-0.96, 0.04),
            (-0.7, -0.07),
            (0, -0.08),
            (0.5, -0.05),
            (0.86, 0.04),
            (0.99, 0.22),
            (0.96, 0.38),
            (0, 0.42),
            (-0.92, 0.4),
        ],
        paint,
    )
    pen.polygon([(-0.9, 0.02), (0.8, 0.04), (0.84, 0.1), (-0.94, 0.1)], shade(paint, 1.35), outline=1)
    pen.line([(-0.1, -0.04), (-0.1, 0.36)], shade(paint, 0.6), 0.03)
    pen.line([(-0.32, 0.12), (-0.2, 0.12)], shade(paint, 0.4), 0.045)
    pen.name("front light")
    pen.ellipse((0.89, 0.16), (0.08, 0.08), (255, 244, 180))
    pen.name("rear light")
    pen.ellipse((-0.92, 0.16), (0.05, 0.08), (205, 35, 35))
    pen.name("body")
    pen.line([(-0.96, 0.35), (0.96, 0.35)], (90, 90, 95), 0.07)
    pen.name("wheels")
    for x in (-0.55, 0.55):
        pen.ellipse((x, 0.4), (0.235, 0.235), (38, 38, 42))
        pen.ellipse((x, 0.4), (0.12, 0.12), (200, 202, 208))
        pen.ellipse((x, 0.4), (0.04, 0.04), (70, 70, 75), outline=1)


def cup(pen: Pen, rng: np.random.Generator) -> None:
    """Mug: handle, body with a pattern, rim, coffee."""
    glaze, tall, foot = shade(_paint(rng), rng.uniform(1.0, 1.8)), rng.uniform(0.75, 0.95), rng.uniform(0.42, 0.6)
    pen.name("handle")
    pen.line(oval((0.56, 0.06), (0.36, 0.38), arc=(-0.3, 0.3)), shade(glaze, 0.5), 0.23)
    pen.line(oval((0.56, 0.06), (0.36, 0.38), arc=(-0.3, 0.3)), shade(glaze, 0.9), 0.15)
    pen.name("body")
    side: list[Point] = [(-0.66, -0.62), (0.66, -0.62), (0.62, 0.2), (foot, tall - 0.06)]
    pen.polygon([*side, *oval((0, tall - 0.06), (foot, 0.13), arc=(0, 0.5)), (-0.62, 0.2)], glaze)
    pen.polygon([(-0.6, -0.4), (-0.42, -0.4), (-0.36, tall - 0.12), (-0.48, tall - 0.14)], shade(glaze, 1.5), outline=1)
    pattern, kind = _paint(rng), int(rng.integers(3))
    if kind == 0:
        pen.polygon([(-0.64, -0.1), (0.64, -0.1), (0.62, 0.18), (-0.62, 0.18)], pattern, outline=0.7)
    elif kind == 1:
        for x, y in [(-0.3, -0.1), (0.1, 0.1), (0.4, -0.15), (-0.15, 0.42), (0.32, 0.45)]:
            pen.ellipse((x, y), (0.1, 0.1), pattern, outline=1)
    else:
        pen.curve([(0, 0.45), (-0.32, 0.1), (-0.2, -0.15), (0, 0), (0.2, -0.15), (0.32, 0.1)], pattern, outline=0.7)
    pen.name("rim")
    pen.ellipse((0, -0.62), (0.66, 0.2), shade(glaze, 1.4))
    pen.ellipse((0, -0.6), (0.54, 0.13), hsv(0.07, 0.7, rng.uniform(0.2, 0.45)), outline=1)


def key(pen: Pen, rng: np.random.Generator) -> None:
    """Bow with a hole, collar, shaft, teeth; brass, steel or painted."""
    metal = (hsv(0.12, 0.7, 0.88), hsv(0.6, 0.1, 0.75), hsv(0.07, 0.65, 0.7), _paint(rng))[int(rng.integers(4))]
    dark, clover = shade(metal, 0.5), rng.uniform() < 0.35
    teeth = rng.uniform(0.2, 0.34, 3)
    pen.name("shaft")
    pen.polygon([(-0.3, -0.11), (1.0, -0.11), (1.0, 0.11), (-0.3, 0.11)], metal)
    pen.name("teeth")
    for x, depth in zip((0.5, 0.68, 0.86), teeth, strict=True):
        pen.polygon([(x - 0.01, 0.06), (x + 0.13, 0.06), (x + 0.13, 0.1 + depth), (x - 0.01, 0.1 + depth)], metal)
    pen.name("shaft")
    pen.polygon([(-0.28, -0.05), (0.97, -0.05), (0.97, 0.06), (-0.28, 0.06)], metal, outline=1)
    pen.name("bow")
    if clover:
        for x, y in [(-0.55, -0.24), (-0.55, 0.24), (-0.8, 0.0)]:
            pen.ellipse((x, y), (0.28, 0.28), metal)
        pen.ellipse((-0.6, 0), (0.26, 0.26), metal, outline=1)
    else:
        pen.ellipse((-0.6, 0), (0.42, rng.uniform(0.38, 0.48)), metal)
    pen.line(oval((-0.6, 0), (0.3, 0.3), arc=(0.5, 0.78)), shade(metal, 1.6), 0.06)
    hole = oval((-0.64, 0), (0.16, 0.16))
    pen.line([*hole, hole[1]], dark, 0.08)
    pen.erase(hole)
    pen.name("collar")
    pen.polygon([(-0.2, -0.19), (-0.08, -0.19), (-0.08, 0.19), (-0.2, 0.19)], metal)
    pen.name("shaft")
    pen.line([(0.0, -0.06), (0.92, -0.06)], shade(metal, 1.6), 0.04)


def star(pen: Pen, rng: np.random.Generator) -> None:
    """Five points, each with a lit and a dark facet."""
    bright = hsv(rng.uniform(0.1, 0.17), rng.uniform(0.3, 0.95), 1.0) if rng.uniform() < 0.6 else _paint(rng)
    inner, contrast = rng.uniform(0.4, 0.52), rng.uniform(0.72, 0.92)
    angles = -np.pi / 2 + np.pi * np.arange(10) / 5
    radii = np.where(np.arange(10) % 2 == 0, 1.0, inner)
    points = list(zip(radii * np.cos(angles), radii * np.sin(angles), strict=True))
    for k in range(0, 10, 2):
        pen.name(f"point {k // 2 + 1}")
        pen.polygon([(0, 0), points[k], points[(k + 1) % 10]], shade(bright, contrast), outline=1)
        pen.polygon([(0, 0), points[k], points[k - 1]], shade(bright, 1.25), outline=1)
    pen.name("outline")
    pen.line([*points, points[0]], shade(bright, 0.55), 0.04)


def umbrella(pen: Pen, rng: np.random.Generator) -> None:
    """Dome of alternating panels with a scalloped edge, tip, pole, hooked handle."""
    first, second, grip = _paint(rng), shade(_paint(rng), rng.uniform(1.0, 1.8)), _wood(rng)
    pen.name("pole")
    pen.line([(0, -0.98), (0, 0.8)], (95, 95, 105), 0.085)
    pen.name("handle")
    pen.line([(0, 0.55), (0, 0.82), *oval((0.15, 0.82), (0.15, 0.16), arc=(0.5, 0.02))], shade(grip, 0.9), 0.14)
    pen.name("dome")
    edges = np.array([-0.98, -0.62, -0.22, 0.22, 0.62, 0.98])
    ribs = [np.array([(0, -0.9), (0.55 * e, -0.78), (0.86 * e, -0.42), (e, 0.08)]) for e in edges]
    dome = np.vstack([ribs[0][::-1], ribs[-1]])
    pen.polygon([(x, y) for x, y in dome], first)
    for k, (left, right) in enumerate(pairwise(ribs)):
        middle = [(0.5 * (edges[k] + edges[k + 1]), -0.06)]
        panel = [*map(tuple, left), *middle, *map(tuple, right[::-1])]
        pen.polygon(panel, first if k % 2 == 0 else second, outline=0.6)
    pen.line([(-0.5, -0.6), (-0.7, -0.3)], shade(first, 1.6), 0.05)


def house(pen: Pen, rng: np.random.Generator) -> None:
    """Walls, gabled roof with tiles, chimney, door with a knob, two windows with panes."""
    wall, roof = shade(_paint(rng), rng.uniform(1.2, 1.7)), hsv(rng.uniform(0.95, 1.1), 0.7, rng.uniform(0.35, 0.8))
    door, peak, stack = _paint(rng), rng.uniform(-1.0, -0.82), rng.choice([-0.5, 0.5])
    pen.name("chimney")
    pen.polygon(
        [(stack - 0.12, -0.9), (stack + 0.12, -0.9), (stack + 0.12, -0.3), (stack - 0.12, -0.3)], shade(roof, 0.75)
    )
    pen.name("walls")
    pen.polygon([(-0.78, -0.22), (0.78, -0.22), (0.78, 0.95), (-0.78, 0.95)], wall)
    for y in np.arange(0.0, 0.95, 0.2):
        pen.line([(-0.75, y), (0.75, y)], shade(wall, 0.86), 0.025)
    pen.name("roof")
    pen.polygon([(-1.02, -0.12), (0, peak), (1.02, -0.12), (0.98, 0.02), (-0.98, 0.02)], roof)
    for t in (0.35, 0.6, 0.82):
        y = peak + t * (-0.12 - peak)
        pen.line([(-0.95 * t, y), (0.95 * t, y)], shade(roof, 0.65), 0.035)
    pen.name("door")
    pen.polygon([(-0.2, 0.3), (0.2, 0.3), (0.2, 0.95), (-0.2, 0.95)], door)
    pen.ellipse((0.11, 0.64), (0.045, 0.045), (250, 220, 90), outline=1)
    pen.name("windows")
    pane = GLASS if rng.uniform() < 0.6 else (255, 232, 140)
    for x in (-0.5, 0.5):
        pen.polygon([(x - 0.18, 0.22), (x + 0.18, 0.22), (x + 0.18, 0.58), (x - 0.18, 0.58)], pane, outline=0.35)
        pen.line([(x, 0.24), (x, 0.56)], WHITE, 0.045)
        pen.line([(x - 0.16, 0.4), (x + 0.16, 0.4)], WHITE, 0.045)


def snowman(pen: Pen, rng: np.random.Generator) -> None:
    """Two snowballs and a head with hat, carrot and coal, a scarf, arms of twigs."""
    snow = hsv(rng.uniform(0.5, 0.65), rng.uniform(0.0, 0.12), rng.uniform(0.9, 1.0))
    scarf, hat, twig = _paint(rng), hsv(rng.uniform(), rng.uniform(0, 0.6), rng.uniform(0.12, 0.4)), (95, 62, 38)
    lift = rng.uniform(-0.35, 0.1)
    pen.name("arms")
    for sign in (-1, 1):
        pen.line([(sign * 0.3, 0.12), (sign * 0.82, lift)], twig, 0.07)
        pen.line([(sign * 0.68, 0.27 * lift + 0.03 + 0.5 * lift), (sign * 0.72, lift - 0.18)], twig, 0.05)
    pen.name("lower ball")
    pen.ellipse((0, 0.58), (0.52, 0.44), snow, outline=0.6)
    pen.name("upper ball")
    pen.ellipse((0, 0.02), (0.38, 0.34), snow, outline=0.6)
    pen.name("head")
    pen.ellipse((0, -0.44), (0.3, 0.28), snow, outline=0.6)
    pen.name("buttons")
    for y in (-0.02, 0.14, 0.42, 0.6):
        pen.ellipse((0, y), (0.05, 0.05), BLACK, outline=1)
    pen.name("scarf")
    pen.polygon([(0.1, -0.2), (0.3, -0.2), (0.34, 0.28), (0.16, 0.28)], scarf)
    pen.curve([(-0.28, -0.3), (0, -0.2), (0.28, -0.3), (0.3, -0.15), (0, -0.05), (-0.3, -0.15)], scarf)
    pen.name("head")
    for x in (-0.11, 0.11):
        pen.ellipse((x, -0.5), (0.048, 0.055), BLACK, outline=1)
    pen.polygon([(0.0, -0.46), (0.34, -0.37), (0.0, -0.34)], (242, 128, 32))
    pen.name("hat")
    pen.polygon([(-0.22, -1.02), (0.22, -1.02), (0.24, -0.66), (-0.24, -0.66)], hat)
    pen.polygon([(-0.23, -0.8), (0.23, -0.8), (0.24, -0.7), (-0.24, -0.7)], scarf, outline=1)
    pen.polygon([(-0.42, -0.72), (0.42, -0.72), (0.42, -0.62), (-0.42, -0.62)], hat)
