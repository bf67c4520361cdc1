"""Effects of a concept where no intervention is possible: a conditional VAE generates the changed images."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot, silu

from core.concepts.effect import ConceptEffect, compute_causal_effect
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.types import Progress, silent

LATENT = 6
WIDTHS = (16, 32, 64, 64)
COARSEST = 6
"""Side below which images are not halved further, px."""
BATCH = 64
RATE = 2e-3
LEAST_STEPS = 11
"""Steps over which the rate rises and falls: with fewer, its rise has no length and torch divides by zero."""


class ConditionalVae(nn.Module):
    """p(image | z, conditions), with z standard normal and independent of the conditions, and its encoder.

    Kingma & Welling 2013 (arXiv:1312.6114), conditioned as by Sohn et al. 2015. ``shape`` is (C, H, W) of the
    images, ``sizes`` the number of values of each condition.
    """

    def __init__(self, shape: tuple[int, int, int], sizes: Sequence[int], latent: int = LATENT) -> None:
        super().__init__()
        self.sizes, self.latent = tuple(sizes), latent
        halvings = _halvings(shape)
        widths = WIDTHS[:halvings]
        self.cells = (widths[-1], shape[1] >> halvings, shape[2] >> halvings)
        flat, told = self.cells[0] * self.cells[1] * self.cells[2], sum(sizes)
        down = [nn.Conv2d(a, b, 4, 2, 1) for a, b in zip((shape[0], *widths), widths, strict=False)]
        up = [nn.ConvTranspose2d(b, a, 4, 2, 1) for a, b in zip((shape[0], *widths), widths, strict=False)]
        self.down, self.up = nn.ModuleList(down), nn.ModuleList(up[::-1])
        self.read, self.draw = nn.Linear(flat + told, 128), nn.Linear(latent + told, 128)
        self.code, self.spread = nn.Linear(128, 2 * latent), nn.Linear(128, flat)

    def encode(self, images: Tensor, conditions: Tensor) -> tuple[Tensor, Tensor]:
        """Compute mean and log variance (B, latent) of z, of images (B, C, H, W) under conditions (B, F)."""
        for layer in self.down:
            images = silu(layer(images))
        seen = silu(self.read(torch.cat([images.flatten(1), self._encode_conditions(conditions)], 1)))
        mean, log_variance = self.code(seen).chunk(2, 1)
        return mean, log_variance

    def decode(self, z: Tensor, conditions: Tensor) -> Tensor:
        """Compute mean images (B, C, H, W) of z (B, latent) under conditions (B, F)."""
        drawn = silu(self.draw(torch.cat([z, self._encode_conditions(conditions)], 1)))
        drawn = silu(self.spread(drawn)).view(-1, *self.cells)
        for layer in self.up:
            drawn = layer(drawn if layer is self.up[0] else silu(drawn))
        return drawn

    def _encode_conditions(self, conditions: Tensor) -> Tensor:
        parts = [one_hot(conditions[:, k], size) for k, size in enumerate(self.sizes)]
        return torch.cat(parts, 1).float()


def _halvings(shape: tuple[int, int, int]) -> int:
    """Return how often images are halved on the path to the code."""
    halvings = 0
    while halvings < len(WIDTHS) and all(
        side % 2 == 0 and side // 2 >= COARSEST for side in (s >> halvings for s in shape[1:])
    ):
        halvings += 1
    if not halvings:
        raise ForetellError(f"Images of {shape[2]} x {shape[1]} px cannot be halved: give sides that are even, >= 12.")
    return halvings


def fit_vae(
    images: Tensor,
    conditions: Tensor,
    sizes: Sequence[int],
    *,
    epochs: int = 30,
    latent: int = LATENT,
    generator: torch.Generator,
    progress: Progress = silent,
) -> ConditionalVae:
    """Train on images (N, C, H, W), as the classifier reads them, under conditions (N, F) of whole numbers.

    The noise of the images has the variance that makes them likeliest (sigma-VAE, Rybkin et al. 2020,
    arXiv:2006.13202, eq. 3), so that nothing weighs one part of the bound against the other. Everything that goes with
    the concept and changes the prediction should be a condition, the class above all: else z knows of it, and what it
    does is taken for the concept's.

    Raises
    ------
    ForetellError
        Conditions that do not fit the images or their sizes, or images that cannot be halved.
    """
    _refuse_conditions(images, conditions, sizes)
    weights = _evenly(conditions)
    vae = ConditionalVae((images.shape[1], images.shape[2], images.shape[3]), sizes, latent)
    _initialise(vae, generator)
    optimiser = torch.optim.Adam(vae.parameters(), RATE)
    steps = max(epochs * -(-len(images) // BATCH), LEAST_STEPS)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE, total_steps=steps, pct_start=0.1)
    for epoch in range(epochs):
        for batch in torch.multinomial(weights, len(images), replacement=True, generator=generator).split(BATCH):  # type: ignore[no-untyped-call]
            loss = _bound(vae, images[batch], conditions[batch], generator)
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            schedule.step()
        progress(epoch + 1, epochs, "training the VAE")
    return vae.eval().requires_grad_(False)


def _evenly(conditions: Tensor) -> Tensor:
    """Compute weights (N,) under which every combination of conditions is equally frequent.

    The model is of images given their conditions, whose frequencies are not its business. Left as they are, z would
    say of a rare combination what its conditions ought to say.
    """
    _, which, counts = torch.unique(conditions, dim=0, return_inverse=True, return_counts=True)
    weights: Tensor = 1 / counts[which].double()
    return weights


def compute_decoded_effect(
    classifier: Classifier,
    vae: ConditionalVae,
    conditions: Tensor,
    factor: int,
    values: tuple[int, int],
    *,
    generator: torch.Generator,
) -> ConceptEffect:
    """Compute Dec-CaCE: images from random z, each under both values of a condition (arXiv:1907.07165).

    ``conditions`` (N, F) are those of N images: the other conditions keep the frequencies they have there. The error
    is that of the draws; what the VAE has not learned is not in it.
    """
    z = draw_codes(vae, len(conditions), generator)
    return _under_both(classifier, vae, z, conditions, factor, values)


def compute_reencoded_effect(
    classifier: Classifier,
    vae: ConditionalVae,
    images: Tensor,
    conditions: Tensor,
    factor: int,
    values: tuple[int, int],
    *,
    generator: torch.Generator,
) -> ConceptEffect:
    """Compute EncDec-CaCE: each image's own z, decoded under both values of a condition (arXiv:1907.07165)."""
    z = encode_images(vae, images, conditions, generator)
    return _under_both(classifier, vae, z, conditions, factor, values)


def draw_codes(vae: ConditionalVae, count: int, generator: torch.Generator) -> Tensor:
    """Draw codes z (N, latent) of no image (Dec-CaCE)."""
    return torch.randn(count, vae.latent, generator=generator)


@torch.inference_mode()
def encode_images(vae: ConditionalVae, images: Tensor, conditions: Tensor, generator: torch.Generator) -> Tensor:
    """Draw a code z (N, latent) of each image (N, C, H, W) under its conditions (N, F) (EncDec-CaCE)."""
    return torch.cat([_sample_latent(vae, *part, generator)[0] for part in _parts(images, conditions)])


def exchange_codes(vae: ConditionalVae, images: Tensor, conditions: Tensor, generator: torch.Generator) -> Tensor:
    """Draw a code z (N, latent) of another image for each, at random.

    Codes of images in place of draws from the prior, which the codes together do not match as the bound assumes
    (ex-post density estimation, Ghosh et al. 2020, arXiv:1903.12436, section 4): what is drawn of the prior may be
    unlike any image. Exchanged, they go with the conditions of no image in particular.
    """
    z = encode_images(vae, images, conditions, generator)
    return z[torch.randperm(len(z), generator=generator)]


@torch.inference_mode()
def predict_decoded(
    classifier: Classifier, vae: ConditionalVae, z: Tensor, conditions: Tensor, factor: int, value: int
) -> Tensor:
    """Predict probabilities (N, K) of what the VAE draws of codes z with one condition set to ``value``."""
    drawn = (classifier.probabilities(images) for images in decode_under(vae, z, conditions, factor, value))
    return torch.cat(list(drawn))


@torch.inference_mode()
def decode_under(vae: ConditionalVae, z: Tensor, conditions: Tensor, factor: int, value: int) -> Iterator[Tensor]:
    """Draw images (B, C, H, W), some at a time, of codes z (N, latent) with one condition set to ``value``."""
    changed = conditions.clone()
    changed[:, factor] = value
    for part in _parts(z, changed):
        yield vae.decode(*part)


@torch.inference_mode()
def agreement(
    classifier: Classifier, vae: ConditionalVae, images: Tensor, conditions: Tensor, *, generator: torch.Generator
) -> float:
    """Compute the share of images whose prediction stays the same after reconstruction by the VAE.

    Near chance, what the VAE draws is nothing to this classifier, and an effect on it says nothing.
    """
    z = encode_images(vae, images, conditions, generator)
    drawn = [vae.decode(*part) for part in _parts(z, conditions)]
    same = classifier.logits(torch.cat(drawn)).argmax(1) == classifier.logits(images).argmax(1)
    return float(same.float().mean())


def _under_both(
    classifier: Classifier, vae: ConditionalVae, z: Tensor, conditions: Tensor, factor: int, values: tuple[int, int]
) -> ConceptEffect:
    one, other = (predict_decoded(classifier, vae, z, conditions, factor, value) for value in values)
    return compute_causal_effect(one, other)


def _parts(first: Tensor, second: Tensor) -> list[tuple[Tensor, Tensor]]:
    rows = torch.arange(len(first)).chunk(-(-len(first) // (4 * BATCH)))
    return [(first[part], second[part]) for part in rows]


def _sample_latent(
    vae: ConditionalVae, images: Tensor, conditions: Tensor, generator: torch.Generator
) -> tuple[Tensor, Tensor, Tensor]:
    """Draw z (B, latent) and return it with its mean and log variance."""
    mean, log_variance = vae.encode(images, conditions)
    noise = torch.randn(mean.shape, generator=generator)
    return mean + (log_variance / 2).exp() * noise, mean, log_variance


def _bound(vae: ConditionalVae, images: Tensor, conditions: Tensor, generator: torch.Generator) -> Tensor:
    """Compute the negative evidence bound per image, up to a constant."""
    z, mean, log_variance = _sample_latent(vae, images, conditions, generator)
    error = (vae.decode(z, conditions) - images).square().mean()
    divergence = (mean.square() + log_variance.exp() - 1 - log_variance).sum(1).mean() / 2
    return images[0].numel() / 2 * error.log() + divergence


def _initialise(vae: ConditionalVae, generator: torch.Generator) -> None:
    """Draw the weights from the generator, so that nothing depends on torch's global seed."""
    for layer in vae.modules():
        if isinstance(layer, nn.Conv2d | nn.ConvTranspose2d | nn.Linear):
            nn.init.xavier_uniform_(layer.weight, generator=generator)
            nn.init.zeros_(layer.bias)  # type: ignore[arg-type]


def _refuse_conditions(images: Tensor, conditions: Tensor, sizes: Sequence[int]) -> None:
    fits = conditions.shape == (len(images), len(sizes)) and not conditions.is_floating_point()
    if not fits or bool((conditions < 0).any() | (conditions >= torch.tensor(sizes)).any()):
        raise ForetellError(
            f"Conditions {tuple(conditions.shape)} do not fit {len(images)} images and sizes {tuple(sizes)}: give "
            "one whole number from 0 to below its size for each image and condition."
        )
