"""Craft images whose predictions disclose how a network was built, over networks whose attributes are known.

Oh, Augustin, Schiele & Fritz 2018, Towards reverse-engineering black-box neural networks (arXiv:1711.01768), kennen-i
(eq. 2: the class predicted of one image is the value of an attribute) and kennen-io (eq. 3: images and metamodel are
learned alternately). Gradients are those of the known networks; of the network in question nothing but predictions is
needed. Images are crafted for each part of the networks that is left out, side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from core.errors import ForetellError
from core.training.metamodel import (
    Metamodels,
    MetamodelSettings,
    Output,
    encode_outputs,
    train_metamodels,
)
from core.types import Progress, silent

Network = Callable[[Tensor], Tensor]
"""From images (B, C, H, W) of values from 0 to 1 to logits (B, K), differentiable."""
BATCH = 10
"""Networks of one step."""
LEVELS = 255
"""Steps from 0 to 1 of the values of an image that can be stored."""


@dataclass(frozen=True)
class CraftingSettings:
    """Settings of crafting: passes over the networks, step size, and turns of images and metamodel in kennen-io."""

    epochs: int = 200
    rate: float = 0.02
    rounds: int = 2


def craft_single_queries(
    networks: Sequence[Network],
    values: Tensor,
    left_out: Tensor,
    start: Tensor,
    settings: CraftingSettings,
    *,
    generator: torch.Generator,
    progress: Progress = silent,
) -> Tensor:
    """Craft one image for each attribute, of which a network predicts the class with the number of its value (eq. 2).

    Parameters
    ----------
    networks
        R networks with K classes.
    values
        Number of the value of each attribute (R, A), below K.
    left_out
        (F, R): whether a network is left out of the F-th crafting.
    start
        Images (A, C, H, W) to start from, with values from 0 to 1.

    Returns
    -------
    Tensor
        Images (F, A, C, H, W), rounded to `LEVELS`.

    Raises
    ------
    ForetellError
        An attribute has more values than the networks have classes.
    """
    craftings, attributes = len(left_out), values.shape[1]

    def compute_loss(r: int, logits: Tensor) -> Tensor:
        losses = cross_entropy(logits, values[r].repeat(craftings), reduction="none").view(craftings, attributes)
        return losses[~left_out[:, r]].sum()

    classes = networks[0](start[:1]).shape[1]
    most = int(values.max()) + 1
    if most > classes:
        raise ForetellError(
            f"An attribute with {most} values cannot be read off one prediction among {classes} classes: leave it out, "
            "or craft several images (kennen-io)."
        )
    queries = start.expand(craftings, *start.shape).flatten(0, 1).clone()
    _descend(queries, networks, compute_loss, settings.epochs, settings.rate, generator, progress)
    return _round(queries).view(craftings, *start.shape)


def craft_queries(
    networks: Sequence[Network],
    values: Tensor,
    counts: tuple[int, ...],
    parts: Tensor,
    start: Tensor,
    output: Output,
    settings: CraftingSettings,
    metamodels: MetamodelSettings,
    *,
    floor: float,
    generator: torch.Generator,
    progress: Progress = silent,
) -> Tensor:
    """Craft images for metamodels, and train the metamodels again on their predictions, in turn (eq. 3).

    Parameters
    ----------
    networks
        R networks with K classes.
    values, counts
        Number of the value of each attribute (R, A), and of values of each.
    parts
        The part (R,) of each network; the images of the f-th metamodel are crafted without the f-th part.
    start
        Images (n, C, H, W) to start from, with values from 0 to 1.
    output
        What a network discloses; the gradients of all but ``prob`` are straight-through, see `_soften`.
    floor
        Log probability at which smaller ones are cut off.

    Returns
    -------
    Tensor
        Images (F, n, C, H, W), rounded to `LEVELS`.

    Raises
    ------
    ForetellError
        Fewer epochs than rounds.
    """
    if settings.rounds < 1 or settings.epochs < settings.rounds:
        raise ForetellError(
            f"epochs={settings.epochs} cannot be divided into {settings.rounds} rounds: give each at least one epoch."
        )
    folds, each = metamodels.folds, settings.epochs // settings.rounds
    queries = start.expand(folds, *start.shape).flatten(0, 1).clone()
    used = parts[:, None] != torch.arange(folds)
    for turn in range(settings.rounds):
        features = encode_networks(networks, queries, folds, output, floor)
        trained = train_metamodels(features, values, counts, metamodels, generator=generator, parts=parts)

        def compute_loss(r: int, logits: Tensor, trained: Metamodels = trained) -> Tensor:
            inputs = _soften(logits.view(folds, -1, logits.shape[1]), output, floor)
            told = enumerate(trained.compute_logits(inputs))
            losses = [cross_entropy(part, values[r, a].expand(folds), reduction="none") for a, part in told]
            return torch.stack(losses).sum(0)[used[r]].sum()

        _descend(queries, networks, compute_loss, each, settings.rate, generator, silent)
        progress(turn + 1, settings.rounds, "turns of images and metamodels")
    return _round(queries).view(folds, *start.shape)


def encode_networks(networks: Sequence[Network], queries: Tensor, folds: int, output: Output, floor: float) -> Tensor:
    """Return the features (F, R, D) of networks by their predictions for the images (F n, C, H, W) of F metamodels."""
    with torch.inference_mode():
        log_p = torch.stack([network(queries) for network in networks]).log_softmax(2)
    order = log_p.argsort(2, descending=True)
    shape = (len(networks), folds, -1, log_p.shape[2])
    return encode_outputs(log_p.clamp(min=floor).view(shape), order.view(shape), output).transpose(0, 1).clone()


def _soften(logits: Tensor, output: Output, floor: float) -> Tensor:
    """Return features (F, D) of logits (F, n, K) with a gradient.

    A class has that of the probabilities, the lowest that of the probabilities by negated logits, and a ranking that of
    expected places, where one class is above another with the logistic function of the difference of their logits
    (Qin, Liu & Li 2010, doi:10.1007/s10791-009-9124-x).
    """
    if output == "prob":
        return logits.log_softmax(2).clamp(min=floor).flatten(1)
    order = logits.argsort(2, descending=True)
    exact = encode_outputs(logits, order, output)
    if output == "ranking":
        above = (logits[:, :, None, :] - logits[:, :, :, None]).sigmoid().sum(3) - 0.5  # none is above itself
        soft = above / (logits.shape[2] - 1)
    else:
        soft = (logits if output == "top-1" else -logits).softmax(2)
    return exact + (soft - soft.detach()).flatten(1)


def _descend(
    queries: Tensor,
    networks: Sequence[Network],
    compute_loss: Callable[[int, Tensor], Tensor],
    epochs: int,
    rate: float,
    generator: torch.Generator,
    progress: Progress,
) -> None:
    """Change images (Q, C, H, W) to the least mean loss over networks, by Adam; they remain between 0 and 1."""
    queries.requires_grad_()
    optimiser = torch.optim.Adam([queries], rate)
    batches = -(-len(networks) // BATCH)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, epochs * batches)
    for epoch in range(epochs):
        for rows in torch.split(torch.randperm(len(networks), generator=generator), BATCH):
            optimiser.zero_grad()
            for r in rows.tolist():
                (compute_loss(r, networks[r](queries)) / len(rows)).backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            schedule.step()
            with torch.no_grad():
                queries.clamp_(0, 1)
        progress(epoch + 1, epochs, "epochs of crafting")
    queries.requires_grad_(False)


def _round(queries: Tensor) -> Tensor:
    return (queries * LEVELS).round() / LEVELS
