"""Scenes: an object in a context under one light, with its mask, from one integer.

``render(seed, context="snow")`` is the intervention do(context = snow): the same object, pose and light as
``render(seed)``, pixel for pixel, before another background.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from PIL import Image
from scipy.ndimage import gaussian_filter, shift

from data.errors import DataError
from data.scenes.contexts import CONTEXTS, X, Y
from data.scenes.noise import noise
from data.scenes.pen import OVERSAMPLING, SIZE, PartPen, Pen, Pose, hsv, shade
from data.scenes.shapes import CATEGORIES, Category

USUAL_SHARE = 0.96
"""Probability that a scene shows its object in the context usual for it."""
HAZE = np.float32(185.0)
"""Grey level of haze."""


@dataclass(frozen=True)
class Scene:
    """One picture whose making is known.

    Attributes
    ----------
    image
        (96, 96) RGB.
    label
        Name of the category.
    context
        Name of the context.
    mask
        (96, 96) bool: the visible pixels of the object.
    seed
        ``render(seed, category=label, context=context)`` gives this scene again.
    """

    image: Image.Image
    label: str
    context: str
    mask: np.ndarray
    seed: int


@dataclass(frozen=True)
class Actor:
    """An object ready to stand before any context: premultiplied colour, cover, mask and shadow.

    ``colour`` is (96, 96, 3) in [0, 255] times cover; ``cover`` (96, 96) in [0, 1] includes what occludes the object,
    ``mask`` (96, 96) does not; ``shadow`` (96, 96) in [0, 1] is the light it takes from the background.
    """

    colour: np.ndarray
    cover: np.ndarray
    mask: np.ndarray
    shadow: np.ndarray


@dataclass(frozen=True)
class Light:
    """Direction it comes from (radians), gain per channel (3,), haze in [0, 1], grain (96, 96, 1) in grey levels."""

    direction: float
    gain: np.ndarray
    haze: float
    grain: np.ndarray


def render(
    seed: int, *, category: str | None = None, context: str | None = None, usual_share: float = USUAL_SHARE
) -> Scene:
    """Draw the scene of an integer.

    Parameters
    ----------
    seed
        Any non-negative integer; `data.scenes.splits` says which ones the image sets use.
    category, context
        Interventions: None leaves the choice to the seed.
    usual_share
        Probability of the usual context where the seed chooses: 0 for scenes that are all shifted.

    Raises
    ------
    DataError
        Unknown category or context.
    """
    label, chosen = choose(seed, category=category, usual_share=usual_share)
    place = chosen if context is None else _known(context, "context", CONTEXTS)
    _, acting, staging, lighting = _streams(seed)
    light = _light(lighting)
    actor = draw_actor(label, acting, light)
    return Scene(compose(actor, CONTEXTS[place](staging), light), label, place, actor.mask, seed)


def render_empty(seed: int, context: str) -> Image.Image:
    """The context of the same scene without its object."""
    _, _, staging, lighting = _streams(seed)
    nobody = np.zeros((SIZE, SIZE), dtype=np.float32)
    actor = Actor(np.zeros((SIZE, SIZE, 3), dtype=np.float32), nobody, nobody > 0, nobody)
    return compose(actor, CONTEXTS[_known(context, "context", CONTEXTS)](staging), _light(lighting))


def choose(seed: int, *, category: str | None = None, usual_share: float = USUAL_SHARE) -> tuple[str, str]:
    """Category (uniform unless given) and context of a scene: the usual one with probability ``usual_share``.

    Otherwise any other context, all alike. Raises `DataError` for an unknown category.
    """
    rng = _streams(seed)[0]
    drawn = list(CATEGORIES)[rng.integers(len(CATEGORIES))]
    label = drawn if category is None else _known(category, "category", CATEGORIES)
    usual = CATEGORIES[label].context
    others = [name for name in CONTEXTS if name != usual]
    other = others[rng.integers(len(others))]
    return label, usual if rng.uniform() < usual_share else other


def find_parts(scene: Scene) -> tuple[np.ndarray, tuple[str, ...]]:
    """Find the visible parts of a scene.

    Returns
    -------
    tuple
        The number of the part at each pixel, (96, 96) uint8, and the names of the parts: 0 is the context, and what
        is before the object; 1, 2, ... are the object's ("fish: tail").
    """
    _, acting, _, _ = _streams(scene.seed)
    kind = CATEGORIES[scene.label]
    pen = PartPen(_draw_pose(kind, acting))
    kind.draw(pen, acting)
    names = (scene.context, *(f"{scene.label}: {name}" for name in pen.names))
    return np.where(scene.mask, pen.read_parts(), np.uint8(0)), names


def draw_actor(category: str, rng: np.random.Generator, light: Light) -> Actor:
    """Pose and draw an object, round it with light, sometimes put something before it."""
    kind = CATEGORIES[category]
    pose = _draw_pose(kind, rng)
    pen = Pen(pose)
    kind.draw(pen, rng)
    colour, cover = _layer(pen)
    colour = colour * _relief(cover, light, rng)
    front, front_cover = _occluder(rng, pose)
    seen = cover * (1 - front_cover)
    together = front_cover + seen
    colour = front + colour * (1 - front_cover)[..., None]
    return Actor(colour, together, seen > 0.5, _shadow(together, light, rng))


def compose(actor: Actor, background: np.ndarray, light: Light) -> Image.Image:
    """Lay an actor over a context (96, 96, 3) and let the light fall on both."""
    lit = np.clip(background, 0, 255) * (1 - actor.shadow * (1 - actor.cover))[..., None]
    clear = (lit * (1 - actor.cover)[..., None] + actor.colour) * light.gain
    picture = clear + np.float32(light.haze) * (HAZE - clear) + light.grain
    return Image.fromarray(np.clip(np.rint(picture), 0, 255).astype(np.uint8), "RGB")


def _streams(seed: int) -> tuple[np.random.Generator, ...]:
    """Independent generators for choice, object, context and light: what one draws never changes another."""
    return tuple(np.random.Generator(np.random.PCG64(child)) for child in np.random.SeedSequence(seed).spawn(4))


def _draw_pose(kind: Category, rng: np.random.Generator) -> Pose:
    radius = rng.uniform(*kind.radius)
    free = max(2.0, SIZE / 2 - 0.8 * radius)
    return Pose(
        centre=(SIZE / 2 + rng.uniform(-free, free), SIZE / 2 + rng.uniform(-free, free)),
        radius=radius,
        angle=rng.uniform(-kind.tilt, kind.tilt),
        mirrored=bool(rng.integers(2)),
        aspect=rng.uniform(0.92, 1.09),
    )


def _light(rng: np.random.Generator) -> Light:
    gain = rng.uniform(0.62, 1.12) * (1 + 0.05 * rng.normal() * np.array([1.0, 0.1, -1.0]))
    grain = rng.uniform(1.0, 3.5) * noise(rng, 0.4, 0.4)
    haze = max(0.0, rng.uniform(-0.5, 0.5))
    return Light(rng.uniform(-0.85 * np.pi, -0.15 * np.pi), gain.astype(np.float32), haze, grain[..., None])


def _layer(pen: Pen) -> tuple[np.ndarray, np.ndarray]:
    """Premultiplied colour (96, 96, 3) and cover (96, 96) of what a pen drew, anti-aliased."""
    bands = np.asarray(pen.canvas.reduce(OVERSAMPLING), dtype=np.float32)
    cover = bands[..., 3] / 255
    return bands[..., :3] * cover[..., None], cover


def _relief(cover: np.ndarray, light: Light, rng: np.random.Generator) -> np.ndarray:
    """(96, 96, 1) factor: brighter towards the light, darker at the rim, slightly mottled."""
    round_ = gaussian_filter(cover, 3.5, truncate=2.0)
    side = (X - SIZE / 2) * np.float32(np.cos(light.direction)) + (Y - SIZE / 2) * np.float32(np.sin(light.direction))
    factor = 0.72 + 0.33 * round_ + 0.0032 * side + rng.uniform(0.01, 0.035) * noise(rng, 1.5, 1.5)
    return np.clip(factor, 0.4, 1.25)[..., None].astype(np.float32)


def _shadow(cover: np.ndarray, light: Light, rng: np.random.Generator) -> np.ndarray:
    away = rng.uniform(2.0, 6.0)
    moved = shift(cover, (-away * np.sin(light.direction), -away * np.cos(light.direction)), order=1)
    return (rng.uniform(0.3, 0.55) * gaussian_filter(moved, rng.uniform(1.5, 3.0), truncate=2.5)).astype(np.float32)


def _occluder(rng: np.random.Generator, pose: Pose) -> tuple[np.ndarray, np.ndarray]:
    """A twig or a post before one object in four: premultiplied colour (96, 96, 3) and cover (96, 96)."""
    if rng.uniform() > 0.25:
        return np.zeros((SIZE, SIZE, 3), dtype=np.float32), np.zeros((SIZE, SIZE), dtype=np.float32)
    pen = Pen(Pose(pose.centre, pose.radius, rng.uniform(-0.9, 0.9)))
    draw = _twig if rng.uniform() < 0.6 else _post
    draw(pen, rng)
    return _layer(pen)


def _twig(pen: Pen, rng: np.random.Generator) -> None:
    bark, green = hsv(0.08, 0.5, rng.uniform(0.25, 0.45)), hsv(rng.uniform(0.2, 0.4), 0.6, rng.uniform(0.35, 0.7))
    x = rng.uniform(-0.5, 0.5)
    stem = [(x - 0.2, 1.2), (x, 0.5), (x + 0.1, 0.0), (x + rng.uniform(-0.1, 0.4), -0.5)]
    pen.line(stem, bark, 0.06)
    for along in rng.uniform(0.1, 1.0, 5):
        y = 1.2 - 1.7 * along
        side = rng.choice([-1.0, 1.0])
        pen.ellipse((x + side * 0.17, y), (0.17, 0.075), shade(green, rng.uniform(0.8, 1.2)), turn=-0.5 * side)


def _post(pen: Pen, rng: np.random.Generator) -> None:
    plank, x, half = (
        hsv(0.08, rng.uniform(0.1, 0.5), rng.uniform(0.35, 0.75)),
        rng.uniform(-0.6, 0.6),
        rng.uniform(0.07, 0.13),
    )
    pen.polygon([(x - half, -4), (x + half, -4), (x + half, 4), (x - half, 4)], plank)
    pen.line([(x + 0.4 * half, -4), (x + 0.4 * half, 4)], shade(plank, 0.8), 0.03)


def _known(name: str, what: str, table: Mapping[str, object]) -> str:
    if name not in table:
        raise DataError(f"Unknown {what} {name!r} of the scenes. Known: {', '.join(table)}.")
    return name
