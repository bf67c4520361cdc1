"""E[m | x, c] by sampling the masks' posterior q(m | c, x) ~ p(m) Q(c | m), for images where few random masks count.

Tempered sequential Monte Carlo (Del Moral, Doucet & Jasra 2006, doi:10.1111/j.1467-9868.2006.00553.x) in its
waste-free form (Dau & Chopin 2022, doi:10.1111/rssb.12475, arXiv:2011.02328), moved by preconditioned Crank-Nicolson
proposals (Cotter et al. 2013, arXiv:1202.0709); errors from the genealogies (Lee & Whiteley 2018,
doi:10.1093/biomet/asy028, arXiv:1509.00394).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from core.errors import ForetellError
from core.network.device import stream
from core.teaching.masks import BLOCK, MaskPrior
from core.types import Progress, silent

Evidence = Callable[[Tensor], Tensor]
"""Masks (n, H, W) -> log Q(c | x, m), (n,) float64."""

RUNS = 4
"""Independent runs that share the samples: they can disagree, and then the error says so."""

CHAIN = 8
"""States of each chain: the ancestor and its moves. Fewer moves forget less, fewer ancestors forget lineages."""

SMALLEST = RUNS * CHAIN * 4
"""Masks below which a run has fewer than four ancestors."""

EFFECTIVE_SHARE = 0.5
"""Share of its effective sample size that a population may lose from one temperature to the next."""

ACCEPTANCE = 0.3
"""Share of moves to accept: the step is adapted to it."""

FIRST_STEP = 0.5
SMALLEST_VARIANCE = 1e-30

STREAMS = 2**32
"""The runs' random streams begin here, far from the blocks of `MaskPrior.blocks`."""


@dataclass(frozen=True)
class Posterior:
    """The expected mask and how it came about.

    Attributes
    ----------
    map, error
        (H, W) float64: E[m | x, c] and its standard error.
    effective
        Independent posterior masks that would give this error: the masks' variance over the squared error.
    diagnostics
        Plain values. ``agreement``: how far the runs lie apart, in units of the error their genealogies state; about
        1 where they agree, and above 1 already multiplied into `error`. ``lineages``: first ancestors whose descendants
        are left, as an effective number; with few of them the error is a guess. ``forwards``: masked images shown to
        the network. ``temperatures``: their number in each run. ``acceptance``: share of accepted moves at each
        temperature of the first run.
    """

    map: Tensor
    error: Tensor
    effective: float
    diagnostics: dict[str, Any]


@dataclass
class Population:
    """Particles of one run: coefficients (n, ry, rx), their evidence (n,) and first ancestors (n,)."""

    normal: Tensor
    evidence: Tensor
    eve: Tensor


def posterior_mask(
    prior: MaskPrior, evidence: Evidence, samples: int, seed: int, progress: Progress = silent
) -> Posterior:
    """Sample q(m) ~ p(m) exp(evidence(m)) with ``samples`` masks per temperature.

    Masks are a function of standard normal coefficients (`MaskPrior.masks`), so proposals that keep the normal law
    are accepted by the evidence alone, at any resolution. Random numbers depend on ``seed`` alone; rounding of the
    evidence can flip a decision, which then moves the heatmap within its error.
    """
    if samples < SMALLEST:
        raise ForetellError(f"samples={samples}: sampling the masks' posterior needs at least {SMALLEST}.")
    runs: list[_SamplerRun] = []

    def report(temperature: float) -> None:
        progress(int(100 * (len(runs) + temperature)), 100 * RUNS, "per cent of the masks' posterior")

    for number in range(RUNS):
        run = _SamplerRun(prior, evidence, samples // RUNS, stream(seed, STREAMS + number), report)
        while run.temperature < 1:
            run.advance()
        runs.append(run)
        report(0.0)
    posterior = estimate(prior, [run.population for run in runs])
    diagnostics = posterior.diagnostics | {
        "forwards": sum(run.forwards for run in runs),
        "temperatures": [len(run.acceptance) for run in runs],
        "acceptance": runs[0].acceptance,
    }
    return Posterior(posterior.map, posterior.error, posterior.effective, diagnostics)


class _SamplerRun:
    """One population of ``count`` particles on its way from the prior (temperature 0) to the posterior (1)."""

    def __init__(
        self,
        prior: MaskPrior,
        evidence: Evidence,
        count: int,
        generator: torch.Generator,
        report: Callable[[float], None],
    ) -> None:
        self.prior, self.evidence, self.generator, self.report = prior, evidence, generator, report
        self.chains = count // CHAIN
        self.temperature, self.step, self.forwards = 0.0, FIRST_STEP, 0
        self.acceptance: list[float] = []
        normal = torch.randn(self.chains * CHAIN, *prior.rank, generator=generator)
        self.population = Population(normal, self._compute_evidence(normal), torch.arange(len(normal)))

    def advance(self) -> None:
        """Go to the next temperature: reweight, resample the chains' ancestors, move them, keep every state."""
        temperature = _next(self.temperature, self.population.evidence)
        weights = ((temperature - self.temperature) * self.population.evidence).softmax(0)
        ancestors = _systematic(weights, self.chains, self.generator)
        state = Population(*(values[ancestors] for values in vars(self.population).values()))
        states, accepted = [state], []
        for _ in range(CHAIN - 1):
            state, share = self._move(state, temperature)
            states.append(state)
            accepted.append(share)
            self.step = min(1.0, self.step * math.exp(share - ACCEPTANCE))
        self.temperature = temperature
        self.acceptance.append(sum(accepted) / len(accepted))
        self.population = Population(*(torch.cat(v) for v in zip(*(vars(s).values() for s in states), strict=True)))

    def _move(self, state: Population, temperature: float) -> tuple[Population, float]:
        """Take a Crank-Nicolson step of every chain, which leaves p(m) exp(temperature * evidence) as it is."""
        noise = torch.randn(state.normal.shape, generator=self.generator)
        proposed = math.sqrt(1 - self.step**2) * state.normal + self.step * noise
        heard = self._compute_evidence(proposed)
        threshold = torch.rand(len(heard), generator=self.generator, dtype=torch.float64).log()
        accept = threshold < temperature * (heard - state.evidence)
        normal = torch.where(accept[:, None, None], proposed, state.normal)
        return Population(normal, torch.where(accept, heard, state.evidence), state.eve), float(accept.double().mean())

    def _compute_evidence(self, normal: Tensor) -> Tensor:
        predictions = []
        for masks in _blocks(self.prior, normal):
            predictions.append(self.evidence(masks))
            self.forwards += len(masks)
            self.report(self.temperature)
        return torch.cat(predictions)


def _next(now: float, evidence: Tensor) -> float:
    """Find the temperature in (now, 1] at which the effective sample size falls to its allowed share, by bisection."""

    def enough(temperature: float) -> bool:
        weights = ((temperature - now) * evidence).softmax(0)
        return 1 / float((weights**2).sum()) >= EFFECTIVE_SHARE * len(evidence)

    if enough(1.0):
        return 1.0
    low, high = now, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if enough(middle) else (low, middle)
    return high


def _systematic(weights: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """Return ``count`` indices, each index about weight * count times, from one uniform number."""
    comb = (torch.arange(count) + torch.rand(1, generator=generator, dtype=torch.float64)) / count
    return torch.searchsorted(weights.cumsum(0), comb).clamp(max=len(weights) - 1)


def estimate(prior: MaskPrior, populations: Sequence[Population]) -> Posterior:
    """Return the mean mask of all particles of independent runs, and its standard error.

    Particles of one first ancestor are a cluster; clusters are what is independent. With shares w_g and means m_g the
    variance is sum w_g^2 (m_g - mean)^2 / (1 - sum w_g^2). Runs that lie further apart than this says scale the error
    up, as the Particle Data Group scales disagreeing measurements. The error is somewhat too small where few masks
    count: intervals of 1.96 errors then cover .86 to .90 of repeated runs and not .95.
    """
    total = sum(len(population.normal) for population in populations)
    w2, wm, m2 = 0.0, *(torch.zeros(prior.height * prior.width, dtype=torch.float64) for _ in range(2))
    square, means = torch.zeros_like(wm), []
    for population in populations:
        mean = torch.zeros_like(wm)
        for eve in sorted(set(population.eve.tolist())):
            masks_of_eve = population.normal[population.eve == eve]
            share, part, part2 = len(masks_of_eve) / total, *_moments(prior, masks_of_eve)
            mean += share * part * len(populations)
            square += share * part2
            w2 += share * share
            wm += share * share * part
            m2 += (share * part) ** 2
        means.append(mean)
    each = torch.stack(means)
    mean = each.mean(0)
    variance = (m2 - 2 * mean * wm + mean * mean * w2).clamp(min=0) / (1 - w2)
    between = each.var(0) / len(each)
    agreement = float((between.mean() / variance.mean().clamp(min=SMALLEST_VARIANCE)).sqrt())
    variance *= max(1.0, agreement) ** 2
    spread = (square - mean * mean).clamp(min=0)
    effective = min(float(total), float(spread.mean() / variance.mean().clamp(min=SMALLEST_VARIANCE)))
    # Where all masks agree, what one more mask could change: E (m - mean)^2 under the prior, by m^2 <= m.
    unseen = prior.expected_value * (1 - 2 * mean) + mean * mean
    variance = variance.maximum(unseen / effective**2)
    size = (prior.height, prior.width)
    diagnostics = {"agreement": agreement, "lineages": 1 / w2}
    return Posterior(mean.view(size), variance.sqrt().view(size), effective, diagnostics)


def _moments(prior: MaskPrior, normal: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean of the masks and of their squares, (H*W,) float64 each."""
    total, total2 = torch.zeros(2, prior.height * prior.width, dtype=torch.float64)
    for masks in _blocks(prior, normal):
        flat = masks.flatten(1).double()
        total += flat.sum(0).cpu()
        total2 += (flat * flat).sum(0).cpu()
    return total / len(normal), total2 / len(normal)


def _blocks(prior: MaskPrior, normal: Tensor) -> Iterator[Tensor]:
    """Return the masks of coefficients (n, *rank), so many at a time that the memory is the same for any n."""
    for start in range(0, len(normal), BLOCK):
        yield prior.masks(normal[start : start + BLOCK])
