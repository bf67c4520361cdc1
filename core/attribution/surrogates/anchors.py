"""Anchors: the fewest cells of an image that keep the predicted class, whatever happens to the others.

Ribeiro, Singh & Guestrin 2018 (doi:10.1609/aaai.v32i1.11491).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from core.attribution.cost import forwards
from core.attribution.method import Query, heatmap_method
from core.attribution.players import Cells, GridSide
from core.attribution.records import Family
from core.attribution.signs import Sign
from core.errors import ForetellError
from core.network.device import stream
from core.network.masked import Chunk, Fill, iterate_masked_logits, scores
from core.types import Explanation

FIXED = Sign("kept by the rule that fixes the prediction {}", None, "_enough")

DRAW = 32
"""Images drawn at a time, each block from its own random stream."""

START = 128
"""First draws, or half of all: each cell is visible in half of them, so they serve all anchors of one cell."""

LEVEL = 10
"""One size of anchors may use this share of the samples to pick the best, and twice this share to prove one."""

TOLERANCE = 0.15
"""Largest gap to the best precision among the anchors that the search keeps (epsilon of KL-LUCB)."""

Anchor = tuple[int, ...]
"""Cells in the order in which the search added them."""


@heatmap_method(family=Family.SURROGATES, sign=FIXED, cost=forwards("samples"))
def anchors(
    query: Query,
    *,
    grid: GridSide = 4,
    tau: float = 0.95,
    delta: float = 0.05,
    beam: int = 2,
    samples: int = 4000,
    share: float = 0.0,
    fill: Fill = "mean",
    chunk: Chunk = 0,
) -> Explanation:
    """Find the smallest anchor: cells that keep the class when each other cell is covered with probability 1/2.

    Ribeiro et al. 2018 (doi:10.1609/aaai.v32i1.11491), algorithm 2 on the cells of a grid: a beam search that adds cell
    to cell, the best of each size picked by KL-LUCB (Kaufmann & Kalyanakrishnan 2013). An anchor's precision is the
    probability that the class holds: that it is the classifier's prediction, or a ``share`` of the whole image's
    probability (for a class that never is or always is the first). It counts when fresh draws show it to be at least
    ``tau`` with confidence 1 - ``delta``. Covered cells show the fill, not another image. The heatmap has at each pixel
    of an anchor's cell the precision that the cell added, in the order of the search, and 0 elsewhere. The
    certificate's parameters hold the anchor's ``cells`` (row, column), its ``precision`` with ``lower`` and ``upper``
    bound, and its ``coverage``, the share of images covered by coins that show it whole.

    Parameters
    ----------
    tau
        Precision that an anchor must reach: the probability that the class holds when the other cells are masked at
        random.
    delta
        Probability of error when the precision of an anchor is proved; the confidence is 1 - delta.
    beam
        Number of anchors of each size that the search keeps.
    samples
        Largest number of forward passes per image.
    share
        At 0, the class holds while it is the prediction; above 0, while its probability is at least this share of that
        for the whole image.
    """
    if not (0 < tau < 1 and 0 < delta < 1 and beam >= 1 and 0 <= share < 1):
        raise ForetellError(
            f"tau={tau}, delta={delta}, beam={beam}, share={share}: give tau and delta between 0 and 1, at least 1 "
            "anchor to keep, and a share from 0 to below 1."
        )
    if samples < 2 * DRAW:
        raise ForetellError(f"samples={samples}: the search for an anchor needs at least {2 * DRAW} samples.")
    classifier, inputs, classes, seed = query.classifier, query.inputs, query.classes, query.seed
    cells = Cells(*classifier.input_shape[1:], grid)
    parameters = {"grid": grid, "tau": tau, "delta": delta, "beam": beam, "share": share, "fill": fill}
    whole = scores(classifier, inputs, classes, "probability").tolist()
    neutral = classifier.fill(fill)
    maps, errors, facts = [], [], []
    for b, (x, target) in enumerate(zip(inputs, classes.tolist(), strict=True)):

        def check_class(
            coalitions: Tensor, x: Tensor = x, target: int = target, least: float = share * whole[b]
        ) -> Tensor:
            masks = [cells.masks(coalitions)]
            ((_, logits),) = iterate_masked_logits(classifier, x[None], masks, fill=neutral, chunk=chunk or None)
            said = logits[0].cpu()
            first: Tensor = said.argmax(1) == target
            return said.softmax(1)[:, target] >= least if share else first

        def report(drawn: int, b: int = b) -> None:
            query.progress(b * samples + drawn, len(inputs) * samples, "searching anchors")

        draws = AnchorSamples(check_class, cells.players, samples, seed, report)
        anchor = search(draws, tau, delta, beam)
        gains, variances = draws.compute_gains(anchor)
        maps.append(gains[cells.index].float())
        errors.append(variances.sqrt()[cells.index].float())
        facts.append({"samples": draws.spent, "seed": seed} | _collect_facts(anchor, cells, parameters))
    query.progress(len(inputs) * samples, len(inputs) * samples, "searching anchors")
    return query.explain(torch.stack(maps), facts, error=torch.stack(errors))


@dataclass(frozen=True)
class FoundAnchor:
    """An anchor with its precision, its bounds, and whether the lower one is proved to reach the threshold."""

    anchor: Anchor
    precision: float
    lower: float
    upper: float
    draws: int
    proved: bool


def _collect_facts(anchor: FoundAnchor, cells: Cells, parameters: dict[str, Any]) -> dict[str, Any]:
    tau = parameters["tau"]
    warnings: tuple[str, ...] = ()
    if not anchor.proved:
        warnings = (
            f"No anchor was proved to reach a precision of {tau:g}: this one has {anchor.precision:.2f} (between "
            f"{anchor.lower:.2f} and {anchor.upper:.2f}). Try more samples, a coarser grid or a lower tau.",
        )
    elif not anchor.anchor:
        warnings = ("No cell is needed: the class never changes.",)
    facts = {
        "cells": [divmod(cell, cells.grid) for cell in anchor.anchor],
        "precision": anchor.precision,
        "lower": anchor.lower,
        "upper": anchor.upper,
        "coverage": 0.5 ** len(anchor.anchor),
    }
    return {"parameters": parameters | facts, "warnings": warnings}


@dataclass
class AnchorSamples:
    """Images whose cells outside an anchor are covered at random, and whether each keeps the class.

    An image drawn for one anchor also counts for every larger one whose cells it happens to show.
    """

    holds: Callable[[Tensor], Tensor]
    players: int
    budget: int
    seed: int
    report: Callable[[int], None]
    shown: list[Tensor] = field(default_factory=list)
    given: list[Tensor] = field(default_factory=list)
    held: list[Tensor] = field(default_factory=list)
    spent: int = 0

    @property
    def remaining(self) -> int:
        """Return how many more may be drawn."""
        return self.budget - self.spent

    def draw(self, anchor: Anchor, count: int) -> Tensor:
        """Draw ``count`` images, or as many as are left, for an anchor: whether each keeps the class, (n,) bool."""
        before = len(self.held)
        goal = self.spent + min(count, self.remaining)
        while self.spent < goal:
            coins = torch.rand(DRAW, self.players, generator=stream(self.seed, len(self.held)))[: goal - self.spent]
            fixed = self._indicator([anchor])[0].expand_as(coins)
            shown = (coins < 0.5) | fixed
            self.held.append(self.holds(shown))
            self.shown.append(shown)
            self.given.append(fixed)
            self.spent += len(shown)
            self.report(self.spent)
        return torch.cat([torch.zeros(0, dtype=torch.bool), *self.held[before:]])

    def tally(self, anchors: Sequence[Anchor]) -> tuple[Tensor, Tensor]:
        """Count for each anchor its images and those that keep the class, (n,) float64."""
        wanted = self._indicator(anchors).double()
        shown, given = torch.cat(self.shown).double(), torch.cat(self.given).double()
        lacking = wanted @ (1 - shown).T
        # An image drawn to show further cells is not a fair draw.
        foreign = (1 - wanted) @ given.T
        counts = ((lacking == 0) & (foreign == 0)).double()
        return counts.sum(1), counts @ torch.cat(self.held).double()

    def compute_gains(self, anchor: FoundAnchor) -> tuple[Tensor, Tensor]:
        """Compute each cell's gain in precision and its variance: twice (players,), 0 outside the anchor."""
        steps = [anchor.anchor[:size] for size in range(len(anchor.anchor) + 1)]
        counts, held = self.tally(steps)
        n = counts.clamp(min=1)
        p = held / n
        p[-1], n[-1] = anchor.precision, anchor.draws
        # Laplace's rule in the variance: 20 of 20 is not certainty.
        spread = (p * n + 1) / (n + 2)
        variance = spread * (1 - spread) / n
        gains, variances = (torch.zeros(self.players, dtype=torch.float64) for _ in range(2))
        for size, cell in enumerate(anchor.anchor, 1):
            gains[cell] = p[size] - p[size - 1]
            variances[cell] = variance[size] + variance[size - 1]
        return gains, variances

    def _indicator(self, anchors: Sequence[Anchor]) -> Tensor:
        rows = torch.zeros(len(anchors), self.players, dtype=torch.bool)
        for row, anchor in zip(rows, anchors, strict=True):
            row[list(anchor)] = True
        return rows


def search(draws: AnchorSamples, tau: float, delta: float, beam: int) -> FoundAnchor:
    """Run algorithm 2: return the first anchor, by size, proved to reach ``tau``, or else the most precise one."""
    proof = PrecisionProof(draws, tau, delta)
    draws.draw((), min(START, draws.budget // 2))
    kept: list[Anchor] = [()]
    seen = list(kept)
    while True:
        for anchor in kept:
            proved = proof.of(anchor)
            if proved is not None:
                return proved
        larger = {
            frozenset((*a, cell)): (*a, cell) for a in reversed(kept) for cell in range(draws.players) if cell not in a
        }
        if not larger or not draws.remaining:
            break
        kept = find_best_anchors(draws, list(larger.values()), beam, delta)
        seen += kept
    counts, held = draws.tally(seen)
    top = int(((held + 1) / (counts + 2)).argmax())
    n, k = int(counts[top]), int(held[top])
    lower, upper = proof.bounds(torch.arange(n) < k, n) if n else (0.0, 1.0)
    return FoundAnchor(seen[top], k / max(1, n), lower, upper, n, False)


@dataclass
class PrecisionProof:
    """Prove with fresh draws that an anchor reaches ``tau``; any of its tests errs with probability at most delta."""

    draws: AnchorSamples
    tau: float
    delta: float
    looks: int = 0

    def of(self, anchor: Anchor) -> FoundAnchor | None:
        """Return the anchor with its bounds if it is proved within the samples it may use, or else None."""
        counts, held = self.draws.tally([anchor])
        if not self.draws.remaining or float(held) < self.tau * float(counts):
            return None
        fresh = self.draws.draw(anchor, 2 * DRAW)
        most = 2 * self.draws.budget // LEVEL
        while True:
            self.looks += 1
            lower, upper = self.bounds(fresh, len(fresh))
            if lower >= self.tau:
                return FoundAnchor(anchor, float(fresh.double().mean()), lower, upper, len(fresh), True)
            # If all its samples would not prove it at the observed precision, leave them for a larger anchor.
            if self.bounds(fresh, most)[0] < self.tau or 2 * len(fresh) > min(most, len(fresh) + self.draws.remaining):
                return None
            fresh = torch.cat([fresh, self.draws.draw(anchor, len(fresh))])

    def bounds(self, held: Tensor, count: int) -> tuple[float, float]:
        """Compute bounds of the precision whose sample is ``held`` (n,) bool, as if from ``count`` draws."""
        # The shares delta / (j (j + 1)) of all tests add up to delta.
        level = math.log(max(1, self.looks) * (self.looks + 1) / self.delta)
        n = torch.tensor([float(count)], dtype=torch.float64)
        lower, upper = (float(kl_bound(held.double().mean()[None] * n, n, level, side)) for side in (-1, 1))
        return lower, upper


def find_best_anchors(draws: AnchorSamples, anchors: list[Anchor], beam: int, delta: float) -> list[Anchor]:
    """Find the ``beam`` most precise anchors by KL-LUCB, best first; within TOLERANCE, as far as samples allow.

    Kaufmann & Kalyanakrishnan 2013 (proceedings.mlr.press/v30/Kaufmann13.html), algorithm 1.
    """
    until = max(0, draws.remaining - draws.budget // LEVEL)
    step = 0
    while True:
        step += 1
        counts, held = draws.tally(anchors)
        order = ((held + 1) / (counts + 2)).argsort(descending=True, stable=True)
        top, rest = order[:beam], order[beam:]
        level = exploration(step, len(anchors), delta)
        weakest = top[kl_bound(held[top], counts[top], level, -1).argmin()]
        if not len(rest) or draws.remaining <= until:
            break
        rival = rest[kl_bound(held[rest], counts[rest], level, 1).argmax()]
        gap = kl_bound(held[rival][None], counts[rival][None], level, 1) - kl_bound(
            held[weakest][None], counts[weakest][None], level, -1
        )
        if float(gap) < TOLERANCE:
            break
        for chosen in (weakest, rival):
            draws.draw(anchors[int(chosen)], DRAW)
    return [anchors[int(one)] for one in top]


def exploration(step: int, arms: int, delta: float) -> float:
    """Compute beta(t, delta) of KL-LUCB with alpha = 1.1 and k1 = 405.5, as the anchors' authors do."""
    inner = math.log(405.5 * arms * step**1.1 / delta)
    return inner + math.log(inner)


def kl_bound(held: Tensor, counts: Tensor, level: float, side: int) -> Tensor:
    """Find p below (side -1) or above (side 1) held / counts with counts x kl(held / counts, p) = level; (n,)."""
    mean = held / counts.clamp(min=1)
    near, far = mean.clone(), torch.full_like(mean, 0.0 if side < 0 else 1.0)
    for _ in range(50):
        middle = (near + far) / 2
        inside = counts * kl(mean, middle) <= level
        near, far = torch.where(inside, middle, near), torch.where(inside, far, middle)
    return torch.where(counts > 0, near, torch.full_like(mean, 0.0 if side < 0 else 1.0))


def kl(p: Tensor, q: Tensor) -> Tensor:
    """Compute the Kullback-Leibler divergence of two Bernoulli distributions."""
    return torch.xlogy(p, p) - torch.xlogy(p, q) + torch.xlogy(1 - p, 1 - p) - torch.xlogy(1 - p, 1 - q)
