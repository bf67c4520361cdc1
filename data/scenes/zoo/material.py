"""The images that the networks of the zoo are trained on and measured with."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from data.scenes.contexts import CONTEXTS
from data.scenes.generator import USUAL_SHARE, Scene, choose, render
from data.scenes.interventions import other_contexts
from data.scenes.pen import SIZE
from data.scenes.shapes import CATEGORIES
from data.scenes.splits import Split, label_of, scene_seed

TRAINING = 6_000
HELD_OUT = 2_000
HELD_OUT_SEED = 1_000_003
"""Seed of the images behind the figures of all cards, those of the built-in network too: no training set has it."""
RANDOMISED_SEED = 1
CHANGED = 160
"""Scenes that are drawn again with other contexts and objects."""
OBJECTS = 5
"""Other objects that take an object's place in one scene."""


@dataclass(frozen=True)
class Images:
    """Scenes: pixels (N, 3, 96, 96) uint8, index of the category (N,), index of the context (N,)."""

    pixels: Tensor
    labels: Tensor
    contexts: Tensor

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class Changes:
    """Scenes and the same scenes after interventions.

    Attributes
    ----------
    images
        N scenes of the standard split.
    contexts
        (N, 9, 3, 96, 96) uint8: the same object, pose and light in every other context.
    objects
        (N, 5, 3, 96, 96) uint8: other objects in the same context, place and light.
    """

    images: Images
    contexts: Tensor
    objects: Tensor


class Material:
    """The image sets of the zoo; each is drawn when it is first asked for.

    Parameters
    ----------
    folder
        Where drawn sets are kept for later runs; None keeps none.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    def training(self, size: int = TRAINING) -> Images:
        """Return images like those of the built-in network: 96% show their object in its usual context."""
        return self._images("training", 0, size, USUAL_SHARE)

    def random_contexts(self, size: int = TRAINING) -> Images:
        """Return training images in which the context is drawn independently of the object."""
        return self._images("training", RANDOMISED_SEED, size, 1 / len(CONTEXTS))

    def held_out(self, split: Split, size: int = HELD_OUT) -> Images:
        """Return images that no network of the zoo was trained on."""
        return self._images(split, HELD_OUT_SEED, size, 0.0 if split == "adversarial" else USUAL_SHARE)

    def changes(self, count: int = CHANGED) -> Changes:
        """Return the first held-out standard scenes and what interventions make of them."""
        drawn = self._keep(f"changes_{count}", lambda: _draw(draw_changes, count, "interventions"))
        images = self.held_out("standard", max(count, HELD_OUT) if self._folder else count)
        first = Images(images.pixels[:count], images.labels[:count], images.contexts[:count])
        return Changes(first, drawn[:, : len(CONTEXTS) - 1], drawn[:, len(CONTEXTS) - 1 :])

    def _images(self, split: Split, seed: int, size: int, share: float) -> Images:
        scene = partial(draw_scene, split, seed, share)
        pixels = self._keep(f"{split}_{seed}_{size}", lambda: _draw(partial(_pixels, scene), size, split))
        contexts = [list(CONTEXTS).index(name) for name in list_contexts(split, seed, share, size)]
        return Images(pixels, torch.tensor([label_of(i) for i in range(size)]), torch.tensor(contexts))

    def _keep(self, name: str, draw: Callable[[], Tensor]) -> Tensor:
        file = None if self._folder is None else self._folder / f"{name}.npy"
        if file is not None and file.is_file():
            return torch.from_numpy(np.load(file))
        drawn = draw()
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            np.save(file, drawn.numpy())
        return drawn


def list_contexts(split: Split, seed: int, share: float, size: int) -> list[str]:
    """List the contexts of a set of `draw_scene` without drawing it."""
    names = list(CATEGORIES)
    return [choose(scene_seed(split, seed, i), category=names[label_of(i)], usual_share=share)[1] for i in range(size)]


def draw_scene(split: Split, seed: int, share: float, index: int) -> Scene:
    """Draw image ``index`` of a set whose objects are in their usual context with probability ``share``."""
    return render(scene_seed(split, seed, index), category=list(CATEGORIES)[label_of(index)], usual_share=share)


def draw_changes(index: int) -> np.ndarray:
    """Draw a held-out standard scene in its 9 other contexts and with `OBJECTS` other objects: (14, 96, 96, 3)."""
    scene = draw_scene("standard", HELD_OUT_SEED, USUAL_SHARE, index)
    names = list(CATEGORIES)
    others = [names[(index + 1 + 3 * k) % len(names)] for k in range(OBJECTS)]
    drawn = other_contexts(scene)
    drawn += [render(scene.seed, category=name, context=scene.context) for name in others]
    return np.stack([np.asarray(one.image) for one in drawn])


def stack(images: Sequence[np.ndarray]) -> Tensor:
    """Return pixels (..., 3, 96, 96) of images (..., 96, 96, 3)."""
    return torch.from_numpy(np.moveaxis(np.stack(images), -1, -3).copy())


def _pixels(scene: Callable[[int], Scene], index: int) -> np.ndarray:
    return np.asarray(scene(index).image)


def _draw(one: Callable[[int], np.ndarray], size: int, name: str) -> Tensor:
    """Draw images on all cores."""
    with multiprocessing.get_context("spawn").Pool(os.cpu_count()) as pool:
        drawn = pool.imap(one, range(size), chunksize=50)
        return stack(list(tqdm(drawn, desc=f"Drawing {name}", total=size, unit="image")))


assert len(CATEGORIES) > OBJECTS * 3  # no other object is the scene's own, and none twice
assert SIZE == 96
