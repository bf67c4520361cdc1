"""Examples with the most helpful influence on the network's prediction: data attribution in the last layer."""

from __future__ import annotations

import torch
from torch import Tensor

from core.teaching.kfac import KroneckerPrior, with_bias
from core.teaching.policies.policy import ChosenExamples, Policy, TeachingQuery

ENTRIES = 2**22
"""Entries of the largest matrix made at once: 32 MB in float64."""


def compute_influence(prior: KroneckerPrior, features: Tensor, labels: Tensor, image: Tensor, target: int) -> Tensor:
    """Compute how much each image z of a pool raises the target's logit f for one image x, (N,) float64.

    With one more copy of z in the training data of the last layer, f(x) changes, to first order, by
    -grad f(x)^T H^-1 grad L(z): the negative of the derivative of Koh & Liang 2017, eq. 2, with f in place of the
    test loss. Positive: z argues for the target. For a linear layer grad L(z) = (p(z) - e_y) z^T and
    grad f(x) = e_c x^T, and with the Kronecker factors H = V (x) U of `KroneckerPrior` the sum is a product of two,

        -(e_c^T V^+ (p(z) - e_y)) (x^T U^-1 z),

    so that neither H nor its inverse is formed. f is the logit minus the mean of all logits where tau = 0: softmax
    does not determine a constant common to all.

    Parameters
    ----------
    features
        Of the pool (N, M).
    labels
        The class y (N,) with which each image would be trained.
    image
        The features (M,) of x.
    target
        The class c.

    References
    ----------
    Koh & Liang 2017, Understanding black-box predictions via influence functions, arXiv:1703.04730.
    """
    along_features = prior.feature_covariance @ with_bias(image[None])[0]
    along_classes = prior.class_covariance[target]
    size = max(1, ENTRIES // max(prior.head.shape))
    parts = []
    for z, y in zip(torch.split(features, size), torch.split(labels, size), strict=True):
        rows = with_bias(z)
        p = (rows @ prior.head.T).softmax(1)
        # The sum of p_k (v_k - v_y), which is the product above without its cancellation where p_y is almost 1.
        residual = (p * (along_classes - along_classes[y, None])).sum(1)
        parts.append(-residual * (rows @ along_features))
    return torch.cat(parts)


def choose_influential(query: TeachingQuery) -> ChosenExamples:
    """Take the images of each category that most raise the prediction's logit when weighted up (arXiv:1703.04730).

    Influences add up to first order, so this is the set with the largest sum. Augmented copies of an image share its
    weight: its influence is their mean.
    """
    copies = query.copies
    labels = query.labels.repeat_interleave(copies.shape[1])
    influence = compute_influence(query.prior, copies.flatten(0, 1), labels, query.image, query.classes[0])
    return ChosenExamples(query.take_highest(influence.view(copies.shape[:2]).mean(1)))


INFLUENCE = Policy(choose_influential, "the two images of each category that most raise the prediction's logit")
