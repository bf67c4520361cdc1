"""The predictions for the last images of a stream, as an assertion over a history receives them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from core.errors import ForetellError

SHORTEST_GAP = 3
"""Images in the shortest history that can have a gap: before it, the gap, after it."""


def check_class(name: str, categories: Sequence[str]) -> None:
    """Check that a class exists, for a rule that names it.

    Raises
    ------
    ForetellError
        No such class.
    """
    if name not in categories:
        raise ForetellError(f"there is no class {name!r}; the first are {', '.join(categories[:4])}")


@dataclass(frozen=True)
class History:
    """The predictions for the last n images of a stream: the first argument of an assertion over a history.

    The functions are the assertions that Kang et al. 2018 ("Model assertions for debugging machine learning", NeurIPS
    workshop on systems for ML) give as examples, flickering and objects that vanish, for a network that predicts one
    class.

    Attributes
    ----------
    ids, predicted, probabilities
        Of each image, the oldest first: its name, the name of the predicted class, and the probability of that class.
    labels
        The set's label of each image; None where it has none.
    categories
        Plain names of the network's classes.
    """

    ids: tuple[str, ...]
    predicted: tuple[str, ...]
    probabilities: tuple[float, ...]
    labels: tuple[str | None, ...]
    categories: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.ids)

    def count_changes(self) -> int:
        """Count how often the predicted class differs from that of the image before: 0 to n - 1."""
        return sum(now != before for before, now in pairwise(self.predicted))

    def find_gap(self) -> str | None:
        """Return the class that is predicted for all images but one between the first and the last; None without.

        Raises
        ------
        ForetellError
            The history has fewer than `SHORTEST_GAP` images.
        """
        if len(self) < SHORTEST_GAP:
            raise ForetellError(f"a gap needs a history of {SHORTEST_GAP} or more images, and this has {len(self)}")
        first, *between, last = self.predicted
        return first if first == last and sum(name != first for name in between) == 1 else None

    def share_of(self, category: str) -> float:
        """Return the share of the images for which a class is predicted, by its plain name.

        Raises
        ------
        ForetellError
            No such class.
        """
        check_class(category, self.categories)
        return self.predicted.count(category) / len(self)
