"""``scenes:words``: a bag of visual words with a kernel classifier, as a network (Sivic and Zisserman 2003).

Patches of 8 × 8 px are whitened and assigned softly to the words of a codebook (van Gemert et al. 2008): the
probability of word j for a patch p is softmax_j(β(2 c_j·p − ‖c_j‖²)), a convolution and a softmax, as ‖p‖² cancels. The
image's histogram is the mean over patches; the kernel is Hellinger's, whose explicit features are square roots
(Vedaldi and Zisserman 2012), so the classifier is linear.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, unfold

from data.scenes.classifier import CATEGORIES, MEAN_COLOUR, normalise, transforms
from data.scenes.zoo.material import Images, Material
from data.scenes.zoo.store import restore

__all__ = ["CATEGORIES", "MEAN_COLOUR", "build", "train", "transforms"]

TITLE = "Bag of visual words"
DIFFERENCE = (
    "It counts which of 512 small patches occur in an image and not where they are, so the arrangement of parts says "
    "nothing about its prediction."
)
WORDS, PATCH, STRIDE = 512, 8, 4
SHARPNESS = 0.15
"""β of the soft assignment, in whitened units."""
RIDGE = 0.1
"""Added to the patches' eigenvalues before whitening."""
SEED = 9
PATCHES = 60_000
ROUNDS = 12
STEPS = 300
DECAY = 1e-4
FLOOR = 1e-6
"""Added to a histogram before its root, whose slope at 0 is infinite."""


class WordsNet(nn.Module):
    """Soft assignment of patches to words, histogram, square root, linear classifier; 0.1 M parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Conv2d(3, WORDS, PATCH, STRIDE)
        self.assign = nn.Softmax(1)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.head = nn.Linear(WORDS, len(CATEGORIES))

    def forward(self, x: Tensor) -> Tensor:
        """Compute logits (B, 16) of normalised inputs (B, 3, 96, 96)."""
        logits: Tensor = self.head(self.describe(x))
        return logits

    def describe(self, x: Tensor) -> Tensor:
        """Return the root of the histogram of words (B, 512)."""
        return (self.flatten(self.pool(self.assign(self.words(x)))) + FLOOR).sqrt()

    def relate_words(self, x: Tensor, targets: Tensor) -> Tensor:
        """Return what each word adds to the logits of the targets (B,): (B, 512), with an equal share of the bias.

        The kernel is a sum over words, so the logit is too: R_j = w_kj √(h_j + ε) + b_k / 512 (Bach et al. 2015,
        doi:10.1371/journal.pone.0130140, bag of words).
        """
        return self.head.weight[targets] * self.describe(x) + self.head.bias[targets, None] / WORDS

    def explain(self, x: Tensor, targets: Tensor) -> Tensor:
        """Return the relevance of pixels (B, 96, 96) for the logits of the targets (B,), to which it sums exactly.

        A word's relevance is divided among the patches in proportion to their assignment to it, R_l = Σ_j R_j a_jl /
        Σ_l' a_jl', and a patch's evenly among its pixels. No step is an approximation or depends on a reference.
        """
        assigned = self.assign(self.words(x))
        per_unit = self.relate_words(x, targets) / assigned.sum((2, 3))
        patches = (assigned * per_unit[..., None, None]).sum(1, keepdim=True)
        spread = torch.full((1, 1, PATCH, PATCH), 1 / PATCH**2, dtype=x.dtype, device=x.device)
        return nn.functional.conv_transpose2d(patches, spread, stride=STRIDE)[:, 0]


def build() -> nn.Module:
    """Return the trained network."""
    return restore(WordsNet(), "words")


def train(material: Material) -> tuple[nn.Module, dict[str, Any]]:
    """Find the codebook by k-means over whitened patches, then fit the linear classifier on the histograms."""
    images = material.training()
    network = WordsNet()
    _set_words(network, images, torch.Generator().manual_seed(SEED))
    with torch.no_grad():
        described = torch.cat([network.describe(normalise(part)) for part in images.pixels.split(256)])
    _fit_head(network.head, described, images.labels)
    return network.eval(), {"images": len(images), "words": WORDS, "patches": PATCHES, "seed": SEED}


def find_centres(points: Tensor, count: int, rounds: int, generator: torch.Generator) -> Tensor:
    """Return the centres (count, D) of points (N, D) after so many rounds of k-means; empty clusters keep theirs."""
    centres = points[torch.randperm(len(points), generator=generator)[:count]].clone()
    for _ in range(rounds):
        nearest = torch.cat([torch.cdist(part, centres).argmin(1) for part in points.split(10_000)])
        sizes = torch.bincount(nearest, minlength=count)
        sums = torch.zeros_like(centres).index_add_(0, nearest, points)
        centres[sizes > 0] = sums[sizes > 0] / sizes[sizes > 0, None]
    return centres


def _set_words(network: WordsNet, images: Images, generator: torch.Generator) -> None:
    """Write whitening, words and soft assignment into the convolution."""
    patches = _sample_patches(images, generator)
    mean = patches.mean(0)
    values, vectors = torch.linalg.eigh((patches - mean).T.cov())
    whiten = vectors @ torch.diag((values + RIDGE).rsqrt()) @ vectors.T
    centres = find_centres((patches - mean) @ whiten, WORDS, ROUNDS, generator)
    directions = 2 * SHARPNESS * centres @ whiten
    with torch.no_grad():
        network.words.weight.copy_(directions.view(WORDS, 3, PATCH, PATCH))
        network.words.bias.copy_(-SHARPNESS * (centres**2).sum(1) - directions @ mean)  # type: ignore[union-attr]


def _sample_patches(images: Images, generator: torch.Generator) -> Tensor:
    """Return patches (N, 192) at random places of random images, normalised."""
    chosen = torch.randperm(len(images), generator=generator)[:1000]
    cut = [unfold(normalise(images.pixels[part]), PATCH, stride=STRIDE) for part in chosen.split(100)]
    patches = torch.cat(cut).transpose(1, 2).flatten(0, 1)
    return patches[torch.randperm(len(patches), generator=generator)[:PATCHES]]


def _fit_head(head: nn.Linear, described: Tensor, labels: Tensor) -> None:
    """Fit the classifier by cross-entropy over the whole set at once."""
    optimiser = torch.optim.LBFGS(head.parameters(), max_iter=STEPS, history_size=20, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimiser.zero_grad()
        loss = cross_entropy(head(described), labels) + DECAY * head.weight.square().sum() / 2
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    optimiser.step(closure)  # type: ignore[no-untyped-call]
