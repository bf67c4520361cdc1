"""Pictures made for a unit: closed forms, the spectrum, and that they drive real units higher than anything random."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from core.errors import ForetellError
from core.network.classifier import Classifier
from core.sources import load
from core.units import PARAMETERISATIONS
from core.units.display import black_and_white, convert_to_colours
from core.units.maximise import MaximisedImages, maximise
from core.units.parameterisations import AXES, Fourier, Pixels, colours, strength
from core.units.unit import Unit, find_layer_shape, response
from tests.core.networks import SIDE, awkward, pictures, unit
from tests.core.scenes import answered, scene_net
from tests.core.test_contracts import assert_same, snapshot
from tests.core.test_paths import linear

EVERY = pytest.mark.parametrize("parameterisation", list(PARAMETERISATIONS))


def generator(seed: int = 3) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def answers(classifier: Classifier, chosen: Unit, inputs: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return response(classifier, chosen, inputs)


# Closed forms


def test_a_linear_unit_is_maximised_by_its_own_weights():
    """Erhan et al. 2009: rho w / |w|, whatever the start, with activation f(mean) + rho |w|."""
    classifier, weight = linear()
    found = maximise(classifier, Unit(1), parameterisation="pixels", starts=3, steps=400)
    mean = classifier.fill("mean")
    rho = Pixels(classifier, generator(), 0.05).norm
    assert rho == pytest.approx(max(float((end - mean).norm()) for end in black_and_white(classifier)) / 2)
    best = mean + rho * weight[1] / weight[1].norm()
    torch.testing.assert_close(found.images, best.expand(3, -1, -1, -1), rtol=1e-4, atol=1e-5)
    most = float(classifier.logits(mean[None])[0, 1]) + rho * float(weight[1].norm())
    assert found.activations.tolist() == pytest.approx([most] * 3, rel=1e-5)
    assert bool((found.trace.diff(dim=1) >= -1e-3).all())


def test_waves_are_as_strong_as_one_over_their_frequency():
    """Even coefficients make a picture of variance 1 whose waves fall off as 1 / f; the mean is as the longest."""
    for height, width in ((24, 32), (31, 17)):
        found = strength(height, width)
        assert found.shape == (height, width // 2 + 1)
        assert float(found[0, 2] / found[0, 4]) == pytest.approx(2)
        assert float(found[0, 0]) == pytest.approx(float(found.max()))
        white = torch.randn(400, height, width, generator=generator())
        coloured = torch.fft.irfft2(torch.fft.rfft2(white, norm="ortho") * found, s=(height, width), norm="ortho")
        assert float(coloured.square().mean()) == pytest.approx(1, rel=0.1)
        # Back again: what was scaled is what went in.
        back = torch.fft.irfft2(torch.fft.rfft2(coloured, norm="ortho") / found, s=(height, width), norm="ortho")
        torch.testing.assert_close(back, white, rtol=0, atol=1e-4)
        slanted = math.hypot(3 / height, 4 / width)
        assert float(found[3, 4] / found[0, 2]) == pytest.approx(2 / width / slanted, rel=1e-5)


def test_colours_are_uncorrelated_axes_of_mean_variance_1():
    mixing = colours(3)
    covariance = mixing @ mixing.T
    assert float(covariance.trace()) == pytest.approx(3)
    for axis, share in zip(torch.tensor(AXES), torch.tensor([1, 0.28**2, 0.13**2]), strict=True):
        image = covariance @ axis
        torch.testing.assert_close(image / image.norm(), axis / axis.norm(), rtol=1e-5, atol=1e-6)
        assert float(image.norm() / axis.norm() / (covariance @ torch.ones(3)).norm() * 3**0.5) == pytest.approx(
            float(share), rel=1e-5
        )
    assert colours(1).tolist() == [[1]]


def test_a_image_of_waves_begins_nearly_grey_and_stays_between_black_and_white():
    classifier = scene_net()
    canvas = Fourier(classifier, generator(), 0.05)
    black, white = black_and_white(classifier)
    for loud, least, most in ((1, 0.45, 0.55), (1000, 0, 1)):
        with torch.no_grad():
            canvas._spectrum *= loud
            levels = (canvas.render_image()[0] - black) / (white - black)
        assert least <= float(levels.min()) < 0.5 < float(levels.max()) <= most + 1e-6


def test_the_moves_are_what_they_are_said_to_be():
    """The middle of the picture seen lies at most 4 % of each side from the picture's own, and turns and sizes vary."""
    classifier = scene_net()
    canvas = Fourier(classifier, generator(), 0.05)
    down, across = (torch.linspace(-1, 1, 96).view(shape).expand(96, 96) for shape in ((96, 1), (1, 96)))
    canvas.render_image = lambda: torch.stack([down, across, torch.zeros(96, 96)])[None]
    middles, slopes = [], []
    for _ in range(200):
        seen = canvas.render_view()[0]
        middles.append(seen[:2, 47:49, 47:49].mean((1, 2)))
        slopes.append(torch.stack([seen[0, 58, 48] - seen[0, 38, 48], seen[1, 58, 48] - seen[1, 38, 48]]) / (40 / 95))
    middle, slope = torch.stack(middles), torch.stack(slopes)
    assert 0.06 < float(middle.abs().max()) < 0.082  # of coordinates from -1 to 1
    size, angle = slope.norm(dim=1), torch.atan2(slope[:, 1], slope[:, 0]).abs() * 180 / math.pi
    assert 0.89 < float(size.min()) < 0.92
    assert 1.08 < float(size.max()) < 1.11
    assert 9 < float(angle.max()) < 10.1


# Real units


@pytest.fixture(scope="module")
def forty_scenes() -> torch.Tensor:
    return answered(scene_net(), 40)[0]


@EVERY
@pytest.mark.parametrize("chosen", [Unit(13), Unit(40, "features.4"), Unit(7, "features.3.0", 5, 6)], ids=str)
def test_a_scene_unit_is_driven_above_every_scene_and_every_random_image(parameterisation, chosen, forty_scenes):
    classifier, scenes = scene_net(), forty_scenes
    how = {"parameterisation": parameterisation, "images": [scenes]}
    found = maximise(classifier, chosen, **how, starts=2, steps=60, generator=generator())
    black, white = black_and_white(classifier)
    noise = black + (white - black) * torch.rand(40, 3, 96, 96, generator=generator())
    assert float(found.activations.min()) > float(answers(classifier, chosen, torch.cat([scenes, noise])).max())
    torch.testing.assert_close(found.activations, answers(classifier, chosen, found.images), rtol=1e-3, atol=1e-3)
    assert found.images.shape == (2, 3, 96, 96)
    assert found.shown.shape == (2, 96, 96, 3)
    assert found.trace.shape == (2, 60)
    assert float((found.images[0] - found.images[1]).abs().max()) > 0.1


@pytest.mark.real
def test_a_class_of_mobilenet_rises_with_waves_as_it_cannot_with_noise(real: Path):
    network = load(f"{real / 'imagenet' / 'mobilenet_v2.py'}:build")
    strawberry = next(k for k, name in enumerate(network.categories) if name.startswith("strawberry"))
    found = maximise(network, Unit(strawberry), starts=1, steps=24)
    black, white = black_and_white(network)
    noise = black + (white - black) * torch.rand(8, 3, 224, 224, generator=generator())
    assert float(found.activations) > float(network.logits(noise)[:, strawberry].max()) + 3
    assert int(network.logits(found.images).argmax()) == strawberry


# Contracts


@EVERY
def test_the_same_seed_draws_the_same_and_more_starts_leave_the_first_alone(parameterisation):
    def draw(starts: int, seed: int = 3) -> MaximisedImages:
        how = {"parameterisation": parameterisation, "images": [pictures(2)]}
        return maximise(awkward(), Unit(1), **how, starts=starts, steps=5, generator=generator(seed))

    assert torch.equal(draw(2).images, draw(2).images)
    assert torch.equal(draw(3).images[:2], draw(2).images)
    assert not torch.equal(draw(2, seed=4).images, draw(2).images)


@EVERY
def test_the_network_is_left_as_it_was_also_after_an_exception(parameterisation):
    classifier, seen = awkward(), []
    with classifier.exclusive() as module:
        before = snapshot(module)

    def interrupt(done, total, what):
        if what == "steps":
            seen.append((done, total))
        if done == 7:
            raise KeyboardInterrupt

    how = {"parameterisation": parameterisation, "images": [pictures(2)]}
    with pytest.raises(KeyboardInterrupt):
        maximise(classifier, Unit(2, "conv2"), **how, starts=2, steps=5, progress=interrupt)
    assert seen == [(k, 10) for k in range(1, 8)]
    with classifier.exclusive() as module:
        assert_same(before, snapshot(module))


def test_a_unit_is_a_class_a_mean_or_a_place():
    """Read off the module by hand, the output before an in-place ReLU included."""
    classifier, images = awkward(), pictures(2)
    with classifier.exclusive() as module, torch.no_grad():
        bn = module.bn(module.conv1(images * 1.5))
        logits = module(images.clone())
    torch.testing.assert_close(answers(classifier, Unit(2), images), logits[:, 2])
    torch.testing.assert_close(answers(classifier, Unit(3, "bn"), images), bn[:, 3].mean((1, 2)))
    torch.testing.assert_close(answers(classifier, Unit(3, "bn", 4, 11), images), bn[:, 3, 4, 11])
    assert find_layer_shape(classifier, Unit(0)) == (3,)
    assert find_layer_shape(classifier, Unit(0, "bn")) == (8, SIDE, SIDE)


def test_a_dead_unit_is_said_to_be_dead():
    classifier = awkward()
    with classifier.exclusive() as module, torch.no_grad():
        module.conv1.weight[2].zero_()
    found = maximise(classifier, Unit(2, "conv1"), parameterisation="pixels", starts=2, steps=3)
    assert found.warnings[0].startswith("No gradient was found from start 0, 1")
    assert maximise(classifier, Unit(1, "conv1"), parameterisation="pixels", starts=1, steps=3).warnings == ()


def test_images_are_shown_as_they_were():
    """A photograph through the transforms and back; what is beyond white is white."""
    levels = torch.randint(256, (SIDE, SIDE, 3), generator=generator(), dtype=torch.uint8)
    x = awkward().preprocess(Image.fromarray(levels.numpy()))
    assert torch.equal(convert_to_colours(awkward(), x[None])[0], levels)
    assert convert_to_colours(awkward(), x[None] + 9).unique().tolist() == [255]
    grey = Classifier(nn.Sequential(nn.Flatten(), nn.Linear(SIDE**2, 2)), lambda image: unit(image)[:1], name="grey")
    assert convert_to_colours(grey, x[None, :1])[0].eq(levels[:, :, :1]).all()
    blank = Classifier(nn.Sequential(nn.Flatten(), nn.Linear(3, 2)), lambda image: torch.zeros(1, 1, 3), name="blank")
    with pytest.raises(ForetellError, match="blank cannot be shown"):
        convert_to_colours(blank, torch.zeros(1, 1, 1, 3))


@pytest.mark.parametrize(
    ("chosen", "given", "says"),
    [
        (Unit(0, "conv3"), {}, r"no layer 'conv3'\. Did you mean 'conv"),
        (Unit(3), {}, r"Layer '' has channels 0 to 2, not 3"),
        (Unit(0, "conv1", 12, 0), {}, r"places \(0, 0\) to \(11, 11\), not \(12, 0\)"),
        (Unit(0, "conv1", 1), {}, "give both"),
        (Unit(0, "", 1, 1), {}, "has no places"),
        (Unit(0), {"starts": 0}, "at least 1 of each"),
        (Unit(0), {"rate": 0.0}, "above 0"),
        (Unit(0), {"parameterisation": "pixel"}, "Did you mean 'pixels'"),
    ],
)
def test_what_is_not_there_is_refused(chosen, given, says):
    with pytest.raises(ForetellError, match=says):
        maximise(awkward(), chosen, **given)


def test_numpy_and_torch_agree_on_what_a_wave_is():
    """Independent: `numpy.fft` of a picture with one coefficient has that frequency and no other."""
    canvas = Fourier(scene_net(), generator(), 0.05)
    with torch.no_grad():
        canvas._spectrum.zero_()
        canvas._spectrum[0, 3, 5, 0] = 1e-2
    black, white = black_and_white(scene_net())
    levels = ((canvas.render_image()[0] - black) / (white - black)).detach().numpy()
    spectrum = np.abs(np.fft.fft2(np.log(levels / (1 - levels)).mean(0)))
    assert sorted(map(tuple, np.argwhere(spectrum > spectrum.max() / 2).tolist())) == [(3, 5), (93, 91)]
