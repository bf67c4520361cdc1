"""Split one image set into the three of a study: example pool, standard and adversarial images."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from study.network.predictions import Predictions
from study.workspace.seeds import seed_of

Role = Literal["pool", "standard", "adversarial"]
ROLES: tuple[Role, ...] = ("pool", "standard", "adversarial")


def split_by_errors(predictions: Predictions, seed: int) -> dict[Role, NDArray[np.int64]]:
    """Split a set by its network's errors; return the indices of each role, ascending.

    Of the misclassified images of a category, the more confident half is adversarial, in the sense of Hendrycks et al.
    (2021): real images that a network gets wrong with high confidence. The other half is standard. Of the correctly
    classified images, a random half is the example pool and the other standard, so that the standard images keep about
    the accuracy of the whole set. Of an odd number, the pool gets one more correctly classified image, and the standard
    images one more misclassified image. Images of which the true class is no class of the network are left out.

    Parameters
    ----------
    predictions
        Of N images, in the order of the set.
    seed
        The study's random seed, which chooses the half of the correctly classified images.
    """
    roles: dict[Role, list[int]] = {role: [] for role in ROLES}
    for category in np.unique(predictions.truth[predictions.truth >= 0]).tolist():
        own = predictions.truth == category
        wrong = np.flatnonzero(own & ~predictions.correct)
        wrong = wrong[np.lexsort((wrong, -predictions.probability[wrong]))]
        right = np.flatnonzero(own & predictions.correct)
        right = np.random.default_rng(seed_of(seed, "split", category)).permutation(right)
        roles["adversarial"] += wrong[: len(wrong) // 2].tolist()
        half = (len(right) + 1) // 2
        roles["pool"] += right[:half].tolist()
        roles["standard"] += [*wrong[len(wrong) // 2 :].tolist(), *right[half:].tolist()]
    return {role: np.array(sorted(indices), dtype=np.int64) for role, indices in roles.items()}
