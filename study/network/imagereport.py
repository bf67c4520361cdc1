"""What an image set holds: images per class, unreadable files, near-duplicates, and labels that a network knows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from core.network.classifier import Classifier
from core.types import Progress
from data.types import ImageSet, SkippedImage
from study.network.duplicates import repeats, sketches
from study.network.sources import UNMATCHED, class_of_labels

SKETCHED_PX = 64
MOST_COMPARED = 8_000
"""Every image is compared with every other: beyond this, a gigabyte of comparisons."""


@dataclass(frozen=True)
class ImageSetReport:
    """What an image set holds.

    Attributes
    ----------
    counts
        Readable images of each category.
    skipped
        Files that cannot be read, with the reason.
    duplicates
        Near-duplicates as (image, the earlier one that it repeats); None if there are too many images to compare.
    """

    counts: dict[str, int]
    skipped: tuple[SkippedImage, ...]
    duplicates: tuple[tuple[str, str], ...] | None


def report_images(images: ImageSet, progress: Progress) -> ImageSetReport:
    """Count the images of a set and find its near-duplicates."""
    numbers = np.bincount(images.labels, minlength=len(images.categories))
    counts = {category: int(number) for category, number in zip(images.categories, numbers, strict=True)}
    return ImageSetReport(counts, images.skipped, _find_duplicates(images, progress))


def _find_duplicates(images: ImageSet, progress: Progress) -> tuple[tuple[str, str], ...] | None:
    if len(images) > MOST_COMPARED:
        return None
    groups = []
    for i in range(len(images)):
        progress(i, len(images), "comparing images")
        grey = np.asarray(images.open(i).convert("L").resize((SKETCHED_PX, SKETCHED_PX)), dtype=np.float32)
        groups.append(sketches(torch.from_numpy(grey.copy())[None, None]))
    pairs = repeats(torch.cat(groups))
    return tuple((images.ids[later], images.ids[earlier]) for later, earlier in sorted(pairs.items()))


def match_categories(images: ImageSet, classifier: Classifier) -> dict[str, str | None]:
    """Find the class of a network that each category is the label of; None where it has no such class."""
    classes = class_of_labels(images, classifier, refuse=False)
    first = {int(label): int(classes[i]) for i, label in reversed(list(enumerate(images.labels)))}
    matches = {images.categories[label]: k for label, k in sorted(first.items())}
    return {name: None if k == UNMATCHED else classifier.names.short[k] for name, k in matches.items()}
