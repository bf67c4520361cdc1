from __future__ import annotations

import pytest
import torch
from captum.attr import Occlusion
from torch import nn

from core.attribution.perturbation.occlusion import Windows, occlusion
from core.errors import ForetellError
from core.network.classifier import Classifier
from tests.core.networks import SIDE, ToyA, awkward, pictures, raw, unit

X = torch.tensor([20.0, 50.0, 30.0]).view(1, 1, 1, 3)


class Shifted(nn.Module):
    """A toy network that sees its input ``by`` higher, so that the neutral input 0 stands for the value ``by``."""

    def __init__(self, by: float) -> None:
        super().__init__()
        self.inner, self.by = ToyA(), by

    def forward(self, x):
        return self.inner(x + self.by)


@pytest.mark.parametrize(
    ("window", "stride", "baseline", "expected"),
    [
        (1, 1, 0.0, [80.0, 200.0, 120.0]),
        (2, 1, 10.0, [200.0, 220.0, 240.0]),
        (2, 2, 0.0, [280.0, 280.0, 120.0]),
    ],
)
def test_toy_a(window, stride, baseline, expected):
    """captum tests/attr/test_occlusion.py; the second row is a mean (a sum would be 440 in the middle), the third
    has a window that sticks out."""
    classifier = Classifier(Shifted(baseline), raw, name="toy")
    found = occlusion(classifier, X - baseline, [0], window=window, stride=stride, fill="black").map
    torch.testing.assert_close(found.flatten(), torch.tensor(expected), rtol=1e-6, atol=0)


@pytest.mark.parametrize(("window", "stride"), [(5, 2), (3, 3), (4, 3), (12, 1)])
@pytest.mark.parametrize("output", ["logit", "probability"])
def test_it_agrees_with_captum(window, stride, output):
    classifier, images = awkward(), pictures(2)
    fill = classifier.fill("mean")
    found = occlusion(classifier, images, [1, 2], window=window, stride=stride, output=output).map

    def forward(x):
        logits = classifier.logits(x)
        return logits if output == "logit" else logits.softmax(1)

    theirs = Occlusion(forward).attribute(
        images, (3, window, window), (3, stride, stride), baselines=fill[None], target=torch.tensor([1, 2])
    )
    # Their window spans all channels, so each channel holds the whole loss.
    torch.testing.assert_close(found, theirs[:, 0].float(), rtol=1e-4, atol=1e-5)


def test_a_linear_network_gives_the_mean_of_its_window_sums():
    """Closed form: covering a window of w . x + b loses the sum of w (x - fill) over the window."""
    network = nn.Sequential(nn.Flatten(), nn.Linear(3 * SIDE * SIDE, 2))
    classifier, image = Classifier(network, unit, name="linear"), pictures(1)
    gave = (network[1].weight[1].detach().view(3, SIDE, SIDE) * (image[0] - classifier.fill("mean"))).sum(0)
    found = occlusion(classifier, image, [1], window=4, stride=4).map[0]
    for row in range(0, SIDE, 4):
        for column in range(0, SIDE, 4):
            cell = slice(row, row + 4), slice(column, column + 4)
            torch.testing.assert_close(found[cell], gave[cell].sum().expand(4, 4), rtol=1e-4, atol=1e-5)


def test_chunks_do_not_change_the_map():
    classifier, images = awkward(), pictures(1)
    found = [occlusion(classifier, images, [0], window=3, stride=1, chunk=chunk).map for chunk in (0, 7)]
    torch.testing.assert_close(found[0], found[1], rtol=1e-5, atol=1e-6)


def test_default_windows():
    windows = Windows.of(224, 224, 0, 0)
    assert (windows.side, windows.stride, len(windows.places)) == (28, 14, 225)
    assert windows.places[-1] == (slice(196, 224), slice(196, 224))


def test_every_pixel_of_an_odd_image_is_covered():
    windows = Windows.of(11, 7, 4, 3)
    covered = sum((1 - block).sum(0) for block in windows.blocks())
    assert covered.shape == (11, 7)
    assert covered.min() >= 1


@pytest.mark.parametrize(("window", "stride", "says"), [(2, 3, "unseen"), (-1, 1, "at least 1 px")])
def test_bad_sizes_are_refused(window, stride, says):
    with pytest.raises(ForetellError, match=says):
        occlusion(awkward(), pictures(1), [0], window=window, stride=stride)
