"""The common part of explanations that Foretell did not make: called as every method, and checked."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from core.attribution.common import prepare_inputs
from core.attribution.method import HeatmapMethod, Query
from core.drawing.views import View
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.network.geometry import Geometry
from core.types import Explanation, Progress, silent

SHARED = ("classifier", "images", "targets", "generator", "progress", "records")


@dataclass(frozen=True)
class ImageRecord:
    """The identity of an image, which its input does not tell: heatmaps in files are found by it.

    Attributes
    ----------
    names
        Names that its heatmap may have, without ending, the most specific first.
    size
        (width, height) of the photograph, px.
    geometry
        Where the input lies in the photograph; None where that is not known.
    """

    names: tuple[str, ...]
    size: tuple[int, int]
    geometry: Geometry | None

    @classmethod
    def of(cls, view: View, *names: str) -> ImageRecord:
        """Record an image under its names, as a classifier sees it."""
        return cls(names, view.photograph.size, view.geometry)


class ExternalMethod(ABC):
    """A heatmap method from outside.

    Parameters
    ----------
    name
        As certificates say it.
    doc
        What it is: a sentence, then perhaps a section ``Parameters`` (`core.parameters`).
    parameters
        Keyword-only, with types.

    Attributes
    ----------
    digest
        SHA-256 of the files that its heatmaps depend on.
    reads_heatmaps
        Whether it reads finished heatmaps: then it needs the records of its images, and explains no other network.
    """

    digest: str
    reads_heatmaps = False

    def __init__(self, name: str, doc: str, parameters: Sequence[inspect.Parameter] = ()) -> None:
        self.__name__, self.__doc__ = name, doc
        shared = inspect.signature(ExternalMethod.__call__).parameters
        self.__signature__ = inspect.Signature([*(shared[one] for one in SHARED), *parameters])
        self.__annotations__ = {one.name: one.annotation for one in parameters}

    def __call__(
        self,
        classifier: Classifier,
        images: Tensor,
        targets: Sequence[int],
        *,
        generator: torch.Generator | None = None,
        progress: Progress = silent,
        records: Sequence[ImageRecord] = (),
        **parameters: Any,
    ) -> Explanation:
        """Explain one target class of each of images (B, C, H, W), in the network's input space."""
        checked = prepare_inputs(classifier, images, targets)
        query = Query(self.__name__, classifier, *checked, progress, generator)
        return self.explain(query, records, **parameters)

    def digest_for(self, classifier: Classifier) -> str:  # noqa: ARG002 - a network may have files of its own
        """Return the SHA-256 of what the heatmaps of a classifier depend on, besides its weights and structure."""
        return self.digest

    @abstractmethod
    def explain(self, query: Query, records: Sequence[ImageRecord], **parameters: Any) -> Explanation:
        """Make the heatmaps of a query, with their certificates."""


def records_for(method: HeatmapMethod, records: Sequence[ImageRecord]) -> dict[str, Any]:
    """Return the keyword that passes records to a method that reads finished heatmaps; nothing for any other."""
    return {"records": records} if reads_heatmaps(method) else {}


def reads_heatmaps(method: HeatmapMethod) -> bool:
    """Tell whether a method reads finished heatmaps instead of making them."""
    return isinstance(method, ExternalMethod) and method.reads_heatmaps


def digest_of(method: HeatmapMethod, classifier: Classifier) -> str:
    """Return the SHA-256 of the files that an external method depends on; empty for Foretell's own methods."""
    return method.digest_for(classifier) if isinstance(method, ExternalMethod) else ""


def check_heatmaps(name: str, heatmaps: object, shape: tuple[int, int, int], number: str = "") -> Tensor:
    """Return what a method gave as heatmaps (B, H, W) float32 on the CPU; ``number`` says which image it is.

    Raises
    ------
    ForetellError
        Not an array, of another shape, or not finite.
    """
    if not isinstance(heatmaps, Tensor | np.ndarray):
        raise ForetellError(
            f"{name} returned {type(heatmaps).__name__}; it must return an array or tensor of heatmaps (B, H, W)."
        )
    if tuple(heatmaps.shape) != shape:
        raise ForetellError(
            f"{name} returned shape {tuple(heatmaps.shape)}, not {shape}: one heatmap of the input's height and width "
            "for each image. Resize its heatmaps to the input, and sum over channels."
        )
    try:
        maps = torch.as_tensor(heatmaps).detach().to("cpu", torch.float32)
    except (TypeError, RuntimeError):
        raise ForetellError(f"{name} returned values that are not numbers. Return floats.") from None
    if not torch.isfinite(maps).all():
        raise ForetellError(f"{name} returned NaN or infinite values{number}. Correct that function.")
    return maps
