"""Error slices: groups of similar images on which a network errs more often than on others.

Groups are found on one half of the images with the errors known (`core.debugging.mixture`). On the other half images
are assigned by their features alone, and only there are errors counted, so that a group is no artefact of the search.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import hypergeom

from core.debugging.mixture import ErrorMixture, MixtureData, fit_mixture
from core.debugging.neighbours import fit_components
from core.errors import ForetellError
from core.shares import Share, share_of

PER_CLASS = 2
"""Groups for each class that is a label or a prediction, if there are images enough."""
PER_GROUP = 30
"""Images for each group at least, on average."""
GAMMA = 10.0
"""Weight of label and prediction against the features: the default of Domino's authors."""
COMPONENTS = 16
"""Principal components of the features that the groups are found in."""
LEAST = 40
"""Fewest images, half of which are used to find the groups."""
FEWEST = 5
"""A group with fewer images on the half that counts is not tested."""
ALPHA = 0.05


@dataclass(frozen=True)
class ErrorSlice:
    """One group.

    Attributes
    ----------
    members
        Indices of its images, by their features alone, on the half that the groups were not found on; the most
        typical first.
    errors
        Wrong predictions among them.
    rate
        Their share, with a 95 % interval.
    p
        Of as many errors or more among as many images at random (Fisher's exact test), times the number of groups
        tested (Holm); 1 if it has too few images to be tested.
    """

    members: tuple[int, ...]
    errors: int
    rate: Share
    p: float

    @property
    def is_found(self) -> bool:
        """Whether the network errs on it more often than on the other images, beyond chance."""
        return self.p < ALPHA


@dataclass(frozen=True)
class ErrorSlices:
    """The groups with the highest error rate first, the error rate of all ``tested`` images, and the mixture."""

    slices: tuple[ErrorSlice, ...]
    overall: Share
    tested: NDArray[np.int64]
    mixture: ErrorMixture

    def number_members(self, count: int) -> NDArray[np.int64]:
        """Return the number of each image's slice (count,), from 1; 0 for the images that the groups were found on."""
        numbers = np.zeros(count, dtype=np.int64)
        for k, one in enumerate(self.slices, 1):
            numbers[list(one.members)] = k
        return numbers


def find_slices(
    features: NDArray[np.floating],
    labels: NDArray[np.int64],
    probabilities: NDArray[np.floating],
    *,
    groups: int = 0,
    gamma: float = GAMMA,
    seed: int = 0,
) -> ErrorSlices:
    """Find groups of images on which a network errs more often than on the others.

    Parameters
    ----------
    features
        (N, M), of any layer.
    labels
        (N,) true classes, 0 to K - 1.
    probabilities
        (N, K) predicted.
    groups
        Their number; 0: two for each class that occurs, and at most one for every thirty images.

    Raises
    ------
    ForetellError
        Fewer than `LEAST` images, none or all of them wrong, or more groups than a quarter of the images.
    """
    wrong = probabilities.argmax(1) != labels
    present = len(set(labels.tolist()) | set(probabilities.argmax(1).tolist()))
    groups = groups or max(2, min(PER_CLASS * present, len(labels) // PER_GROUP))
    _check(len(labels), int(wrong.sum()), groups)
    drawn = np.random.default_rng(seed).permutation(len(labels))
    found_on, tested = drawn[: len(drawn) // 2], np.sort(drawn[len(drawn) // 2 :])
    wide = features.astype(np.float64)
    places = fit_components(wide[found_on], COMPONENTS).transform(wide)
    one_hot = np.eye(probabilities.shape[1])[labels]
    seen = MixtureData(
        places[found_on],
        one_hot[found_on],
        probabilities[found_on].astype(np.float64),
    )
    mixture = fit_mixture(seen, groups, gamma=gamma, seed=seed)
    belongs = mixture.assign(places[tested])
    return ErrorSlices(
        _count(belongs, wrong[tested], tested), share_of(wrong[tested].sum(), len(tested)), tested, mixture
    )


def _check(count: int, errors: int, groups: int) -> None:
    if count < LEAST:
        raise ForetellError(f"Error slices need at least {LEAST} images with a label: there are {count}.")
    if errors in (0, count):
        raise ForetellError(
            f"All {count:,} images are predicted {'wrongly' if errors else 'correctly'}: there are no error slices. "
            "Give other or more images."
        )
    if not 2 <= groups <= count // 4:
        raise ForetellError(f"{groups} groups of {count:,} images: give from 2 to {count // 4}.")


def _count(belongs: NDArray[np.float64], wrong: NDArray[np.bool_], tested: NDArray[np.int64]) -> tuple[ErrorSlice, ...]:
    """Count the errors of each group that has images."""
    best = belongs.argmax(1)
    rows = [np.flatnonzero(best == s) for s in range(belongs.shape[1])]
    rows = [own[np.argsort(-belongs[own, best[own[0]]], kind="stable")] for own in rows if len(own)]
    p = _correct([_test(wrong[own], wrong) if len(own) >= FEWEST else None for own in rows])
    slices = [
        ErrorSlice(tuple(tested[own].tolist()), int(wrong[own].sum()), share_of(int(wrong[own].sum()), len(own)), one)
        for own, one in zip(rows, p, strict=True)
    ]
    return tuple(sorted(slices, key=lambda one: (one.p, -one.rate.value)))


def _test(own: NDArray[np.bool_], wrong: NDArray[np.bool_]) -> float:
    return float(hypergeom.sf(own.sum() - 1, len(wrong), wrong.sum(), len(own)))


def _correct(p: list[float | None]) -> list[float]:
    """Correct for the number of tests (Holm 1979); 1 where there was none."""
    order = sorted((one, k) for k, one in enumerate(p) if one is not None)
    corrected, highest = [1.0] * len(p), 0.0
    for rank, (one, k) in enumerate(order):
        highest = max(highest, min(1.0, (len(order) - rank) * one))
        corrected[k] = highest
    return corrected
