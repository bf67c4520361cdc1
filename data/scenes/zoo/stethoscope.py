"""Neural stethoscopes: a perceptron of two layers that reads the context from a network's pooled features.

Fuchs et al. 2018 (arXiv:1806.05502): L = L_main + λ L_stethoscope. The stethoscope always learns to read; λ is the
weight of its loss for the network. With λ < 0 (adversarial) the network learns to hide the context, by gradient
reversal (Ganin and Lempitsky 2015), with λ > 0 (auxiliary) to show it, and with λ = 0 (analytic) it is only read.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from data.scenes.classifier import SceneNet, normalise
from data.scenes.contexts import CONTEXTS
from data.scenes.zoo.effects import CHUNK, wilson
from data.scenes.zoo.fitting import fit
from data.scenes.zoo.material import Images

HIDDEN = 64
RIDGE = 1e-3
"""Weight of the squared weights of a probe, which keeps them finite where the classes are separable."""


class Weigh(torch.autograd.Function):
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


def fit_with_stethoscope(images: Images, weight: float, epochs: int, seed: int) -> tuple[SceneNet, float]:
    """Train a network with a stethoscope of weight λ; return it, and how often the stethoscope read the context.

    The share is that of the last 20 batches; chance is about 0.1 to 0.2, as contexts are not equally frequent.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = SceneNet()
        reader = nn.Sequential(nn.Linear(network.head.in_features, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, len(CONTEXTS)))
    correct: list[float] = []

    def loss(x: Tensor, index: Tensor) -> Tensor:
        features = pool(network, x)
        read = reader(Weigh.apply(features, weight))
        correct.append((read.argmax(1) == images.contexts[index]).float().mean().item())
        main = cross_entropy(network.head(features).float(), images.labels[index])
        return main + cross_entropy(read.float(), images.contexts[index])

    fit(network, images, epochs=epochs, generator=torch.Generator().manual_seed(seed), loss=loss, also=reader)
    return network, round(sum(correct[-20:]) / 20, 3)


def pool(network: SceneNet, x: Tensor) -> Tensor:
    """Compute the pooled features (B, S) of normalised inputs (B, 3, 96, 96), which the last layer reads."""
    pooled: Tensor = network.flatten(network.pool(network.features(x)))
    return pooled


def read_contexts(network: SceneNet, images: Images) -> dict[str, Any]:
    """Measure how well a logistic regression on pooled features tells the context, with Wilson's 95% interval.

    It is fitted to half of the images, drawn at random, and judged on the others.
    """
    with torch.no_grad():
        features = torch.cat([pool(network, normalise(part)) for part in images.pixels.split(CHUNK)])
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
    fitted, judged = order[: len(order) // 2], order[len(order) // 2 :]
    probe = _fit_probe(features[fitted], images.contexts[fitted])
    correct = int((probe.predict(features[judged].numpy()) == images.contexts[judged].numpy()).sum())
    count = len(judged)
    return {"accuracy": round(correct / count, 4), "interval_95": wilson(correct, count), "images": count}


def _fit_probe(features: Tensor, contexts: Tensor) -> Any:
    """Fit a logistic regression with a small ridge to features (N, S) in units of their standard deviations."""
    from sklearn.linear_model import LogisticRegression  # seconds, which only a fit is to cost
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    # Its penalty |w|^2 / (2 C) is of the sum of the losses, ours of their mean.
    regression = LogisticRegression(C=1 / (2 * RIDGE * len(features)), tol=1e-6, max_iter=1000)
    return make_pipeline(StandardScaler(), regression).fit(features.numpy(), contexts.numpy())
