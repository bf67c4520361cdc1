"""What drives a unit in a set of pictures, its field, and its projection."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from core.attribution.gradients.modified import deconvnet
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.units.exemplars import find_receptive_field, projection, top_activations
from core.units.unit import Unit
from tests.core.networks import SIDE, awkward, pictures, unit
from tests.core.scenes import answered, scene_net
from tests.core.test_contracts import assert_same, snapshot


def locate_unit(unit: Unit, place: torch.Tensor) -> Unit:
    """The unit at one of a top list's places."""
    row, column = place.tolist()
    return dataclasses.replace(unit, row=row, column=column)


def stack(*layers: nn.Module, channels: int = 4) -> Classifier:
    """Layers, then the mean over all places."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        for layer in layers:
            for parameter in layer.parameters():
                nn.init.normal_(parameter)
    network = nn.Sequential(nn.Sequential(*layers), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 2))
    return Classifier(network, unit, name="stack")


def test_the_top_nine_are_those_of_a_search_one_by_one():
    """Brute force over 30 pictures and all places, the pictures in blocks of any size."""
    classifier, images = awkward(), pictures(30)
    chosen = Unit(5, "conv2")
    with classifier.exclusive() as module, torch.no_grad():
        maps = module.conv2(module.relu(module.bn(module.conv1(images * 1.5))))[:, 5]
    best = sorted(range(30), key=lambda k: -float(maps[k].max()))[:9]
    for sizes in ([30], [7, 7, 7, 7, 2]):
        found = top_activations(classifier, chosen, images.split(sizes))
        assert found.images.tolist() == best
        for k, value, (row, column) in zip(best, found.activations, found.places.tolist(), strict=True):
            assert float(value) == pytest.approx(float(maps[k].max()), rel=1e-4)
            assert float(maps[k, row, column]) == pytest.approx(float(maps[k].max()), rel=1e-4)
    few = top_activations(classifier, chosen, [images[:4]])
    assert sorted(few.images.tolist()) == [0, 1, 2, 3]


def test_equal_activations_keep_the_order_of_the_images_and_of_reading():
    classifier = awkward()
    with classifier.exclusive() as module, torch.no_grad():
        module.conv1.weight.zero_()
    found = top_activations(classifier, Unit(0, "conv1"), [pictures(100)], count=3)
    assert found.images.tolist() == [0, 1, 2]
    assert found.places.tolist() == [[0, 0]] * 3


def test_a_field_is_that_of_the_arithmetic():
    """3 x 3, 3 x 3 with stride 2, max pooling of 2: field 3, 5, 7 px in steps of 1, 2, 4, cut off at the border."""
    classifier = stack(
        nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 4, 3, stride=2, padding=1), nn.ReLU(), nn.MaxPool2d(2)
    )
    for layer, width, step, first in (("0.0", 3, 1, -1), ("0.2", 5, 2, -2), ("0.4", 7, 4, -2)):
        for row, column in ((0, 0), (1, 2), (2, 1)):
            low = [first + step * place for place in (row, column)]
            expected = (*(max(0, start) for start in low), *(min(SIDE, start + width) for start in low))
            assert find_receptive_field(classifier, Unit(0, layer, row, column)) == expected, layer


def test_a_field_of_the_built_in_network_and_what_lies_outside_it_counts_for_nothing():
    """Six 3 x 3 convolutions of strides 2, 2, 1, 2, 1, 2: after three of them 3 + 2 * 2 + 2 * 4 = 15 px wide."""
    classifier = scene_net()
    chosen = Unit(11, "features.2.0", 12, 9)
    top, left, bottom, right = find_receptive_field(classifier, chosen)
    assert (bottom - top, right - left) == (15, 15)
    image = answered(classifier, 1)[0][0]
    changed = torch.randn(image.shape, generator=torch.Generator().manual_seed(1))
    changed[:, top:bottom, left:right] = image[:, top:bottom, left:right]
    with classifier.exclusive() as module, torch.no_grad():
        one, two = (module.features[2][0](module.features[:2](x[None]))[0, 11, 12, 9] for x in (image, changed))
    torch.testing.assert_close(one, two)


def test_the_projection_of_a_linear_unit_is_its_kernel():
    """At place (6, 4) the 5 x 5 kernel around (6, 4); of two such layers, the second carried through the first."""
    classifier = stack(nn.Conv2d(3, 4, 5, padding=2), nn.Conv2d(4, 4, 3, padding=1))
    with classifier.exclusive() as module:
        first, second = (module[0][k].weight.detach() for k in (0, 1))
    found, warnings = projection(classifier, Unit(2, "0.0", 6, 4), pictures(1)[0])
    expected = torch.zeros(3, SIDE, SIDE)
    expected[:, 4:9, 2:7] = first[2]
    torch.testing.assert_close(found, expected)
    assert warnings == ()
    found, _ = projection(classifier, Unit(1, "0.1", 6, 4), pictures(1)[0])
    expected = torch.zeros(1, 4, SIDE, SIDE)
    expected[0, :, 5:8, 3:6] = second[1]
    torch.testing.assert_close(found[None], F.conv_transpose2d(expected, first, padding=2), rtol=1e-4, atol=1e-4)


def test_the_projection_passes_relus_by_sign_and_pooling_by_its_switches():
    """Zeiler & Fergus 2013, section 2.1, layer by layer: transposed filter, rectified, unpooled to where the maximum
    was, rectified, transposed filter."""
    classifier = stack(
        nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 4, 3, padding=1), nn.ReLU()
    )
    image = pictures(1, seed=4)
    with classifier.exclusive() as module, torch.no_grad():
        conv1, _, _, conv2, _ = module[0]
        _, switches = F.max_pool2d(conv1(image).relu(), 2, return_indices=True)
        signal = torch.zeros(1, 4, 6, 6)
        signal[0, 3, 2, 4] = 1
        below = F.conv_transpose2d(signal, conv2.weight, padding=1)
        unpooled = F.max_unpool2d(below, switches, 2)
        expected = F.conv_transpose2d(unpooled.relu(), conv1.weight, padding=1)[0]
    found, _ = projection(classifier, Unit(3, "0.4", 2, 4), image[0])
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    assert float(found.abs().max()) > 0


def test_the_projection_of_a_class_is_the_deconvnet_map():
    """The same rule from the logit, summed over the channels, as the registered method has it."""
    classifier, inputs = scene_net(), answered(scene_net(), 1)[0]
    found, _ = projection(classifier, Unit(4), inputs[0])
    torch.testing.assert_close(found.sum(0), deconvnet(classifier, inputs, [4]).map[0], rtol=1e-4, atol=1e-6)


def test_top_field_and_projection_go_together_on_scenes():
    """The strongest places of a feature map project into their own fields."""
    classifier = scene_net()
    inputs, _ = answered(classifier, 30)
    top = top_activations(classifier, Unit(11, "features.2"), [inputs])
    assert bool((top.activations.diff() <= 0).all())
    for picture, place in zip(top.images[:3].tolist(), top.places[:3], strict=True):
        one = locate_unit(top.unit, place)
        first, left, last, right = find_receptive_field(classifier, one)
        found, _ = projection(classifier, one, inputs[picture])
        inside = found[:, first:last, left:right]
        assert float(inside.abs().sum()) == pytest.approx(float(found.abs().sum()))
        assert float(inside.abs().max()) > 0


class Smooth(nn.Module):
    def forward(self, x):
        return F.gelu(x)


def test_other_activations_are_named_and_compiled_parts_refused():
    image = pictures(1)[0]
    _, warnings = projection(stack(nn.Conv2d(3, 4, 3), Smooth()), Unit(0, "0.0", 2, 2), image)
    assert warnings == ("Only ReLUs are changed; other activations keep their own gradient: gelu.",)
    compiled = stack(nn.Conv2d(3, 4, 3), torch.jit.script(nn.ReLU()))
    with pytest.raises(ForetellError, match="uncompiled"):
        projection(compiled, Unit(0, "0.0", 2, 2), image)


def test_the_network_is_left_as_it_was():
    classifier, images = awkward(), pictures(3)
    with classifier.exclusive() as module:
        before = snapshot(module)
    top = top_activations(classifier, Unit(1, "conv2"), [images])
    projection(classifier, locate_unit(top.unit, top.places[0]), images[0])
    find_receptive_field(classifier, locate_unit(top.unit, top.places[0]))
    with pytest.raises(KeyboardInterrupt):
        top_activations(
            classifier, Unit(1, "conv2"), [images], progress=lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
        )
    with classifier.exclusive() as module:
        assert_same(before, snapshot(module))


@pytest.mark.parametrize(
    ("chosen", "given", "says"),
    [
        (Unit(0), {}, "give a layer with places"),
        (Unit(0, "conv1", 1, 1), {}, "without row and column"),
        (Unit(0, "conv1"), {"count": 0}, "at least 1 image"),
        (Unit(0, "conv1"), {"blocks": []}, "no images"),
    ],
)
def test_what_cannot_be_found_is_refused(chosen, given, says):
    with pytest.raises(ForetellError, match=says):
        top_activations(awkward(), chosen, **{"blocks": [pictures(1)], **given})
    with pytest.raises(ForetellError, match="one place"):
        find_receptive_field(awkward(), Unit(0, "conv1"))
