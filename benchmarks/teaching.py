"""Teaching at the paper's scale: teaching sets scored per second against the paper's recipe, and the total cost.

``python -m benchmarks.teaching``. The recipe fits a two-class logistic regression with the prior of `KroneckerPrior` on
four examples by L-BFGS over all 2 m weights, inverts the full 2 m x 2 m Hessian, and integrates. Both compute the same
Laplace approximation, so their probabilities must agree; before they are compared, the recipe's optimum is polished by
Newton steps, which its time does not contain. Each part of a build is measured in a process of its own, with the rise
of its memory; the total cost is projected from them. Weights and features are random, which suffices
for time and memory.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.machine import report
from benchmarks.weightspace import WeightSpace
from core import loading
from core.attribution import METHODS
from core.network.classifier import Classifier
from core.network.device import default_device
from core.teaching.examples import choose_examples
from core.teaching.kfac import KroneckerPrior, Moments, fit_prior, with_bias
from core.teaching.scoring import score_sets

FEATURES, CLASSES = 2048, 1000
POOL = 3000
SETS, RECIPE_SETS = 50_000, 3
PAIR, WEIGHT = (0, 1), 128.0
CHILD = "--one"

TRIALS, IMAGES, MASKS = 90, 5, 1000
POOL_IMAGES, ADVERSARIAL_IMAGES, TRAINING_IMAGES = 50_000, 7_500, 1_281_167
SHOWN = 64
"""Images and masks shown to the network to measure its speed."""


def measure() -> dict[str, Any]:
    """Measure the recipe, the parts and the projection."""
    parts = {}
    for name in PARTS:
        command = [sys.executable, "-m", "benchmarks.teaching", CHILD, name, str(torch.get_num_threads())]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
        parts[name] = json.loads(done.stdout.splitlines()[-1])
    return {"scoring": _against_the_recipe(), "parts": parts, "projected": _project(parts)}


def _world(classes: int = 10) -> tuple[KroneckerPrior, Tensor, Tensor]:
    """Make a prior at m = 2049, features of a pool, and those of a target image."""
    generator = torch.Generator().manual_seed(7)
    features = torch.rand(POOL, FEATURES, generator=generator)
    head = torch.randn(classes, FEATURES + 1, generator=generator).double() / FEATURES**0.5
    prior = fit_prior(head, features.split(500), damping=0.01)
    return prior, features, torch.rand(FEATURES, generator=generator)


def _against_the_recipe() -> dict[str, Any]:
    prior, features, image = _world()
    generator = torch.Generator().manual_seed(8)
    sets = torch.stack([torch.randperm(100, generator=generator)[:4] for _ in range(SETS)])
    score_sets(prior, features, sets[:256], image, PAIR, weight=WEIGHT)  # warm up
    start = time.perf_counter()
    ours = score_sets(prior, features, sets, image, PAIR, weight=WEIGHT)
    seconds = time.perf_counter() - start
    recipe, at = WeightSpace(prior, PAIR, WEIGHT), with_bias(image[None])[0].numpy()
    timed = [recipe.score(with_bias(features[four]).numpy(), at) for four in sets[:RECIPE_SETS]]
    per_set = statistics.median(second for _, second in timed)
    return {
        "features_with_bias": FEATURES + 1,
        "function_space_sets_per_second": round(SETS / seconds),
        "weight_space_sets_per_second": round(1 / per_set, 4),
        "ratio": round(SETS / seconds * per_set),
        "sets_scored": [SETS, RECIPE_SETS],
        "probabilities_span": [round(float(ours.min()), 4), round(float(ours.max()), 4)],
        "largest_difference_of_probabilities": max(abs(p - float(ours[i])) for i, (p, _) in enumerate(timed)),
    }


def _resnet50() -> Classifier:
    network = loading.import_torchvision().models.resnet50(weights=None)
    classifier = Classifier(network, loading.imagenet_transforms, name="resnet50", device=default_device())
    warm = torch.zeros(2, *classifier.input_shape)
    classifier.logits(warm)
    classifier.features(warm)
    return classifier


def _prior_sums() -> Callable[[], object]:
    generator = torch.Generator().manual_seed(1)
    moments = Moments(torch.randn(CLASSES, FEATURES + 1, generator=generator).double() / FEATURES**0.5)
    features = torch.rand(SHOWN, FEATURES, generator=generator)
    return lambda: moments.add(features)


def _prior_inverse() -> Callable[[], object]:
    generator = torch.Generator().manual_seed(1)
    moments = Moments(torch.randn(CLASSES, FEATURES + 1, generator=generator).double() / FEATURES**0.5)
    moments.add(torch.rand(POOL, FEATURES, generator=generator))
    return lambda: moments.prior(damping=0.01)


def _prepare_choice(sets: int | None) -> Callable[[], object]:
    prior, features, image = _world()
    targets, alternatives = torch.arange(50), torch.arange(50, 100)

    def choose() -> object:
        generator = torch.Generator().manual_seed(0)
        more = {"generator": generator, "policy": "best", "sets": sets, "weight": WEIGHT}
        return choose_examples(prior, features, targets, alternatives, image, PAIR, **more)

    return choose


def _prepare_predictions(features: bool) -> Callable[[], object]:
    classifier = _resnet50()
    images = torch.randn(SHOWN, *classifier.input_shape, generator=torch.Generator().manual_seed(1))
    return lambda: classifier.features(images) if features else classifier.logits(images)


def _prepare_heatmap() -> Callable[[], object]:
    classifier = _resnet50()
    image = torch.randn(1, *classifier.input_shape, generator=torch.Generator().manual_seed(1))
    return lambda: METHODS["bayesian_teaching"](classifier, image, [0], samples=SHOWN)


PARTS: dict[str, Callable[[], Callable[[], object]]] = {
    "sums of the prior, 64 images": _prior_sums,
    "inverse of the prior": _prior_inverse,
    "best of 200 sets, 50 + 50 images": lambda: _prepare_choice(200),
    "best of all 1,500,625 sets, 50 + 50 images": lambda: _prepare_choice(None),
    "predictions of 64 images": lambda: _prepare_predictions(features=False),
    "predictions by features of 64 images": lambda: _prepare_predictions(features=True),
    "64 masks of a heatmap": _prepare_heatmap,
}


def _project(parts: dict[str, Any]) -> dict[str, Any]:
    """Project the hours of the paper's build on this machine, by part: one process, without decoding."""
    seconds = {name: part["seconds"] for name, part in parts.items()}
    inverse, score = seconds["inverse of the prior"], seconds["best of 200 sets, 50 + 50 images"]
    pool = POOL_IMAGES / SHOWN
    hours = {
        "predictions of 50,000 images, with features": pool * seconds["predictions by features of 64 images"],
        "predictions of 7,500 adversarial images": ADVERSARIAL_IMAGES / SHOWN * seconds["predictions of 64 images"],
        "prior of the pool": pool * seconds["sums of the prior, 64 images"] + inverse,
        "200 sets for each of 90 trials": TRIALS * score,
        "450 heatmaps of 1,000 masks": TRIALS * IMAGES * MASKS / SHOWN * seconds["64 masks of a heatmap"],
    }
    features = seconds["predictions by features of 64 images"]
    whole = TRAINING_IMAGES / SHOWN * (features + seconds["sums of the prior, 64 images"]) + inverse
    rounded = {name: round(value / 3600, 3) for name, value in hours.items()}
    return {
        "hours": rounded,
        "hours in all": round(sum(hours.values()) / 3600, 2),
        "hours of a prior over the training set instead": round(whole / 3600, 2),
        "device": str(default_device()),
    }


def _one(name: str) -> None:
    """Measure, in a separate process, the median seconds of a part and the rise of its peak in MiB."""
    run = PARTS[name]()
    before = _peak_mib()
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
        if sum(seconds) > 20:
            break
    rise = round(_peak_mib() - before)
    print(
        json.dumps({"seconds": round(statistics.median(seconds), 4), "rise_mib": rise, "peak_mib": round(_peak_mib())})
    )


def _peak_mib() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10


if __name__ == "__main__":
    if sys.argv[1:2] == [CHILD]:
        torch.set_num_threads(int(sys.argv[3]))
        _one(sys.argv[2])
    else:
        report(Path(__file__).stem, measure)
