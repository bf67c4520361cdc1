"""Heatmaps of scenes against the measured effects of context and object, so that a heatmap can be wrong.

The generator draws every scene again with each other context, and with each other object: the mean loss of the
target's output is the effect of the context, and of the object. A heatmap gives both a share of its evidence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import stats
from torch import Tensor

from core.faithfulness.effects import effect, share
from core.faithfulness.pointing import relevance_mass
from core.network.classifier import Classifier
from core.network.masked import Output
from data.scenes.generator import Scene
from data.scenes.interventions import other_contexts, other_objects
from data.scenes.splits import picture

RESAMPLES = 2000
OUTPUTS: tuple[Output, ...] = ("logit", "probability")
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class StagedScene:
    """A scene, the predicted class, where the object is, and the context's share of the effect by output."""

    name: str
    x: Tensor
    target: int
    inside: Tensor
    shares: dict[str, float]


def stage_scenes(classifier: Classifier, count: int, seed: int) -> list[StagedScene]:
    """Draw ``count`` scenes with a visible object, standard and shifted in turn, explained for the predicted class."""
    scenes: list[StagedScene] = []
    index = 0
    while len(scenes) < count:
        for split in ("standard", "adversarial"):
            scene = picture(split, seed, index)  # type: ignore[arg-type]
            if scene.mask.any() and len(scenes) < count:
                scenes.append(_measure_scene(classifier, scene, f"{split}/{seed}/{index}"))
        index += 1
    return scenes


def _measure_scene(classifier: Classifier, scene: Scene, name: str) -> StagedScene:
    x = classifier.preprocess(scene.image)
    target = int(classifier.logits(x[None]).argmax())
    changed = [torch.stack([classifier.preprocess(other.image) for other in others])[None]
               for others in (other_contexts(scene), other_objects(scene))]  # fmt: skip
    shares = {}
    for output in OUTPUTS:
        context, thing = (effect(classifier, x[None], [target], others, output=output) for others in changed)
        shares[output] = float(share(context, thing)[0])
    return StagedScene(name, x, target, torch.from_numpy(scene.mask), shares)


def context_share(scene: StagedScene, evidence: Tensor) -> float:
    """Compute the share of a heatmap's positive evidence (96, 96) outside the object; NaN without any."""
    return 1 - float(relevance_mass(evidence[None], scene.inside[None])[0])


def even_share(scene: StagedScene) -> float:
    """Compute `context_share` of a constant heatmap, the baseline."""
    return 1 - float(scene.inside.double().mean())


def context_table(shares: dict[str, Floats], effects: dict[str, Floats], free: Floats) -> dict[str, Any]:
    """Correlate each method's shares with the effects' over the scenes (Spearman), with bootstrap intervals.

    ``free`` are the shares of a constant heatmap; ``gain`` is a method's correlation minus that one, on the same
    resampled scenes. Scenes without a share (no positive effect or evidence) are left out and counted.
    """
    return {
        "scenes": len(free),
        "even_map": {output: _correlation(free, truth) for output, truth in effects.items()},
        "mean_share_of_the_effect": {output: _mean(truth) for output, truth in effects.items()},
        "methods": {
            name: {"mean_share": _mean(own)}
            | {output: _correlation(own, truth) | _gain(own, free, truth) for output, truth in effects.items()}
            for name, own in shares.items()
        },
    }


def _mean(shares: Floats) -> float | None:
    finite = shares[np.isfinite(shares)]
    return _round(float(finite.mean())) if len(finite) else None


def _correlation(own: Floats, truth: Floats) -> dict[str, Any]:
    kept = np.isfinite(own) & np.isfinite(truth)
    correlation, drawn = _spearman(own[kept], truth[kept])
    return {"spearman": _round(correlation), "interval_95": _interval(drawn), "scenes": int(kept.sum())}


def _gain(own: Floats, free: Floats, truth: Floats) -> dict[str, Any]:
    kept = np.isfinite(own) & np.isfinite(truth)
    correlation, drawn = _spearman(own[kept], truth[kept])
    without, drawn_without = _spearman(free[kept], truth[kept])
    return {"gain": _round(correlation - without), "gain_interval_95": _interval(drawn - drawn_without)}


def _spearman(one: Floats, other: Floats) -> tuple[float, Floats]:
    """Correlate the ranks of two series (n,), and of their resamples (RESAMPLES,); NaN for a constant one.

    The resamples are the same for every pair of one length.
    """
    rows = np.random.default_rng(0).integers(max(1, len(one)), size=(RESAMPLES, len(one)))
    whole = np.arange(len(one))[None]
    return float(_correlations(one[whole], other[whole])[0]), _correlations(one[rows], other[rows])


def _correlations(one: Floats, other: Floats) -> Floats:
    """Compute Spearman's correlation of each row (m, n), with mean ranks for ties."""
    if one.shape[1] < 2:
        return np.full(len(one), np.nan)
    first, second = (stats.rankdata(series, axis=1) - (one.shape[1] + 1) / 2 for series in (one, other))
    with np.errstate(invalid="ignore"):
        return (first * second).sum(1) / np.sqrt((first**2).sum(1) * (second**2).sum(1))


def _interval(drawn: Floats) -> list[float | None]:
    finite = drawn[np.isfinite(drawn)]
    return [_round(float(np.quantile(finite, bound))) if len(finite) else None for bound in (0.025, 0.975)]


def _round(value: float) -> float | None:
    """Round to four places; None for NaN, which JSON does not have."""
    return round(value, 4) if np.isfinite(value) else None
