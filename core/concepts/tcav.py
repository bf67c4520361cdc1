"""Does a concept push a class up? Directional derivatives along concept vectors, held against random ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from scipy.stats import ttest_ind
from torch import Tensor

from core.attribution.activations import activation_and_gradient, refuse_unknown
from core.attribution.common import checked, in_parts
from core.classifier import Classifier
from core.concepts.vector import concept_vector
from core.device import draw_seed
from core.errors import ForetellError
from core.types import Progress, silent

KNOWN = 0.7
"""Accuracy on held-out pictures below which a layer is said not to know a concept."""


@dataclass(frozen=True)
class Tcav:
    """How a concept pushes a class at one layer.

    Attributes
    ----------
    layer, target
        Where, and which class.
    scores
        (R,) float64: for each random set the share of the class's pictures whose logit rises towards the concept.
    sensitivity
        Mean over those pictures and the R unit vectors of d logit / d vector: how strongly it rises.
    random
        (J,) float64: the sensitivity of each of J concepts that are none, drawn from the random pictures.
    p_value
        Share of `random`, with this concept, that is at least as strong; with several layers times their number
        (Bonferroni).
    t_test
        The p-value of Kim et al.: Welch's test of `scores` against those of the concepts that are none. It takes the
        R scores of one concept for independent, though they share its pictures, and finds far too much.
    accuracy
        Mean share of held-out pictures that the concept's vectors sort rightly: near .5 the layer does not know the
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
        """Mean of `scores`: above one half the concept pushes up, below it down."""
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
    """Testing with concept activation vectors (Kim et al. 2018, arXiv:1711.11279, section 3), layer by layer.

    Parameters
    ----------
    concept, random
        Pictures (N, C, H, W) of the concept and a pool (M, C, H, W) of others, M at least 2 N: each of ``runs``
        vectors is trained against N of the pool, drawn anew. The same is done with ``concepts`` sets of N pictures of
        the pool in the concept's place.
    images
        Pictures (B, C, H, W) of the class ``target``.

    Raises
    ------
    ForetellError
        A layer the network does not have or no gradient passes, too few pictures, a target that is no class.
    """
    if runs < 2 or concepts < 2:
        raise ForetellError(
            f"runs={runs}, concepts={concepts}: a score is judged by its spread; give 2 or more of both."
        )
    seed = draw_seed(generator or torch.Generator().manual_seed(0))
    found = []
    for layer in layers:
        with classifier.exclusive() as module:
            refuse_unknown(classifier, module, layer)
        known, pool = (_read(classifier, part, 0, layer, "activation", progress) for part in (concept, random))
        gradient = _read(classifier, images, target, layer, "gradient", progress)
        draws = torch.Generator().manual_seed(seed)
        own = _along(gradient, known, pool, runs, penalty, draws)
        chance = []
        for k in range(concepts):
            order = torch.randperm(len(pool), generator=draws)
            none, rest = order[: len(known)], order[len(known) :]
            chance.append(_along(gradient, pool[none], pool[rest], runs, penalty, draws))
            progress(k + 1, concepts, f"concepts that are none, {layer}")
        found.append(_judged(layer, target, own, chance, len(layers)))
    return tuple(found)


class _Along(NamedTuple):
    """Per vector, the share of the pictures whose logit rises along it and their mean derivative (R,); its accuracy."""

    scores: Tensor
    sensitivity: Tensor
    accuracy: float


def _along(
    gradient: Tensor, concept: Tensor, pool: Tensor, runs: int, penalty: float, draws: torch.Generator
) -> _Along:
    size = min(len(concept), len(pool))
    chosen = [torch.randperm(len(pool), generator=draws)[:size] for _ in range(runs)]
    vectors = [concept_vector(concept, pool[rows], penalty=penalty) for rows in chosen]
    derivative = (gradient @ torch.stack([vector.direction for vector in vectors], 1)).double()
    accuracy = sum(vector.accuracy for vector in vectors) / runs
    return _Along((derivative > 0).double().mean(0), derivative.mean(0), accuracy)


def _read(
    classifier: Classifier,
    pictures: Tensor,
    target: int,
    layer: str,
    what: Literal["activation", "gradient"],
    progress: Progress,
) -> Tensor:
    """What a layer says of each picture, or d logit[target] / d activation, (N, D)."""

    def read(part: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        reading = activation_and_gradient(classifier, part, targets, layer)
        return getattr(reading, what).flatten(1), reading.logits

    inputs, targets = checked(classifier, pictures, [target] * len(pictures))
    return in_parts(read, inputs, targets, progress, f"{what}s at {layer}")[0]


def _judged(layer: str, target: int, own: _Along, chance: list[_Along], layers: int) -> Tcav:
    strength, random = float(own.sensitivity.mean()), torch.stack([one.sensitivity.mean() for one in chance])
    p_value = (1 + int((random.abs() >= abs(strength)).sum())) / (1 + len(random))
    every = torch.cat([one.scores for one in chance])
    varies = float(own.scores.var() + every.var()) > 1e-12  # beyond rounding
    t_test = float(ttest_ind(own.scores.numpy(), every.numpy(), equal_var=False).pvalue) if varies else 1.0
    warnings = []
    if own.accuracy < KNOWN:
        warnings.append(
            f"Layer {layer} hardly knows this concept: vectors sort {own.accuracy:.0%} of held-out pictures rightly."
        )
    adjusted = min(1.0, p_value * layers)
    return Tcav(layer, target, own.scores, strength, random, adjusted, t_test, own.accuracy, tuple(warnings))
