"""MACO: the phase of each wave is optimised, and its magnitude held at its mean over a set of images.

Fel et al. 2023, Unlocking Feature Visualization for Deeper Networks with MAgnitude Constrained Optimization
(arXiv:2306.06805).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from core.errors import ForetellError
from core.network.classifier import Classifier
from core.network.gradients import differentiate
from core.types import Progress, silent
from core.units.display import black_and_white
from core.units.parameterisations import AXES
from core.units.unit import READING

MOST_OPAQUE = 80.0
"""Percentile of the importance from which on pixels are opaque, as in the authors' program (Horama, `plot_maco`)."""


@dataclass(frozen=True)
class Views:
    """The random crops of one step, all enlarged to the whole input, and their noise.

    Centres are normal, as in the authors' program (Horama), but no crop leaves the image. Their image is several times
    larger than the network's input and a crop about a quarter of its side; ours is as large as the input, so the crops
    are larger too.

    Attributes
    ----------
    count
        Crops in each step.
    smallest, largest
        Limits of a crop's side, as a share of the image's.
    scatter
        Standard deviation of a crop's centre around the image's, as a share of the side.
    noise
        Standard deviation of the normal noise and width of the uniform noise, as a share of black to white.
    """

    count: int = 6
    smallest: float = 0.5
    largest: float = 1.0
    scatter: float = 0.15
    noise: float = 0.01

    def render(self, image: Tensor, span: Tensor, generator: torch.Generator) -> Tensor:
        """Draw crops (count, C, H, W) of ``image`` (1, C, H, W); ``span`` (C, H, W) is white minus black."""
        sides = self.smallest + (self.largest - self.smallest) * torch.rand(self.count, generator=generator)
        room = (1 - sides)[:, None]
        centres = (2 * self.scatter * torch.randn(self.count, 2, generator=generator)).clamp(-room, room)
        moves = torch.cat([torch.diag_embed(sides[:, None].expand(-1, 2)), centres[:, :, None]], 2)
        whole = image.expand(self.count, -1, -1, -1)
        grid = F.affine_grid(moves.to(image.device), list(whole.shape), align_corners=False)
        crops = F.grid_sample(whole, grid, padding_mode="border", align_corners=False)
        normal = torch.randn(crops.shape, generator=generator)
        uniform = torch.rand(crops.shape, generator=generator) - 0.5
        return crops + span * (self.noise * (normal + uniform)).to(image.device)


class Maco:
    """An image whose waves have the mean magnitude of a set of images; only their phase is optimised.

    The image is F^-1(r exp(i phase)), r the mean of |F(x)| over images x, in uncorrelated colours; Adam climbs.
    Nothing is squashed, so its spectrum is r at every step, and pixels may lie a little beyond black or white. Waves
    that are their own mirror image (the mean colour and, for even sides, some of 2 pixels) are real: they keep the sign
    that they have on average in the images.

    Attributes
    ----------
    importance
        (H, W): the absolute gradient of each pixel, averaged over channels and summed over the steps.
    """

    RATE: ClassVar[float] = 0.3
    READS_IMAGES: ClassVar[bool] = True

    def __init__(
        self,
        classifier: Classifier,
        generator: torch.Generator,
        rate: float,
        spectrum: Tensor,
        views: Views | None = None,
    ) -> None:
        black, white = black_and_white(classifier)
        self._black, self._span = black.to(classifier.device), (white - black).to(classifier.device)
        self._colours = axes(len(black)).to(classifier.device)
        self._spectrum = spectrum.to(classifier.device)
        self._generator, self._views = generator, views or Views()
        drawn = 2 * torch.pi * torch.rand(spectrum.shape, generator=generator)
        self._phase = drawn.to(classifier.device).requires_grad_()
        self._climber = torch.optim.Adam([self._phase], lr=rate)
        self._shown = self.render_image()
        self.importance: Tensor = torch.zeros(black.shape[1:])

    def render_image(self) -> Tensor:
        """Render the waves added up and coloured."""
        turned = self._spectrum * torch.polar(torch.ones_like(self._phase), self._antisymmetric_phase())
        field = torch.fft.irfft2(turned, s=self._span.shape[1:])
        return (self._black + self._span * torch.einsum("rc,rhw->chw", self._colours, field))[None]

    def _antisymmetric_phase(self) -> Tensor:
        """Return the phase, antisymmetric in the columns that hold a wave and its mirror image: the image is real."""
        width, last = self._span.shape[2], self._phase.shape[2] - 1
        twice = [0] if width % 2 else [0, last]
        mirrored = torch.zeros_like(self._phase)
        mirrored[:, :, twice] = self._phase[:, :, twice].flip(1).roll(1, 1)
        return self._phase - mirrored

    def render_view(self) -> Tensor:
        """Render random crops with noise."""
        self._shown = self.render_image()
        return self._views.render(self._shown, self._span, self._generator)

    def climb(self, value: Tensor) -> bool:
        """Take one step of Adam on the phase, and add up the gradient of each pixel."""
        pixels, gradient = differentiate(value, [self._shown, self._phase])
        self.importance += pixels[0].abs().mean(0).cpu()
        self._phase.grad = -gradient
        self._climber.step()
        return bool(gradient.any())


def axes(channels: int) -> Tensor:
    """Return the orthonormal matrix (C, C) from colours to uncorrelated channels; 1 for a single channel."""
    return torch.ones(1, 1) if channels == 1 else F.normalize(torch.tensor(AXES), dim=1)


def measure_spectrum(classifier: Classifier, blocks: Iterable[Tensor], progress: Progress = silent) -> Tensor:
    """Measure the mean magnitude of each wave in images; complex (C, H, W // 2 + 1), with the phase of the mean wave.

    ``blocks`` are inputs (n, C, H, W). Waves are those of `torch.fft.rfft2` where black is 0 and white 1, in
    uncorrelated colours (`axes`).

    Raises
    ------
    ForetellError
        No image, or inputs that cannot be shown as images.
    """
    black, white = black_and_white(classifier)
    magnitude, mean, done = torch.zeros(()), torch.zeros(()), 0
    for block in blocks:
        field = torch.einsum("rc,nchw->nrhw", axes(len(black)), (block - black) / (white - black))
        waves = torch.fft.rfft2(field.double())
        magnitude, mean = magnitude + waves.abs().sum(0), mean + waves.sum(0)
        done += len(block)
        progress(done, done, READING)
    if not done:
        raise ForetellError("MACO measures the spectrum of images, and there are none: give at least one.")
    return torch.polar(magnitude / done, mean.angle()).to(torch.complex64)


def opacity(importance: Tensor) -> Tensor:
    """Return how opaque each pixel of images (S, H, W) is drawn, 0 to 1: its importance, cut at `MOST_OPAQUE`."""
    flat = importance.flatten(1)
    most = torch.quantile(flat, MOST_OPAQUE / 100, dim=1, keepdim=True)
    shares = flat.minimum(most) / most.clamp_min(torch.finfo(flat.dtype).tiny)
    return shares.view_as(importance)
