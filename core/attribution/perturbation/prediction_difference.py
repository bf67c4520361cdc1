"""Prediction difference analysis: the prediction if the classifier did not know a part of the image.

Not to know is no colour: the part is drawn from what could be there, given what is around it, and the predictions
are averaged. Zintgraf, Cohen, Adel & Welling 2017 (arXiv:1702.04595).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from core.attribution.cost import Cost
from core.attribution.method import Query, heatmap_method
from core.attribution.perturbation.occlusion import Stride, Windows, count_windows
from core.attribution.records import Family
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.network.device import stream
from core.network.masked import Chunk, scores
from core.types import Explanation

BLOCK = 16
"""Textures held in memory at a time and drawn from one random stream."""

LARGEST = 64
"""A window of this many px a side hangs on its context by a matrix of 150 MB."""

NUGGET = 1e-4
"""Share of the variance by which each pixel varies on its own: a flat image has no invertible covariance."""


def _sample_each_window(settings: Mapping[str, Any], classifier: Classifier) -> Cost:
    return Cost(forwards=settings["samples"] * count_windows(settings, classifier))


@heatmap_method(family=Family.PERTURBATION, cost=_sample_each_window)
def prediction_difference(
    query: Query,
    *,
    window: int = 0,
    stride: Stride = 0,
    context: int = 2,
    samples: int = 10,
    trained_on: int = 1_000_000,
    chunk: Chunk = 0,
) -> Explanation:
    """Compute each window's weight of evidence, in bits: log odds of the class with and without knowing the window.

    Zintgraf et al. 2017 (arXiv:1702.04595), algorithm 1: p(c | x without w) is the mean probability over fillings of
    the window, drawn given what is around it; a pixel has the mean over the windows that cover it. Probabilities p
    become (N p + 1) / (N + K), Laplace's correction, with N training images and K classes. Their normal distribution of
    patches is fitted to data: here to the image itself, as a stationary one (`Texture`), so that no heatmap hangs on
    other images; what is drawn is kept in the image's own range. Costs ``samples`` forward passes a window, by default
    2,250 an image of 224 px. `Explanation.error` is the standard error over the samples.

    Parameters
    ----------
    window
        Side of the window, at most 64 px; 0 is an eighth of the image's shorter side.
    context
        Width of the border around a window, px, given which its content is drawn (the paper's l is k + 2 context).
    samples
        Number of fillings that are drawn for each window.
    trained_on
        Number of training images, N in Laplace's correction of a probability p among K classes, (N p + 1) / (N + K).
    """
    if samples < 2 or context < 1 or trained_on < 1:
        raise ForetellError(
            f"samples={samples}, context={context}, trained_on={trained_on}: prediction differences need at least 2 "
            "samples, 1 px of context and 1 image."
        )
    classifier, inputs, classes, seed = query.classifier, query.inputs, query.classes, query.seed
    windows = Windows.of(*classifier.input_shape[1:], window, stride)
    if windows.side > LARGEST:
        raise ForetellError(f"window={windows.side} is too large to draw from: give at most {LARGEST} px.")
    odds = Odds(trained_on, len(classifier.categories))
    whole = odds.bits(scores(classifier, inputs, classes, "probability"))
    unknown, done = parts(windows, context), 0
    maps, errors = [], []
    for x, target, known in zip(inputs, classes.tolist(), whole, strict=True):
        p = torch.zeros(len(windows.places), samples, dtype=torch.float64)
        for w, drawn, filled in fillings(x, unknown, samples, seed):
            p[w, drawn] = classifier.logits(filled, chunk=chunk or None).double().softmax(1)[:, target]
            done += len(filled)
            query.progress(done, len(inputs) * p.numel(), "unknown windows")
        gained, error = evidence(unknown, odds, known, p)
        maps.append(gained.float())
        errors.append(error.float())
    parameters = {
        "window": windows.side,
        "stride": windows.stride,
        "context": context,
        "samples": samples,
        "trained_on": trained_on,
    }
    noise = torch.stack(errors)
    return query.explain(torch.stack(maps), error=noise, seed=seed, samples=samples, parameters=parameters)


@dataclass(frozen=True)
class Odds:
    """Log odds of a probability p as (N p + 1) / (N + K), of N images and K classes: finite also for 0 and 1."""

    images: int
    classes: int

    def bits(self, p: Tensor) -> Tensor:
        """Return log2(p / (1 - p)) of the corrected p."""
        # Both from counts: 1 - p of the corrected p would cancel.
        return torch.log2((self.images * p + 1) / (self.images * (1 - p) + self.classes - 1))

    def slope(self, p: Tensor) -> Tensor:
        """Return d bits / d p."""
        ours, others = self.images * p + 1, self.images * (1 - p) + self.classes - 1
        return self.images * (1 / ours + 1 / others) / math.log(2)


def evidence(parts: Sequence[ImageWindow], odds: Odds, whole: Tensor, p: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the heatmap and its standard error, both (H, W), from probabilities p (windows, samples).

    Sample s of every window comes from one texture, so windows are not independent, but samples are: the error is that
    of the mean over the samples of what each adds, the log odds taken as straight about the mean of p.
    """
    mean, count = p.mean(1), p.shape[1]
    added = odds.slope(mean)[:, None] * (p - mean[:, None])
    lost = torch.cat([(whole - odds.bits(mean))[:, None], added], 1)
    sums = torch.zeros(1 + count, parts[0].height, parts[0].width, dtype=torch.float64)
    covered = torch.zeros_like(sums[0])
    for part, row in zip(parts, lost, strict=True):
        sums[:, part.rows, part.columns] += row[:, None, None]
        covered[part.rows, part.columns] += 1
    sums /= covered
    return sums[0], (sums[1:].square().sum(0) / (count - 1) / count).sqrt()


@dataclass(frozen=True)
class ImageWindow:
    """A window, cut off at the image's edge, and up to ``context`` px around it."""

    rows: slice
    columns: slice
    height: int
    width: int
    context: int

    @property
    def outer(self) -> tuple[slice, slice]:
        """Rows and columns of the window with its surroundings."""
        sides = (self.rows, self.height), (self.columns, self.width)
        top, left = (slice(max(0, s.start - self.context), min(n, s.stop + self.context)) for s, n in sides)
        return top, left

    @cached_property
    def window_mask(self) -> Tensor:
        """The outer pixels that belong to the window, (h, w) bool."""
        image = torch.zeros(self.height, self.width, dtype=torch.bool)
        image[self.rows, self.columns] = True
        return image[self.outer]

    @property
    def layout(self) -> tuple[int, ...]:
        """Alike for windows that lie alike in their surroundings: px before, within and behind, both ways."""
        pairs = zip((self.rows, self.columns), self.outer, strict=True)
        return tuple(
            n for own, out in pairs for n in (own.start - out.start, own.stop - own.start, out.stop - own.stop)
        )


def parts(windows: Windows, context: int) -> list[ImageWindow]:
    """Return the windows, those alike in their surroundings one after the other."""
    windows_and_contexts = [ImageWindow(*place, windows.height, windows.width, context) for place in windows.places]
    return sorted(windows_and_contexts, key=lambda part: part.layout)


def fillings(
    image: Tensor, parts: Sequence[ImageWindow], samples: int, seed: int
) -> Iterator[tuple[int, slice, Tensor]]:
    """Yield by window and block of samples: the window's number, the samples, the images (n <= 16, C, H, W)."""
    texture = Texture(image)
    low, high = image.amin((1, 2))[:, None, None], image.amax((1, 2))[:, None, None]
    for block, start in enumerate(range(0, samples, BLOCK)):
        drawn = slice(start, min(start + BLOCK, samples))
        fields = texture.sample(drawn.stop - start, stream(seed, block))
        for w, part in enumerate(parts):
            filled = image.expand(len(fields), -1, -1, -1).clone()
            patch = texture.condition_on_surroundings(fields, part).float()
            filled[:, :, part.rows, part.columns] = torch.minimum(torch.maximum(patch, low), high)
            yield w, drawn, filled


@dataclass(frozen=True)
class Texture:
    """The stationary normal distribution of an image (C, H, W): its mean colour and its autocovariances.

    The covariance of two values is the mean product of all pairs of that lag and those channels in the image, divided
    by H W: the covariances of all patches of whatever size, pooled over their places, and always a proper covariance.
    """

    image: Tensor

    @property
    def mean(self) -> Tensor:
        """Mean colour (C, 1, 1), float64."""
        return self.image.double().mean((1, 2), keepdim=True)

    @cached_property
    def covariance(self) -> Tensor:
        """Covariances of channels at a lag of (r, s) px, [c, d, r, s] of (C, C, 2H, 2W); negative lags from the end."""
        spectrum = self._spectrum
        pairs: Tensor = torch.fft.irfft2(spectrum.conj()[:, None] * spectrum, self._size)
        return pairs / self._pixels

    @cached_property
    def nugget(self) -> Tensor:
        """The variance of each pixel on its own, (C,)."""
        return (NUGGET * self.covariance[:, :, 0, 0].diagonal()).clamp(min=1e-12)

    def sample(self, count: int, generator: torch.Generator) -> Tensor:
        """Draw images (count, C, H, W), float64, of this distribution: the image convolved with white noise."""
        channels, height, width = self.image.shape
        noise = torch.randn(BLOCK, 1, *self._size, dtype=torch.float64, generator=generator)[:count]
        grain = torch.randn(BLOCK, channels, height, width, dtype=torch.float64, generator=generator)[:count]
        smooth: Tensor = torch.fft.irfft2(torch.fft.rfft2(noise) * self._spectrum, self._size)
        grain = grain * self.nugget.sqrt()[:, None, None]
        return self.mean + smooth[:, :, :height, :width] / math.sqrt(self._pixels) + grain

    def condition_on_surroundings(self, fields: Tensor, part: ImageWindow) -> Tensor:
        """Draw the contents of a window given the image around it, one for each of ``fields``: (n, C, rows, columns).

        Matheron's rule: a random image, corrected by the regression of the window on the error that it makes around
        the window, has exactly the conditional normal distribution.
        """
        wrong = (self.image.double()[:, *part.outer] - fields[:, :, *part.outer])[:, :, ~part.window_mask].flatten(1)
        drawn = fields[:, :, part.rows, part.columns]
        return drawn + (wrong @ self.regression(part)).view_as(drawn)

    def regression(self, part: ImageWindow) -> Tensor:
        """Return coefficients (values around, values within) of a window on its surroundings."""
        if part.layout not in self._regressions:
            unknown, known = self._points(part.window_mask), self._points(~part.window_mask)
            own = self.between(known, known) + torch.diag(self.nugget[known[:, 0]])
            # One at a time: each may be large, and windows come ordered by layout.
            self._regressions.clear()
            self._regressions[part.layout] = torch.linalg.solve(own, self.between(known, unknown))
        return self._regressions[part.layout]

    @cached_property
    def _regressions(self) -> dict[tuple[int, ...], Tensor]:
        return {}

    def _points(self, chosen: Tensor) -> Tensor:
        """Return (channel, row, column) of each value chosen by (h, w) bool, channel by channel."""
        return chosen.expand(len(self.image), -1, -1).nonzero()

    def between(self, one: Tensor, other: Tensor) -> Tensor:
        """Return covariances (n, m) of the values at points (n, 3) and (m, 3), each (channel, row, column)."""
        lag = other[None, :, 1:] - one[:, None, 1:]
        return self.covariance[one[:, None, 0], other[None, :, 0], lag[..., 0], lag[..., 1]]

    @property
    def _size(self) -> tuple[int, int]:
        # Twice the sides: the lags do not wrap around.
        return 2 * self.image.shape[1], 2 * self.image.shape[2]

    @property
    def _pixels(self) -> int:
        return self.image.shape[1] * self.image.shape[2]

    @cached_property
    def _spectrum(self) -> Tensor:
        spectrum: Tensor = torch.fft.rfft2(self.image.double() - self.mean, self._size)
        return spectrum
