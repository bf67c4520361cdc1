"""Bayesian teaching by saliency maps: the mask a learner expects, given the classifier's prediction.

Yang et al. 2021 (doi:10.1038/s41598-021-89267-4) and Folke et al. 2021 (arXiv:2106.09106), appendix B.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from core.attribution.cost import Cost
from core.attribution.method import Query, heatmap_method
from core.attribution.records import Family
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.network.device import send
from core.network.masked import Chunk, Fill, iterate_masked_logits
from core.teaching.expectation import WeightedMasks
from core.teaching.masks import MaskPrior
from core.teaching.posterior import SMALLEST, posterior_mask
from core.types import Explanation

Estimator = Literal["controlled", "plain"]
Sampler = Literal["importance", "smc", "auto"]

Facts = dict[str, Any]

ENOUGH = 100
"""Effective masks; with fewer, the standard error exceeds a tenth of the mask's own standard deviation."""

HARD_SHARE = 0.1
"""An image is hard when less than this share of its masks contribute."""

FULL = 0.9
"""Share of the masks of which all count."""

LINEAGES = 12
"""Independent first ancestors: with fewer, the standard error is itself uncertain by a fifth or more."""

REMEDY = {"importance": "Raise 'samples', or set sampler='auto'.", "smc": "Raise 'samples'."}


TEMPERATURES = 3
"""Typical number for a posterior of masks; the number of an image is known only while it runs."""


def _draw_masks(settings: Mapping[str, Any], _: Classifier) -> Cost:
    weighted = settings["samples"] * (settings["sampler"] != "smc")
    sampled = settings["samples"] * (1 + TEMPERATURES) * (settings["sampler"] != "importance")
    return Cost(forwards=weighted + sampled)


@heatmap_method(family=Family.PERTURBATION, cost=_draw_masks)
def bayesian_teaching(
    query: Query,
    *,
    samples: int = 1000,
    fill: Fill = "mean",
    length_scale: float = 0.1,
    mean: float = -100.0,
    amplitude: float = 100.0,
    estimator: Estimator = "controlled",
    sampler: Sampler = "importance",
    tolerance: float = 0.0,
    chunk: Chunk = 0,
) -> Explanation:
    """Average random masks, each weighted by the target's probability under it: the expected mask E[m | x, c].

    E[m | x, c] = sum_i m_i q_i / sum_i q_i with m_i from the prior and q_i the softmax probability of c for the image
    masked by m_i. `Explanation.zero` is the prior's mean: a classifier that does not look gives it everywhere.
    `Explanation.error` is the standard error. Masks depend on the seed alone, so that heatmaps of images and classes
    under one seed compare under common random numbers; several classes of one image share its passes.

    Where few random masks count, this ratio is noise. ``sampler="smc"`` draws the masks from their posterior instead
    (`posterior_mask`), at some two to seven temperatures. The certificate's ``sampling`` says which was used, and its
    ``samples`` how many masks it took. Intervals of 1.96 of its standard errors cover .86 to .90 of repeated runs.

    Parameters
    ----------
    samples
        Number of random masks: with a tolerance, at most; with the sampler smc, at each temperature.
    length_scale
        Length over which the masks vary: up to 1 a share of the image's shorter side, above 1 in px.
    mean
        Mean of the Gaussian process that a sigmoid turns into masks: the lower, the less of the image they show.
    amplitude
        Standard deviation of the Gaussian process that a sigmoid turns into masks: the larger, the sharper their edges.
    estimator
        Plain: the weighted mean of the masks, as in the paper. Controlled: the same without the noise of the masks
        themselves. It plays no part for the sampler smc.
    sampler
        Importance: weighted masks of the prior. smc: masks drawn from their posterior. Auto: smc for images of which
        fewer than 100 and fewer than a tenth of the masks count.
    tolerance
        Standard error at which sampling ends: as soon as it is nowhere larger and at least 100 masks count. 0 takes all
        samples.
    """
    _check(samples, sampler, tolerance)
    size, device = query.classifier.input_shape[1:], query.classifier.device
    prior = MaskPrior(*size, length_scale, mean, amplitude, device)
    masking = _Masking(query, prior, query.classifier.fill(fill), samples, tolerance, chunk or None)
    if sampler == "smc":
        maps, errors = torch.zeros(2, len(query.inputs), *query.inputs.shape[2:], dtype=torch.float64)
        known: list[Facts] = [{} for _ in maps]
    else:
        maps, errors, known = masking.estimate_from_prior(estimator)
    for i, facts in enumerate(known):
        if sampler == "smc" or (sampler == "auto" and _hard(facts, samples)):
            maps[i], errors[i], known[i] = masking.estimate_from_posterior(i)
    parameters = {
        "fill": fill,
        "length_scale": length_scale,
        "mean": mean,
        "amplitude": amplitude,
        "estimator": estimator,
        "sampler": sampler,
        "tolerance": tolerance,
    }
    shared: Facts = {"samples": samples, "seed": query.seed, "parameters": parameters}
    return query.explain(maps, known, zero=prior.expected_value, error=errors, **shared)


def _estimate_map(sums: WeightedMasks, estimator: Estimator) -> tuple[Tensor, Tensor]:
    return sums.estimate_plain() if estimator == "plain" else sums.estimate_controlled()


def _distinct(inputs: Tensor) -> tuple[Tensor, Tensor]:
    """Find the distinct images among inputs (B, C, H, W) and the index of each (B,): one pass serves its classes."""
    kept: list[int] = []
    place = []
    for i, image in enumerate(inputs):
        same = next((k for k, j in enumerate(kept) if torch.equal(inputs[j], image)), len(kept))
        kept += [i] if same == len(kept) else []
        place.append(same)
    return inputs[kept], torch.tensor(place)


def _hard(facts: Facts, samples: int) -> bool:
    return bool(facts["effective_samples"] < min(ENOUGH, samples * HARD_SHARE))


def _check(samples: int, sampler: Sampler, tolerance: float) -> None:
    if tolerance < 0:
        raise ForetellError(f"tolerance={tolerance} must not be negative: 0 uses all 'samples' masks.")
    if samples < 2:
        raise ForetellError(f"samples={samples}: Bayesian-teaching saliency maps need at least 2 masks.")
    if sampler != "importance" and samples < SMALLEST:
        raise ForetellError(f"samples={samples}: sampler={sampler!r} needs at least {SMALLEST} masks.")


@dataclass(frozen=True)
class _Masking:
    """The two ways to sample masks of the images."""

    query: Query
    prior: MaskPrior
    neutral: Tensor
    samples: int
    tolerance: float
    chunk: int | None

    def estimate_from_prior(self, estimator: Estimator) -> tuple[Tensor, Tensor, list[Facts]]:
        """Weight masks of the prior: heatmaps and errors (B, H, W) float64 and facts about each."""
        # With a tolerance each heatmap ends at its own time, as it would alone.
        parts = torch.split(torch.arange(len(self.query.inputs)), 1 if self.tolerance else len(self.query.inputs))
        estimates = [self._estimate_part_from_prior(part, estimator) for part in parts]
        maps, errors, known = zip(*estimates, strict=True)
        return torch.cat(maps), torch.cat(errors), [facts for part in known for facts in part]

    def _estimate_part_from_prior(self, which: Tensor, estimator: Estimator) -> tuple[Tensor, Tensor, list[Facts]]:
        prior = self.prior
        sums = WeightedMasks(len(which), prior.height, prior.width, prior.expected_value, prior.device)
        images, place = _distinct(self.query.inputs[which])
        place, targets = send(place, prior.device), send(self.query.classes[which], prior.device)[:, None, None]
        for block in prior.blocks(self.samples, self.query.seed):
            probabilities = self._predict_masked(images, block).softmax(2)
            sums.add(block, probabilities[place].gather(2, targets.expand(-1, len(block), 1))[:, :, 0])
            self.query.progress(sums.count, self.samples, "masks")
            if self.tolerance and self._has_converged(sums, estimator):
                break
        maps, errors = _estimate_map(sums, estimator)
        sampling = {"sampler": "importance"}
        known = [self._collect_facts(e, n, sampling) for e, n in zip(errors, sums.effective.tolist(), strict=True)]
        return maps, errors, [facts | self._describe_end(sums.count, facts) for facts in known]

    def _predict_masked(self, images: Tensor, masks: Tensor) -> Tensor:
        """Compute logits (B, n, K) float64, on the network's device, of each image under each of masks (n, H, W)."""
        given = self.query.classifier, images, [masks]
        ((_, logits),) = iterate_masked_logits(*given, fill=self.neutral, chunk=self.chunk)
        return logits

    def _has_converged(self, sums: WeightedMasks, estimator: Estimator) -> bool:
        enough = bool((sums.effective >= ENOUGH).all())
        return enough and float(_estimate_map(sums, estimator)[1].max()) <= self.tolerance

    def _describe_end(self, count: int, facts: Facts) -> Facts:
        """Report how many masks were needed, and whether they were enough."""
        if not self.tolerance or facts["standard_error"] <= self.tolerance:
            return {"samples": count}
        short = (
            f"The standard error is {facts['standard_error']:.2g} after {count} masks, above the tolerance of "
            f"{self.tolerance:g}. Raise 'samples'."
        )
        return {"samples": count, "warnings": (*facts["warnings"], short)}

    def estimate_from_posterior(self, index: int) -> tuple[Tensor, Tensor, Facts]:
        """Sample masks of one image's posterior: heatmap and error (H, W) float64 and facts about them."""
        image, target = self.query.inputs[index], int(self.query.classes[index])

        def evidence(masks: Tensor) -> Tensor:
            return self._predict_masked(image[None], masks)[0].cpu().log_softmax(1)[:, target]

        posterior = posterior_mask(self.prior, evidence, self.samples, self.query.seed, self.query.progress)
        sampling = {"sampler": "smc"} | posterior.diagnostics
        return posterior.map, posterior.error, self._collect_facts(posterior.error, posterior.effective, sampling)

    def _collect_facts(self, error: Tensor, effective: float, sampling: Facts) -> Facts:
        warnings = []
        if FULL * self.samples <= effective < ENOUGH:
            warnings.append(f"Only {self.samples} masks were used: much of this heatmap is noise. Raise 'samples'.")
        elif not effective >= ENOUGH:
            warnings.append(
                f"Only {effective:.0f} of {self.samples} masks contribute (effective sample size): much of this "
                f"heatmap is noise. {REMEDY[sampling['sampler']]}"
            )
        if sampling.get("lineages", LINEAGES) < LINEAGES:
            warnings.append(
                f"All masks descend from {sampling['lineages']:.0f} first ones: the standard error is a guess. "
                "Raise 'samples'."
            )
        return {
            "standard_error": float(error.max()),
            "effective_samples": effective,
            "sampling": sampling,
            "warnings": tuple(warnings),
        }
