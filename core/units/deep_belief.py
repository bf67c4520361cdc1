"""Images typical of a unit of a deep belief network, by sampling with the unit clamped to 1.

Erhan et al. 2009, Visualizing higher-layer features of a deep network, section 4: layers j - 1 and j are a restricted
Boltzmann machine, from which block Gibbs sampling draws with unit i of layer j clamped to 1; ancestral sampling takes
each sample down to the input. The mean of the samples, E[x | h_ij = 1], is typical of the unit among the images that
the network draws, where activation maximisation (`core.units.maximise`) searches one image that drives it up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from core.errors import ForetellError
from core.network.classifier import Classifier
from core.types import Progress, silent
from core.units.unit import Unit

MIXED = 1.2
"""Largest potential scale reduction of chains that are taken to have mixed."""
CHAINS, BURN_IN, SAMPLES, APART = 64, 5000, 20, 1000
"""Markov chains, steps before the first sample, samples of each chain, and steps between two."""


@dataclass(frozen=True)
class Machine:
    """A restricted Boltzmann machine with binary hidden units.

    With binary visible units, E(v, h) = -hᵀWv - bᵀv - cᵀh; with normal ones of standard deviation σ,
    E(v, h) = |v - b|²/2σ² - hᵀWv/σ² - cᵀh (Welling, Rosen-Zvi & Hinton 2005).

    Attributes
    ----------
    weight
        W, (H, V).
    visible, hidden
        Biases b (V,) and c (H,).
    deviation
        σ, of all visible units; None if they are binary.
    """

    weight: Tensor
    visible: Tensor
    hidden: Tensor
    deviation: float | None = None

    def up(self, v: Tensor) -> Tensor:
        """Compute p(h = 1 | v), (B, H)."""
        return torch.sigmoid(v @ self.weight.T / (self.deviation or 1.0) ** 2 + self.hidden)

    def down(self, h: Tensor) -> Tensor:
        """Compute E[v | h], (B, V)."""
        mean = h @ self.weight + self.visible
        return mean if self.deviation is not None else torch.sigmoid(mean)

    def draw_start(self, chains: int, generator: torch.Generator) -> Tensor:
        """Draw visible units (C, V) from which chains begin: 0 or 1 alike, or about the biases."""
        size = (chains, self.weight.shape[1])
        half = torch.full(size, 0.5, dtype=self.weight.dtype)
        return self.draw_visible(half if self.deviation is None else self.visible.expand(size), generator)

    def draw_visible(self, mean: Tensor, generator: torch.Generator) -> Tensor:
        """Draw visible units (B, V) about what `down` computed."""
        if self.deviation is None:
            return _draw(mean, generator)
        return mean + self.deviation * torch.randn(mean.shape, generator=generator, dtype=mean.dtype)


@runtime_checkable
class DeepBeliefNetwork(Protocol):
    """What a deep belief network offers besides its logits.

    If its lowest visible units are normal and not binary, it also has their standard deviation, as an attribute
    ``deviation`` (see `Machine`).
    """

    def list_machines(self) -> dict[str, tuple[Tensor, Tensor, Tensor]]:
        """List W, b and c of each machine, the lowest first, by the name of the module whose output is p(h = 1)."""
        ...

    def draw(self, visible: Tensor) -> Tensor:
        """Return inputs (B, C, H, W) of values (B, V) of the lowest visible units."""
        ...


@dataclass(frozen=True)
class ClampedSamples:
    """What is drawn with a unit clamped to 1.

    Attributes
    ----------
    mean, error
        (V,) float64: E[x | h = 1], and its Monte Carlo standard error, over chains.
    chains
        (C, V): E[x | h], of binary units p(x = 1 | h), of the last sample of each chain.
    mixing
        Largest ratio, over the visible units, of the spread between the halves of the chains to what chance explains
        (the potential scale reduction of Gelman & Rubin 1992, of chains split into halves); near 1 if they have mixed.
    """

    mean: Tensor
    error: Tensor
    chains: Tensor
    mixing: float

    @property
    def has_mixed(self) -> bool:
        """Whether the chains draw from one distribution, so that the error can be believed."""
        return self.mixing <= MIXED


def sample_unit(
    classifier: Classifier,
    unit: Unit,
    *,
    burn_in: int = BURN_IN,
    apart: int = APART,
    generator: torch.Generator | None = None,
    progress: Progress = silent,
) -> tuple[ClampedSamples, Tensor]:
    """Sample as `sample_clamped` with a unit of a deep belief network; return the samples too as inputs (S, C, H, W).

    The first input is the mean, the others the last sample of each chain.

    Raises
    ------
    ForetellError
        A network that is none, or a unit that is not of its hidden layers.
    """
    with classifier.exclusive() as module:
        if not isinstance(module, DeepBeliefNetwork):
            raise ForetellError(
                f"{classifier.name} is no deep belief network, and only from one can images be drawn with a unit "
                "clamped: take scenes:belief or bars:belief, or maximise the unit (--how fourier)."
            )
        own = _read_machines(module)
        if unit.layer not in own:
            raise ForetellError(
                f"Layer {unit.layer or 'of the classes'!r} of {classifier.name} is none of its hidden layers "
                f"{', '.join(own)}: give one of their units, such as {list(own)[-1]}:0."
            )
        machines = list(own.values())[: list(own).index(unit.layer) + 1]
        chain = sample_clamped(
            machines, unit.channel, burn_in=burn_in, apart=apart, generator=generator, progress=progress
        )
        inputs = module.draw(torch.cat([chain.mean.float()[None], chain.chains]).to(classifier.device)).cpu()
    return chain, inputs


def list_sampled_layers(classifier: Classifier) -> tuple[str, ...]:
    """List the hidden layers whose units can be sampled from, the lowest first; none of other networks."""
    with classifier.exclusive() as module:
        return tuple(module.list_machines()) if isinstance(module, DeepBeliefNetwork) else ()


def _read_machines(module: DeepBeliefNetwork) -> dict[str, Machine]:
    own = {
        name: Machine(weight.detach().cpu(), visible.detach().cpu(), hidden.detach().cpu())
        for name, (weight, visible, hidden) in module.list_machines().items()
    }
    lowest = next(iter(own))
    return own | {lowest: replace(own[lowest], deviation=getattr(module, "deviation", None))}


def sample_clamped(
    machines: Sequence[Machine],
    unit: int,
    *,
    chains: int = CHAINS,
    burn_in: int = BURN_IN,
    samples: int = SAMPLES,
    apart: int = APART,
    generator: torch.Generator | None = None,
    progress: Progress = silent,
) -> ClampedSamples:
    """Draw p_j(x | h_ij = 1) for unit i of the top machine's hidden layer j, of the machines up to it alone.

    The last step down gives E[x | h] in place of draws, which leaves the mean and takes the noise of the draw from it.
    Chains begin at random and are independent of each other, which gives the error.

    Raises
    ------
    ForetellError
        No such unit, or fewer than 2 chains or samples, or steps that are none.
    """
    _refuse_settings(machines, unit, chains, burn_in, samples, apart)
    generator = generator or torch.Generator().manual_seed(0)
    top = machines[-1]
    visible = top.draw_start(chains, generator)
    drawn = []
    for k in range(samples):
        for _ in range(burn_in if k == 0 else apart):
            hidden = _draw(top.up(visible), generator)
            hidden[:, unit] = 1
            below = top.down(hidden)
            visible = top.draw_visible(below, generator)
        drawn.append(_descend(machines[:-1], visible, generator) if len(machines) > 1 else below)
        progress(k + 1, samples, "sampling with the unit clamped")
    values = torch.stack(drawn).double()
    means = values.mean(0)
    return ClampedSamples(means.mean(0), means.std(0) / chains**0.5, values[-1].float(), _measure_mixing(values))


def _descend(machines: Sequence[Machine], hidden: Tensor, generator: torch.Generator) -> Tensor:
    """Draw down from the hidden units of the highest of these machines; return E[x | h] of the lowest."""
    for machine in machines[:0:-1]:
        hidden = _draw(machine.down(hidden), generator)
    return machines[0].down(hidden)


def _draw(probability: Tensor, generator: torch.Generator) -> Tensor:
    return (torch.rand(probability.shape, generator=generator) < probability).to(probability.dtype)


def _measure_mixing(values: Tensor) -> float:
    """Compute the largest potential scale reduction of values (T, C, V), each chain split into halves."""
    size = len(values) // 2
    halves = torch.cat([values[:size], values[-size:]], 1)
    within, between = halves.var(0).mean(0), halves.mean(0).var(0)
    ratio = ((size - 1) / size + between / within.clamp(min=torch.finfo(within.dtype).tiny)).sqrt()
    varies = (within > 0) | (between > 0)
    return float(ratio[varies].max()) if bool(varies.any()) else 1.0


def _refuse_settings(
    machines: Sequence[Machine], unit: int, chains: int, burn_in: int, samples: int, apart: int
) -> None:
    count = len(machines[-1].hidden)
    if not 0 <= unit < count:
        raise ForetellError(f"The layer has units 0 to {count - 1}, not {unit}: choose one of them.")
    if min(chains, samples // 2) < 2 or min(burn_in, apart) < 1:
        raise ForetellError(
            f"chains={chains}, samples={samples}, burn_in={burn_in}, apart={apart}: give 2 or more chains, 4 or more "
            "samples of each, and 1 or more steps."
        )
