"""Concepts that a network relies on for a class: a table of concepts and layers, with causal effects if the set can
be intervened on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from core.attribution.places.activations import refuse_unknown
from core.attribution.places.place import select_layer
from core.concepts.effect import compute_observed_effect
from core.concepts.tcav import tcav
from core.concepts.vector import LEAST
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.types import Progress, silent
from data.types import ImageSet
from inquiry.concepts.concept_results import EffectQuery, EffectResults, write_effects
from inquiry.concepts.conceptsets import Concept, draw_inputs, parse_concepts
from inquiry.concepts.interventions import against_others, draw_rows, predict_under_intervention
from inquiry.files.facts import facts_of, key_of
from inquiry.files.targets import find_class
from study.network.sources import class_of_labels
from study.workspace.blocks import Columns, Pieces

CHANCE = 20
"""Random concepts for each test: the smallest p-value is then below .05 even after Bonferroni."""
LEAST_CHANCE = 39
INTERVENED = 200
"""Images of the set that are drawn under every value of a factor."""


@dataclass(frozen=True)
class ConceptQuery(EffectQuery):
    """A network and class, concepts of a set that can be intervened on, and the layers to test.

    Empty ``layers``: the last layer with spatial positions. ``count`` is the number of images that show a concept.
    """

    layers: tuple[str, ...] = ()
    count: int = 30
    runs: int = 10


def concept_files(request: ConceptQuery, out: Path, progress: Progress = silent) -> tuple[Path, Path]:
    """Write ``<model>.<class>.csv`` and ``.json`` into ``out``; a run that was killed resumes with the same request."""
    return write_effects(concepts, request, out, "", progress)


def concepts(
    classifier: Classifier,
    request: ConceptQuery,
    images: ImageSet,
    parts: Path | None = None,
    progress: Progress = silent,
) -> EffectResults:
    """Test every concept at every layer (TCAV) and estimate its causal effect on the class's probability.

    ``parts`` is a folder for finished pieces, from which a run that was killed resumes; it is left empty.

    Raises
    ------
    ForetellError
        An unknown class, concept or layer, or too few images.
    """
    if request.count < LEAST:
        raise ForetellError(f"count={request.count}: a concept is learned from images: give {LEAST} or more.")
    labels, target = class_of_labels(images, classifier), find_class(classifier, request.target)
    sought = parse_concepts(images, request.concepts, request.random)
    layers = [*request.layers] or [select_layer(classifier, "")]
    with classifier.exclusive() as module:
        for layer in layers:
            refuse_unknown(classifier, module, layer)
    facts = _facts(classifier, request, images, layers)
    pieces, tests, rows, effects = Pieces(parts, key_of(facts, [images.digest])), len(sought) * len(layers), [], {}
    for number, concept in enumerate(sought):
        ask = partial(_test_concept, classifier, request, images, labels, target, concept, tests)
        tested = {layer: pieces.get(f"tcav.{number}.{layer}", partial(ask, layer)) for layer in layers}
        effects[concept.name] = estimate_effects(classifier, concept, images, pieces, request.seed, progress)
        rows += [_row(concept, layer, tested[layer], effects[concept.name], target) for layer in layers]
        progress(number + 1, len(sought), "testing concepts")
    pieces.forget()
    told = {name: _tabulate_effects(classifier, columns) for name, columns in effects.items() if columns}
    return EffectResults(pd.DataFrame(rows), facts | {"effects": told})


def _facts(classifier: Classifier, request: ConceptQuery, images: ImageSet, layers: list[str]) -> dict[str, Any]:
    own = {
        "set": images.name,
        "class": request.target,
        "concepts": list(request.concepts),
        "random": request.random,
        "layers": layers,
        "images": request.count,
        "runs": request.runs,
        "seed": request.seed,
    }
    return facts_of(classifier, own)


def _test_concept(
    classifier: Classifier,
    request: ConceptQuery,
    images: ImageSet,
    labels: np.ndarray,
    target: int,
    concept: Concept,
    tests: int,
    layer: str,
) -> Columns:
    """Test one concept at one layer (TCAV), its p-value corrected for all tests of the query."""
    seen = draw_inputs(classifier, concept, images, labels, target, request.count, request.seed)
    (test,) = tcav(
        classifier,
        [layer],
        seen.concept,
        seen.others,
        seen.target,
        target,
        runs=request.runs,
        concepts=max(LEAST_CHANCE, CHANCE * tests - 1),
        generator=torch.Generator().manual_seed(request.seed),
    )
    return {
        "score": np.array(test.score),
        "score_error": np.array(test.error),
        "sensitivity": np.array(test.sensitivity),
        "p_value": np.array(min(1.0, test.p_value * tests)),
        "accuracy": np.array(test.accuracy),
        "warning": np.array(" ".join(test.warnings)),
    }


def estimate_effects(
    classifier: Classifier, concept: Concept, images: ImageSet, pieces: Pieces, seed: int, progress: Progress
) -> Columns:
    """Estimate the effect of do(value), against the other values, on each class, and the same from observation.

    Columns ``causal, causal_error`` and, if the set knows each image's value, ``observed, observed_error``, (K,). Empty
    for folders.
    """
    if concept.factor is None:
        return {}
    under = {
        value: pieces.get(
            f"do.{concept.factor}.{value}",
            partial(_predict_images, classifier, images, concept.factor, value, seed, progress),
        )["probabilities"]
        for value in images.factors[concept.factor].values
    }
    effect = against_others(under, concept.value)
    columns = {"causal": effect.value.numpy(), "causal_error": effect.error.numpy()}
    known, rows = images.factors[concept.factor].known, draw_rows(len(images), seed, INTERVENED)
    has = torch.tensor([known is not None and known[i] == concept.value for i in rows])
    if min(int(has.sum()), int((~has).sum())) < 2:
        return columns
    plain = pieces.get("plain", partial(_predict_images, classifier, images, None, "", seed, progress))
    seen = compute_observed_effect(torch.from_numpy(plain["probabilities"]), has)
    return columns | {"observed": seen.value.numpy(), "observed_error": seen.error.numpy()}


def _predict_images(
    classifier: Classifier, images: ImageSet, factor: str | None, value: str, seed: int, progress: Progress
) -> Columns:
    """Predict probabilities (N, K) of the set's images under do(factor = value), or unchanged."""
    rows = draw_rows(len(images), seed, INTERVENED)
    probabilities = predict_under_intervention(classifier, images, rows, factor, value)
    progress(len(rows), len(rows), f"intervening: {factor} = {value}" if factor else "unchanged images")
    return {"probabilities": probabilities}


def _row(concept: Concept, layer: str, columns: Columns, effects: Columns, target: int) -> dict[str, Any]:
    row = {"concept": concept.name, "layer": layer, **{name: column.item() for name, column in columns.items()}}
    for name in ("causal", "causal_error", "observed", "observed_error"):
        row[name] = float(effects[name][target]) if name in effects else np.nan
    return row


def _tabulate_effects(classifier: Classifier, columns: Columns) -> dict[str, dict[str, list[float]]]:
    """Tabulate effect and error by class."""
    kinds = [kind for kind in ("causal", "observed") if kind in columns]
    return {
        kind: {
            name: [round(float(columns[kind][k]), 6), round(float(columns[f"{kind}_error"][k]), 6)]
            for k, name in enumerate(classifier.names.short)
        }
        for kind in kinds
    }
