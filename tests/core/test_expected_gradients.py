"""Expected gradients against closed forms, their own standard error, and captum's GradientSHAP."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from core.attribution.gradients.expected_gradients import expected_gradients
from core.attribution.gradients.plain import integrated_gradients
from core.attribution.references import SOURCES
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.network.device import stream
from core.parameters import list_parameters
from tests.core.networks import SIDE, awkward, pictures, raw
from tests.core.test_paths import linear


def generator(seed: int = 4) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


class Squares(nn.Module):
    """f(x) = sum x^2, so that expected gradients from b are x^2 - E b^2."""

    def forward(self, x):
        f = x.flatten(1).square().sum(1)
        return torch.stack([f, -f], 1)


def test_a_linear_network_has_the_weights_times_the_way_from_the_mean_reference():
    """Closed form w (x - E b): GradientSHAP's limit. The scatter of the pixels is what the standard error says."""
    classifier, weight = linear()
    images, references = pictures(1), pictures(40, seed=9)
    explained = expected_gradients(classifier, images, [1], generator=generator(), samples=2000, references=references)
    expected = (weight[1] * (images[0] - references.mean(0))).sum(0)
    z = (explained.map[0] - expected) / explained.error[0]
    assert float(z.abs().max()) < 5
    assert 0.7 < float(z.square().mean().sqrt()) < 1.4
    assert float((explained.map[0] - expected).norm() / expected.norm()) < 0.06


@pytest.mark.parametrize("source", list(SOURCES))
def test_black_to_white_sources_average_to_grey(source):
    """Closed form: colours and noise both have mean 127.5, which is 0 for the test's network."""
    classifier, weight = linear()
    images = pictures(1)
    explained = expected_gradients(classifier, images, [0], generator=generator(), samples=3000, source=source)
    z = (explained.map[0] - (weight[0] * images[0]).sum(0)) / explained.error[0]
    assert float(z.abs().max()) < 5


def test_sources_are_what_they_are_called():
    """A colour is one everywhere, noise is not; another stream gives another."""
    classifier = awkward()
    colours, noise = ([SOURCES[name](classifier, stream(1, k)) for k in (0, 1)] for name in ("colours", "noise"))
    assert float(colours[0].flatten(1).std(1).max()) == pytest.approx(0, abs=1e-6)
    assert float(noise[0].std()) == pytest.approx(255 / 12**0.5 / 127.5, rel=0.1)
    assert all(float((a - b).abs().max()) > 0.1 for a, b in (colours, noise))


def test_squares_lose_the_mean_square_of_the_references():
    """Closed form x^2 - E b^2, of which neither the gradient at x nor that at b is enough: both ends and the way."""
    x = torch.tensor([2.0, -1.0, 0.5]).view(1, 1, 1, 3)
    references = torch.tensor([[0.0, 1.0, 3.0], [1.0, -1.0, 0.0]]).view(2, 1, 1, 3)
    classifier = Classifier(Squares(), raw, name="squares")
    explained = expected_gradients(classifier, x, [0], generator=generator(), samples=20_000, references=references)
    expected = torch.tensor([4 - 0.5, 1 - 1, 0.25 - 4.5])
    assert ((explained.map.flatten() - expected).abs() < 4 * explained.error.flatten()).all()
    assert float(explained.error.max()) < 0.1
    assert abs(explained.certificates[0].completeness) < 0.1


def test_one_reference_is_integrated_gradients_from_it():
    classifier, images = awkward(), pictures(1)
    exact = integrated_gradients(classifier, images, [0], baseline="black", steps=400).map
    explained = expected_gradients(
        classifier, images, [0], generator=generator(), samples=800, references=classifier.fill("black")[None]
    )
    z = (explained.map - exact) / explained.error.clamp_min(1e-6)
    assert float(z.abs().max()) < 5.5
    assert abs(explained.certificates[0].completeness) < 0.1


def test_it_agrees_with_captums_gradient_shap():
    from captum.attr import GradientShap

    classifier, images, references = awkward(), pictures(1), pictures(5, seed=9)
    ours = expected_gradients(classifier, images, [2], generator=generator(), samples=1500, references=references)
    before = np.random.get_state()  # noqa: NPY002 - captum draws from it
    with classifier.exclusive() as module, torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        np.random.set_state(np.random.RandomState(0).get_state())  # noqa: NPY002
        theirs = GradientShap(lambda x: module(x.clone())).attribute(
            images, references, n_samples=1500, stdevs=0.0, target=2
        )
        np.random.set_state(before)  # noqa: NPY002
    z = (ours.map - theirs.sum(1).float()) / (ours.error * 2**0.5)
    assert float(z.square().mean().sqrt()) < 1.6
    assert float(z.abs().max()) < 5.5


def test_the_certificate_knows_the_references_and_no_form_asks_for_them():
    classifier, images = awkward(), pictures(1)
    assert [p.name for p in list_parameters(expected_gradients)] == ["samples", "source"]
    drawn = expected_gradients(classifier, images, [0], samples=4).certificates[0]
    assert drawn.parameters == {"samples": 4, "source": "colours"}
    digests = set()
    for seed in (1, 2):
        own = expected_gradients(classifier, images, [0], samples=4, references=pictures(3, seed=seed)).certificates[0]
        assert own.parameters["references"] == 3
        digests.add(own.parameters["references_sha256"])
    assert len(digests) == 2


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"samples": 1}, "at least 2 samples"),
        ({"references": torch.zeros(2, 3, SIDE, SIDE - 1)}, r"References \(2, 3, 12, 11\) are no inputs of awkward"),
        ({"references": torch.zeros(0, 3, SIDE, SIDE)}, "N of at least 1"),
    ],
)
def test_what_it_cannot_use_is_refused(given, says):
    with pytest.raises(ForetellError, match=says):
        expected_gradients(awkward(), pictures(1), [0], **given)


def test_few_samples_that_miss_the_change_are_warned_of():
    """Two samples of a network with ReLUs: the residual is as large as it is said to be."""
    (certificate,) = expected_gradients(awkward(3), pictures(1), [0], samples=2).certificates
    assert abs(certificate.completeness) > 0.05
    assert f"by {abs(certificate.completeness):.0%} of that change. Raise 'samples' (now 2)." in certificate.warnings[0]


def test_a_reference_is_drawn_once_for_gradient_and_logit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches references that are made twice, each by the transforms of a photograph, and a mean over other ones."""
    drawn: list[int] = []
    own = SOURCES["colours"]

    def count(classifier: Classifier, generator: torch.Generator) -> torch.Tensor:
        drawn.append(1)
        return own(classifier, generator)

    monkeypatch.setitem(SOURCES, "colours", count)
    expected_gradients(awkward(), pictures(2), [0, 1], samples=12)
    assert len(drawn) == 12
