"""The meaning of a heatmap's two colours: only for some methods are values evidence for a class.

The record of a method names one of these, or a `Sign` of its own (`core.attribution.records`).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sign:
    """Meaning of values above and below a heatmap's zero; ``{}`` is the class. None: there are no values below.

    ``kind`` ends the keys of the texts that explain the colours to participants; it is empty for evidence.
    """

    above: str
    below: str | None
    kind: str = ""

    def words(self, category: str) -> str:
        """Return the meaning of the colours, e.g. ``"Orange: for fish. Blue: against it."``."""
        below = "" if self.below is None else f" Blue: {self.below.format(category)}."
        return f"Orange: {self.above.format(category)}.{below}"


EVIDENCE = Sign("for {}", "against {}")
SUPPORT = Sign("for {}; this method shows nothing against it", None, "_support")
SLOPE = Sign("a higher pixel value raises the score of {}", "a higher pixel value lowers it", "_slope")
MODIFIED = Sign(
    "positive value of the modified gradient, not evidence for {}",
    "negative value of it, not evidence against it",
    "_modified",
)

VARYING = Sign("the gradient of {} varies under noise, in either direction", None, "_varying")
CONTRAST = Sign("more for {} than for everything else", "more for everything else", "_contrast")
ATTENDED = Sign("what the network attends to", None, "_attended")
INFLUENCE = Sign("how much changing this place changes the score of {}, in either direction", None, "_influence")

OF_ONE_CLASS = {sign.kind for sign in (EVIDENCE, SUPPORT, CONTRAST)}
"""Kinds whose values above zero speak for one class, so that the heatmaps of several classes can be compared."""
