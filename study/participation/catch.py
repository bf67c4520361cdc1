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

    Their names are those of any other question's options, and as many as its classes, so that they look like one.
    """
    worded = word_task(manifest)
    names = sorted({name for trial in manifest.trials for name in worded.name_options(trial)})
    rng = np.random.default_rng([manifest.seed, *b"catch"])
    count = worded.task.options
    drawn = (rng.choice(len(names), count, replace=False) for _ in range(procedure_of(manifest).pacing.catch))
    return tuple(_trial(k, tuple(names[i] for i in chosen)) for k, chosen in enumerate(drawn))


def draw_catch_positions(n_main: int, n_catch: int, rng: np.random.Generator) -> list[int]:
    """Draw the main trials before which attention checks come: one in each of `n_catch` equal stretches."""
    edges = np.linspace(1, n_main, n_catch + 1).astype(int)
    return [int(rng.integers(low, max(high, low + 1))) for low, high in pairwise(edges)]


def _trial(number: int, options: tuple[str, ...]) -> Trial:
    asked, other = options[:2]
    return Trial(
        id=f"catch-{number}",
        trial_type="std_correct",
        target=asked,
        alternative=other,
        truth=asked,
        options=options,
        ai_probability=1.0,
        source="",
        assets=NO_IMAGES,
        teaching=TeachingFacts(),
        saliency=HeatmapFacts(),
    )
