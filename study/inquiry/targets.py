"""The class to explain, as a command names it."""

from __future__ import annotations

import difflib
from typing import Annotated

from torch import Tensor

from core.classifier import Classifier
from core.errors import ForetellError

TOP = "top"
ClassName = Annotated[str, "Class to explain, by name or index; top is the class predicted most often."]


def resolve_target(classifier: Classifier, target: str) -> int | None:
    """Resolve a class index or class name (any synonym); None for ``"top"``, the predicted class."""
    if target == TOP:
        return None
    if target.lstrip("-").isdecimal():
        if 0 <= int(target) < len(classifier.categories):
            return int(target)
        last = len(classifier.categories) - 1
        raise ForetellError(f"Target {target} is not a class of {classifier.name}: it has classes 0 to {last}.")
    names = {
        s.strip().casefold(): k for k, name in reversed(list(enumerate(classifier.categories))) for s in name.split(",")
    }
    if target.casefold() not in names:
        near = difflib.get_close_matches(target.casefold(), names, n=3, cutoff=0.5)
        hint = f"Did you mean {' or '.join(near)}?" if near else "Give a class index, a class name, or 'top'."
        raise ForetellError(f"{classifier.name} has no class {target!r}. {hint}")
    return names[target.casefold()]


def resolve_class(classifier: Classifier, target: str, predicted: Tensor) -> int:
    """Resolve as `resolve_target` does; for ``"top"``, the class most often among predicted classes (N,)."""
    asked = resolve_target(classifier, target)
    return int(predicted.bincount().argmax()) if asked is None else asked
