"""Effects of concepts in images that cannot be changed: a VAE, trained on them, draws the changed ones (CaCE)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy.stats import t as student
from torch import Tensor

from core.concepts.effect import compute_observed_effect
from core.concepts.manipulation import fit_reader
from core.concepts.vae import (
    LATENT,
    ConditionalVae,
    agreement,
    decode_under,
    draw_codes,
    encode_images,
    exchange_codes,
    fit_vae,
    predict_decoded,
)
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.shares import Share, share_of
from core.types import Progress, silent
from data.types import ImageSet
from inquiry.concepts.concept_images import ConditionedImages, condition_images
from inquiry.concepts.concept_results import EffectQuery, EffectResults, write_effects
from inquiry.concepts.concepts import estimate_effects
from inquiry.concepts.conceptsets import Concept, parse_concepts
from inquiry.concepts.interventions import against_others
from inquiry.files.facts import facts_of, key_of
from inquiry.files.targets import find_class
from study.workspace.blocks import Columns, Pieces

TRAININGS, LEAST_TRAININGS = 5, 3
"""VAEs of each factor: each begins with other random weights and leaves out other images."""
EPOCHS = 30
FOLDS = 4
"""Each VAE leaves out one quarter of the images, which it is asked about."""
KEPT = 0.8
"""Share of held-out images whose prediction the reconstructions must keep."""
SHOWN = 0.8
"""Share of the images drawn under a value in which it must be seen, and of images in which the reader must see it."""
WAYS = ("effect", "decoded", "reencoded")
"""Whose codes are drawn under each value: those of images, exchanged at random; of no image; of each image itself."""


@dataclass(frozen=True)
class VaeQuery(EffectQuery):
    """A network and class, the concepts, and how the VAEs are trained: ``trainings`` is their number."""

    trainings: int = TRAININGS
    epochs: int = EPOCHS
    latent: int = LATENT


@dataclass(frozen=True)
class _Learned:
    """Effects of each value on each class by every VAE (T, V, K); the share of predictions that reconstructions keep,
    and of drawn images that show each value (V,)."""

    effects: Mapping[str, np.ndarray]
    kept: Share
    shown: np.ndarray


def vae_files(request: VaeQuery, out: Path, progress: Progress = silent) -> tuple[Path, Path]:
    """Write ``<model>.<class>.vae.csv`` and ``.json`` into ``out``; a run that was killed resumes."""
    return write_effects(estimate_by_vae, request, out, ".vae", progress)


def estimate_by_vae(
    classifier: Classifier,
    request: VaeQuery,
    images: ImageSet,
    parts: Path | None = None,
    progress: Progress = silent,
) -> EffectResults:
    """Estimate the effect of every concept on the class's probability from images that VAEs draw.

    ``decoded`` draws random images under each value (Dec-CaCE), ``reencoded`` each held-out image under each value
    (EncDec-CaCE; Goyal et al. 2019, arXiv:1907.07165); ``effect`` draws like ``decoded``, of codes that images have
    (`core.concepts.vae.exchange_codes`). Intervals are those of one training, mean ± t · standard
    deviation over VAEs of other random weights that leave out other images: they include what training changes, not
    what no VAE has learned. Where the set can be changed, the effect by intervention is given next to them.

    Raises
    ------
    ForetellError
        An unknown class or concept, too few images, or reconstructions that do not keep the network's predictions.
    """
    _refuse_settings(request)
    target = find_class(classifier, request.target)
    sought = parse_concepts(images, request.concepts, request.random)
    facts = _facts(classifier, request, images)
    pieces = Pieces(parts, key_of(facts, [images.digest]))
    known: dict[str, tuple[ConditionedImages, _Learned]] = {}
    rows, effects = [], {}
    for concept in sought:
        name = concept.factor or concept.name
        if name not in known:
            shown = condition_images(classifier, images, concept, request.seed)
            learn = partial(_learn, classifier, request, shown, name, pieces, progress)
            known[name] = shown, learn()
        own = estimate_effects(classifier, concept, images, pieces, request.seed, progress)
        row, effects[concept.name] = _row(classifier, concept, *known[name], own, target)
        rows.append(row)
    pieces.forget()
    return EffectResults(pd.DataFrame(rows), facts | {"effects": effects})


def _refuse_settings(request: VaeQuery) -> None:
    if request.trainings < LEAST_TRAININGS:
        raise ForetellError(
            f"trainings={request.trainings}: the interval is over several VAEs; give {LEAST_TRAININGS} or more."
        )
    if request.epochs < 1 or not 1 <= request.latent <= 256:
        raise ForetellError(
            f"epochs={request.epochs}, latent={request.latent}: give at least 1 epoch, and 1 to 256 entries of the "
            "code."
        )


def _facts(classifier: Classifier, request: VaeQuery, images: ImageSet) -> dict[str, Any]:
    own = {
        "set": images.name,
        "class": request.target,
        "concepts": list(request.concepts),
        "random": request.random,
        "trainings": request.trainings,
        "epochs": request.epochs,
        "latent": request.latent,
        "seed": request.seed,
    }
    return facts_of(classifier, own)


def _learn(
    classifier: Classifier,
    request: VaeQuery,
    shown: ConditionedImages,
    name: str,
    pieces: Pieces,
    progress: Progress,
) -> _Learned:
    """Train the VAEs of one factor; the first whose reconstructions keep too few predictions ends the run."""
    fold = np.random.default_rng([request.seed, 2]).permutation(len(shown)) % FOLDS
    runs = []
    for k in range(request.trainings):
        held = shown.only(np.flatnonzero(fold == k % FOLDS))
        train = partial(_train, classifier, request, shown.only(np.flatnonzero(fold != k % FOLDS)), held, k)
        runs.append(pieces.get(f"vae.{name}.{k}", train))
        _refuse_reconstructions(classifier, held, share_of(round(float(runs[-1]["kept"]) * len(held)), len(held)))
        progress(k + 1, request.trainings, f"training VAEs of {name}")
    kept = float(np.mean([one["kept"] for one in runs]))
    told = len(shown) // FOLDS
    effects = {way: np.stack([one[way] for one in runs]) for way in WAYS}
    shown_share = np.stack([one["shown"] for one in runs]).mean(0)
    return _Learned(effects, share_of(round(kept * told), told), shown_share)


def _train(
    classifier: Classifier, request: VaeQuery, learned: ConditionedImages, held: ConditionedImages, number: int
) -> Columns:
    """Train one VAE; effects (V, K) of both ways, and the share of predictions kept, on images that it has not seen."""
    draws = torch.Generator().manual_seed(request.seed * 1000 + number)
    vae = fit_vae(
        learned.inputs,
        learned.conditions,
        learned.sizes,
        epochs=request.epochs,
        latent=request.latent,
        generator=draws,
    )
    codes: dict[str, Tensor] = {
        "effect": exchange_codes(vae, held.inputs, held.conditions, draws),
        "decoded": draw_codes(vae, len(held), draws),
        "reencoded": encode_images(vae, held.inputs, held.conditions, draws),
    }
    columns = {"kept": np.array(agreement(classifier, vae, held.inputs, held.conditions, generator=draws))}
    for way, z in codes.items():
        under = {
            value: predict_decoded(classifier, vae, z, held.conditions, 0, k).numpy()
            for k, value in enumerate(held.values)
        }
        columns[way] = np.stack([against_others(under, value).value.numpy() for value in held.values])
    return columns | {"shown": _check_manipulation(vae, codes["effect"], learned, held)}


def _check_manipulation(
    vae: ConditionalVae, z: Tensor, learned: ConditionedImages, held: ConditionedImages
) -> np.ndarray:
    """Measure in which share of the images drawn under each value (V,) it is seen; nan if images do not tell it."""
    reader = fit_reader(learned.inputs, learned.conditions, len(held.values))
    own, shown = held.conditions[:, 0], np.full(len(held.values), np.nan)
    for k in range(len(held.values)):
        if float((reader.read(held.inputs[own == k]) == k).double().mean()) >= SHOWN:
            drawn = [reader.read(images) == k for images in decode_under(vae, z, held.conditions, 0, k)]
            shown[k] = float(torch.cat(drawn).double().mean())
    return shown


def _refuse_reconstructions(classifier: Classifier, held: ConditionedImages, kept: Share) -> None:
    """Refuse VAEs whose images say nothing about this network."""
    predicted = classifier.logits(held.inputs).argmax(1)
    most = float(torch.bincount(predicted).max()) / len(predicted)
    if kept.value >= KEPT and kept.low > most:
        return
    needed = f"{KEPT:.0%} are needed" if kept.value < KEPT else f"one class alone is predicted of {most:.0%}"
    raise ForetellError(
        f"The reconstructions of the VAE keep the prediction of {kept.value:.0%} ({kept.low:.0%} to {kept.high:.0%}) "
        f"of {len(held)} held-out images, and {needed}: what it draws says nothing about {classifier.name}. Give more "
        "or simpler images, more epochs or a larger code (latent); where images can be changed, change them instead."
    )


def _row(
    classifier: Classifier,
    concept: Concept,
    shown: ConditionedImages,
    learned: _Learned,
    own: Columns,
    target: int,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the row of a concept, and its effects on every class by every way, with their limits."""
    place = shown.values.index(concept.value) if concept.factor else 0
    estimates = {way: _limit(learned.effects[way][:, place]) for way in WAYS}
    if "causal" in own:
        half = 1.96 * own["causal_error"]
        estimates["causal"] = np.stack([own["causal"], own["causal"] - half, own["causal"] + half])
    seen = compute_observed_effect(classifier.probabilities(shown.inputs), shown.conditions[:, 0] == place)
    value, half = seen.value.numpy(), 1.96 * seen.error.numpy()
    estimates["observed"] = np.stack([value, value - half, value + half])
    row: dict[str, Any] = {"concept": concept.name}
    for way in (*WAYS, "causal", "observed"):
        limits = estimates[way][:, target] if way in estimates else np.full(3, np.nan)
        row |= dict(zip((way, f"{way}_low", f"{way}_high"), limits.tolist(), strict=True))
    row |= {"kept": learned.kept.value, "kept_low": learned.kept.low, "shown": learned.shown[place]}
    row["images"] = len(shown)
    own_class = {way: every[:, target] for way, every in estimates.items()}
    row["warning"] = " ".join(_warn(shown, place, own_class, float(learned.shown[place])))
    return row, {way: _by_class(classifier, limits) for way, limits in estimates.items()}


def _limit(effects: np.ndarray) -> np.ndarray:
    """Return mean and 95% limits (3, K) of effects (T, K) over VAEs."""
    mean = effects.mean(0)
    half = student.ppf(0.975, len(effects) - 1) * effects.std(0, ddof=1)
    return np.stack([mean, mean - half, mean + half])


def _by_class(classifier: Classifier, limits: np.ndarray) -> dict[str, list[float]]:
    return {name: [round(float(x), 6) for x in limits[:, k]] for k, name in enumerate(classifier.names.short)}


def _warn(shown: ConditionedImages, place: int, estimates: Mapping[str, np.ndarray], seen: float) -> list[str]:
    """Say what the intervals leave out; ``seen`` is the share of the images drawn with the concept that show it."""
    warnings = list(shown.warnings)
    missing = shown.count_missing(place)
    if missing:
        warnings.append(
            f"No image of {missing} of the {len(shown.classes)} classes shows it: what the VAE draws there is a guess."
        )
    if np.isnan(seen):
        warnings.append("Whether the drawn images show it could not be checked: no linear reader sees it in images.")
    elif seen < SHOWN:
        warnings.append(
            f"Only {seen:.0%} of the images drawn with it show it, so the effect is understated: give a smaller code "
            "(latent)."
        )
    one, other = estimates["effect"], estimates["reencoded"]
    if one[1] > other[2] or other[1] > one[2]:
        warnings.append("Each image's own code gives another effect: part of the concept is in the code.")
    if "causal" in estimates and not one[1] <= estimates["causal"][0] <= one[2]:
        warnings.append("The effect by intervention is outside the interval: believe the intervention.")
    return warnings
