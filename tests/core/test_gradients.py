from __future__ import annotations

import pytest
import torch
from torch import nn

from core.attribution.baselines import baselines
from core.attribution.gradients.plain import gradient, input_x_gradient, integrated_gradients
from core.errors import ForetellError
from core.network.classifier import Classifier
from tests.core.networks import SIDE, ToyA, awkward, pictures, raw, unit

X = torch.tensor([20.0, 50.0, 30.0]).view(1, 1, 1, 3)


def toy(network: nn.Module) -> Classifier:
    return Classifier(network, raw, name="toy")


def test_toy_a_closed_forms():
    """captum tests/attr: gradient (4, 4, 4); integrated gradients in closed form 3.9 x from baseline 0."""
    classifier = toy(ToyA())
    assert gradient(classifier, X, [0]).map.flatten().tolist() == [4.0, 4.0, 4.0]
    # The kinks at s = 10 and s = -1 lie at alpha = .1 and before 0: with 200 midpoints none is cut.
    explanation = integrated_gradients(classifier, X, [0], steps=200)
    torch.testing.assert_close(explanation.map.flatten(), torch.tensor([78.0, 195.0, 117.0]), rtol=1e-6, atol=0)
    assert abs(explanation.certificates[0].completeness) < 1e-6


def test_completeness_residual_tells_a_coarse_rule():
    """With one step the midpoint gradient is 4 everywhere: the sum is 400 where the difference is 390."""
    certificate = integrated_gradients(toy(ToyA()), X, [0], steps=1).certificates[0]
    assert certificate.completeness == pytest.approx(10 / 390, rel=1e-6)


class Minimum(nn.Module):
    """min(x1, x2) of the first two inputs, as a ReLU network: x1 - relu(x1 - x2)."""

    def forward(self, x):
        x1, x2 = x[:, 0, 0, 0], x[:, 0, 0, 1]
        f = x1 - torch.relu(x1 - x2)
        return torch.stack([f, -f], 1)


class MinimumOtherwise(nn.Module):
    """The same function by another network: x2 - relu(x2 - x1)."""

    def forward(self, x):
        x1, x2 = x[:, 0, 0, 0], x[:, 0, 0, 1]
        f = x2 - torch.relu(x2 - x1)
        return torch.stack([f, -f], 1)


def test_implementation_invariance():
    """min(3, 1): all on the smaller (Sundararajan et al. 2017), whichever network computes it."""
    x = torch.tensor([3.0, 1.0, 0.0]).view(1, 1, 1, 3)
    for network in (Minimum(), MinimumOtherwise()):
        assert integrated_gradients(toy(network), x, [0]).map.flatten().tolist() == pytest.approx([0, 1, 0])


def test_agrees_with_captum_on_an_awkward_network():
    from captum.attr import IntegratedGradients, Saliency

    classifier, images = awkward(), pictures(2)
    with classifier.exclusive() as module:

        def forward(x):
            return module(x.clone())

        theirs = Saliency(forward).attribute(images.clone(), target=[0, 2], abs=False).sum(1)
        ours = gradient(classifier, images, [0, 2]).map
        torch.testing.assert_close(ours, theirs.float(), rtol=1e-4, atol=1e-6)
        baseline = classifier.fill("black")[None].expand(2, -1, -1, -1)
        theirs = IntegratedGradients(forward).attribute(
            images.clone(), baseline, target=[0, 2], n_steps=32, method="riemann_middle"
        )
    ours = integrated_gradients(classifier, images, [0, 2], steps=32).map
    torch.testing.assert_close(ours, theirs.sum(1).float(), rtol=1e-4, atol=1e-5)


def linear(seed: int = 3) -> tuple[Classifier, torch.Tensor]:
    """A linear network with a bias, and its weights (2, 3, SIDE, SIDE)."""
    network = nn.Sequential(nn.Flatten(), nn.Linear(3 * SIDE * SIDE, 2))
    with torch.no_grad():
        network[1].weight.copy_(torch.randn(2, 3 * SIDE * SIDE, generator=torch.Generator().manual_seed(seed)))
    return Classifier(network, unit, name="linear"), network[1].weight.detach().view(2, 3, SIDE, SIDE)


def test_toy_a_input_x_gradient():
    """captum tests/attr: (80, 200, 120) from 0; the toy's black picture is 0 too."""
    for baseline in ("zero", "black"):
        found = input_x_gradient(toy(ToyA()), X, [0], baseline=baseline).map
        assert found.flatten().tolist() == [80.0, 200.0, 120.0]


@pytest.mark.parametrize("baseline", ["zero", "black", "mean"])
def test_linear_input_x_gradient_is_the_weights_times_the_way_from_the_baseline(baseline):
    """Closed form w (x - b), which adds up to f(x) - f(b)."""
    classifier, weight = linear()
    images = pictures(2)
    origin = torch.zeros(3, SIDE, SIDE) if baseline == "zero" else classifier.fill(baseline)
    explanation = input_x_gradient(classifier, images, [1, 0], baseline=baseline)
    torch.testing.assert_close(explanation.map, (weight[[1, 0]] * (images - origin)).sum(1), rtol=1e-5, atol=1e-6)
    assert explanation.certificates[0].parameters == {"baseline": baseline}


@pytest.mark.parametrize("baseline", ["zero", "black", "mean", "blur", "noise"])
@pytest.mark.parametrize("quadrature", ["midpoint", "gauss_legendre"])
def test_every_quadrature_and_baseline_is_exact_on_a_linear_network(quadrature, baseline):
    """w (x - b) whatever the number of points: a rule whose weights do not add up to 1 (captum's trapezoid) fails."""
    classifier, weight = linear()
    images = pictures(2)
    generator = torch.Generator().manual_seed(4)
    explanation = integrated_gradients(
        classifier, images, [1, 0], generator=generator, steps=2, baseline=baseline, quadrature=quadrature
    )
    seed = explanation.certificates[0].seed
    assert (seed is not None) == (baseline == "noise")
    origins = baselines(classifier, images, baseline, seed or 0)
    torch.testing.assert_close(explanation.map, (weight[[1, 0]] * (images - origins)).sum(1), rtol=1e-5, atol=1e-5)
    assert all(abs(c.completeness) < 1e-5 for c in explanation.certificates)


class Power(nn.Module):
    """f(x) = sum x^4."""

    def forward(self, x):
        f = x.flatten(1).pow(4).sum(1)
        return torch.stack([f, -f], 1)


def test_gauss_legendre_is_exact_for_the_polynomials_it_must_be():
    """Closed form x^4 from 0. Two points integrate the cubic gradient exactly; two midpoints give 7/8 of it."""
    x = torch.tensor([1.0, -2.0, 0.5]).view(1, 1, 1, 3)
    found = {
        rule: integrated_gradients(toy(Power()), x, [0], steps=2, quadrature=rule).map.flatten()
        for rule in ("midpoint", "gauss_legendre")
    }
    expected = torch.tensor([1.0, 16.0, 0.0625])
    torch.testing.assert_close(found["gauss_legendre"], expected, rtol=1e-6, atol=0)
    torch.testing.assert_close(found["midpoint"], expected * 7 / 8, rtol=1e-6, atol=0)


def test_toy_a_gauss_legendre_errs_at_the_kink_as_computed():
    """50 points give 78.0359 where the closed form is 78: captum 0.9.0 with method="gausslegendre"."""
    found = integrated_gradients(toy(ToyA()), X, [0], steps=50, quadrature="gauss_legendre").map
    assert float(found.flatten()[0]) == pytest.approx(78.0359, abs=1e-4)


def test_without_biases_integrated_gradients_from_zero_are_input_x_gradient():
    """A ReLU network without biases is positively homogeneous: its gradient is one along the way from 0."""
    network = nn.Sequential(nn.Conv2d(3, 6, 3, bias=False), nn.ReLU(), nn.Flatten(), nn.Linear(600, 2, bias=False))
    classifier, images = Classifier(network, unit, name="homogeneous"), pictures(2)
    torch.testing.assert_close(
        integrated_gradients(classifier, images, [0, 1], steps=3, baseline="zero").map,
        input_x_gradient(classifier, images, [0, 1]).map,
        rtol=1e-4,
        atol=1e-6,
    )


def test_blur_spreads_a_point_as_a_gaussian_and_keeps_one_colour():
    """Closed form: a point becomes the product of two normal densities; at a distance of one sd exp(-1/2) is left."""
    classifier = awkward()
    point = torch.zeros(1, 3, 41, 41)
    point[:, 1, 20, 20] = 1
    blurred = baselines(classifier, point, "blur", 0)[0]
    assert float(blurred[1].sum()) == pytest.approx(1, abs=1e-5)
    assert float(blurred[[0, 2]].abs().max()) == 0
    row = blurred[1, 20] / blurred[1, 20, 20]
    torch.testing.assert_close(row[20:33], torch.exp(-0.5 * (torch.arange(13) / 4.1) ** 2), rtol=1e-4, atol=0)
    torch.testing.assert_close(blurred[1], blurred[1].T, rtol=1e-5, atol=1e-9)
    even = torch.full((1, 3, 5, 9), 0.7)
    torch.testing.assert_close(baselines(classifier, even, "blur", 0), even, rtol=1e-5, atol=0)


def test_the_noise_baseline_is_a_image_of_the_given_seed():
    classifier, images = awkward(), pictures(2)
    first, second = (baselines(classifier, images, "noise", seed) for seed in (1, 2))
    assert torch.equal(first[0], first[1])
    assert torch.equal(first, baselines(classifier, images, "noise", 1))
    assert float((first - second).abs().mean()) > 0.3
    assert -1 <= float(first.min()) < -0.9 < 0.9 < float(first.max()) <= 1


def test_a_map_that_misses_what_it_explains_says_so_and_names_the_remedy():
    """f = s^3 of one pixel s = 1 from 0: the midpoint of one step gives 3 / 4 of f(1) - f(0) = 1."""
    x = torch.tensor([[[[1.0, 0.0, 0.0]]]])
    (certificate,) = integrated_gradients(toy(Cube()), x, [0], steps=1, baseline="zero").certificates
    assert certificate.completeness == pytest.approx(-0.25, abs=1e-6)
    assert certificate.warnings == (
        "The sum of this heatmap misses the change it explains by 25% of that change. Raise 'steps' (now 1), or set a "
        "tolerance such as 0.05, which chooses them.",
    )
    assert integrated_gradients(toy(Cube()), x, [0], steps=8, baseline="zero").certificates[0].warnings == ()


def test_a_tolerance_chooses_the_steps():
    """n midpoints of s^3 miss 1 / (4 n^2) of it: 4 steps miss .0156, 8 miss .0039, 16 miss .001."""
    x = torch.tensor([[[[1.0, 0.0, 0.0]]]])
    for tolerance, steps in ((0.02, 4), (0.005, 8), (0.004, 8), (0.002, 16)):
        explanation = integrated_gradients(toy(Cube()), x, [0], steps=1, baseline="zero", tolerance=tolerance)
        certificate = explanation.certificates[0]
        assert certificate.parameters["steps"] == steps
        assert abs(certificate.completeness) <= tolerance
        torch.testing.assert_close(
            explanation.map, integrated_gradients(toy(Cube()), x, [0], steps=steps, baseline="zero").map
        )
    with pytest.raises(ForetellError, match="must not be negative"):
        integrated_gradients(toy(Cube()), x, [0], tolerance=-1)


class Cube(torch.nn.Module):
    def forward(self, x):
        s = x.flatten(1).sum(1, keepdim=True)
        return torch.cat([s**3, -(s**3)], 1)


def test_a_heatmap_of_no_numbers_is_refused_by_name():
    """Catches NaN and infinity drawn as a heatmap: the slope of a square root has no value at 0."""

    class Root(nn.Module):
        def forward(self, x):
            return torch.stack([x.clamp(min=0).sqrt().sum((1, 2, 3)), x.sum((1, 2, 3))], 1)

    network, images = toy(Root()), torch.ones(2, 1, 1, 3)
    images[1, 0, 0, 0] = 0
    assert gradient(network, images[:1], [0]).map.isfinite().all()
    with pytest.raises(ForetellError, match=r"values that are no numbers \(image 2 of 2\)"):
        gradient(network, images, [0, 0])
