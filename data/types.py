"""The interface of an image set."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from PIL import Image


@dataclass(frozen=True)
class SkippedImage:
    """An image that was left out, with the reason in one sentence."""

    id: str
    reason: str


@dataclass(frozen=True)
class Factor:
    """A property of the images of a set that a generator can set.

    Attributes
    ----------
    values
        What it can be set to.
    do
        ``do(i, value)`` is the i-th image as RGB under the intervention, all else as it was.
    known
        The value that each of the n images has of itself, where it is one of `values`; else None.
    """

    values: tuple[str, ...]
    do: Callable[[int, str], Image.Image]
    known: tuple[str, ...] | None = None

    def only(self, rows: Sequence[int]) -> Factor:
        """Select the values of these images alone."""
        known = None if self.known is None else tuple(self.known[i] for i in rows)
        return replace(self, do=lambda i, value: self.do(rows[i], value), known=known)


@dataclass(frozen=True)
class ImageSet:
    """Labelled images, opened one at a time.

    Attributes
    ----------
    name
        Registered name of the set with what distinguishes it, e.g. ``"scenes/standard"``.
    categories
        Plain names; ``labels`` index into it.
    labels
        (n,) int64.
    ids
        n stable, unique ids (for a folder: the path relative to it).
    open
        ``open(i)`` gives the i-th image as an RGB PIL image.
    digest
        SHA-256 over ids, labels and image contents: the same set has the same digest anywhere.
    wnids
        For trees named by WordNet id: the id of each category; else None.
    skipped
        Images left out (unreadable, not convertible to RGB), each with its reason: counted, never silent.
    mask
        ``mask(i)`` is (H, W) bool, the pixels of the object in the i-th image, where this is known; else None.
    parts
        ``parts(i)`` is (H, W) int, the number of the part at each pixel of the i-th image, and the names of the parts,
        where these are known: number 0 is the context; else None.
    contexts
        Name of the context each of the n images was taken in, where this is known; else None.
    factors
        What can be changed in the images, by name, where they are made by a generator.
    """

    name: str
    categories: tuple[str, ...]
    labels: np.ndarray
    ids: tuple[str, ...]
    open: Callable[[int], Image.Image]
    digest: str
    wnids: tuple[str, ...] | None = None
    skipped: tuple[SkippedImage, ...] = ()
    mask: Callable[[int], np.ndarray] | None = None
    parts: Callable[[int], tuple[np.ndarray, tuple[str, ...]]] | None = None
    contexts: tuple[str, ...] | None = None
    factors: Mapping[str, Factor] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.ids)

    def only(self, rows: Sequence[int]) -> ImageSet:
        """Select these images alone, in this order; all images in their own order give the same set."""
        if list(rows) == list(range(len(self))):
            return self

        def select(of: Sequence[str] | None) -> tuple[str, ...] | None:
            return None if of is None else tuple(of[i] for i in rows)

        mask, parts = self.mask, self.parts
        return replace(
            self,
            labels=self.labels[list(rows)],
            ids=tuple(self.ids[i] for i in rows),
            open=lambda i: self.open(rows[i]),
            digest=hashlib.sha256(f"{self.digest} {list(rows)}".encode()).hexdigest(),
            mask=None if mask is None else lambda i: mask(rows[i]),
            parts=None if parts is None else lambda i: parts(rows[i]),
            contexts=select(self.contexts),
            factors={name: factor.only(rows) for name, factor in self.factors.items()},
        )


@dataclass(frozen=True)
class CraftedQueries:
    """Images that were crafted for metamodels, each of which left out a part of the relatives, and the predictions.

    Attributes
    ----------
    outputs
        (F, R, n, K) float32, of the R relatives for the n images of each of the F metamodels: log probabilities, the
        places of the classes in their order by probability, from 0 to 1, or 1 for the class with the highest or the
        lowest probability and 0 for the others.
    open
        ``open(i)`` gives the i-th of the F n images, those of the first metamodel first, as an RGB PIL image.
    """

    outputs: np.ndarray
    open: Callable[[int], Image.Image]


@dataclass(frozen=True)
class SingleQueries:
    """Images of which a network predicts the class with the number of the value of an attribute, one image for each.

    Attributes
    ----------
    predicted
        (R, A) int64: class that each relative predicts of an image that was crafted in the same way, but without its
        part of the relatives.
    open
        ``open(a)`` gives the image for the a-th attribute, crafted with all relatives, as an RGB PIL image.
    """

    predicted: np.ndarray
    open: Callable[[int], Image.Image]


@dataclass(frozen=True)
class Relatives:
    """Networks whose attributes are known, and what they predict of fixed images.

    Attributes
    ----------
    categories
        Plain names of the K classes.
    attributes
        What the R networks differ in, A attributes with the values of each.
    values
        (R, A) int64: the number of the value of each attribute of each network.
    log_p
        (R, n, K) float32: log probabilities of the classes for the n images; smaller ones than ``floor`` are cut off.
    order
        (R, n, K) int64: the classes from the highest to the lowest probability, before anything was cut off.
    floor
        The smallest log probability, nats.
    count, open
        n, and ``open(i)``, which gives the i-th image as an RGB PIL image.
    parts
        (R,) int64: the part of the relatives to which each belongs where images are crafted, from 0 to F - 1.
    crafted
        Images that were crafted for networks that disclose their probabilities (``prob``) or the class with the
        highest alone (``top-1``).
    single
        One crafted image for each attribute.
    side
        Height and width of crafted images, in pixels of their own.
    """

    categories: tuple[str, ...]
    attributes: Mapping[str, tuple[str, ...]]
    values: np.ndarray
    log_p: np.ndarray
    order: np.ndarray
    floor: float
    count: int
    open: Callable[[int], Image.Image]
    parts: np.ndarray
    crafted: Mapping[str, CraftedQueries]
    single: SingleQueries
    side: int
