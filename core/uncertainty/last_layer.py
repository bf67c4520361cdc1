"""Draws of a network's prediction under the Laplace posterior of its last layer."""

from __future__ import annotations

import torch
from torch import Tensor

from core.errors import ForetellError
from core.network.classifier import Classifier
from core.teaching.kfac import KroneckerPrior, with_bias
from core.types import Progress, silent
from core.uncertainty.draws import Draws
from core.uncertainty.passes import Passes, prepare_passes


def laplace(
    classifier: Classifier,
    images: Tensor,
    *,
    passes: Passes = 100,
    generator: torch.Generator | None = None,
    progress: Progress = silent,
    prior: KroneckerPrior | None = None,
) -> Tensor:
    """Draw the last layer's weights from their Kronecker-factored Laplace posterior; keep all others fixed.

    Ritter et al. 2018. ``prior`` is `core.teaching.kfac.fit_prior` of a training set: what a learner of the network
    believes beforehand is what training has left open. An image's logits are W z + sqrt(z^T U^-1 z) V^(-1/2) e, e
    standard normal and the same for all images: drawn as they are and not by way of the weights. One forward pass.

    Raises
    ------
    ForetellError
        No prior, that of another network, or a network without a linear last layer.
    """
    inputs, seed = prepare_passes(classifier, images, passes, generator)
    if prior is None:
        raise ForetellError(
            "laplace draws from a posterior over weights: fit it with 'python foretell.py prior' and give --prior FILE."
        )
    if not torch.equal(prior.head, classifier.head):
        raise ForetellError(f"This posterior was not fitted to {classifier.name}: its last layer has other weights.")
    z = with_bias(classifier.features(inputs.cpu(), progress=progress))
    spread = ((z @ prior.feature_covariance) * z).sum(1).clamp(min=0).sqrt()
    values, vectors = torch.linalg.eigh(prior.class_covariance)
    root = vectors * values.clamp(min=0).sqrt()
    normal = torch.stack([*Draws(seed, range(passes)).draw_normal((len(root),))]).double()
    logits: Tensor = (z @ prior.head.T)[:, None] + spread[:, None, None] * (normal @ root.T)
    return logits.float()
