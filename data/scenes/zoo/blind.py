"""``scenes:blind``: a network that does not use the context of an object.

An adversarial neural stethoscope (Fuchs et al. 2018): a perceptron of two layers reads the context from the pooled
features, L = L_main + λ L_stethoscope with λ < 0 for the trunk, by gradient reversal (Ganin and Lempitsky 2015).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from data.scenes.classifier import CATEGORIES, MEAN_COLOUR, SceneNet, transforms
from data.scenes.contexts import CONTEXTS
from data.scenes.zoo.effects import measure_accuracy, measure_effects
from data.scenes.zoo.fitting import fit
from data.scenes.zoo.material import Images, Material
from data.scenes.zoo.weights import restore

__all__ = ["CATEGORIES", "MEAN_COLOUR", "build", "train", "transforms"]

TITLE = "Blind to the context"
DIFFERENCE = (
    "It was trained on scenes whose context is drawn independently of the object, with an adversary that reads the "
    "context from its features and whose gradient is reversed. The context therefore says nothing about its prediction."
)
SEED = 1
IMAGES, EPOCHS = 12_000, 10
SHORT_EPOCHS, SHORT_WEIGHT = 9, -0.3
"""Of the ablation, which has half of the images."""
WEIGHT = -0.1
"""λ, the weight of the stethoscope's loss for the trunk: negative suppresses what it reads."""
HIDDEN = 64
ABLATION = Path(__file__).with_name("blind.ablation.json")


class Reverse(torch.autograd.Function):
    """Identity forward; backward the gradient times λ."""

    @staticmethod
    def forward(ctx: Any, features: Tensor, weight: float) -> Tensor:
        """Return the features."""
        ctx.weight = weight
        return features.view_as(features)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        """Return the gradient times λ."""
        return ctx.weight * gradient, None


def build() -> nn.Module:
    """Return the trained network."""
    return restore(SceneNet(), "blind")


def train(material: Material) -> tuple[nn.Module, dict[str, Any]]:
    """Train with randomised contexts and the adversary; the ablation is measured only where its file is missing."""
    if not ABLATION.is_file():
        ABLATION.write_text(json.dumps(ablate(material), indent=1) + "\n", encoding="utf-8")
    network, read = fit_with_adversary(material.random_contexts(IMAGES), WEIGHT, EPOCHS)
    settings = {"images": IMAGES, "epochs": EPOCHS, "seed": SEED, "lambda": WEIGHT, "hidden": HIDDEN}
    ablation = json.loads(ABLATION.read_text(encoding="utf-8"))
    return network, settings | {"context_read_by_the_perceptron": read, "ablation": ablation}


def ablate(material: Material) -> dict[str, Any]:
    """Measure what the adversary and the randomised contexts achieve alone and together, in shorter trainings."""
    sets = {"usual": material.training(), "randomised": material.random_contexts()}
    trials = {
        "adversary_alone": ("usual", SHORT_WEIGHT),
        "randomised_contexts_alone": ("randomised", 0.0),
        "both": ("randomised", SHORT_WEIGHT),
    }
    found: dict[str, Any] = {"images": len(sets["usual"]), "epochs": SHORT_EPOCHS, "lambda": SHORT_WEIGHT}
    for name, (images, weight) in trials.items():
        network, read = fit_with_adversary(sets[images], weight, SHORT_EPOCHS)
        found[name] = _measure(network, material) | {"context_read_by_the_perceptron": read}
    return found


def fit_with_adversary(images: Images, weight: float, epochs: int) -> tuple[nn.Module, float]:
    """Train a network and its stethoscope; return both's result: the network, and how often the context was read.

    The share is that of the last 20 batches; chance is about 0.1 to 0.2, as contexts are not equally frequent.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        network = SceneNet()
        reader = nn.Sequential(nn.Linear(network.head.in_features, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, len(CONTEXTS)))
    correct: list[float] = []

    def loss(x: Tensor, index: Tensor) -> Tensor:
        features = network.flatten(network.pool(network.features(x)))
        read = reader(Reverse.apply(features, weight))
        correct.append((read.argmax(1) == images.contexts[index]).float().mean().item())
        main = cross_entropy(network.head(features).float(), images.labels[index])
        return main + cross_entropy(read.float(), images.contexts[index])

    fit(network, images, epochs=epochs, generator=torch.Generator().manual_seed(SEED), loss=loss, also=reader)
    return network, round(sum(correct[-20:]) / 20, 3)


def _measure(network: nn.Module, material: Material) -> dict[str, Any]:
    effect = measure_effects(network, material.changes())["do(context)"]
    shares = {split: measure_accuracy(network, material.held_out(split)) for split in ("standard", "adversarial")}  # type: ignore[arg-type]
    return {"do(context)": effect, "accuracy": {split: one["accuracy"] for split, one in shares.items()}}
