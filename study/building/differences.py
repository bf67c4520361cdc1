"""Differences of a rebuilt study from the frozen one: in what is shown, or only in what was measured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from study.bundle import Manifest, Trial
from study.facts import RegionFacts
from study.places.region import open_region
from study.plan.former import FORMER_MEASURES, use_present_settings

ARITHMETIC = "arithmetic"
"""Key of the environment: the processor and the threads that made it."""
_MEASURED = {"ai_probability", "teaching", "saliency", "relevance", "stratum"}
_NAMED = 5


def differences(frozen: Manifest, again: Manifest) -> list[str]:
    """Describe each kind of difference in a sentence; none where both would show and measure the same."""
    frozen, again = _without_wording(frozen), _without_wording(again)
    if frozen.compute_hash() == again.compute_hash():
        return []
    faults = [
        f"The image set {role!r} ({frozen.sets[role]['name']}) is not the one the study was made from."
        for role in frozen.sets
        if frozen.sets[role]["digest"] != again.sets[role]["digest"]
    ]
    if frozen.classifier["fingerprint"] != again.classifier["fingerprint"]:
        faults.append(f"The classifier {frozen.classifier['name']!r} has other weights than when the study was frozen.")
    faults += [*_of_origins(frozen, again), *_of_trials(frozen, again)]
    return faults or ["The manifest differs from a fresh build. Build the study again."]


def _without_wording(manifest: Manifest) -> Manifest:
    """Leave out what a later version may word differently: warnings, why a trial was dropped, texts, former names."""

    def strip(trial: Trial) -> Trial:
        measured, stratum = trial.saliency.model_copy(update={"warnings": ()}), trial.stratum
        if stratum is not None:
            present = FORMER_MEASURES.get(stratum.measure, stratum.measure)
            stratum = stratum.model_copy(update={"measure": present})
        return trial.model_copy(update={"saliency": measured, "stratum": stratum})

    trials, practice = (tuple(map(strip, one)) for one in (manifest.trials, manifest.practice))
    dropped = tuple({**one, "reason": ""} for one in manifest.dropped)
    return manifest.model_copy(
        update={
            "config": use_present_settings(manifest.config),
            "trials": trials,
            "practice": practice,
            "dropped": dropped,
            "texts": {},
        }
    )


def _of_origins(frozen: Manifest, again: Manifest) -> Iterator[str]:
    """Name the files of a method from outside that are not those that made the heatmaps."""
    now = {trial.id: trial.saliency.origin for trial in (*again.trials, *again.practice)}
    other = [
        trial.saliency.origin.get("file", "")
        for trial in (*frozen.trials, *frozen.practice)
        if trial.id in now and now[trial.id] != trial.saliency.origin
    ]
    if other:
        names = ", ".join(list(dict.fromkeys(other))[:_NAMED])
        yield f"The heatmaps of {len(other)} trial(s) came from files with other content: {names}."


def _of_trials(frozen: Manifest, again: Manifest) -> Iterator[str]:
    known = {trial.id: trial for trial in (*again.trials, *again.practice)}
    changed = {trial.id: trial for trial in (*frozen.trials, *frozen.practice) if known.get(trial.id) != trial}
    rounded = {
        name: off for name, trial in changed.items() if (off := _compute_deviation(trial, known.get(name))) is not None
    }
    other = [name for name in changed if name not in rounded]
    if other:
        yield f"{len(other)} trial(s) render differently now: {', '.join(other[:_NAMED])}."
    if rounded:
        then, now = (one.environment.get(ARITHMETIC, "not recorded") for one in (frozen, again))
        yield (
            f"{len(rounded)} trial(s) show the same images, and their measured values differ by up to "
            f"{max(rounded.values()):.1g} of their value: {', '.join(list(rounded)[:_NAMED])}. Other arithmetic can do "
            f"that (frozen with: {then}; now: {now})."
        )


def _compute_deviation(frozen: Trial, again: Trial | None) -> float | None:
    """Compute how far the measured numbers are apart, relative to the larger; None where something else differs."""
    if again is None or _extract_shown(frozen) != _extract_shown(again):
        return None
    pairs = [_split(trial.model_dump(include=_MEASURED)) for trial in (frozen, again)]
    (words, numbers), (other_words, others) = pairs
    if words != other_words:
        return None
    if (evidence := _compare_regions(frozen.region, again.region)) is None:
        return None
    one, two = np.array([*numbers, 1.0]), np.array([*others, 1.0 - evidence])
    return float(np.max(np.abs(one - two) / np.maximum(np.maximum(np.abs(one), np.abs(two)), 1e-12), initial=0.0))


def _extract_shown(trial: Trial) -> tuple[Any, tuple[str, ...]]:
    return trial.model_dump(exclude={*_MEASURED, "assets", "region"}), trial.assets.every


def _compare_regions(frozen: RegionFacts | None, again: RegionFacts | None) -> float | None:
    """Return how far the evidence of two regions is apart, relative to the largest; None for other differences."""
    if frozen is None or again is None:
        return 0.0 if frozen is again else None
    if any(getattr(frozen, part) != getattr(again, part) for part in ("share", "aspect", "on_object")):
        return None
    one, two = open_region(frozen).evidence, open_region(again).evidence
    return float(np.abs(one - two).max() / max(one.max(), two.max()))


def _split(facts: Any) -> tuple[list[Any], list[float]]:
    """Separate the fractions from everything else, which keeps its order and place."""
    words: list[Any] = []
    numbers: list[float] = []

    def walk(value: Any, place: str) -> None:
        if isinstance(value, dict):
            for key in sorted(value):
                walk(value[key], f"{place}.{key}")
        elif isinstance(value, (list, tuple)):
            for k, part in enumerate(value):
                walk(part, f"{place}.{k}")
        elif isinstance(value, float):
            words.append(place)
            numbers.append(value)
        else:
            words.append((place, value))

    walk(facts, "")
    return words, numbers
