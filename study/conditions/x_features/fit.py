"""The x-features of a class, fitted to the images of the pool and refused where they are not faithful."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from core.attribution.places.place import select_layer
from core.concepts.x_feature_measures import FAITHFUL, FEW, divide_images, measure_faithfulness
from core.concepts.x_features import XFeatures, XFeatureSettings, fit_x_features
from core.errors import ForetellError
from core.layers.layers import means_of
from core.network.classifier import Classifier
from core.network.decoding import read_batches
from data.types import ImageSet

SETTINGS = XFeatureSettings()
OTHERS = 400
"""Images of other classes, at most, that those of a class are compared with."""
REMEDY = "give a larger pool, choose other categories, or leave out the condition 'x_features'."


@dataclass(frozen=True)
class ReadPool:
    """What a network makes of a pool of M images.

    Attributes
    ----------
    layer
        The last layer that keeps places.
    embedding
        The means (M, S) of its channels.
    logits
        (M, K).
    """

    layer: str
    embedding: Tensor
    logits: Tensor


@dataclass(frozen=True)
class ClassFeatures:
    """The x-features of a class, and how large they usually are.

    Attributes
    ----------
    usual
        What each x-feature adds to the logit, mean over images of other classes (n,).
    reach
        What all of them add to the logit of images of the class, more than to that of others, in logits.
    """

    x_features: XFeatures
    usual: Tensor
    reach: float


def read_pool(classifier: Classifier, pool: ImageSet) -> ReadPool:
    """Read the layer and the logits of all images of a pool.

    Raises
    ------
    ForetellError
        The network has no layer that keeps places.
    """
    try:
        layer = select_layer(classifier, "")
    except ForetellError:
        raise ForetellError(
            f"The condition 'x_features' shows parts of the image, and {classifier.name} has no layer that keeps "
            "places and that everything passes through: choose another network, or leave the condition out."
        ) from None
    means, logits = [], []
    for batch in read_batches(classifier, pool.open, 0, len(pool)):
        means.append(means_of(classifier, batch, layer))
        logits.append(classifier.logits(batch))
    return ReadPool(layer, torch.cat(means), torch.cat(logits))


def fit_class(read: ReadPool, k: int, name: str, generator: torch.Generator) -> ClassFeatures:
    """Fit the x-features of class ``k`` to two thirds of the images, and judge them on the others.

    Raises
    ------
    ForetellError
        Fewer than 10 held-out images of the class, or x-features that explain less than 80% of the variance of its
        logit among them, or among all held-out images.
    """
    predicted = read.logits.argmax(1)
    own, others = (torch.nonzero(chosen)[:, 0] for chosen in (predicted == k, predicted != k))
    others = others[torch.randperm(len(others), generator=generator)[:OTHERS]]
    _check_count(len(own), len(others), len(predicted), name)
    rows = torch.cat([own, others]).sort().values
    embedding, logits = read.embedding[rows], read.logits[rows]
    is_own = predicted[rows] == k
    fitted, judged = divide_images(is_own, generator)
    x_features = fit_x_features(embedding[fitted], logits[fitted, k], SETTINGS, generator=generator)
    _check_faithfulness(x_features, embedding[judged], logits[judged], k, name)
    adds = x_features.encode(embedding) * x_features.weights
    usual = adds[~is_own].mean(0)
    return ClassFeatures(x_features, usual, float((adds[is_own].mean(0) - usual).sum()))


def _check_count(own: int, others: int, count: int, name: str) -> None:
    if round(own / 3) < FEW or round(others / 3) < FEW:
        raise ForetellError(
            f"The condition 'x_features' compares {3 * FEW} or more images of the pool that the AI calls {name} with "
            f"as many that it does not, a third of them held out, and of {count} it calls {own} so: {REMEDY}"
        )


def _check_faithfulness(x_features: XFeatures, embedding: Tensor, logits: Tensor, k: int, name: str) -> None:
    own = logits.argmax(1) == k
    every = torch.ones_like(own)
    held_out = f"{int(own.sum())} held-out images that the AI calls so"
    for chosen, which in ((own, held_out), (every, f"{len(own)} held-out images")):
        explained = measure_faithfulness(x_features.predict(embedding[chosen]), logits[chosen], k).explained
        if not explained >= FAITHFUL:
            share = 0.0 if math.isnan(explained) else max(explained, 0.0)
            raise ForetellError(
                f"The x-features of {name} explain {share:.0%} of the variance of its logit among {which}, less than "
                f"{FAITHFUL:.0%}, so that what participants would see is not what decides: {REMEDY}"
            )
