"""Attention checks: trials that name their own response. They are never analysed; a rule may exclude by them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from study.bundle import Manifest, Trial, TrialAssets
from study.facts import HeatmapFacts, TeachingFacts
from study.plan.procedure import procedure_of
from study.plan.texts import word_task

NO_IMAGES = TrialAssets(target="", target_map="", examples=())


def catch_trials(manifest: Manifest) -> tuple[Trial, ...]:
    """Return the attention checks of a study, the same for all participants; option a is the one to choose.

    Their two names are those of any other question's options, so that they look like one.
    """
    worded = word_task(manifest)
    names = sorted({name for trial in manifest.trials for name in worded.name_options(trial)})
    rng = np.random.default_rng([manifest.seed, *b"catch"])
    pairs = (rng.choice(len(names), 2, replace=False) for _ in range(procedure_of(manifest).pacing.catch))
    return tuple(_trial(k, names[one], names[two]) for k, (one, two) in enumerate(pairs))


def draw_catch_positions(n_main: int, n_catch: int, rng: np.random.Generator) -> list[int]:
    """Draw the main trials before which attention checks come: one in each of `n_catch` equal stretches."""
    edges = np.linspace(1, n_main, n_catch + 1).astype(int)
    return [int(rng.integers(low, max(high, low + 1))) for low, high in pairwise(edges)]


def _trial(number: int, asked: str, other: str) -> Trial:
    return Trial(
        id=f"catch-{number}",
        trial_type="std_correct",
        target=asked,
        alternative=other,
        truth=asked,
        options=(asked, other),
        ai_probability=1.0,
        source="",
        assets=NO_IMAGES,
        teaching=TeachingFacts(),
        saliency=HeatmapFacts(),
    )
