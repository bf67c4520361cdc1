"""How well attributes are read of networks with values that no network learned from had (extrapolation).

The E-splits of Oh et al. 2018 (arXiv:1711.01768), sections 3.1 and 4.2, by one or more attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from core.errors import ForetellError
from core.shares import Z
from core.training.metamodel import MetamodelSettings, Output, encode_outputs
from core.types import Progress
from data.types import Relatives
from inquiry.layers.lists import choose_names
from inquiry.layers.training.attribute_queries import read_parts

COLUMNS = ("unseen", "at_random", "change", "change_low", "change_high", "kept")
FEWEST = 20
"""Relatives that a metamodel must at least learn from."""


@dataclass(frozen=True)
class Extrapolation:
    """Whether the value of each attribute of each relative is predicted (R, A).

    Attributes
    ----------
    split
        Numbers of the splitting attributes.
    unseen
        By the metamodel that learned from no relative with the relative's own value of any splitting attribute.
    at_random
        By metamodels that learned from as many relatives, drawn.
    """

    split: tuple[int, ...]
    unseen: NDArray[np.bool_]
    at_random: NDArray[np.bool_]

    @property
    def others(self) -> list[int]:
        """Numbers of the attributes that do not split: the others cannot be read, as their values were not seen."""
        return [a for a in range(self.unseen.shape[1]) if a not in self.split]


def find_attributes(known: Relatives, text: str) -> tuple[int, ...]:
    """Return the numbers of the attributes that a text names with commas.

    Raises
    ------
    ForetellError
        There is no such attribute, or none is left to read.
    """
    names = list(known.attributes)
    asked = choose_names("unseen", text, names, "attribute of the relatives")
    if len(asked) == len(names):
        raise ForetellError(f"unseen={text!r} leaves no attribute to read: name fewer.")
    return tuple(names.index(name) for name in asked)


@dataclass(frozen=True)
class Division:
    """Relatives by their combination of values of some attributes.

    Attributes
    ----------
    split
        Numbers of the attributes.
    parts
        The combination (R,) of each relative, from 0 to F - 1.
    lessons
        Whether each relative has none of the values of each combination (F, R).
    """

    split: tuple[int, ...]
    parts: Tensor
    lessons: Tensor


def divide_relatives(known: Relatives, text: str) -> Division:
    """Divide relatives by the values of the attributes that a text names with commas.

    Raises
    ------
    ForetellError
        There is no such attribute, none is left to read, or too few relatives are left to learn from.
    """
    split = find_attributes(known, text)
    combinations, parts = np.unique(known.values[:, split], axis=0, return_inverse=True)
    lessons = torch.from_numpy((known.values[None][..., split] != combinations[:, None]).all(2))
    fewest = int(lessons.sum(1).min())
    if fewest < FEWEST:
        raise ForetellError(
            f"unseen={text!r} leaves {fewest} relatives to learn from, and {FEWEST} are needed: name fewer attributes."
        )
    return Division(split, torch.from_numpy(parts.reshape(-1)), lessons)


def extrapolate(
    known: Relatives,
    text: str,
    output: Output,
    settings: MetamodelSettings,
    generator: torch.Generator,
    progress: Progress,
) -> Extrapolation:
    """Train a metamodel without the relatives of each value of some attributes in turn, and read those that have it.

    Of more attributes than one, each combination of values is left out: a metamodel learns from the relatives with none
    of them and reads those with all. The same is done with sets of the same sizes that are drawn, so that the number of
    relatives makes no difference.
    """
    division = divide_relatives(known, text)
    held_out, lessons = division.parts, division.lessons
    drawn = held_out[torch.randperm(len(held_out), generator=generator)]
    features = encode_outputs(torch.from_numpy(known.log_p), torch.from_numpy(known.order), output)
    own = replace(settings, folds=len(lessons))

    def read(parts: Tensor, lessons: Tensor) -> NDArray[np.bool_]:
        return read_parts(known, features, own, generator, parts, lessons, progress)

    unseen = read(held_out, lessons)
    return Extrapolation(division.split, unseen, read(drawn, draw_lessons(drawn, lessons.sum(1), generator)))


def draw_lessons(parts: Tensor, sizes: Tensor, generator: torch.Generator) -> Tensor:
    """Draw as many relatives outside each part as ``sizes`` says, (F, R)."""
    outside = parts != torch.arange(len(sizes))[:, None]
    if bool((outside.sum(1) == sizes).all()):
        return outside
    place = torch.rand(outside.shape, generator=generator).masked_fill(~outside, 2).argsort(1).argsort(1)
    return place < sizes[:, None]


def describe_extrapolation(result: Extrapolation, chances: Sequence[float]) -> list[dict[str, float | None]]:
    """Return the columns of the mean over attributes, then of each of them; None for splitting attributes.

    ``change`` is ``unseen`` less ``at_random``, with a paired 95% interval over relatives; ``kept`` is the normalised
    accuracy (eq. 4): what of the accuracy above chance is left. ``chances`` are those of the attributes.
    """
    others = result.others
    rows = [_compare(result, others, float(np.mean([chances[a] for a in others])))]
    silent: dict[str, float | None] = dict.fromkeys(COLUMNS)
    return rows + [silent if a in result.split else _compare(result, [a], one) for a, one in enumerate(chances)]


def estimate_over_relatives(each: np.ndarray) -> tuple[float, float, float]:
    """Estimate a mean over relatives with its 95% interval."""
    mean, error = float(each.mean()), float(each.std(ddof=1) / len(each) ** 0.5)
    return mean, mean - Z * error, mean + Z * error


def _compare(result: Extrapolation, attributes: list[int], chance: float) -> dict[str, float | None]:
    unseen, at_random = (correct[:, attributes].mean(1) for correct in (result.unseen, result.at_random))
    change, low, high = estimate_over_relatives(unseen - at_random)
    above = float(at_random.mean()) - chance
    kept = (float(unseen.mean()) - chance) / above if above > high - change else None
    values = (float(unseen.mean()), float(at_random.mean()), change, low, high, kept)
    return dict(zip(COLUMNS, values, strict=True))
