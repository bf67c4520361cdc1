"""Names of classes: short where a short name says enough, and the classes that a name means."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property

IMAGENET = 1000
HOMONYMS = {"crane", "maillot"}
"""Two classes of ImageNet each: many lists give both synsets the same name."""
MOST_NAMED = 3
"""Classes that the message about an ambiguous name lists."""


class ClassNames:
    """The class names of a network, in the order of its logits.

    A comma may separate synonyms, as in ImageNet's names ("tench, Tinca tinca"), or belong to the name ("diabetic
    retinopathy, mild"). So the whole name is what a class is called, and a part of it counts where it is unique.

    Parameters
    ----------
    categories
        The whole names.
    """

    def __init__(self, categories: Sequence[str]) -> None:
        self.categories = tuple(categories)

    @cached_property
    def short(self) -> tuple[str, ...]:
        """Return each name for display: up to its first comma where no other class has that name, else whole."""
        names = [name.replace("_", " ").strip() for name in self.categories]
        first = [name.partition(",")[0].strip() for name in names]
        counts = Counter(name.casefold() for name in first)
        return tuple(
            one if one and counts[one.casefold()] == 1 else name for one, name in zip(first, names, strict=True)
        )

    def find_repeated(self) -> str | None:
        """Return the first name that two classes have, underscores and spaces aside; None where each has its own."""
        name, count = Counter(map(spell, self.categories)).most_common(1)[0]
        return name if count > 1 else None

    @cached_property
    def are_numbers(self) -> bool:
        """Whether any class is named by a whole number, which is then no index."""
        return any(name.isdecimal() for name in self.short)

    def find(self, name: str) -> tuple[int, ...]:
        """Find the classes that a name means: none, one, or several where it is ambiguous.

        A whole name counts more than the name before the first comma, that more than another part between commas, and
        each in its own case more than in another.
        """
        for spelling, table in self._tables:
            if matches := table.get(spelling(name)):
                return matches
        return ()

    def find_numbered(self, name: str) -> tuple[int, ...]:
        """Find as `find` does, or by index where no class is named by a number."""
        is_index = name.isdecimal() and not self.are_numbers and int(name) < len(self.categories)
        return self.find(name) or ((int(name),) if is_index else ())

    def describe_ambiguous(self, name: str, matches: Sequence[int], owner: str) -> str:
        """Say that a name could be several classes of ``owner``, and what to do."""
        names = ", ".join(repr(self.categories[k]) for k in matches[:MOST_NAMED])
        more = f" and {len(matches) - MOST_NAMED} more" if len(matches) > MOST_NAMED else ""
        return f"{name!r} could be {len(matches)} classes of {owner}: {names}{more}. Give the whole name of one."

    @cached_property
    def _tables(self) -> list[tuple[Callable[[str], str], Mapping[str, tuple[int, ...]]]]:
        """Return the classes by whole name, by its first part and by any part, each by its spelling and then folded."""
        return [(spelling, self._group(parts, spelling)) for spelling in (spell, fold) for parts in _PARTS]

    def _group(
        self, parts: Callable[[str], Iterable[str]], spelling: Callable[[str], str]
    ) -> Mapping[str, tuple[int, ...]]:
        groups: dict[str, dict[int, None]] = defaultdict(dict)
        for k, name in enumerate(self.categories):
            for part in parts(name):
                groups[spelling(part)][k] = None
        return {part: tuple(matches) for part, matches in groups.items() if part}


_PARTS: tuple[Callable[[str], Iterable[str]], ...] = (
    lambda name: (name,),
    lambda name: (name.partition(",")[0],),
    lambda name: name.split(","),
)


def spell(name: str) -> str:
    """Return a name with single spaces for underscores and blanks, its letters composed as in NFC."""
    return re.sub(r"[\s_]+", " ", unicodedata.normalize("NFC", name)).strip()


def fold(name: str) -> str:
    """Return `spell` without the difference between upper and lower case."""
    return spell(name).casefold()


def shorten_names(categories: Sequence[str]) -> tuple[str, ...]:
    """Return `ClassNames.short` of some categories."""
    return ClassNames(categories).short


def is_imagenet(categories: Sequence[str]) -> bool:
    """Tell whether these are ImageNet's thousand names in a list that calls only its cranes or maillots the same."""
    counts = Counter(map(spell, categories))
    return len(categories) == IMAGENET and {name for name, count in counts.items() if count > 1} <= HOMONYMS


def number_repeated_names(categories: Sequence[str]) -> list[str]:
    """Append the index of its class to each name that several have, as where a library names two of ImageNet crane."""
    counts = Counter(map(spell, categories))
    return [f"{name} ({k})" if counts[spell(name)] > 1 else name for k, name in enumerate(categories)]
