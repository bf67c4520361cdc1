"""Small studies that choose trials by responses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from study.adaptive.difficulty import measure_difficulty
from study.bundle import MANIFEST, Bundle, Manifest, canonical
from study.plan.adaptive import Adaptive
from tests.study.participants import MakeBundle

STAIRCASE = {"policy": "staircase", "trials": 12, "levels": 4}
INFORMATION = {"policy": "information", "trials": 12, "among": 1}


def write_adaptive(bundle: MakeBundle, adaptive: dict[str, Any], **options: Any) -> Path:
    """Write a bundle whose trials differ in ``p_learner``, by which their difficulty is ranked."""
    config = {**options.pop("config", {}), "adaptive": Adaptive.model_validate(adaptive).model_dump(mode="json")}
    folder = bundle(config=config, **{"trials": 48, "practice": 1, "conditions": ("none", "both"), **options})
    manifest = Bundle(folder).manifest
    drawn = np.random.default_rng(3).random(len(manifest.trials)).tolist()
    taught = [
        trial.model_copy(update={"teaching": trial.teaching.model_copy(update={"p_learner": p})})
        for trial, p in zip(manifest.trials, drawn, strict=True)
    ]
    made = manifest.model_copy(update={"trials": tuple(measure_difficulty(Adaptive.model_validate(adaptive), taught))})
    finished = made.model_copy(update={"study_hash": made.compute_hash()})
    (folder / MANIFEST).write_bytes(canonical(finished.model_dump(mode="json")))
    return folder


def make_adaptive(bundle: MakeBundle, adaptive: dict[str, Any], **options: Any) -> Manifest:
    """Make the manifest of such a bundle."""
    return Bundle(write_adaptive(bundle, adaptive, **options)).manifest
