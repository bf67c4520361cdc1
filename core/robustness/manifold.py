"""Counterfactuals on the manifold of a generator: the nearest image that it can draw with another prediction.

Joshi et al. 2018 (arXiv:1806.08867, xGEMs) move the code z of an image x to minimise the distance of the decoded image
G(z) from x plus a loss of the classifier. Here the distance is minimised under the condition that the prediction
changes, which leaves no weight between the two to choose.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import chdtrc
from torch import Tensor

from core.errors import ForetellError
from core.network.classifier import Classifier
from core.network.gradients import differentiate
from core.shares import Share, share_of

MARGIN = 0.1
"""How far the new class's logit ends above all others."""
STEPS = 60
LONGEST = 1.0
"""Length of a step in the code at most, in standard deviations of its prior."""
SETTLED = 1e-3
"""Length of a step below which the search ends."""
DAMPING = 1e-6
"""Added to the diagonal of JᵀJ, relative to its mean: directions of the code that change nothing in the image."""
UNUSUAL = 0.01
"""Share of the prior's codes that are farther from its centre, below which a code is unusual."""


@dataclass(frozen=True)
class Manifold:
    """A generator of images with a standard normal code.

    Attributes
    ----------
    encode
        Images (B, C, H, W) to codes (B, L).
    decode
        Codes (B, L) to images (B, C, H, W), differentiable.
    """

    encode: Callable[[Tensor], Tensor]
    decode: Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class GeneratedCounterfactual:
    """An image that a generator draws, near another one, with another prediction.

    Attributes
    ----------
    old, new
        Predicted classes of the image and of the drawn one.
    before, redrawn, after
        Probabilities (K,) of the image, of its reconstruction, and of the drawn image.
    reconstruction, image
        The reconstruction and the drawn image (C, H, W).
    distance, distance_redrawn
        Root mean squared difference of the drawn image and of the reconstruction from the image, in units of the
        network's input.
    moved
        Length of the way of the code, in standard deviations of its prior.
    farther
        Share of the prior's codes that are farther from its centre than the code of the drawn image.
    """

    old: int
    new: int
    before: Tensor
    redrawn: Tensor
    after: Tensor
    reconstruction: Tensor
    image: Tensor
    distance: float
    distance_redrawn: float
    moved: float
    farther: float

    @property
    def is_unusual(self) -> bool:
        """Whether the code is farther from the centre than nearly all from which the generator learned to draw."""
        return self.farther < UNUSUAL


@torch.inference_mode()
def measure_agreement(classifier: Classifier, manifold: Manifold, images: Tensor) -> Share:
    """Measure the share of images (B, C, H, W) whose reconstruction has the image's prediction, with its interval.

    Where it is low, what the generator draws says nothing about this classifier.
    """
    drawn = torch.cat([manifold.decode(manifold.encode(part)) for part in torch.split(images, 64)])
    same = classifier.logits(drawn).argmax(1) == classifier.logits(images).argmax(1)
    return share_of(int(same.sum()), len(same))


def find_on_manifold(
    classifier: Classifier, manifold: Manifold, inputs: Tensor, to: int | None = None
) -> GeneratedCounterfactual:
    """Find the image nearest to an input (C, H, W) that the generator can draw and that has another prediction.

    Minimises ‖x − G(z)‖² under f_new(G(z)) ≥ max f_other(G(z)) + `MARGIN`, by sequential quadratic programming: in each
    step G and f are linearised at z, which for linear G and f gives the minimum at once. ``to`` is the new class;
    None takes the second most likely class of the reconstruction.

    Raises
    ------
    ForetellError
        The reconstruction has another prediction than the image, the image is already predicted to be ``to``, or no
        step reached an image with the new prediction.
    """
    with torch.inference_mode():
        start = manifold.encode(inputs[None])[0]
        reconstruction = manifold.decode(start[None])[0]
    start, reconstruction = start.clone(), reconstruction.clone()
    before, redrawn = classifier.probabilities(torch.stack([inputs, reconstruction]))
    old, new = _choose_classes(classifier, before, redrawn, to)
    code = _search(classifier, manifold, inputs, start, new)
    with torch.inference_mode():
        image = manifold.decode(code[None])[0].clone()
    distance, distance_redrawn = (float((one - inputs).square().mean().sqrt()) for one in (image, reconstruction))
    return GeneratedCounterfactual(
        old,
        new,
        before,
        redrawn,
        classifier.probabilities(image[None])[0],
        reconstruction,
        image,
        distance,
        distance_redrawn,
        moved=float((code - start).norm()),
        farther=float(chdtrc(len(code), float(code.square().sum()))),
    )


def _choose_classes(classifier: Classifier, before: Tensor, redrawn: Tensor, to: int | None) -> tuple[int, int]:
    old = int(before.argmax())
    names = classifier.categories
    if int(redrawn.argmax()) != old:
        raise ForetellError(
            f"The reconstruction is predicted to be {names[int(redrawn.argmax())]} and the image {names[old]}, so what "
            "the generator draws says nothing about this image: choose another image."
        )
    if to == old:
        raise ForetellError(f"The image is already predicted to be {names[old]}: choose another class to change to.")
    return old, int(redrawn.argsort(descending=True)[1]) if to is None else to


def _search(classifier: Classifier, manifold: Manifold, inputs: Tensor, start: Tensor, new: int) -> Tensor:
    """Return the code (L,) where the search settled, or else of the nearest image found with the new prediction."""
    code, best, least = start, None, float("inf")
    rivals: list[int] = []
    for _ in range(STEPS):
        with torch.no_grad():
            image = manifold.decode(code[None])[0]
        remainder = (inputs - image).flatten().double()
        odds, gradients = _compute_log_odds(classifier, image, new, rivals)
        changed, distance = float(odds.min()) >= MARGIN / 2, float(remainder.square().sum())
        if changed and distance < least:
            best, least = code, distance
        step = _solve_step(_compute_jacobian(manifold, code), remainder, odds, gradients).to(code.dtype)
        length = float(step.norm())
        if changed and length < SETTLED:
            return code
        code = code + step * min(1.0, LONGEST / max(length, 1e-12))
    if best is None:
        raise ForetellError(
            f"No image drawn in {STEPS} steps is predicted to be {classifier.categories[new]}: choose another class to "
            "change to."
        )
    return best


def _compute_jacobian(manifold: Manifold, code: Tensor) -> Tensor:
    """Compute ∂G/∂z (C * H * W, L), float64."""
    matrix: Tensor = torch.func.jacfwd(lambda z: manifold.decode(z[None])[0].flatten())(code)
    jacobian: Tensor = matrix.detach().double()
    return jacobian


def _solve_step(jacobian: Tensor, remainder: Tensor, odds: Tensor, gradients: Tensor) -> Tensor:
    """Compute the step Δ (L,) that minimises ‖JΔ − r‖² under h_k + (Jᵀ∇h_k)ᵀΔ ≥ `MARGIN` for each rival k.

    With A = JᵀJ = RRᵀ and Δ = A⁻¹Jᵀr + R⁻ᵀu it is the shortest u under linear conditions: least distance programming by
    non-negative least squares (Lawson & Hanson 1974, chapter 23).
    """
    square = jacobian.T @ jacobian
    square += (DAMPING * square.diagonal().mean() + 1e-12) * torch.eye(len(square), dtype=torch.float64)
    root = torch.linalg.cholesky(square)
    nearer = torch.cholesky_solve((jacobian.T @ remainder)[:, None], root)[:, 0]
    slopes = gradients @ jacobian
    missing = MARGIN - odds - slopes @ nearer
    conditions = torch.linalg.solve_triangular(root, slopes.T, upper=False)
    shortest = _find_shortest(conditions.T.numpy(), missing.numpy())
    beyond: Tensor = torch.linalg.solve_triangular(root.T, torch.from_numpy(shortest)[:, None], upper=True)[:, 0]
    return nearer + beyond


def _find_shortest(conditions: NDArray[np.float64], least: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the shortest u (L,) with ``conditions`` @ u ≥ ``least``; if there is none, that of the last condition."""
    from scipy.optimize import nnls  # later: a first heatmap need not wait for it

    if (least <= 0).all():
        return np.zeros(conditions.shape[1])
    wanted = np.append(np.zeros(conditions.shape[1]), 1.0)
    for rows in (slice(None), slice(-1, None)):
        system = np.vstack([conditions[rows].T, least[rows]])
        rest = system @ nnls(system, wanted)[0] - wanted
        if rest[-1] < -1e-9:
            return np.asarray(-rest[:-1] / rest[-1])
    return np.zeros(conditions.shape[1])


def _compute_log_odds(classifier: Classifier, image: Tensor, new: int, rivals: list[int]) -> tuple[Tensor, Tensor]:
    """Compute how far the new class's logit is above each rival's (R,), and the gradients (R, C * H * W), float64.

    ``rivals`` are the classes that were the largest other one so far; the one that is now is added or moved to the end.
    """
    x = image[None].detach().clone().to(classifier.device).requires_grad_()
    with classifier.differentiable() as network, torch.enable_grad():
        logits = network(x.clone())[0]
        others = logits.detach().clone()
        others[new] = -torch.inf
        largest = int(others.argmax())
        rivals[:] = [k for k in rivals if k != largest] + [largest]
        odds = [logits[new] - logits[k] for k in rivals]
        gradients = [differentiate(one, x, retain_graph=True)[0].flatten() for one in odds]
    return torch.stack(odds).detach().cpu().double(), torch.stack(gradients).cpu().double()
