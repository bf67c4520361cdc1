"""Counterfactuals on a generator's manifold, against the closed form of linear generators and networks."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from torch import Tensor, nn

from core.errors import ForetellError
from core.network.classifier import Classifier
from core.robustness.manifold import MARGIN, Manifold, find_on_manifold, measure_agreement

SIDE, LATENT = 6, 4
SIZE = 3 * SIDE**2


def classifier_of(module: nn.Module) -> Classifier:
    def transforms(image) -> Tensor:
        return torch.from_numpy(np.array(image.resize((SIDE, SIDE)))).permute(2, 0, 1).float() / 255

    return Classifier(module, transforms, name="linear")


def linear(classes: int = 2, seed: int = 0) -> Classifier:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return classifier_of(nn.Sequential(nn.Flatten(), nn.Linear(SIZE, classes)))


def manifold_of(bend: float = 0.0, seed: int = 1) -> tuple[Manifold, Tensor, Tensor]:
    """G(z) = A z + b + bend · B z², and its least-squares encoder, exact for bend 0."""
    draws = torch.Generator().manual_seed(seed)
    a, curved = (torch.randn(SIZE, LATENT, generator=draws) for _ in range(2))
    b = torch.rand(SIZE, generator=draws)

    def encode(images: Tensor) -> Tensor:
        return torch.linalg.lstsq(a, (images.flatten(1) - b).T).solution.T

    def decode(z: Tensor) -> Tensor:
        return (z @ a.T + b + bend * z.square() @ curved.T).view(-1, 3, SIDE, SIDE)

    return Manifold(encode, decode), a, b


def weights(classifier: Classifier) -> tuple[Tensor, Tensor]:
    with classifier.exclusive() as module:
        layer = module[1]
        return layer.weight.detach().double(), layer.bias.detach().double()


def image_of(a: Tensor, b: Tensor) -> Tensor:
    """An image off the manifold: a drawn one and what no code can draw."""
    draws = torch.Generator().manual_seed(5)
    z, noise = torch.randn(LATENT, generator=draws), 0.1 * torch.randn(SIZE, generator=draws)
    return (a @ z + b + noise).view(3, SIDE, SIDE)


def test_a_linear_generator_and_network_give_the_closed_form() -> None:
    """Expected: min ‖x − Az − b‖ under w·(Az + b) + c ≥ m is z₀ + μ(AᵀA)⁻¹Aᵀw, z₀ least squares, μ by the condition.

    Catches a distance in the code in place of that of the images, one from the reconstruction, and another margin.
    """
    manifold, a, b = manifold_of()
    network, x = linear(), image_of(a, b)
    found = find_on_manifold(network, manifold, x)
    w, c = weights(network)
    sign = 1 if found.new == 1 else -1
    direction, offset = sign * (w[1] - w[0]), sign * (c[1] - c[0])
    a, b = a.double(), b.double()
    inverse = torch.linalg.inv(a.T @ a)
    start = inverse @ a.T @ (x.flatten().double() - b)
    odds = direction @ (a @ start + b) + offset
    assert odds < 0
    code = start + (MARGIN - odds) / (direction @ a @ inverse @ a.T @ direction) * inverse @ a.T @ direction
    torch.testing.assert_close(found.image.flatten().double(), a @ code + b, atol=2e-4, rtol=1e-4)
    torch.testing.assert_close(found.reconstruction.flatten().double(), a @ start + b, atol=2e-4, rtol=1e-4)
    assert found.moved == pytest.approx(float((code - start).norm()), rel=1e-3)
    assert found.distance == pytest.approx(float((a @ code + b - x.flatten()).square().mean().sqrt()), rel=1e-3)
    assert float((found.after[found.new] / found.after[found.old]).log()) == pytest.approx(MARGIN, abs=1e-3)
    assert (int(found.before.argmax()), int(found.after.argmax())) == (found.old, found.new)


def test_a_curved_generator_gives_the_minimum_of_another_solver() -> None:
    """Expected: scipy's SLSQP on the same problem, from many starts."""
    manifold, a, b = manifold_of(bend=0.4)
    network, x = linear(), image_of(a, b)
    found = find_on_manifold(network, manifold, x)
    w, c = weights(network)

    def image(z: np.ndarray) -> Tensor:
        return manifold.decode(torch.from_numpy(z)[None].float())[0].flatten().double()

    def gap(z: np.ndarray) -> float:
        logits = w @ image(z) + c
        return float(logits[found.new] - logits[found.old]) - MARGIN

    def distance(z: np.ndarray) -> float:
        return float((image(z) - x.flatten().double()).square().mean())

    draws = np.random.default_rng(0)
    starts = [manifold.encode(x[None])[0].double().numpy() + 0.3 * draws.normal(size=LATENT) for _ in range(4)]
    condition = {"type": "ineq", "fun": gap}
    solved = [minimize(distance, z, constraints=condition, method="SLSQP", options={"eps": 1e-3}) for z in starts]
    least = min(one.fun for one in solved if one.success)
    assert found.distance**2 == pytest.approx(least, rel=0.005)


def test_the_new_class_is_the_one_asked_for_and_is_above_all_others() -> None:
    """Expected: scipy's SLSQP with a condition for each class. Catches one above the old class and below a third."""
    manifold, a, b = manifold_of()
    network, x = linear(classes=5), image_of(a, b)
    order = network.logits(manifold.decode(manifold.encode(x[None]))).argsort(1, descending=True)[0].tolist()
    old = int(network.logits(x[None]).argmax())
    assert order[0] == old
    assert find_on_manifold(network, manifold, x).new == order[1]
    w, c = weights(network)
    w, c = (w @ a.double()).numpy(), (w @ b.double() + c).numpy()
    for k in order[1:]:
        found = find_on_manifold(network, manifold, x, to=k)
        assert int(found.after.argmax()) == k == found.new
        solved = minimize(
            lambda z: float((a.double() @ torch.from_numpy(z) + b - x.flatten()).square().mean()),
            np.zeros(LATENT),
            constraints={"type": "ineq", "fun": lambda z, k=k: np.delete((w[k] - w) @ z + c[k] - c, k) - MARGIN},
            method="SLSQP",
        )
        assert solved.success
        assert found.distance**2 == pytest.approx(solved.fun, rel=1e-3)


def test_a_code_that_no_training_image_had_is_unusual() -> None:
    """Expected: the tail of χ² with L degrees of freedom at ‖z‖²; far from the boundary it is small."""
    manifold, a, b = manifold_of()
    network = linear()
    with network.exclusive() as module, torch.no_grad():
        module[1].weight.mul_(0.1)
        module[1].bias.copy_(torch.tensor([0.0, 1.0]))
    far = find_on_manifold(classifier_of(module), manifold, image_of(a, b))
    assert far.is_unusual
    near = find_on_manifold(linear(), manifold, image_of(a, b))
    code = manifold.encode(near.image[None])[0]
    from scipy.stats import chi2

    assert near.farther == pytest.approx(float(chi2.sf(float(code.square().sum()), LATENT)), abs=1e-3)


def test_the_agreement_counts_predictions_that_the_reconstruction_keeps() -> None:
    """Expected: counted one by one. Catches an agreement with labels, and one of codes."""
    manifold, a, b = manifold_of()
    draws = torch.Generator().manual_seed(9)
    images = torch.stack([image_of(a, b) for _ in range(70)]) + 2 * torch.randn(70, 3, SIDE, SIDE, generator=draws)
    network = linear(classes=4)
    kept = sum(
        int(network.logits(one[None]).argmax() == network.logits(manifold.decode(manifold.encode(one[None]))).argmax())
        for one in images
    )
    found = measure_agreement(network, manifold, images)
    assert 10 < kept < 70
    assert found.value == pytest.approx(kept / 70)
    assert found.low < found.value < found.high


def test_what_has_no_counterfactual_on_the_manifold_is_refused() -> None:
    """Catches a counterfactual of a reconstruction that is something else, and a search that ends elsewhere."""
    manifold, a, b = manifold_of()
    network, x = linear(), image_of(a, b)
    old = int(network.logits(x[None]).argmax())
    with pytest.raises(ForetellError, match=f"already predicted to be class {old}"):
        find_on_manifold(network, manifold, x, to=old)
    w, _ = weights(network)
    away = torch.linalg.lstsq(a.double(), (w[1] - w[0])).solution
    off = (w[1] - w[0]) - a.double() @ away
    other = x + (40 * (1 if old == 0 else -1) * off).view_as(x).float()
    with pytest.raises(ForetellError, match="The reconstruction is predicted to be class"):
        find_on_manifold(network, manifold, other)
    flat = Manifold(manifold.encode, lambda z: manifold.decode(0 * z + manifold.encode(x[None])))
    with pytest.raises(ForetellError, match=r"No image drawn in 60 steps is predicted to be class"):
        find_on_manifold(network, flat, x)
