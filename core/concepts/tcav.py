"""TCAV: does a concept raise a class's logit? Derivatives along concept vectors, compared with random ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from scipy.stats import ttest_ind_from_stats
from torch import Tensor

from core.attribution.common import in_parts, prepare_inputs
from core.attribution.places.activations import activation_and_gradient, refuse_unknown
from core.concepts.vector import Activations
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.network.device import draw_seed
from core.types import Progress, silent

KNOWN = 0.7
"""Accuracy on held-out images below which a layer is reported not to represent a concept."""


@dataclass(frozen=True)
class Tcav:
    """The effect of a concept on a class at one layer.

    Attributes
    ----------
    layer, target
        Where, and which class.
    scores
        (R,) float64: for each random set the share of the class's images whose logit rises towards the concept.
    sensitivity
        Mean over those images and the R unit vectors of d logit / d vector: how strongly it rises.
    random
        (J,) float64: the sensitivity of each of J concepts that are none, drawn from the random images.
    p_value
        Share of `random`, with this concept, that is at least as strong; with several layers times their number
        (Bonferroni).
    t_test
        The p-value of Kim et al.: Welch's test of `scores` against those of the concepts that are none. It takes the
        R scores of one concept for independent, though they share its images, and finds far too much.
    accuracy
        Mean share of held-out images that the concept's vectors sort rightly: near .5 the layer does not know the
        concept, and the scores say nothing.
    warnings
        Sentences to read before believing the scores.
    """

    layer: str
    target: int
    scores: Tensor
    sensitivity: float
    random: Tensor
    p_value: float
    t_test: float
    accuracy: float
    warnings: tuple[str, ...] = ()

    @property
    def score(self) -> float:
        """Mean of `scores`: above one half the concept raises the class, below it lowers it."""
        return float(self.scores.mean())

    @property
    def error(self) -> float:
        """Standard error of `score` over the random sets."""
        return float(self.scores.std() / len(self.scores) ** 0.5)


def tcav(
    classifier: Classifier,
    layers: list[str],
    concept: Tensor,
    random: Tensor,
    images: Tensor,
    target: int,
    *,
    runs: int = 10,
    concepts: int = 39,
    penalty: float = 1.0,
    generator: torch.Generator | None = None,
    progress: Progress = silent,
) -> tuple[Tcav, ...]:
    """Test with concept activation vectors (Kim et al. 2018, arXiv:1711.11279, section 3), layer by layer.

    Parameters
    ----------
    concept, random
        Images (N, C, H, W) of the concept and a pool (M, C, H, W) of others, M at least 2 N: each of ``runs``
        vectors is trained against N of the pool, newly drawn. The same is done with ``concepts`` sets of N images of
        the pool in the concept's place.
    images
        Images (B, C, H, W) of the class ``target``.

    Raises
    ------
    ForetellError
        A layer the network does not have or no gradient passes, too few images, a target that is no class.
    """
    if runs < 2 or concepts < 2:
        raise ForetellError(
            f"runs={runs}, concepts={concepts}: a score is judged by its spread; give 2 or more of both."
        )
    seed = draw_seed(generator or torch.Generator().manual_seed(0))
    tests = []
    for number, layer in enumerate(layers):
        with classifier.exclusive() as module:
            refuse_unknown(classifier, module, layer)
        inputs = torch.cat([concept, random])
        seen = Activations(read_layer(classifier, inputs, [0] * len(inputs), layer, progress))
        gradients = read_layer(classifier, images, [target] * len(images), layer, progress, what="gradient")
        slopes = seen.products(gradients)
        known, pool = torch.arange(len(concept)), torch.arange(len(concept), len(concept) + len(random))
        draws = torch.Generator().manual_seed(seed)
        own = _along(slopes, seen, known, pool, runs, penalty, draws)
        chance = []
        for k in range(concepts):
            order = pool[torch.randperm(len(pool), generator=draws)]
            none, rest = order[: len(known)], order[len(known) :]
            chance.append(_along(slopes, seen, none, rest, runs, penalty, draws))
            progress(number * concepts + k + 1, len(layers) * concepts, f"concepts that are none, {layer}")
        tests.append(_test_layer(layer, target, own, chance, len(layers)))
    return tuple(tests)


class _Along(NamedTuple):
    """Return per vector the share of images whose logit rises along it, their mean derivative (R,), and accuracy."""

    scores: Tensor
    sensitivity: Tensor
    accuracy: float


def _along(
    slopes: Tensor, seen: Activations, concept: Tensor, pool: Tensor, runs: int, penalty: float, draws: torch.Generator
) -> _Along:
    """Score the vectors of the images ``concept`` (n,) against draws from ``pool`` (m,), both indices.

    ``slopes`` (B, N) are the products of B gradients with the activations of all N images.
    """
    vectors = [seen.vector(concept, others, penalty) for others in draw_random_sets(concept, pool, runs, draws)]
    derivative = slopes @ torch.stack([vector.combination for vector in vectors], 1)
    accuracy = sum(vector.accuracy for vector in vectors) / runs
    return _Along((derivative > 0).double().mean(0), derivative.mean(0), accuracy)


def draw_random_sets(concept: Tensor, pool: Tensor, runs: int, draws: torch.Generator) -> list[Tensor]:
    """Draw for each run as many rows of ``pool`` (m, ...) as ``concept`` (n, ...) has, or all."""
    size = min(len(concept), len(pool))
    return [pool[torch.randperm(len(pool), generator=draws)[:size]] for _ in range(runs)]


def read_layer(
    classifier: Classifier,
    images: Tensor,
    targets: Sequence[int],
    layer: str,
    progress: Progress = silent,
    *,
    what: Literal["activation", "gradient"] = "activation",
) -> Tensor:
    """Compute a layer's activations for images (N, C, H, W), or d logit[target] / d activation, (N, D)."""

    def read(part: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        reading = activation_and_gradient(classifier, part, targets, layer)
        return getattr(reading, what).flatten(1).cpu(), reading.logits  # of many images more than a device holds

    inputs, classes = prepare_inputs(classifier, images, targets)
    return in_parts(read, inputs, classes, classifier.device, progress, f"{what}s at {layer}")[0]


def _test_layer(layer: str, target: int, own: _Along, chance: list[_Along], layers: int) -> Tcav:
    strength, random = float(own.sensitivity.mean()), torch.stack([one.sensitivity.mean() for one in chance])
    p_value = (1 + int((random.abs() >= abs(strength)).sum())) / (1 + len(random))
    every = torch.cat([one.scores for one in chance])
    varies = float(own.scores.var() + every.var()) > 1e-12  # beyond rounding
    moments = [float(moment) for one in (own.scores, every) for moment in (one.mean(), one.std(), len(one))]
    t_test = float(ttest_ind_from_stats(*moments, equal_var=False).pvalue) if varies else 1.0
    warnings = []
    if own.accuracy < KNOWN:
        warnings.append(
            f"Layer {layer} barely represents this concept: accuracy {own.accuracy:.0%} on held-out images."
        )
    adjusted = min(1.0, p_value * layers)
    return Tcav(layer, target, own.scores, strength, random, adjusted, t_test, own.accuracy, tuple(warnings))
