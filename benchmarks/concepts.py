"""Estimates of a concept's effect against interventions: Table 1 of Goyal et al. 2019, and the scenes.

``python -m benchmarks.concepts [--seeds 5]``. On bars, for each of the paper's four associations of colour with the
class: a new network, the effect of do(colour), the colour's effect on an ideal observer, the two
estimates by a conditional VAE, the observed effect, and TCAV. On scenes, do(context) and do(colour) on the built-in
network, against the same estimates. Errors are standard errors over random seeds of data, network and VAE.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from benchmarks.machine import arguments, hand_over
from core.concepts.effect import compute_causal_effect, compute_observed_effect
from core.concepts.tcav import tcav
from core.concepts.vae import agreement, compute_decoded_effect, compute_reencoded_effect, fit_vae
from core.network.classifier import Classifier
from data.bars.generator import COLOURS
from data.bars.network import CATEGORIES, train, transforms
from data.bars.observer import best_observer
from data.sets import bars, scenes
from data.types import ImageSet
from study.network.sources import open_classifier

SHARES = ((60, 40), (99, 1), (98, 2), (99, 50))
"""Red bars per hundred horizontal and per hundred vertical ones: the rows of the paper's table."""
TRAINING, DRAWN, TESTED, EACH = 8_000, 4_000, 2_000, 120
LAYERS = ("features.1", "features.3")
SCENES, SCENE_EPOCHS = 2_000, 8
ASKED = {"context": ("sea", "road", "fish"), "colour": ("red", "green", "mushroom")}
"""Two values of each factor of the scenes, and the class whose probability is measured."""


def measure(seeds: int, parts: list[str]) -> dict[str, Any]:
    """Measure the requested tables, JSON-ready."""
    tables = {"bars": _bars_table, "scenes": _scenes_table}
    return {"seeds": seeds} | {part: tables[part](seeds) for part in parts}


def _bars_table(seeds: int) -> dict[str, Any]:
    rows = {f"{h}-{v}": [_bars(h, v, seed) for seed in range(seeds)] for h, v in tqdm(SHARES, unit="row")}
    return {name: _over_seeds(row) | best_observer(*map(int, name.split("-"))) for name, row in rows.items()}


def _scenes_table(seeds: int) -> dict[str, Any]:
    rows = {factor: [_scenes(factor, seed) for seed in range(seeds)] for factor in tqdm(ASKED, unit="factor")}
    told = {factor: dict(zip(("value", "against", "class"), asked, strict=True)) for factor, asked in ASKED.items()}
    return {factor: _over_seeds(row) | told[factor] for factor, row in rows.items()}


def _bars(red_horizontal: int, red_vertical: int, seed: int) -> dict[str, float]:
    generator, shares = torch.Generator().manual_seed(seed), (red_horizontal, red_vertical)
    known = _open_bars(*shares, TRAINING, 2 * seed)
    network = train(known[0], known[1][:, 1], generator=generator)
    classifier = Classifier(network, transforms, CATEGORIES, name="bars")
    unseen = bars.load(red_horizontal=red_horizontal, red_vertical=red_vertical, size=TESTED, seed=2 * seed + 1)
    images, conditions = _read(unseen), _conditions(unseen, ("colour", "orientation"))
    red, green = (_read(unseen, "colour", value) for value in COLOURS)
    vae = fit_vae(known[0][:DRAWN], known[1][:DRAWN], (2, 2), generator=generator)
    asked = (classifier, vae)
    effects = {
        "causal": compute_causal_effect(*map(classifier.probabilities, (red, green))),
        "decoded": compute_decoded_effect(*asked, conditions, 0, (0, 1), generator=generator),
        "reencoded": compute_reencoded_effect(*asked, images, conditions, 0, (0, 1), generator=generator),
        "observed": compute_observed_effect(classifier.probabilities(images), conditions[:, 0] == 0),
    }
    horizontal = images[conditions[:, 1] == 0]
    tests = tcav(
        classifier,
        list(LAYERS),
        red[:EACH],
        green[EACH : 3 * EACH],
        horizontal[:EACH],
        0,
        concepts=9,
        generator=generator,
    )
    return {
        **{name: float(effect.value[0]) for name, effect in effects.items()},
        **{f"tcav {one.layer}": one.score for one in tests},
        "agreement": agreement(*asked, images, conditions, generator=generator),
    }


def _open_bars(red_horizontal: int, red_vertical: int, size: int, seed: int) -> tuple[Tensor, Tensor]:
    images = bars.load(red_horizontal=red_horizontal, red_vertical=red_vertical, size=size, seed=seed)
    return _read(images), _conditions(images, ("colour", "orientation"))


def _read(images: ImageSet, factor: str = "", value: str = "") -> Tensor:
    """Read the images (N, 3, 24, 24), unchanged or under an intervention."""
    do = images.factors[factor].do if factor else lambda i, _: images.open(i)
    return torch.stack([transforms(do(i, value)) for i in range(len(images))])


def _conditions(images: ImageSet, factors: tuple[str, ...]) -> Tensor:
    columns = [
        [images.factors[name].values.index(known) for known in images.factors[name].known or ()] for name in factors
    ]
    return torch.tensor(columns).T


def _scenes(factor: str, seed: int) -> dict[str, float]:
    """Measure the effect of one factor of the scenes on a class, without confounding, and its estimates."""
    classifier = open_classifier("scenes", Path.cwd(), "cpu")
    one, other, category = ASKED[factor]
    images, target = scenes.load(split="standard", size=SCENES, seed=seed), classifier.categories.index(category)
    values, generator = images.factors[factor].values, torch.Generator().manual_seed(seed)
    drawn = torch.randint(len(values), (SCENES,), generator=generator)
    read = torch.stack([classifier.preprocess(images.factors[factor].do(i, values[k])) for i, k in enumerate(drawn)])
    conditions = torch.stack([drawn, torch.from_numpy(images.labels)], 1)
    sizes, asked = (len(values), len(images.categories)), (values.index(one), values.index(other))
    vae = fit_vae(read, conditions, sizes, epochs=SCENE_EPOCHS, latent=32, generator=generator)
    both = [
        torch.stack([classifier.preprocess(images.factors[factor].do(i, value)) for i in range(EACH * 4)])
        for value in (one, other)
    ]
    effects = {
        "causal": compute_causal_effect(*map(classifier.probabilities, both)),
        "decoded": compute_decoded_effect(classifier, vae, conditions, 0, asked, generator=generator),
        "reencoded": compute_reencoded_effect(classifier, vae, read, conditions, 0, asked, generator=generator),
        "observed": compute_observed_effect(*_subset(classifier, read, drawn, asked)),
    }
    same = agreement(classifier, vae, read, conditions, generator=generator)
    return {name: float(effect.value[target]) for name, effect in effects.items()} | {"agreement": same}


def _subset(classifier: Classifier, read: Tensor, drawn: Tensor, asked: tuple[int, int]) -> tuple[Tensor, Tensor]:
    rows = (drawn == asked[0]) | (drawn == asked[1])
    return classifier.probabilities(read[rows]), drawn[rows] == asked[0]


def _over_seeds(rows: list[dict[str, float]]) -> dict[str, Any]:
    """Compute mean and standard error of each number."""
    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return {
        name: {"mean": round(float(v.mean()), 4), "error": round(float(v.std(ddof=1) / len(v) ** 0.5), 4)}
        for name, v in columns.items()
    }


def main() -> None:
    parser = arguments("concepts")
    parser.add_argument("--seeds", type=int, default=5, help="data, networks and VAEs, 2 or more")
    parser.add_argument("--parts", default="bars,scenes", help="comma-separated")
    given = parser.parse_args()
    hand_over("concepts", given, lambda: measure(given.seeds, given.parts.split(",")))


if __name__ == "__main__":
    main()
