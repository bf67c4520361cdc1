"""Read how a network was built and trained from its outputs alone, by a classifier of classifiers (KENNEN).

Oh, Augustin, Schiele & Fritz 2018, Towards reverse-engineering black-box neural networks (arXiv:1711.01768), its method
kennen-o: a metamodel is trained on the outputs of networks whose attributes are known, for fixed images. Its methods
kennen-i and kennen-io, which craft the images, are in `core.training.crafting`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import torch
from scipy.optimize import minimize_scalar
from torch import Tensor
from torch.nn.functional import cross_entropy, one_hot

from core.errors import ForetellError
from core.types import Progress, silent

Output = Literal["prob", "ranking", "bottom-1", "top-1"]
"""What a network discloses.

Its probabilities, the order of the classes by probability alone, or the class with the lowest or the highest alone.
"""
OUTPUTS: tuple[Output, ...] = ("prob", "ranking", "bottom-1", "top-1")
BATCH = 40
RATE, DECAY = 2e-3, 1.0
COLDEST, HOTTEST = 0.05, 20.0
"""Ends of the search for the temperature of predicted probabilities."""


@dataclass(frozen=True)
class MetamodelSettings:
    """Settings of the training of metamodels: hidden units of either layer, epochs, and parts that are held out."""

    hidden: int = 100
    epochs: int = 30
    folds: int = 5


@dataclass(frozen=True)
class Metamodels:
    """Metamodels that were trained side by side, each without one part of the networks, and what they predict of it.

    Attributes
    ----------
    weights
        For each of the three linear layers, (F, inside, outside) and (F, 1, outside).
    mean, scale
        Mean features (F, 1, D) of the networks, and the number (F, 1, 1) that they are divided by; F is 1 where all
        metamodels have the same features.
    counts
        Number of values of each of the A attributes.
    temperatures
        By which the logits of each attribute are divided, so that held-out probabilities fit best.
    held_out
        For each attribute, log probabilities (R, V) of its values for each network, by the metamodel that was trained
        without it.
    """

    weights: tuple[tuple[Tensor, Tensor], ...]
    mean: Tensor
    scale: Tensor
    counts: tuple[int, ...]
    temperatures: tuple[float, ...]
    held_out: tuple[Tensor, ...]

    def predict(self, features: Tensor) -> tuple[Tensor, ...]:
        """Return for each attribute the probabilities (V,) of its values, for a network with these features.

        They are means over the metamodels. Features are (D,), or (F, D) where each metamodel has its own.
        """
        parts = self.compute_logits(features)
        return tuple((part / heat).softmax(1).mean(0) for part, heat in zip(parts, self.temperatures, strict=True))

    def compute_logits(self, features: Tensor) -> tuple[Tensor, ...]:
        """Compute for each attribute the logits (F, V) of its values by each metamodel, from (D,) or (F, D)."""
        inputs = ((features[..., None, :] - self.mean) / self.scale).expand(len(self.weights[0][0]), 1, -1)
        return _split(_pass(self.weights, inputs)[:, 0], self.counts)


def encode_outputs(log_p: Tensor, order: Tensor, output: Output) -> Tensor:
    """Return the features (..., n K) of networks that disclose ``output`` of their predictions for n images.

    A ranking is the place of each class in the order, from 0 for the highest to 1 for the lowest probability.

    Parameters
    ----------
    log_p
        Log probabilities (..., n, K).
    order
        The classes (..., n, K), from that with the highest probability to that with the lowest.
    """
    if output == "prob":
        return log_p.flatten(-2)
    classes = order.shape[-1]
    if output == "ranking":
        return order.argsort(-1).flatten(-2) / (classes - 1)
    return one_hot(order[..., 0 if output == "top-1" else -1], classes).float().flatten(-2)


def train_metamodels(
    features: Tensor,
    values: Tensor,
    counts: tuple[int, ...],
    settings: MetamodelSettings,
    *,
    generator: torch.Generator,
    parts: Tensor | None = None,
    lessons: Tensor | None = None,
    progress: Progress = silent,
) -> Metamodels:
    """Train a metamodel without each part of the networks in turn, and let it predict the attributes of that part.

    Perceptrons with two hidden layers and one output layer per attribute, trained to the least sum over attributes of
    the cross-entropies (eq. 1), by AdamW on batches.

    Parameters
    ----------
    features
        Of R networks (R, D), as `encode_outputs` makes them; (F, R, D) where each metamodel has its own.
    values
        Number of the value of each attribute (R, A).
    counts
        Number of values of each attribute.
    parts
        The part (R,) of each network, from 0 to F - 1; by default drawn.
    lessons
        Whether each metamodel learns from each network (F, R), never from one of its own part; by default from all
        others.

    Raises
    ------
    ForetellError
        Fewer networks than two for each part, or settings below 1.
    """
    _check(settings, len(values))
    own = features if features.ndim == 3 else features[None]
    mean = own.mean(1, keepdim=True)
    centred = own - mean
    scale = centred.flatten(1).std(1)[:, None, None]
    scale = torch.where(scale > 0, scale, 1.0)
    basis = torch.linalg.svd(centred, full_matrices=False).Vh  # the first layer's best weights are in this span
    inputs = (centred @ basis.mT / scale).expand(settings.folds, -1, -1)
    if parts is None:
        parts = torch.randperm(len(values), generator=generator) % settings.folds
    others = parts != torch.arange(settings.folds)[:, None]
    taught = [row.nonzero()[:, 0] for row in (others if lessons is None else lessons & others)]
    weights = _fit(inputs, values, counts, taught, settings, generator, progress)
    every = _pass(weights, inputs)
    logits = _split(every[parts, torch.arange(len(values))], counts)
    heats = tuple(_fit_temperature(own, values[:, a]) for a, own in enumerate(logits))
    held_out = tuple((own / heat).log_softmax(1) for own, heat in zip(logits, heats, strict=True))
    first = (basis.mT @ weights[0][0], weights[0][1])
    return Metamodels((first, *weights[1:]), mean, scale, counts, heats, held_out)


def _check(settings: MetamodelSettings, networks: int) -> None:
    for name, low in {"hidden": 1, "epochs": 1, "folds": 2}.items():
        if getattr(settings, name) < low:
            raise ForetellError(f"{name}={getattr(settings, name)}: give a whole number of at least {low}.")
    if networks < 2 * settings.folds:
        raise ForetellError(f"{networks} networks are too few to hold out one of {settings.folds} parts in turn.")


def _fit(
    inputs: Tensor,
    values: Tensor,
    counts: tuple[int, ...],
    taught: list[Tensor],
    settings: MetamodelSettings,
    generator: torch.Generator,
    progress: Progress,
) -> tuple[tuple[Tensor, Tensor], ...]:
    """Train all metamodels at once, each on batches of the networks it is taught by, from inputs (F, R, D)."""
    folds = settings.folds
    every = torch.arange(folds)[:, None]
    fewest = min(map(len, taught))
    batch = min(BATCH, fewest)
    weights = _draw_weights(folds, (inputs.shape[2], settings.hidden, settings.hidden, sum(counts)), generator)
    leaves = [leaf for pair in weights for leaf in pair]
    optimiser = torch.optim.AdamW(leaves, RATE, weight_decay=DECAY)
    for epoch in range(settings.epochs):
        orders = torch.stack([rows[torch.randperm(len(rows), generator=generator)[:fewest]] for rows in taught])
        for rows in torch.split(orders, batch, 1):
            logits = _split(_pass(weights, inputs[every, rows]), counts)
            losses = [
                cross_entropy(part.flatten(0, 1), values[rows][..., a].flatten()) for a, part in enumerate(logits)
            ]
            optimiser.zero_grad()
            (folds * sum(losses)).backward()  # type: ignore[union-attr]
            optimiser.step()
        progress(epoch + 1, settings.epochs, "epochs of the metamodels")
    return tuple((one.detach(), other.detach()) for one, other in weights)


def _draw_weights(folds: int, sizes: tuple[int, ...], generator: torch.Generator) -> tuple[tuple[Tensor, Tensor], ...]:
    pairs = []
    for inside, outside in pairwise(sizes):
        drawn = torch.randn(folds, inside, outside, generator=generator) * (2 / inside) ** 0.5
        pairs.append((drawn.requires_grad_(), torch.zeros(folds, 1, outside, requires_grad=True)))
    return tuple(pairs)


def _pass(weights: tuple[tuple[Tensor, Tensor], ...], inputs: Tensor) -> Tensor:
    """Compute the logits (F, B, sum of V) of inputs (F, B, D) by the F metamodels."""
    hidden = inputs
    for k, (weight, bias) in enumerate(weights):
        hidden = torch.baddbmm(bias, hidden if k == 0 else hidden.relu(), weight)
    return hidden


def _split(logits: Tensor, counts: tuple[int, ...]) -> tuple[Tensor, ...]:
    """Return the logits (..., V) of each attribute, from those of all of them (..., sum of V)."""
    parts: tuple[Tensor, ...] = torch.split(logits, list(counts), -1)
    return parts


def _fit_temperature(logits: Tensor, values: Tensor) -> float:
    """Find the temperature with the least cross-entropy of logits (R, V)."""

    def loss(log_heat: float) -> float:
        return float(cross_entropy(logits / torch.tensor(log_heat).exp(), values))

    ends = torch.tensor([COLDEST, HOTTEST]).log().tolist()
    return float(torch.tensor(minimize_scalar(loss, bounds=ends, method="bounded").x).exp())


@dataclass(frozen=True)
class Likeness:
    """How like a network's outputs are to those of others.

    Attributes
    ----------
    distance
        Root mean square difference of log probabilities to the nearest of the others, nats.
    usual
        The same (R,) for each of the others, to its nearest.
    p_value
        Share of networks that are as far from their nearest, this one included: if it were one more of the others,
        drawn as they were, at most a share p of such networks would have a p-value of p or less.
    """

    distance: float
    usual: Tensor
    p_value: float


def measure_likeness(log_p: Tensor, others: Tensor) -> Likeness:
    """Compare the log probabilities (n, K) of a network with those of others (R, n, K).

    The p-value is conformal (Vovk, Gammerman & Shafer 2005): all R + 1 networks are treated alike.
    """
    every = torch.cat([log_p[None], others]).flatten(1)
    apart = torch.cdist(every, every, compute_mode="donot_use_mm_for_euclid_dist") / every.shape[1] ** 0.5
    nearest = apart.fill_diagonal_(torch.inf).min(1).values
    return Likeness(float(nearest[0]), nearest[1:], float((nearest >= nearest[0]).float().mean()))
