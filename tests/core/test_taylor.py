from __future__ import annotations

import pytest
import torch
from PIL import Image
from torch import nn

from core.attribution.baselines import baselines
from core.attribution.relevance.taylor import ELSEWHERE, taylor_decomposition
from core.network.classifier import Classifier
from core.network.device import draw_seed
from core.sources import load
from tests.core.networks import awkward, pictures, raw
from tests.core.scenes import answered, scene_net

WEIGHTS = torch.tensor([1.0, 2.0, -1.0])


class Leaning(nn.Module):
    """Logits (w x - 2, 0), or with ``bent`` ((w x)^2 + 1, 0), which always leads."""

    def __init__(self, bent: bool) -> None:
        super().__init__()
        self.bent = bent

    def forward(self, x):
        s = x.flatten(1) @ WEIGHTS
        lead = s.square() + 1 if self.bent else s - 2
        return torch.stack([lead, torch.zeros_like(lead)], 1)


def row(*values):
    return torch.tensor(values).view(1, 1, 1, 3)


def test_a_linear_network_is_expanded_exactly_at_a_bisected_root():
    """f = w x - 2 with baseline 0, where f = -2: the terms w_i (x - x0)_i sum to f(x) = 3, without a remainder."""
    x = row(2.0, 1.0, -1.0)
    explanation = taylor_decomposition(Classifier(Leaning(False), raw, name="leaning"), x, [0], baseline="zero")
    # The root is at the share 2/5 of x: x0 = .4 x.
    torch.testing.assert_close(explanation.map.flatten(), WEIGHTS * x.flatten() * 0.6, rtol=1e-5, atol=1e-6)
    certificate = explanation.certificates[0]
    assert abs(certificate.completeness) < 1e-5
    assert certificate.warnings == ()


def test_without_a_root_it_warns_and_tells_the_remainder():
    """f = s^2 + 1 at s = 5 from 0: no sign change, gradient 0 at the baseline, so all of 25 is remainder."""
    classifier = Classifier(Leaning(True), raw, name="bent")
    explanation = taylor_decomposition(classifier, row(2.0, 1.0, -1.0), [0], baseline="zero")
    certificate = explanation.certificates[0]
    assert "No root: bent ranks this class alike" in certificate.warnings[0]
    assert certificate.completeness == pytest.approx(-1, abs=1e-6)


def test_the_root_is_where_the_class_stops_leading():
    """On a network with ReLUs and a residual sum, against a slow bisection in float64."""
    classifier, images = awkward(9), pictures(4, seed=8)
    answers = classifier.logits(images).argmax(1).tolist()
    explanation = taylor_decomposition(classifier, images, answers, baseline="mean")
    assert not any("No root" in warning for found in explanation.certificates for warning in found.warnings)
    far = classifier.fill("mean").double()
    with classifier.exclusive() as module:
        network = module.double()
    for found, x, k in zip(explanation.map, images.double(), answers, strict=True):

        def lead(point, k=k):
            logits = network(point[None].clone())[0]
            return logits[k] - torch.cat([logits[:k], logits[k + 1 :]]).max()

        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if lead(x + middle * (far - x)) > 0 else (low, middle)
        root = (x + low * (far - x)).requires_grad_()
        (gradient,) = torch.autograd.grad(lead(root), root)
        expected = (gradient * (x - root.detach())).sum(0)
        torch.testing.assert_close(found.double(), expected, rtol=1e-3, atol=1e-4 * float(expected.abs().max()))


@pytest.mark.parametrize(("power", "at", "remainder", "said"), [(3, 3.0, 20 / 26, "77%"), (2, 1.5, 0.2, "20%")])
def test_a_remainder_is_warned_of(power, at, remainder, said):
    """f = s^3 - 1 at s = 3 from its root s = 1, where the gradient is 3: 6 of 26, so that 20 / 26 are remainder.

    And s^2 - 1 at 1.5: 1 of 1.25, about which nothing was said, as of all remainders up to a half.
    """

    class Bent(torch.nn.Module):
        def forward(self, x):
            s = x.flatten(1).sum(1, keepdim=True)
            return torch.cat([s**power - 1, torch.zeros_like(s)], 1)

    (certificate,) = taylor_decomposition(
        Classifier(Bent(), raw, name="bent"), row(at, 0.0, 0.0), [0], baseline="zero"
    ).certificates
    assert certificate.completeness == pytest.approx(-remainder, abs=1e-3)
    assert certificate.warnings[0].startswith(f"The remainder is {said} of the lead")


def test_the_root_with_the_least_remainder_is_taken_image_by_image():
    """The first root, or one chosen for the whole batch. Oracle: each baseline alone, where it has the other sign."""
    classifier = scene_net()
    images, classes = answered(classifier, 6)
    predicted = torch.tensor(classes)
    each, remainders = [], []
    for kind in ELSEWHERE:
        start = baselines(classifier, images, kind, draw_seed(torch.Generator().manual_seed(0)))
        crosses = classifier.logits(start).argmax(1) != predicted
        found = taylor_decomposition(classifier, images, classes, baseline=kind)
        each.append(found.map)
        remainders.append(
            [abs(c.completeness) if other else 9e9 for c, other in zip(found.certificates, crosses, strict=True)]
        )
    best = torch.tensor(remainders).argmin(0)
    assert len(set(best.tolist())) > 1
    found = taylor_decomposition(classifier, images, classes, root="least_remainder")
    assert found.certificates[0].parameters == {"baseline": "blur", "root": "least_remainder"}
    for i, kind in enumerate(best.tolist()):
        scale = float(each[kind][i].abs().max())
        torch.testing.assert_close(found.map[i], each[kind][i], rtol=1e-3, atol=1e-3 * scale)
        assert abs(found.certificates[i].completeness) == pytest.approx(remainders[kind][i], rel=1e-2, abs=1e-4)


@pytest.mark.real
def test_a_map_does_not_depend_on_its_batch(real):
    """Rounding differs from batch to batch: it must not choose between two roots on either side of a kink."""
    classifier = load(f"{real / 'imagenet' / 'mobilenet_v2.py'}:build")
    files = sorted((real / "imagenet" / "images").glob("*/*"))[:3]
    images = torch.stack([classifier.preprocess(Image.open(file)) for file in files])
    answers = classifier.logits(images).argmax(1).tolist()
    together = taylor_decomposition(classifier, images, answers).map
    for map_, x, k in zip(together, images, answers, strict=True):
        alone = taylor_decomposition(classifier, x[None], [k]).map[0]
        assert (map_ - alone).norm() < 1e-4 * alone.norm()
