"""What a question costs before it is asked: passes through the network, and seconds that do not depend on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from core.attribution.cost import Cost
from core.attribution.places.place import select_layer
from core.network.classifier import Classifier
from core.units.unit import Unit, find_layer_shape
from inquiry.layers.inspection import LayerQuery


class PlannedQuestion(Protocol):
    """A question that is about to be asked."""

    @property
    def query(self) -> LayerQuery:
        """The question, and the layers that it is about."""

    @property
    def classifier(self) -> Classifier:
        """The network."""

    @property
    def image_count(self) -> int:
        """Number of images."""


@dataclass(frozen=True)
class Work(Cost):
    """Passes of one image, about, and ``seconds`` of what does not run the network."""

    seconds: float = 0.0


CostRule = Callable[[PlannedQuestion, Mapping[str, Any]], Work | None]
"""The work of a question with these parameters, all of them given; None where it is unknown."""


def read_each_layer(planned: PlannedQuestion, _: Mapping[str, Any]) -> Work:
    """Read each layer once, for each image."""
    layers = len(planned.query.layers) or len(planned.classifier.layers)
    return Work(2 * layers * planned.image_count)


def leave_out_each_unit(planned: PlannedQuestion, _: Mapping[str, Any]) -> Work:
    """Predict each image without each unit of the layers."""
    layers = planned.query.layers or [select_layer(planned.classifier, "")]
    units = sum(find_layer_shape(planned.classifier, Unit(0, layer))[0] for layer in layers)
    return Work(planned.image_count * units)
