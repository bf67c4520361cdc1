"""The material from which a condition makes its own images when a study is built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from PIL import Image
from torch import Tensor

from core.drawing.rendering import PixelArray
from core.drawing.views import View
from core.network.classifier import Classifier
from core.types import Explanation, TeachingSet
from data.types import ImageSet

T = TypeVar("T")


@dataclass(frozen=True)
class TrialMaterial:
    """One planned trial, before its images are drawn.

    Attributes
    ----------
    id
        Of the trial in its study.
    classes, options
        The predicted class, the foil and any further foils, as indices of the network's classes and as names.
    truth
        The true class, as an index of the network's classes.
    images, index
        The image set of the target, and the target's place in it.
    probability
        The network's probability of the predicted class.
    view, inputs
        How the target is drawn, and the network's input (1, C, H, W).
    explanation
        Of the study's method; its first row is the target's.
    own_examples
        The teaching sets, of pool images, of the conditions that show examples of their own, by the condition's name.
    """

    id: str
    classes: tuple[int, ...]
    options: tuple[str, ...]
    truth: int
    images: ImageSet
    index: int
    probability: float
    view: View
    inputs: Tensor
    explanation: Explanation
    own_examples: Mapping[str, TeachingSet] = field(default_factory=dict)


class Studio(Protocol):
    """A build as its conditions see it; `study.building.stimuli.StimulusStudio` is the only implementation."""

    @property
    def classifier(self) -> Classifier:
        """The network that is explained."""
        ...

    @property
    def pool(self) -> ImageSet:
        """The images that examples come from."""
        ...

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of a stimulus, px."""
        ...

    @property
    def texts(self) -> Mapping[str, str]:
        """The study's texts, in its language."""
        ...

    def seed_of(self, *parts: str) -> int:
        """Return the random seed of a part of this study."""
        ...

    def once(self, name: str, make: Callable[[], T]) -> T:
        """Return what ``make`` gives for the whole study; it is called for the first trial only."""
        ...

    def write(self, image: Image.Image) -> str:
        """Write an asset and return its SHA-256."""
        ...

    def draw_pool_image(self, index: int) -> Image.Image:
        """Draw an image of the pool as participants see it."""
        ...

    def overlay(self, view: View, values: PixelArray) -> Image.Image:
        """Draw the values (H, W) of a heatmap, in [-1, 1], over an image."""
        ...

    def drawn_values(self, explanation: Explanation) -> PixelArray:
        """Return the values (H, W) in [-1, 1] that the first heatmap of an explanation is drawn from."""
        ...

    def explain_with(self, network: Classifier, material: TrialMaterial) -> Explanation:
        """Explain the target by the study's method for another network."""
        ...

    def explain_class(self, material: TrialMaterial, k: int) -> Explanation:
        """Explain the target by the study's method for class ``k``, as the network's prediction is explained."""
        ...

    def relevance(self, material: TrialMaterial, evidence: PixelArray) -> float:
        """Return how much more evidence (H, W) supports the object than what surrounds it, in [0, 1]."""
        ...
