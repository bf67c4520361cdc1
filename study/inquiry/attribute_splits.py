"""How well attributes are read of networks that have a value which no network learned from had (extrapolation).

The E-splits of Oh et al. 2018 (arXiv:1711.01768), sections 3.1 and 4.2, by one attribute.
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
from study.inquiry.attribute_queries import read_parts

COLUMNS = ("unseen", "at_random", "change", "change_low", "change_high", "kept")


@dataclass(frozen=True)
class Extrapolation:
    """Whether the value of each attribute of each relative is predicted (R, A).

    Attributes
    ----------
    split
        Number of the splitting attribute.
    unseen
        By the metamodel that learned from no relative with the relative's own value of the splitting attribute.
    at_random
        By metamodels that learned from as many relatives, drawn.
    """

    split: int
    unseen: NDArray[np.bool_]
    at_random: NDArray[np.bool_]

    @property
    def others(self) -> list[int]:
        """Numbers of the attributes that do not split: the splitting one cannot be read, as its value was not seen."""
        return [a for a in range(self.unseen.shape[1]) if a != self.split]


def find_attribute(known: Relatives, name: str) -> int:
    """Return the number of the attribute of this name.

    Raises
    ------
    ForetellError
        There is none.
    """
    names = list(known.attributes)
    if name not in names:
        raise ForetellError(f"unseen={name!r} is no attribute of the relatives. There are: {', '.join(names)}.")
    return names.index(name)


def extrapolate(
    known: Relatives,
    name: str,
    output: Output,
    settings: MetamodelSettings,
    generator: torch.Generator,
    progress: Progress,
) -> Extrapolation:
    """Train a metamodel without the relatives of each value of an attribute in turn, and read these.

    The same is done with parts of the same sizes that are drawn, so that the number of relatives makes no difference.
    """
    split = find_attribute(known, name)
    parts = torch.from_numpy(known.values[:, split])
    drawn = parts[torch.randperm(len(parts), generator=generator)]
    features = encode_outputs(torch.from_numpy(known.log_p), torch.from_numpy(known.order), output)
    own = replace(settings, folds=int(parts.max()) + 1)

    def read(held_out: Tensor) -> NDArray[np.bool_]:
        return read_parts(known, features, own, generator, held_out, progress)

    return Extrapolation(split, read(parts), read(drawn))


def describe_extrapolation(result: Extrapolation, chances: Sequence[float]) -> list[dict[str, float | None]]:
    """Return the columns of the mean over attributes, then of each of them; None for the splitting attribute.

    ``change`` is ``unseen`` less ``at_random``, with a paired 95% interval over relatives; ``kept`` is the normalised
    accuracy (eq. 4): what of the accuracy above chance is left. ``chances`` are those of the attributes.
    """
    others = result.others
    rows = [_compare(result, others, float(np.mean([chances[a] for a in others])))]
    silent: dict[str, float | None] = dict.fromkeys(COLUMNS)
    return rows + [silent if a == result.split else _compare(result, [a], one) for a, one in enumerate(chances)]


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
