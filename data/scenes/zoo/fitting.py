"""Training that the networks of the zoo share: AdamW on a one-cycle rate, images seen through random masks."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from tqdm import tqdm

from data.scenes.classifier import normalise
from data.scenes.train import MASKED_SHARE, fills, smooth_masks
from data.scenes.zoo.material import Images

BATCH = 64
RATE = 4e-3
DECAY = 0.02
BANK = 16
"""Groups of masks and fills that are drawn once and reused: drawing them for every batch takes too long."""
Loss = Callable[[Tensor, Tensor], Tensor]
"""Normalised inputs (B, 3, 96, 96) and the indices (B,) of their images to a loss."""


class Augmenter:
    """Mirror, move by up to 6 px and, for half of a batch, mask and fill, as `data.scenes.train.augment` does."""

    def __init__(self, generator: torch.Generator, masked: float = MASKED_SHARE) -> None:
        self._generator = generator
        self._masked = int(masked * BATCH)
        self._masks = [smooth_masks(self._masked, generator) for _ in range(BANK)]
        self._fills = [fills(self._masked, generator) for _ in range(BANK)]

    def __call__(self, x: Tensor) -> Tensor:
        """Augment (B, 3, 96, 96), normalised."""
        flipped, masks, filled = torch.randint(0, 1 << 20, (3,), generator=self._generator).tolist()
        x = x.flip(3) if flipped % 2 else x
        down, across = torch.randint(-6, 7, (2,), generator=self._generator).tolist()
        x = x.roll((down, across), (2, 3))
        count = min(self._masked, len(x))
        open_ = self._masks[masks % BANK][:count]
        return torch.cat([x[:count] * open_ + self._fills[filled % BANK][:count] * (1 - open_), x[count:]])


def fit(
    network: nn.Module,
    images: Images,
    *,
    epochs: int,
    generator: torch.Generator,
    loss: Loss | None = None,
    also: nn.Module | None = None,
    rate: float = RATE,
    decay: float = DECAY,
    augment: bool = True,
) -> nn.Module:
    """Train a network in place and return it in eval mode.

    Parameters
    ----------
    network
        Normalised inputs (B, 3, 96, 96) to logits (B, 16).
    loss
        The loss of a batch; by default the cross-entropy of the network.
    also
        A further module that is trained by the same loss, such as an adversary.
    augment
        Whether images are mirrored, moved and masked.
    """
    parameters = [*network.parameters(), *(also.parameters() if also is not None else ())]
    optimiser = torch.optim.AdamW([p for p in parameters if p.requires_grad], weight_decay=decay)
    steps = epochs * (len(images) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=steps, pct_start=0.2)
    change = Augmenter(generator) if augment else lambda x: x
    loss = loss or (lambda x, index: cross_entropy(network(x), images.labels[index]))
    network.train()
    with tqdm(total=steps, desc="Training", unit="batch", mininterval=5) as bar:
        for _ in range(epochs):
            order = torch.randperm(len(images), generator=generator)
            for index in order.split(BATCH)[: steps // epochs]:
                x = change(normalise(images.pixels[index]))
                with torch.autocast("cpu", torch.bfloat16):
                    value = loss(x, index)
                optimiser.zero_grad()
                value.backward()  # type: ignore[no-untyped-call]
                optimiser.step()
                schedule.step()
                bar.update()
                bar.set_postfix(loss=f"{value.item():.3f}", refresh=False)
    return network.eval()
