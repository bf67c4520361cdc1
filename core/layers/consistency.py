"""Knowledge consistency: how much of one layer can be reconstructed from another, by mappings of growing depth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from core.errors import ForetellError
from core.types import Progress, silent

ORDERS = 2
STEPS, PATIENCE, RATE = 600, 60, 5e-3
LEAST_WIDTH = 64
RIDGE = 1e-3
"""Share of the variance added to each direction of the linear part."""
PARTS = 4
"""Images are split into four parts: two for training, one for early stopping, one for the report."""


@dataclass(frozen=True)
class Consistency:
    """Shares of a layer's variance on images that no mapping was trained on.

    Attributes
    ----------
    shares
        (orders + 1,) float64: what the mapping of each order explains beyond those below it. Order 0 is linear, order k
        has k hidden layers of rectified units.
    errors
        (orders + 1,) standard errors of `shares` over the held-out images.
    inconsistent
        The rest: what of the layer the other does not represent (or a small mapping cannot find there).
    rows
        (R,) numbers of the held-out rows.
    left
        (R,) squared length of what no mapping explains of each, relative to the mean squared length of the rows: large
        where the other layer is blind to what this one represents.
    channels
        (D,) share of each channel's variance that no mapping explains.
    """

    shares: Tensor
    errors: Tensor
    rows: Tensor
    left: Tensor
    channels: Tensor

    @property
    def inconsistent(self) -> float:
        """1 - sum of `shares`."""
        return 1 - float(self.shares.sum())


def consistency(
    layer: Tensor,
    other: Tensor,
    *,
    images: Tensor | None = None,
    orders: int = ORDERS,
    generator: torch.Generator | None = None,
    progress: Progress = silent,
) -> Consistency:
    """Reconstruct ``layer`` (N, D) from ``other`` (N, E), outputs of two layers for the same N images (or places).

    After Liang et al. 2019 (arXiv:1908.01581), section 3: x = x(0) + x(1) + ... + rest, where x(k) needs a map of k
    nonlinear layers. There one network is trained for all orders with penalties that push what can be linear into the
    linear part; here each order is trained on what the orders below it leave, which does the same without weights to
    choose. ``images`` (N,) names the image of each row, where rows are places: rows of an image stay together.

    Raises
    ------
    ForetellError
        Different rows, fewer than 8 images, or a layer that says the same of all.
    """
    generator = generator or torch.Generator().manual_seed(0)
    owner, part = _deal(layer, other, images, generator)
    train, stop, told = part < PARTS - 2, part == PARTS - 2, part == PARTS - 1
    y, x = _standardise(layer, train), _standardise(other, train)
    rest = y
    losses = [_loss_by_image(y[told], owner[told])]
    for order in range(orders + 1):
        rest = rest - _reconstruct(x, rest, train, stop, order, generator)
        losses.append(_loss_by_image(rest[told], owner[told]))
        progress(order + 1, orders + 1, "reconstructing a layer from another")
    gains, whole = -torch.stack(losses).diff(dim=0), losses[0]
    shares = gains.mean(1) / whole.mean()
    # Of a ratio of means: images with more to explain count for more in both.
    spread = (gains - shares[:, None] * whole).std(1)
    lengths, variance = y[told].square().sum(1), y[told].square().mean(0)
    channels = rest[told].square().mean(0) / variance.clamp(min=torch.finfo(variance.dtype).tiny)
    return Consistency(
        shares,
        spread / whole.mean() / len(whole) ** 0.5,
        torch.nonzero(told)[:, 0],
        rest[told].square().sum(1) / lengths.mean(),
        channels,
    )


def refine(
    layer: Tensor,
    other: Tensor,
    *,
    images: Tensor | None = None,
    orders: int = ORDERS,
    generator: torch.Generator | None = None,
    progress: Progress = silent,
) -> tuple[Tensor, Tensor]:
    """Return the consistent features of ``layer`` (N, D): what of it is reconstructed from ``other`` (N, E).

    Feature refinement of Liang et al. 2019 (arXiv:1908.01581), section 4: x(0), x(0) + x(1), ... in place of x, in the
    units of the layer. The images are split into halves, and each is reconstructed by mappings that were trained on
    the other, without labels. The two halves' mappings differ, so compare images of one half only.

    Returns
    -------
    tuple
        The features (orders + 1, N, D), by mappings of up to each order, and the half of each row (N,), 0 or 1.

    Raises
    ------
    ForetellError
        As `consistency`.
    """
    generator = generator or torch.Generator().manual_seed(0)
    _, part = _deal(layer, other, images, generator, 2 * PARTS)
    whole = layer.double().flatten(1)
    refined = torch.zeros(orders + 1, *whole.shape, dtype=whole.dtype)
    half = part % 2
    for told in range(2):
        learned = half != told
        stop = learned & (part == part[learned].min())
        train = learned & ~stop
        centre, size = _measure_scale(layer, train)
        y, x = (whole - centre) / size, _standardise(other, train)
        reconstruction, own = torch.zeros_like(y), half == told
        for order in range(orders + 1):
            reconstruction = reconstruction + _reconstruct(x, y - reconstruction, train, stop, order, generator)
            refined[order, own] = centre + size * reconstruction[own]
            progress(told * (orders + 1) + order + 1, 2 * (orders + 1), "refining a layer")
    return refined, half


def _reconstruct(
    x: Tensor, rest: Tensor, train: Tensor, stop: Tensor, order: int, generator: torch.Generator
) -> Tensor:
    """Reconstruct what the mappings of lower orders leave (N, D) by the mapping of an order."""
    return _linear(x, rest, train) if order == 0 else _nonlinear(x, rest, train, stop, order, generator)


def _deal(
    layer: Tensor, other: Tensor, images: Tensor | None, generator: torch.Generator, parts: int = PARTS
) -> tuple[Tensor, Tensor]:
    """Return each row's image and its part (N,); rows of an image stay together."""
    if len(layer) != len(other):
        raise ForetellError(f"{len(layer)} and {len(other)} rows: both layers must come from the same images.")
    owner = torch.arange(len(layer)) if images is None else torch.unique(images, return_inverse=True)[1]
    count = int(owner.max()) + 1
    if count < 2 * PARTS:
        raise ForetellError(f"{count} images: consistency trains on some and tests on others; give 8 or more.")
    return owner, (torch.randperm(count, generator=generator) % parts)[owner]


def _standardise(values: Tensor, train: Tensor) -> Tensor:
    """Centre by the mean of the training rows, and scale to mean variance 1 over the channels."""
    centre, size = _measure_scale(values, train)
    return (values.double().flatten(1) - centre) / size


def _measure_scale(values: Tensor, train: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean (D,) of the training rows, and the root mean square of what is left over all channels."""
    inside = values[train].double().flatten(1)
    centre = inside.mean(0)
    size = (inside - centre).square().mean().sqrt()
    if not size > 0:
        raise ForetellError("The layer gives the same output for all these images: choose another layer.")
    return centre, size


def _loss_by_image(rest: Tensor, owner: Tensor) -> Tensor:
    """Return the mean over the rows of each image of the squared length of what is left, (images,)."""
    own = torch.unique(owner, return_inverse=True)[1]
    sums = torch.zeros(int(own.max()) + 1, dtype=rest.dtype).index_add(0, own, rest.square().sum(1))
    mean: Tensor = sums / own.bincount()
    return mean


def _linear(x: Tensor, y: Tensor, train: Tensor) -> Tensor:
    """Regress y on x by ridge regression, trained on some rows, for all."""
    inside = x[train]
    gram = inside.T @ inside
    ridge = RIDGE * gram.diagonal().mean() * torch.eye(len(gram), dtype=gram.dtype)
    predicted: Tensor = x @ torch.linalg.solve(gram + ridge, inside.T @ y[train])
    return predicted


def _nonlinear(x: Tensor, y: Tensor, train: Tensor, stop: Tensor, depth: int, generator: torch.Generator) -> Tensor:
    """Regress y on x by ``depth`` hidden layers, trained until other rows are explained best; 0 if they never are."""
    x, y = x.float(), y.float()
    network = _perceptron(x.shape[1], y.shape[1], depth, generator)
    optimiser = torch.optim.Adam(network.parameters(), lr=RATE)
    best, waited, rebuilt = float(y[stop].square().mean()), 0, torch.zeros_like(y)
    for _ in range(STEPS):
        with torch.enable_grad():
            loss = (network(x[train]) - y[train]).square().mean()
            optimiser.zero_grad()
            loss.backward()
        optimiser.step()
        with torch.no_grad():
            left = float((network(x[stop]) - y[stop]).square().mean())
        waited += 1
        if left < best:
            best, waited = left, 0
            with torch.no_grad():
                rebuilt = network(x)
        if waited == PATIENCE:
            break
    return rebuilt.double()


def _perceptron(inputs: int, outputs: int, depth: int, generator: torch.Generator) -> nn.Sequential:
    """Make ``depth`` hidden layers as wide as the wider end (`LEAST_WIDTH` at least); the output begins at 0."""
    widths: Sequence[int] = [inputs, *[max(inputs, outputs, LEAST_WIDTH)] * depth]
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layer = _unset(before, after)
        with torch.no_grad():
            layer.weight.normal_(0, (2 / before) ** 0.5, generator=generator)
            layer.bias.zero_()
        layers += [layer, nn.ReLU()]
    last = _unset(widths[-1], outputs)
    for parameter in last.parameters():
        nn.init.zeros_(parameter)
    return nn.Sequential(*layers, last)


def _unset(inputs: int, outputs: int) -> nn.Linear:
    """Make a layer without initial weights, which would consume the global random numbers."""
    layer: nn.Linear = nn.utils.skip_init(nn.Linear, inputs, outputs)  # type: ignore[no-untyped-call]
    return layer
