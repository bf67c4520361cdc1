"""Max-sensitivity against closed forms, captum, and on the built-in network."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from core.attribution import METHODS
from core.errors import ForetellError
from core.faithfulness.sensitivity import max_sensitivity
from core.network.classifier import Classifier
from core.network.device import stream
from tests.core.networks import SIDE, awkward, pictures, raw
from tests.core.scenes import answered, scene_net
from tests.core.test_paths import linear


def generator(seed: int = 3) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(("method", "given"), [("gradient", {}), ("smoothgrad", {"samples": 4})])
def test_a_map_that_cannot_move_does_not(method, given):
    """The gradient of a linear network is one everywhere; random methods repeat their own draws."""
    classifier, _ = linear()
    found = max_sensitivity(classifier, pictures(2), [0, 1], method, samples=3, parameters=given)
    assert float(found.relative.max()) < 1e-6
    assert found.distances.shape == (3, 2)


@pytest.mark.parametrize(
    ("method", "given"), [("expected_gradients", {"samples": 4}), ("rise", {"samples": 32, "grid": 4})]
)
def test_a_random_methods_own_noise_does_not_count(method, given):
    """A picture that hardly changes has hardly another map, although other draws would give quite another."""
    classifier, images = awkward(), pictures(1)
    found = max_sensitivity(classifier, images, [0], method, samples=2, radius=1e-6, parameters=given)
    assert float(found.relative) < 1e-2
    one, two = (METHODS[method](classifier, images, [0], generator=generator(k), **given).evidence for k in (1, 2))
    assert float((one - two).norm() / one.norm()) > 0.1


class Squares(nn.Module):
    """f(x) = sum x^2: its gradient moves by twice what the picture moves."""

    def forward(self, x):
        f = x.flatten(1).square().sum(1)
        return torch.stack([f, -f], 1)


def test_the_gradient_of_a_square_moves_twice_as_far_as_the_image():
    """Closed form 2 |delta| <= 2 r sqrt(n) with r = radius (max - min), here .1 * 4; x itself has length sqrt(21)."""
    x = torch.tensor([2.0, -1.0, 3.0]).view(1, 1, 1, 3)
    squares = Classifier(Squares(), raw, name="squares")
    found = max_sensitivity(squares, x, [0], "gradient", generator=generator(), samples=400, radius=0.1)
    most = 2 * 0.4 * 3**0.5
    assert 0.9 * most < float(found.maximum) <= most
    assert float(found.norms) == pytest.approx(2 * 14**0.5)
    assert float(found.relative) == pytest.approx(float(found.maximum) / float(found.norms))
    # Uniform in the ball: E |delta|^2 = n r^2 / 3.
    assert float(found.distances.square().mean()) == pytest.approx(4 * 3 * 0.16 / 3, rel=0.15)
    fewer = max_sensitivity(squares, x, [0], "gradient", generator=generator(), samples=50, radius=0.1)
    assert torch.equal(fewer.distances, found.distances[:50])


@pytest.mark.parametrize("method", ["gradient", "integrated_gradients", "grad_cam"])
def test_it_agrees_with_captum_on_the_same_changes(method):
    from captum.metrics import sensitivity_max

    classifier, images = awkward(), pictures(1)
    ours = max_sensitivity(classifier, images, [1], method, generator=generator(), samples=7, radius=0.05)
    reach = 0.05 * (images.max() - images.min())
    changes = torch.stack([2 * torch.rand(3, SIDE, SIDE, generator=stream(ours.seed, k)) - 1 for k in range(7)])
    theirs = sensitivity_max(
        lambda given: (METHODS[method](classifier, given[0], [1] * len(given[0])).map,),
        images,
        lambda given, radius: (given[0] + radius * changes,),
        perturb_radius=float(reach),
        n_perturb_samples=7,
    )
    torch.testing.assert_close(ours.relative.float(), theirs.float(), rtol=1e-3, atol=0)
    assert float(ours.relative) > 0.01


def test_a_batch_is_its_images():
    classifier, images = awkward(), pictures(2)
    whole = max_sensitivity(classifier, images, [0, 1], "gradient", generator=generator(), samples=3)
    for k in range(2):
        alone = max_sensitivity(classifier, images[k : k + 1], [k], "gradient", generator=generator(), samples=3)
        torch.testing.assert_close(whole.distances[:, k], alone.distances[:, 0], rtol=1e-4, atol=1e-7)


def test_on_the_built_in_network_smoothing_calms_the_gradient():
    """What SmoothGrad is for: noise in the picture moves its map less than the plain gradient."""
    classifier = scene_net()
    inputs, answers = answered(classifier, 4)
    rough = max_sensitivity(classifier, inputs, answers, "gradient", samples=4)
    smooth = max_sensitivity(classifier, inputs, answers, "smoothgrad", samples=4, parameters={"samples": 12})
    assert float(smooth.relative.mean()) < 0.7 * float(rough.relative.mean())


@pytest.mark.parametrize(
    ("given", "says"),
    [({"samples": 0}, "at least 1 sample"), ({"radius": 0.0}, "above 0"), ({"parameters": {"x": 1}}, "no parameter")],
)
def test_what_is_out_of_range_is_refused(given, says):
    with pytest.raises(ForetellError, match=says):
        max_sensitivity(awkward(), pictures(1), [0], "gradient", **given)
