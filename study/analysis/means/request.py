"""What is asked for: the factors of the means, and the contrasts between their levels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from core.errors import ForetellError
from study.analysis.models.formula import write_plain_name
from study.analysis.models.records import Floats

PAIRWISE = "pairwise"
REFERENCE = "reference"
_NAME = re.compile(r"`([^`]+)`|([A-Za-z_.][\w.]*)")


@dataclass(frozen=True)
class MeansRequest:
    """A request for estimated marginal means.

    Attributes
    ----------
    factors
        A mean for each combination of their levels.
    by
        Contrasts are made and corrected within each combination of the levels of these.
    """

    factors: tuple[str, ...]
    by: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All factors that distinguish means."""
        return self.factors + self.by

    def __str__(self) -> str:
        return " | ".join(" * ".join(names) for names in (self.factors, self.by) if names)


def parse_request(text: str) -> MeansRequest:
    """Parse ``"a"``, ``"a * b"`` (each combination) or ``"a | b"`` (the levels of a within each level of b).

    Raises
    ------
    ForetellError
        The text has another form, or names a factor twice.
    """
    sides = text.split("|")
    names = [[_read_name(part) for part in re.split(r"[*:]", side)] for side in sides]
    every = [name for side in names for name in side]
    if len(sides) > 2 or None in every:
        raise ForetellError(f"The means {text!r} cannot be read: write 'a', 'a * b' or 'a | b' with names of factors.")
    if len(set(every)) < len(every):
        raise ForetellError(f"The means {text!r} name a factor twice: name each factor once.")
    factors, *by = (tuple(name for name in side if name is not None) for side in names)
    return MeansRequest(factors, *by)


def _read_name(text: str) -> str | None:
    match = _NAME.fullmatch(text.strip())
    return None if match is None else match[2] or write_plain_name(match[1])


def list_contrasts(wanted: Sequence[str], labels: Sequence[str]) -> tuple[list[str], Floats]:
    """List the names (m,) and weights (m, k) of the contrasts between k labelled means.

    Parameters
    ----------
    wanted
        ``"pairwise"`` (each mean minus each later one), ``"reference"`` (each minus the first), ``"b - a"``, or weights
        such as ``"both=1, maps=-1/2, examples=-1/2"``.

    Raises
    ------
    ForetellError
        A contrast names no level, has weights that do not sum to zero, or cannot be read.
    """
    k = len(labels)
    pairs: list[tuple[str, Floats]] = []
    for text in wanted:
        if text == PAIRWISE:
            pairs += [_subtract(labels, i, j) for i in range(k) for j in range(i + 1, k)]
        elif text == REFERENCE:
            pairs += [_subtract(labels, i, 0) for i in range(1, k)]
        else:
            pairs.append((text, _parse_contrast(text, labels)))
    return [name for name, _ in pairs], np.array([weights for _, weights in pairs]).reshape(len(pairs), k)


def _subtract(labels: Sequence[str], more: int, less: int) -> tuple[str, Floats]:
    weights = np.zeros(len(labels))
    weights[more], weights[less] = 1.0, -1.0
    return f"{labels[more]} - {labels[less]}", weights


def _parse_contrast(text: str, labels: Sequence[str]) -> Floats:
    place = {label: k for k, label in enumerate(labels)}
    pieces = text.split(" - ")
    for cut in range(1, len(pieces)):  # a level may contain " - " itself
        more, less = (" - ".join(part).strip() for part in (pieces[:cut], pieces[cut:]))
        if more in place and less in place and more != less:
            return _subtract(labels, place[more], place[less])[1]
    if "=" not in text:
        _refuse_unknown([piece.strip() for piece in pieces], labels, text)
        raise ForetellError(f"The contrast {text!r} cannot be read: write 'b - a', or weights such as 'b=1, a=-1'.")
    return _parse_weights(text, labels)


def _parse_weights(text: str, labels: Sequence[str]) -> Floats:
    weights = [Fraction(0)] * len(labels)
    named = [tuple(part.strip() for part in piece.rpartition("=")[::2]) for piece in text.split(",")]
    _refuse_unknown([name for name, _ in named], labels, text)
    for name, value in named:
        try:
            weights[labels.index(name)] += Fraction(value.replace("−", "-"))
        except (ValueError, ZeroDivisionError) as error:
            raise ForetellError(
                f"The contrast {text!r} gives {name!r} the weight {value!r}, which is no number: write 1, -0.5 or -1/3."
            ) from error
    if total := sum(weights):
        raise ForetellError(
            f"The weights of the contrast {text!r} sum to {float(total):g} instead of 0: let those above zero equal "
            "those below, with fractions such as 1/3 where decimals are not exact."
        )
    if not any(weights):
        raise ForetellError(f"The contrast {text!r} has no weight other than 0: give two levels opposite weights.")
    return np.array([float(weight) for weight in weights])


def _refuse_unknown(names: Sequence[str], labels: Sequence[str], text: str) -> None:
    for name in names:
        if name not in labels:
            raise ForetellError(f"The contrast {text!r} names {name!r}, which is no level; there are {_join(labels)}.")


def _join(labels: Sequence[str], most: int = 12) -> str:
    more = f" and {len(labels) - most} more" if len(labels) > most else ""
    return ", ".join(labels[:most]) + more
