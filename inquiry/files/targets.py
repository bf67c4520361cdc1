"""The class to explain, as a command names it."""

from __future__ import annotations

import difflib
from typing import Annotated

from torch import Tensor

from core.class_names import fold
from core.errors import ForetellError
from core.network.classifier import Classifier

TOP = "top"
ClassName = Annotated[str, "Class to explain, by name or index; top is the class predicted most often."]


def resolve_target(classifier: Classifier, target: str | int) -> int | None:
    """Resolve a class as `find_class` does, an int as an index; None for ``"top"``, the predicted class."""
    if not isinstance(target, int):
        return None if target == TOP else find_class(classifier, target, besides=TOP)
    if not 0 <= target < len(classifier.categories):
        raise _no_index(classifier, target)
    return target


def find_class(classifier: Classifier, name: str, *, besides: str = "") -> int:
    """Find a class by its whole name, by a part of it that no other class has, or by index.

    ``besides`` is a word that the caller takes instead of a class; the refusal names it.

    Raises
    ------
    ForetellError
        No such class (with the nearest), several of them, or a number where classes are named by numbers.
    """
    names = classifier.names
    matches = names.find_numbered(name)
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise ForetellError(names.describe_ambiguous(name, matches, classifier.name))
    if name.lstrip("-").isdecimal() and names.are_numbers:
        raise ForetellError(
            f"Classes of {classifier.name} are named by numbers and none is named {name}, so it could be an index. "
            f"Give a class name, such as {classifier.categories[0]!r}."
        )
    if name.lstrip("-").isdecimal():
        raise _no_index(classifier, name)
    known = {fold(one): one for one in (*classifier.categories, *names.short)}
    near = [known[one] for one in difflib.get_close_matches(fold(name), known, n=3, cutoff=0.5)]
    instead = f", or {besides!r}" if besides else ""
    hint = f"Did you mean {' or '.join(near)}?" if near else f"Give the name or the index of a class{instead}."
    raise ForetellError(f"{classifier.name} has no class {name!r}. {hint}")


def _no_index(classifier: Classifier, index: int | str) -> ForetellError:
    last = len(classifier.categories) - 1
    return ForetellError(f"Target {index} is not a class of {classifier.name}: it has classes 0 to {last}.")


def resolve_class(classifier: Classifier, target: str, predicted: Tensor) -> int:
    """Resolve as `resolve_target` does; for ``"top"``, the class most often among predicted classes (N,)."""
    asked = resolve_target(classifier, target)
    return int(predicted.bincount().argmax()) if asked is None else asked
