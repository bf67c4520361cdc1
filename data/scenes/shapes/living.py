"""Shapes of animals and plants."""

from __future__ import annotations

import numpy as np

from data.scenes.pen import Colour, Pen, Point, hsv, oval, shade

WHITE: Colour = (250, 250, 250)
BLACK: Colour = (25, 25, 30)


def fish(pen: Pen, rng: np.random.Generator) -> None:
    """Body, tail, fins, gill, stripes, eye and mouth."""
    hue, tall, tail = rng.uniform(), rng.uniform(0.36, 0.52), rng.uniform(0.34, 0.5)
    body = hsv(hue, rng.uniform(0.45, 0.95), rng.uniform(0.7, 1.0))
    fin = hsv(hue + rng.normal(0, 0.08), 0.75, rng.uniform(0.55, 0.9))
    pen.name("tail")
    pen.curve([(-0.5, 0), (-0.75, -0.25), (-1, -tail), (-0.86, 0), (-1, tail), (-0.75, 0.25)], fin)
    pen.name("fins")
    pen.curve([(-0.35, -tall * 0.7), (-0.1, -tall - 0.28), (0.35, -tall - 0.12), (0.4, -tall * 0.7)], fin)
    pen.curve([(-0.2, tall * 0.7), (-0.25, tall + 0.22), (0.1, tall + 0.1), (0.15, tall * 0.7)], fin)
    pen.name("body")
    pen.curve(
        [
            (-0.6, 0),
            (-0.3, -tall * 0.72),
            (0.2, -tall),
            (0.7, -tall * 0.6),
            (0.95, 0.02),
            (0.7, tall * 0.6),
            (0.2, tall),
            (-0.3, tall * 0.72),
        ],
        body,
    )
    pen.curve(
        [(-0.4, tall * 0.35), (0.1, tall * 0.45), (0.6, tall * 0.4), (0.2, tall * 0.82)], shade(body, 1.45), outline=1
    )
    for x in np.linspace(-0.35, 0.2, int(rng.integers(0, 4))):
        high = 0.62 * tall
        pen.curve([(x, -high), (x + 0.1, 0), (x, high), (x + 0.02, 0)], shade(body, 0.6), outline=1)
    pen.name("head")
    pen.line(oval((0.3, 0), (0.14, tall * 0.72), arc=(-0.2, 0.2)), shade(body, 0.55), 0.045)
    pen.name("fins")
    pen.curve([(0.18, 0.08), (-0.15, 0.14), (-0.12, 0.32), (0.1, 0.24)], fin)
    pen.name("head")
    pen.ellipse((0.62, -0.1), (0.115, 0.115), WHITE)
    pen.ellipse((0.65, -0.1), (0.06, 0.06), BLACK, outline=1)
    pen.line([(0.93, 0.06), (0.76, 0.13)], shade(body, 0.45), 0.04)


def bird(pen: Pen, rng: np.random.Generator) -> None:
    """Body, head, beak, raised or lowered wing with feathers, tail, legs."""
    hue, lift = rng.uniform(), rng.choice([-1.0, 1.0], p=[0.75, 0.25]) * rng.uniform(0.7, 1.0)
    body = hsv(hue, rng.uniform(0.3, 0.9), rng.uniform(0.45, 0.95))
    wing = hsv(hue + rng.normal(0, 0.06), 0.6, rng.uniform(0.35, 0.85))
    beak = hsv(rng.uniform(0.06, 0.14), 0.95, 0.98)
    pen.name("tail")
    pen.curve([(-0.4, 0.0), (-0.98, -0.12), (-1.0, 0.08), (-0.92, 0.22), (-0.4, 0.22)], wing)
    pen.name("legs")
    for x in (-0.02, 0.12):
        pen.line([(x, 0.35), (x - 0.12, 0.6)], shade(beak, 0.75), 0.05)
    pen.name("wing")
    far = [(0.1, 0.0), (0.28, 0.4 * lift), (0.12, 0.8 * lift), (-0.05, 0.5 * lift)]
    pen.curve(far, shade(wing, 0.7))
    pen.name("body")
    pen.curve([(-0.6, 0.08), (-0.2, -0.2), (0.3, -0.3), (0.58, -0.1), (0.5, 0.2), (0.1, 0.4), (-0.35, 0.3)], body)
    pen.curve([(-0.2, 0.26), (0.2, 0.2), (0.46, 0.12), (0.3, 0.3), (0.05, 0.37)], shade(body, 1.5), outline=1)
    pen.name("head")
    pen.polygon([(0.78, -0.36), (1.06, -0.22), (0.76, -0.16)], beak)
    pen.ellipse((0.6, -0.27), (0.24, 0.22), body)
    pen.ellipse((0.68, -0.32), (0.065, 0.065), WHITE, outline=1)
    pen.ellipse((0.695, -0.32), (0.042, 0.042), BLACK, outline=1)
    pen.name("wing")
    near = [(0.26, -0.02), (0.16, 0.5 * lift), (-0.3, 0.98 * lift), (-0.42, 0.5 * lift), (-0.34, 0.08)]
    pen.curve(near, wing)
    for k in range(3):
        x = -0.22 + 0.14 * k
        pen.line([(x, 0.16 * lift), (x - 0.1 + 0.03 * k, 0.62 * lift)], shade(wing, 0.6), 0.035)


def cat(pen: Pen, rng: np.random.Generator) -> None:
    """A sitting cat from the front: tail, body, paws, head with ears, face and whiskers."""
    fur = hsv(rng.choice([0.07, 0.09, 0.6, 0.02]), rng.uniform(0.05, 0.75), rng.uniform(0.35, 0.95))
    light, side = shade(fur, 1.55), rng.uniform(0.75, 0.95)
    pen.name("tail")
    pen.line([(0.3, 0.85), (0.65, 0.85), (side, 0.55), (side - 0.08, 0.2), (side - 0.2, 0.15)], shade(fur, 0.5), 0.23)
    pen.line([(0.3, 0.85), (0.65, 0.85), (side, 0.55), (side - 0.08, 0.2), (side - 0.2, 0.15)], fur, 0.16)
    pen.name("body")
    pen.curve([(-0.3, -0.1), (0.3, -0.1), (0.5, 0.45), (0.52, 0.9), (0, 0.98), (-0.52, 0.9), (-0.5, 0.45)], fur)
    pen.curve([(-0.16, 0.1), (0.16, 0.1), (0.2, 0.5), (0, 0.66), (-0.2, 0.5)], light, outline=1)
    pen.name("paws")
    for x in (-0.2, 0.2):
        pen.ellipse((x, 0.88), (0.2, 0.12), light)
        pen.line([(x, 0.45), (x, 0.75)], shade(fur, 0.6), 0.035)
    pen.name("ears")
    for sign in (-1, 1):
        pen.polygon([(sign * 0.56, -0.98), (sign * 0.1, -0.72), (sign * 0.56, -0.36)], fur)
        pen.polygon([(sign * 0.5, -0.84), (sign * 0.26, -0.68), (sign * 0.5, -0.5)], (235, 165, 165), outline=1)
    pen.name("head")
    pen.curve(
        [
            (0, -0.78),
            (0.42, -0.68),
            (0.6, -0.36),
            (0.4, -0.06),
            (0, 0.04),
            (-0.4, -0.06),
            (-0.6, -0.36),
            (-0.42, -0.68),
        ],
        fur,
    )
    if rng.uniform() < 0.6:
        for x in (-0.16, 0, 0.16):
            pen.line([(x, -0.75), (x * 0.7, -0.56)], shade(fur, 0.55), 0.06)
    _cat_face(pen, light, hsv(rng.choice([0.13, 0.3, 0.55]), 0.75, 0.95))


def _cat_face(pen: Pen, light: Colour, iris: Colour) -> None:
    pen.name("face")
    pen.ellipse((0, -0.16), (0.24, 0.15), light, outline=1)
    for sign in (-1, 1):
        pen.ellipse((sign * 0.25, -0.38), (0.125, 0.12), iris, outline=0.3)
        pen.ellipse((sign * 0.25, -0.38), (0.04, 0.1), BLACK, outline=1)
        for y in (-0.2, -0.11):
            pen.line([(sign * 0.2, -0.15), (sign * 0.72, y - 0.05 + (y + 0.15))], WHITE, 0.022)
    pen.polygon([(-0.08, -0.25), (0.08, -0.25), (0, -0.16)], (215, 105, 115), outline=1)
    pen.line([(-0.12, -0.11), (-0.06, -0.06), (0, -0.12), (0.06, -0.06), (0.12, -0.11)], BLACK, 0.03)


def tree(pen: Pen, rng: np.random.Generator) -> None:
    """Trunk and either a leafy crown or the tiers of a conifer."""
    bark = hsv(rng.uniform(0.05, 0.1), rng.uniform(0.4, 0.7), rng.uniform(0.3, 0.55))
    hue = rng.uniform(0.22, 0.42) if rng.uniform() < 0.7 else rng.uniform(0.02, 0.14)
    leaves = hsv(hue, rng.uniform(0.5, 0.85), rng.uniform(0.4, 0.8))
    if rng.uniform() < 0.35:
        pen.name("trunk")
        pen.polygon([(-0.12, 1), (-0.1, 0.5), (0.1, 0.5), (0.12, 1)], bark)
        pen.name("crown")
        for top, bottom, wide in ((0.0, 0.66, 0.72), (-0.48, 0.2, 0.56), (-1.0, -0.24, 0.4)):
            pen.polygon(
                [
                    (0, top),
                    (wide, bottom),
                    (wide * 0.4, bottom - 0.06),
                    (0, bottom + 0.04),
                    (-wide * 0.4, bottom - 0.06),
                    (-wide, bottom),
                ],
                leaves,
            )
            pen.polygon(
                [(0, top + 0.12), (-0.05, bottom - 0.1), (-wide * 0.6, bottom - 0.08)], shade(leaves, 1.2), outline=1
            )
        return
    pen.name("trunk")
    pen.polygon([(-0.22, 1), (-0.11, 0.7), (-0.1, 0.1), (0.1, 0.1), (0.11, 0.7), (0.22, 1)], bark)
    pen.line([(0.02, 0.4), (0.3, 0.1)], bark, 0.09)
    pen.line([(-0.02, 0.5), (-0.3, 0.16)], bark, 0.09)
    blobs = [
        (-0.45, -0.05, 0.36),
        (0.45, -0.05, 0.36),
        (-0.34, -0.5, 0.36),
        (0.36, -0.48, 0.36),
        (0, -0.7, 0.34),
        (0, -0.22, 0.45),
    ]
    jitter = rng.normal(0, 0.035, (len(blobs), 2))
    pen.name("crown")
    for (x, y, radius), (dx, dy) in zip(blobs, jitter, strict=True):
        pen.ellipse((x + dx, y + dy), (radius, radius), shade(leaves, 0.92), outline=0.6)
    for (x, y, radius), (dx, dy) in zip(blobs, jitter, strict=True):
        pen.ellipse((x + dx - 0.06, y + dy - 0.07), (radius * 0.66, radius * 0.6), shade(leaves, 1.14), outline=1)


def flower(pen: Pen, rng: np.random.Generator) -> None:
    """Stem with two leaves, a ring of petals, a dotted centre."""
    green = hsv(rng.uniform(0.25, 0.38), 0.75, rng.uniform(0.4, 0.7))
    petal = hsv(rng.uniform(0.7, 1.18), rng.uniform(0.35, 0.95), rng.uniform(0.75, 1.0))
    count, turn, bend = int(rng.integers(5, 10)), rng.uniform(0, 2 * np.pi), rng.uniform(-0.15, 0.15)
    head = (bend, -0.38)
    pen.name("stem")
    pen.line([head, (bend * 0.6, 0.3), (0, 1)], shade(green, 0.6), 0.15)
    pen.line([head, (bend * 0.6, 0.3), (0, 1)], green, 0.09)
    pen.name("leaves")
    pen.curve([(0, 0.82), (0.25, 0.38), (0.62, 0.32), (0.42, 0.7)], green)
    pen.curve([(0, 0.94), (-0.25, 0.52), (-0.62, 0.48), (-0.4, 0.84)], shade(green, 1.12))
    wide = 0.98 / count + 0.06
    pen.name("petals")
    for angle in turn + 2 * np.pi * np.arange(count) / count:
        along = np.array([np.cos(angle), np.sin(angle)])
        centre = (head[0] + 0.4 * along[0], head[1] + 0.4 * along[1])
        pen.ellipse(centre, (0.25, wide), petal, turn=angle, outline=0.6)
        base = (head[0] + 0.28 * along[0], head[1] + 0.28 * along[1])
        pen.ellipse(base, (0.14, wide * 0.35), shade(petal, 0.78), turn=angle, outline=1)
    heart = hsv(rng.uniform(0.08, 0.16), 0.9, rng.uniform(0.6, 1.0))
    pen.name("centre")
    pen.ellipse(head, (0.2, 0.2), heart)
    for x, y in rng.uniform(-0.1, 0.1, (6, 2)):
        pen.ellipse((head[0] + x, head[1] + y), (0.03, 0.03), shade(heart, 0.6), outline=1)


def leaf(pen: Pen, rng: np.random.Generator) -> None:
    """Blade, smooth or lobed, with stalk and veins."""
    hue = rng.uniform(0.2, 0.38) if rng.uniform() < 0.6 else rng.uniform(0.0, 0.16)
    blade = hsv(hue, rng.uniform(0.55, 0.9), rng.uniform(0.5, 0.9))
    vein, lobed, wide = shade(blade, 1.45), rng.uniform() < 0.4, rng.uniform(0.42, 0.58)
    pen.name("stalk")
    pen.line([(0, 0.6), (0.03, 0.85), (0.1, 1.04)], shade(blade, 0.55), 0.1)
    along = np.linspace(0, 1, 13)
    half = wide * np.sin(np.pi * along**0.8) ** 0.8
    if lobed:
        half = half * (1.1 + 0.28 * np.cos(2 * np.pi * 3.5 * along))
    y = 0.75 - 1.75 * along
    edge: list[Point] = list(zip(half, y, strict=True)) + list(zip(-half[-2:0:-1], y[-2:0:-1], strict=True))
    pen.name("blade")
    pen.curve(edge, blade)
    right = [(0.0, 0.75), *zip(half[1:] * 0.93, y[1:], strict=True)]
    pen.polygon(right, shade(blade, 0.85), outline=1)
    pen.name("veins")
    pen.line([(0, 0.72), (0, -0.82)], vein, 0.05)
    for k in range(4):
        start, reach = 0.5 - 0.34 * k, wide * (0.62, 0.74, 0.66, 0.42)[k]
        for sign in (-1, 1):
            pen.line([(0, start), (sign * reach, start - 0.26)], vein, 0.03)


def mushroom(pen: Pen, rng: np.random.Generator) -> None:
    """Stem with a ring, gills, a domed cap with spots."""
    cap = hsv(rng.choice([0.0, 0.02, 0.07, 0.1, 0.85]), rng.uniform(0.5, 0.95), rng.uniform(0.5, 0.95))
    stem = hsv(0.11, rng.uniform(0.08, 0.3), rng.uniform(0.8, 0.97))
    dome, wide = rng.uniform(0.75, 1.05), rng.uniform(0.2, 0.3)
    pen.name("stem")
    pen.curve(
        [
            (-wide, 0),
            (wide, 0),
            (wide * 0.9, 0.5),
            (wide * 1.35, 0.92),
            (0, 1.0),
            (-wide * 1.35, 0.92),
            (-wide * 0.9, 0.5),
        ],
        stem,
    )
    pen.name("ring")
    pen.curve(
        [(-wide * 1.1, 0.2), (wide * 1.1, 0.2), (wide * 1.6, 0.42), (0, 0.36), (-wide * 1.6, 0.42)], shade(stem, 1.4)
    )
    pen.name("gills")
    pen.ellipse((0, 0.05), (0.88, 0.2), shade(stem, 0.82))
    for x in np.linspace(-0.6, 0.6, 7):
        pen.line([(x * 0.5, 0.1), (x, 0.2 - 0.06 * abs(x))], shade(stem, 0.6), 0.025)
    pen.name("cap")
    pen.curve(
        [
            (-0.95, 0.06),
            (-0.82, -0.4 * dome),
            (-0.4, -0.82 * dome),
            (0, -0.95 * dome),
            (0.4, -0.82 * dome),
            (0.82, -0.4 * dome),
            (0.95, 0.06),
            (0.5, 0.0),
            (0, -0.02),
            (-0.5, 0.0),
        ],
        cap,
    )
    pen.ellipse((-0.35, -0.62 * dome), (0.26, 0.1), shade(cap, 1.35), turn=-0.6, outline=1)
    pen.name("spots")
    for x, y, radius in [
        (-0.5, -0.2, 0.13),
        (0.05, -0.42, 0.16),
        (0.55, -0.22, 0.12),
        (0.28, -0.72, 0.09),
        (-0.12, -0.1, 0.07),
    ]:
        size = radius * rng.uniform(0.75, 1.2)
        pen.ellipse((x, y * dome), (size, size * 0.85), (250, 245, 232), outline=0.75)
