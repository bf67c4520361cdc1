"""Images on which explanations, or networks, disagree: by rank correlation and by Jensen-Shannon divergence."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import rel_entr
from torch import Tensor

from core.attribution import METHODS
from core.class_names import fold, shorten_names
from core.errors import ForetellError
from core.faithfulness.agreement import Ranks, correlate_ranks, rank_pixels
from core.network.classifier import Classifier
from core.network.device import describe_arithmetic
from core.types import Progress
from data.types import ImageSet
from study.network.predictions import probabilities_of
from study.workspace.blocks import load_columns
from study.workspace.files import open_replacement
from study.workspace.provenance import code_digest

QUICK_METHODS = ("gradient", "input_x_gradient", "grad_cam", "lrp_composite", "excitation_backpropagation")
"""Methods of different kinds that take about one pass back through the network."""
MOST_IMAGES = 200
"""Images whose heatmaps are compared at a time."""
BATCH = 8
Values = NDArray[np.float64]


@dataclass(frozen=True)
class MethodAgreement:
    """Mean rank correlation of every two of ``methods`` by index of the image; ``refused`` says why others are out."""

    correlations: dict[int, float]
    methods: tuple[str, ...]
    refused: dict[str, str]


class MethodComparison:
    """Compares the heatmaps of several methods image by image, each for the predicted class.

    What is found is kept in ``folder``, so that an image is never compared twice.
    """

    def __init__(
        self, classifier: Classifier, images: ImageSet, folder: Path, methods: Sequence[str] = QUICK_METHODS
    ) -> None:
        self.classifier, self.images, self.methods = classifier, images, tuple(methods)
        network = (classifier.fingerprint, classifier.transforms_digest, describe_arithmetic(classifier.device))
        parts = (*network, images.digest, *self.methods, _digest_code())
        self.key = hashlib.sha256("|".join(parts).encode()).hexdigest()
        self._path = folder / "disagreement" / f"{self.key}.npz"

    def count_missing(self, rows: Sequence[int]) -> int:
        """Return how many of these images have not been compared yet."""
        return len(set(rows) - self._load().keys())

    def compare(self, rows: Sequence[int], progress: Progress) -> MethodAgreement:
        """Compare the methods on the images of these indices.

        Raises
        ------
        ForetellError
            Fewer than two of the methods apply to the network.
        """
        usable, refused = self._find_usable(rows[0])
        known = self._load()
        missing = [i for i in rows if i not in known]
        for start in range(0, len(missing), BATCH):
            progress(len(rows) - len(missing) + start, len(rows), "comparing heatmaps, images")
            batch = missing[start : start + BATCH]
            known |= dict(zip(batch, self._correlate(batch, usable).tolist(), strict=True))
            self._save(known)
        return MethodAgreement({i: known[i] for i in rows}, usable, refused)

    def _find_usable(self, row: int) -> tuple[tuple[str, ...], dict[str, str]]:
        """Try each method on one image: those that apply to the network, and why the others do not."""
        inputs, predicted = self._open([row])
        refused = {}
        for method in self.methods:
            try:
                self._rank(inputs, predicted, method)
            except ForetellError as error:
                refused[method] = str(error)
        usable = tuple(method for method in self.methods if method not in refused)
        if len(usable) < 2:
            reasons = " ".join(refused.values())
            raise ForetellError(f"Fewer than two of the methods apply to {self.classifier.name}. {reasons}")
        return usable, refused

    def _correlate(self, rows: Sequence[int], methods: Sequence[str]) -> Values:
        inputs, predicted = self._open(rows)
        ranked = [self._rank(inputs, predicted, method) for method in methods]
        correlations: Values = np.mean([correlate_ranks(a, b) for a, b in combinations(ranked, 2)], axis=0)
        return correlations

    def _open(self, rows: Sequence[int]) -> tuple[Tensor, list[int]]:
        """Open images as the network sees them (B, C, H, W), with their predicted classes."""
        inputs = torch.stack([self.classifier.preprocess(self.images.open(i)) for i in rows])
        predicted: list[int] = self.classifier.logits(inputs).argmax(1).tolist()
        return inputs, predicted

    def _rank(self, inputs: Tensor, predicted: list[int], method: str) -> Ranks:
        generator = torch.Generator().manual_seed(0)
        return rank_pixels(METHODS[method](self.classifier, inputs, predicted, generator=generator))

    def _load(self) -> dict[int, float]:
        columns = load_columns(self._path)
        return (
            {}
            if columns is None
            else dict(zip(columns["image"].tolist(), columns["correlation"].tolist(), strict=True))
        )

    def _save(self, known: dict[int, float]) -> None:
        with open_replacement(self._path) as file:
            np.savez(file, image=np.array(list(known)), correlation=np.array(list(known.values())))


@cache
def _digest_code() -> str:
    """Hash the code once: a page asks for the key at every click."""
    return code_digest()


@dataclass(frozen=True)
class CommonClasses:
    """Classes that two networks share: their names, and their indices in each."""

    names: tuple[str, ...]
    first: tuple[int, ...]
    second: tuple[int, ...]


def match_classes(first: Sequence[str], second: Sequence[str]) -> CommonClasses:
    """Match the classes of two networks by name; a name that is not unique in each of them matches nothing.

    A name before the first comma ("tench" of "tench, Tinca tinca") is a class's whole name in the other network:
    "retinopathy, mild" is not "retinopathy, severe".
    """
    if list(first) == list(second):
        everything = tuple(range(len(first)))
        return CommonClasses(shorten_names(first), everything, everything)
    wholes, shorts = zip(*(_index_names(each) for each in (first, second)), strict=True)
    pairs: dict[int, int] = {}
    taken: set[int] = set()
    for names in ((wholes[0], wholes[1]), (shorts[0], wholes[1]), (wholes[0], shorts[1])):
        for name in sorted(names[0].keys() & names[1].keys()):
            k, other = names[0][name], names[1][name]
            if k not in pairs and other not in taken:
                pairs[k] = other
                taken.add(other)
    order, shown = sorted(pairs), shorten_names(first)
    return CommonClasses(tuple(shown[k] for k in order), tuple(order), tuple(pairs[k] for k in order))


def _index_names(categories: Sequence[str]) -> tuple[dict[str, int], dict[str, int]]:
    """Return the classes by their whole names and by their short ones, folded, without names that two of them have."""
    return tuple(  # type: ignore[return-value]
        {name: k for k, name in enumerate(each) if each.count(name) == 1}
        for each in (list(map(fold, names)) for names in (categories, shorten_names(categories)))
    )


def compare_networks(
    first: Classifier, second: Classifier, images: ImageSet, folder: Path, progress: Progress
) -> Values:
    """Compute the Jensen-Shannon divergence of two networks' predictions for each image (N,), in bits: 0 to 1.

    Predictions are restricted to the common classes and rescaled to sum to 1; stored ones are read.

    Raises
    ------
    ForetellError
        The networks have fewer than two classes in common.
    """
    common = match_classes(first.categories, second.categories)
    if len(common.names) < 2:
        raise ForetellError(
            f"{first.name} and {second.name} have {len(common.names)} classes in common. "
            "Compare networks that share at least two."
        )
    pairs = ((first, common.first), (second, common.second))
    p, q = (probabilities_of(network, images, folder, progress)[:, list(kept)] for network, kept in pairs)
    return jensen_shannon(p, q)


def jensen_shannon(p: NDArray[np.floating], q: NDArray[np.floating]) -> Values:
    """Compute the Jensen-Shannon divergence of the rows of two arrays (N, K), in bits.

    Rows are rescaled to sum to 1; one without any probability is taken as uniform.

    References
    ----------
    Lin 1991, doi:10.1109/18.61115
    """
    a, b = (_rescale(np.asarray(rows, dtype=np.float64)) for rows in (p, q))
    middle = (a + b) / 2
    divergences: Values = (rel_entr(a, middle) + rel_entr(b, middle)).sum(1) / (2 * np.log(2))
    return divergences.clip(0.0, 1.0)


def _rescale(rows: Values) -> Values:
    total = rows.sum(1, keepdims=True)
    distributions: Values = np.divide(rows, total, out=np.full_like(rows, 1 / rows.shape[1]), where=total > 0)
    return distributions
