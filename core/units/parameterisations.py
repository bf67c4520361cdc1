"""Ways of drawing an image that a unit can be climbed with: as pixels of bounded norm, or as waves of colour.

`core.units.maco` has one more.
"""

from __future__ import annotations

import math
from typing import ClassVar, Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from core.network.classifier import Classifier
from core.network.gradients import differentiate
from core.units.display import black_and_white


class Canvas(Protocol):
    """An image in the making, (1, C, H, W) in the network's input space.

    Attributes
    ----------
    RATE
        The usual size of a step.
    READS_IMAGES
        Whether the constructor takes the spectrum of a set of images, `core.units.maco.measure_spectrum`.
    importance
        (H, W): how much each pixel has counted so far; None where that is not measured.
    """

    RATE: ClassVar[float]
    READS_IMAGES: ClassVar[bool]
    importance: Tensor | None

    def render_image(self) -> Tensor:
        """Render the image as it is, with its graph."""

    def render_view(self) -> Tensor:
        """Render what the network is shown of it in this step: one image or several."""

    def climb(self, value: Tensor) -> bool:
        """Take one step up the gradient of ``value`` (), a function of `render_view`; False where there is none."""


class Pixels:
    """An image at a fixed distance from the mean colour.

    Erhan, Bengio, Courville & Vincent 2009 (Visualizing higher-layer features of a deep network, technical report
    1341, Université de Montréal), section 3: the maximum over all inputs of one norm, by steps along the gradient,
    each carried back to that norm. Of a linear unit w it is norm * w / |w|.
    """

    RATE: ClassVar[float] = 0.05
    READS_IMAGES: ClassVar[bool] = False
    importance: Tensor | None = None

    def __init__(self, classifier: Classifier, generator: torch.Generator, rate: float) -> None:
        mean = classifier.fill("mean")[None]
        # Half-way from the mean colour to black or white: about the contrast of a photograph.
        self.norm = max(float((end - mean).norm()) for end in black_and_white(classifier)) / 2
        self._rate = rate
        self._centre = mean.to(classifier.device)
        drawn = torch.randn(mean.shape, generator=generator).to(classifier.device)
        self._direction = _of_length_one(drawn).requires_grad_()

    def render_image(self) -> Tensor:
        """Render the mean colour and ``norm`` in one direction from it."""
        return self._centre + self.norm * self._direction

    def render_view(self) -> Tensor:
        """Render the image itself."""
        return self.render_image()

    def climb(self, value: Tensor) -> bool:
        """Turn the direction towards the gradient by ``rate`` of its length."""
        (gradient,) = differentiate(value, self._direction)
        moved = self._direction.detach() + self._rate * _of_length_one(gradient)
        self._direction = _of_length_one(moved).requires_grad_()
        return bool(gradient.any())


def _of_length_one(tensor: Tensor) -> Tensor:
    """Return ``tensor`` of Euclidean norm 1; zeros stay zeros."""
    length: Tensor = torch.linalg.vector_norm(tensor)
    return tensor / length.clamp_min(torch.finfo(tensor.dtype).tiny)


AXES = ((1.0, 1.0, 1.0), (1.0, 0.0, -1.0), (1.0, -2.0, 1.0))
"""Brightness, red against blue, green against both: uncorrelated in natural images (Ruderman, Cronin & Chiao 1998,
doi:10.1364/JOSAA.15.002036)."""
SPREAD = (1.0, 0.28, 0.13)
"""Spread of natural images along each, relative to brightness."""
FAINT = 0.01
"""Standard deviation of the first spectrum: nearly grey."""
TURN, ZOOM, SHIFT = 10.0, 0.1, 0.04
"""Most degrees, share of the size, and share of the side that an image is moved by before each step."""


class Fourier:
    """An image made of waves of uncorrelated colours, each as strong as in natural images, shown a little moved.

    Olah, Mordvintsev & Schubert 2017 (doi:10.23915/distill.00007), "Preconditioning and parameterization" and
    "Transformation robustness". Every image on the way lies between black and white. Adam climbs.
    """

    RATE: ClassVar[float] = 0.05
    READS_IMAGES: ClassVar[bool] = False
    importance: Tensor | None = None

    def __init__(self, classifier: Classifier, generator: torch.Generator, rate: float) -> None:
        self._black, self._white = (end.to(classifier.device) for end in black_and_white(classifier))
        channels, self._height, self._width = self._black.shape
        self._strength = strength(self._height, self._width).to(classifier.device)
        self._colours = colours(channels).to(classifier.device)
        self._generator = generator
        first = FAINT * torch.randn(channels, *self._strength.shape, 2, generator=generator)
        self._spectrum = first.to(classifier.device).requires_grad_()
        self._climber = torch.optim.Adam([self._spectrum], lr=rate)

    def render_image(self) -> Tensor:
        """Render the waves added up, coloured, and squeezed between black and white."""
        waves = torch.view_as_complex(self._spectrum) * self._strength
        field = torch.fft.irfft2(waves, s=(self._height, self._width), norm="ortho")
        levels = torch.einsum("rc,chw->rhw", self._colours, field).sigmoid()
        return (self._black + levels * (self._white - self._black))[None]

    def render_view(self) -> Tensor:
        """Render the image turned, enlarged and shifted at random, so that no single pixel can be played on."""
        turn, zoom, down, across = (2 * torch.rand(4, generator=self._generator) - 1).tolist()
        angle, size = math.radians(TURN * turn), 1 + ZOOM * zoom
        cos, sin = size * math.cos(angle), size * math.sin(angle)
        move = torch.tensor([[[cos, -sin, 2 * SHIFT * across], [sin, cos, 2 * SHIFT * down]]])
        image = self.render_image()
        grid = F.affine_grid(move.to(image.device), list(image.shape), align_corners=False)
        moved: Tensor = F.grid_sample(image, grid, padding_mode="reflection", align_corners=False)
        return moved

    def climb(self, value: Tensor) -> bool:
        """Take one step of Adam on the spectrum."""
        (gradient,) = differentiate(value, self._spectrum)
        self._spectrum.grad = -gradient
        self._climber.step()
        return bool(gradient.any())


def strength(height: int, width: int) -> Tensor:
    """Return strength (height, width // 2 + 1) of each wave of `torch.fft.rfft2`: 1 / frequency, as in natural images.

    Scaled so that independent standard normal coefficients make an image of variance 1; the mean is as strong as the
    longest wave.
    """
    down, across = torch.fft.fftfreq(height)[:, None], torch.fft.fftfreq(width)[None]
    whole = 1 / torch.hypot(down, across).clamp_min(1 / max(height, width))
    return (whole / whole.square().mean().sqrt())[:, : width // 2 + 1]


def colours(channels: int) -> Tensor:
    """Return the matrix (C, C) from uncorrelated channels to colours of mean variance 1; 1 for a single channel."""
    if channels == 1:
        return torch.ones(1, 1)
    mixing = F.normalize(torch.tensor(AXES), dim=1).T * torch.tensor(SPREAD)
    return mixing * math.sqrt(channels / float(mixing.square().sum()))
