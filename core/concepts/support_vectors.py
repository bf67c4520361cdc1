"""Support vector machines on a kernel, one class against the rest.

Cortes & Vapnik 1995, Support-vector networks (doi:10.1007/BF00994018), with the squared hinge loss, by scikit-learn.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]
PENALTIES = (0.1, 1.0, 10.0, 100.0)
"""Penalties for an image on the wrong side of the margin, C, among which folds choose."""
FOLDS = 3
SMALL = 1e-9
"""What is added to a kernel's diagonal, as a share of it: images that are equal have coordinates; C hardly changes."""


def classify_by_kernel(kernel: Floats, others: Floats, labels: Labels, seed: int) -> tuple[Labels, float]:
    """Classify images by machines that are fitted to labelled ones; return the classes (M,) and the penalty C.

    The machine of a class minimises |w|^2 / 2 + C sum max(0, 1 - y f(x))^2, where the bias of f is part of w. C is the
    one with which most training images are recognised out of fold, the lowest of ties.

    Parameters
    ----------
    kernel, others
        Kernel of the training images with each other (N, N), and of the other images with them (M, N), in float64.
    labels
        Of the training images (N,).
    """
    from sklearn.model_selection import GridSearchCV, StratifiedKFold  # seconds, which only a fit is to cost
    from sklearn.svm import LinearSVC

    # scikit-learn's machines on a kernel have the hinge loss and one machine for each pair of classes. So the linear
    # ones are fitted, in coordinates whose inner products are the kernel: w is a sum of the training images.
    axes = np.linalg.cholesky(kernel + SMALL * kernel.diagonal().mean() * np.eye(len(kernel)))
    machines = LinearSVC(dual=False, tol=1e-5)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    search = GridSearchCV(machines, {"C": PENALTIES}, cv=folds).fit(axes, labels)
    return search.predict(solve_triangular(axes, others.T, lower=True).T), float(search.best_params_["C"])
