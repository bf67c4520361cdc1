"""What is known of a method before it runs, by its name: its family, what its colours mean, what it costs.

The record itself is next to the method's function, in its decorator `core.attribution.method.heatmap_method`. This
module imports no method until one is asked for, and no torch: a participants' server explains the colours too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from core.attribution import METHODS
from core.attribution.signs import EVIDENCE, Sign
from core.parameters import list_parameters

if TYPE_CHECKING:
    from core.attribution.cost import Cost, CostRule
    from core.network.classifier import Classifier


class Family(StrEnum):
    """What a method does with the network; a method without one is in none of the groups that Explore offers."""

    GRADIENTS = "Gradients"
    RELEVANCE = "Relevance"
    FEATURE_MAPS = "Feature maps"
    ATTENTION = "Attention"
    PERTURBATION = "Perturbation"
    SURROGATES = "Shapley values and surrogates"


@dataclass(frozen=True)
class MethodRecord:
    """What is known of a method before it runs.

    Attributes
    ----------
    family
        The group in which Explore offers it; None: in none.
    sign
        What the values mean, or a function of the parameters where they change that.
    cost
        The passes of a heatmap; None if they are unknown.
    """

    family: Family | None = None
    sign: Sign | Callable[[Mapping[str, Any]], Sign] = EVIDENCE
    cost: CostRule | None = None


UNKNOWN = MethodRecord()
"""The record of a method that has none: a file, a folder of heatmaps, a plain function, a package that is missing."""


def record_of(name: str) -> MethodRecord:
    """Return the record of a method; `UNKNOWN` also where there is no such method, which an old study may name."""
    return METHODS.record_of(name, UNKNOWN)


def sign_of(name: str, parameters: Mapping[str, Any]) -> Sign:
    """Return what the values of a method mean under the ``parameters`` that it was given."""
    sign = record_of(name).sign
    return sign if isinstance(sign, Sign) else sign(parameters)


def cost_of(name: str, parameters: Mapping[str, Any], classifier: Classifier) -> Cost | None:
    """Return the passes of one heatmap of ``classifier``; None where they are unknown.

    Raises
    ------
    ForetellError
        Parameters that no heatmap can have.
    """
    rule = record_of(name).cost
    if rule is None:
        return None
    settings = {p.name: p.default for p in list_parameters(METHODS[name])} | dict(parameters)
    return rule(settings, classifier)


def group_methods() -> dict[Family, tuple[str, ...]]:
    """Group the methods by family, in the order of the families and of the registry."""
    records = {name: record_of(name) for name in METHODS}
    return {family: tuple(name for name, one in records.items() if one.family is family) for family in Family}
