"""Error slices of an image set, in words: how often the network errs on each group, and what its images share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.debugging.slices import ErrorSlice, ErrorSlices, find_slices
from core.errors import ForetellError
from data.types import ImageSet
from study.network.predictions import Predictions
from study.network.sources import UNMATCHED

COMMON = 0.5
"""Share of a slice's images from which on one label, prediction or value of a factor is named alone."""
NAMED = 2
"""Labels and predictions named where none is that common."""
CLASSES = LABELLED, PREDICTED = "labelled", "predicted"


def find_labelled_slices(predictions: Predictions, probabilities: NDArray[np.floating]) -> ErrorSlices | str:
    """Find the error slices among the images whose label is a class of the network; say why there are none."""
    known = np.flatnonzero(predictions.truth != UNMATCHED)
    try:
        error_slices = find_slices(predictions.features[known].numpy(), predictions.truth[known], probabilities[known])
    except ForetellError as error:
        return str(error)
    slices = tuple(replace(one, members=tuple(known[list(one.members)].tolist())) for one in error_slices.slices)
    return replace(error_slices, slices=slices, tested=known[error_slices.tested])


def describe_slice(
    one: ErrorSlice, images: ImageSet, predictions: Predictions, classes: Sequence[str] | NDArray[np.str_]
) -> str:
    """Name the commonest label and prediction of a slice, two where none has half of its images, and shared factors."""
    told, size = [], len(one.members)
    for what, values in _list_properties(one.members, images, predictions, classes):
        common = Counter(values).most_common(NAMED)
        if common[0][1] >= COMMON * size:
            common = common[:1]
        elif what not in CLASSES:
            continue
        told.append(f"{what} " + " or ".join(f"{value} ({count / size:.0%})" for value, count in common))
    return ", ".join(told)


def _list_properties(
    rows: Sequence[int], images: ImageSet, predictions: Predictions, classes: Sequence[str] | NDArray[np.str_]
) -> Iterator[tuple[str, list[str]]]:
    """Yield each property of these images that is known, with its value for each of them."""
    yield LABELLED, [images.categories[images.labels[i]] for i in rows]
    yield PREDICTED, [str(classes[predictions.predicted[i]]) for i in rows]
    for name, factor in images.factors.items():
        if factor.known is not None and not set(factor.values) & set(images.categories):
            yield name, [factor.known[i] for i in rows]


def tabulate_slices(
    error_slices: ErrorSlices, images: ImageSet, predictions: Predictions, classes: Sequence[str] | NDArray[np.str_]
) -> pd.DataFrame:
    """Tabulate the slices, one row each."""
    rows = [
        {
            "slice": k,
            "images": len(one.members),
            "errors": one.errors,
            "error_rate": one.rate.value,
            "low": one.rate.low,
            "high": one.rate.high,
            "p": one.p,
            "beyond_chance": one.is_found,
            "images_are": describe_slice(one, images, predictions, classes),
            "most_typical": images.ids[one.members[0]],
        }
        for k, one in enumerate(error_slices.slices, 1)
    ]
    return pd.DataFrame(rows)


def describe_result(error_slices: ErrorSlices, predictions: Predictions) -> str:
    """Describe how many slices there are, and what they were measured on."""
    count = sum(one.is_found for one in error_slices.slices)
    said = "no slice has" if count == 0 else "1 slice has" if count == 1 else f"{count} slices have"
    known = predictions.truth != UNMATCHED
    return (
        f"Of {len(error_slices.slices)} groups of similar images, {said} more errors than the others beyond chance "
        "(Fisher's exact test, Holm-corrected). The groups were found on half of the images, with their errors, and "
        "are measured on the other half, assigned by features alone: the AI errs on "
        f"{error_slices.overall.value:.1%} of these {len(error_slices.tested):,} images, and on "
        f"{1 - predictions.correct[known].mean():.1%} of all {known.sum():,}."
    )


def format_slice(number: int, one: ErrorSlice, told: str) -> str:
    """Format a slice's error rate, its interval and what its images share (``told``) in one line."""
    mark = "" if one.is_found else " (not beyond chance)"
    return (
        f"{number}: {one.rate.value:.0%} errors ({one.rate.low:.0%} to {one.rate.high:.0%}) of "
        f"{len(one.members):,}{mark}: {told}"
    )
