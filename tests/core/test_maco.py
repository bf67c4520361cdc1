"""MACO: its spectrum, the closed-form optimum of a linear unit, opacity against a slow one, and bad input."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from core.errors import ForetellError
from core.loading import import_torchvision
from core.network.classifier import Classifier
from core.units.display import black_and_white
from core.units.maco import MOST_OPAQUE, Maco, Views, measure_spectrum, opacity
from core.units.maximise import _step, maximise
from core.units.parameterisations import AXES
from core.units.unit import Unit, response
from tests.core.networks import awkward, pictures
from tests.core.scenes import scene_net
from tests.core.tokens import torchvision_vit, wrap

WHOLE = Views(count=1, smallest=1, largest=1, scatter=0, noise=0)
"""The image as it is."""


def generator(seed: int = 3) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def filters(height: int, width: int, channels: int = 3) -> Classifier:
    """The mean response of convolutions with known kernels, as logits, on inputs from -1 to 3."""
    convolution = nn.Conv2d(channels, 2, 5)
    with torch.no_grad():
        convolution.weight.normal_(generator=generator(1))
        convolution.bias.fill_(0.25)

    def transforms(image):
        level = torch.tensor(image.resize((1, 1)).getpixel((0, 0))[:channels]) / 255
        return (4 * level - 1)[:, None, None].expand(channels, height, width).clone()

    return Classifier(nn.Sequential(convolution, nn.AdaptiveAvgPool2d(1), nn.Flatten()), transforms, name="filters")


def photographs(height: int, width: int, channels: int = 3, count: int = 7) -> torch.Tensor:
    """Smooth noise, brighter than it is dark."""
    noise = torch.randn(count, channels, height, width, generator=generator(2)).cumsum(2).cumsum(3)
    return 1.5 + noise / noise.abs().amax((1, 2, 3), keepdim=True)


def slow_spectrum(images: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Mean magnitude and mean of all waves, image by image and colour by colour, of inputs from -1 to 3."""
    magnitudes, waves = [], []
    for image in images.numpy().astype(np.float64):
        levels = (image + 1) / 4
        for axis in np.array(AXES) if len(levels) == 3 else [np.ones(1)]:
            axis = axis / math.sqrt((axis**2).sum())
            field = sum(share * level for share, level in zip(axis, levels, strict=True))
            waves.append(np.fft.fft2(field))
            magnitudes.append(np.abs(waves[-1]))
    shape = (len(images), images.shape[1], *images.shape[2:])
    return np.reshape(magnitudes, shape).mean(0), np.reshape(waves, shape).mean(0)


def spectrum_of(image: torch.Tensor) -> np.ndarray:
    return slow_spectrum(image.detach())[0]


SIZES = pytest.mark.parametrize(("height", "width", "channels"), [(12, 12, 3), (15, 11, 3), (9, 14, 1)])


@SIZES
def test_the_spectrum_is_that_of_a_slow_computation(height, width, channels):
    """Catches a sum over blocks that is no mean, wrong axes of colour, and a magnitude of the mean image."""
    images = photographs(height, width, channels)
    found = measure_spectrum(filters(height, width, channels), [images[:3], images[3:]]).numpy()
    expected, mean = slow_spectrum(images)
    half = width // 2 + 1
    np.testing.assert_allclose(np.abs(found), expected[:, :, :half], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found[:, 0, 0].real, expected[:, 0, 0] * np.sign(mean[:, 0, 0].real), rtol=1e-5)


@SIZES
def test_the_magnitude_is_held_at_every_step(height, width, channels):
    """Catches a phase that is not antisymmetric (the inverse transform then drops a part), squashing, and clipping."""
    classifier, images = filters(height, width, channels), photographs(height, width, channels)
    expected, _ = slow_spectrum(images)
    canvas = Maco(classifier, generator(), 0.3, measure_spectrum(classifier, [images]))
    rounding = 2e-6 * expected.max()
    for _ in range(8):
        np.testing.assert_allclose(spectrum_of(canvas.render_image()), expected, rtol=1e-4, atol=rounding)
        _step(classifier, Unit(0), canvas)
    np.testing.assert_allclose(spectrum_of(canvas.render_image()), expected, rtol=1e-4, atol=rounding)


@SIZES
def test_a_linear_unit_is_driven_to_the_closed_form_optimum(height, width, channels):
    """Each wave has the phase of the kernel's own wave, and the activation its largest possible value.

    The mean response of a convolution is <w, x>, w being the kernel averaged over its places; by Parseval's theorem it
    is sum(conj(W) X) / (H W), at most sum(|W| r) / (H W). Real waves keep their sign.
    """
    classifier, images = filters(height, width, channels), photographs(height, width, channels)
    with classifier.exclusive() as module:
        kernel = module[0].weight[1].detach().double().numpy()
    w = np.zeros((channels, height, width))
    places = (height - 4) * (width - 4)
    for row in range(height - 4):
        for column in range(width - 4):
            w[:, row : row + 5, column : column + 5] += 4 * kernel / places  # 4 from black to white
    axes = np.array(AXES) / np.linalg.norm(AXES, axis=1)[:, None] if channels == 3 else np.ones((1, 1))
    waves = np.fft.fft2(np.einsum("rc,chw->rhw", axes, w))
    r, mean = slow_spectrum(images)
    real = np.zeros((height, width), bool)
    real[:: height // 2 if height % 2 == 0 else height, :: width // 2 if width % 2 == 0 else width] = True
    gains = np.where(real, (waves * np.sign(mean.real)).real, np.abs(waves)) * r / (height * width)
    black = float(response(classifier, Unit(1), classifier.fill("black")[None]).detach())
    canvas = Maco(classifier, generator(), 0.1, measure_spectrum(classifier, [images]), WHOLE)
    for _ in range(200):
        value, _ = _step(classifier, Unit(1), canvas)
    assert value == pytest.approx(black + gains.sum(), rel=1e-4)
    reached = np.einsum("rc,chw->rhw", axes, (canvas.render_image()[0].detach().double().numpy() + 1) / 4)
    turn = np.angle(np.fft.fft2(reached) * waves.conj())
    heavy = ~real & (np.abs(waves) * r > 1e-2 * (np.abs(waves) * r).max())
    assert heavy.sum() >= 6
    assert np.abs(turn[heavy]).max() < 0.02


def slow_importance(seed: int, spectrum: torch.Tensor, slope: torch.Tensor, steps: int, views: Views) -> np.ndarray:
    """Add up, pixel by pixel, how each crop's bilinear samples weigh a linear unit of gradient ``slope`` (C, H, W)."""
    draws, (channels, height, width) = generator(seed), slope.shape
    torch.rand(spectrum.shape, generator=draws)
    total = np.zeros((height, width))
    for _ in range(steps):
        sides = torch.rand(views.count, generator=draws).numpy().astype(float)
        centres = torch.randn(views.count, 2, generator=draws).numpy().astype(float)
        torch.randn(views.count, channels, height, width, generator=draws)
        torch.rand(views.count, channels, height, width, generator=draws)
        gradient = np.zeros((channels, height, width))
        for side, centre in zip(sides, centres, strict=True):
            side = views.smallest + (views.largest - views.smallest) * side
            across, down = np.clip(0.5 + views.scatter * centre, side / 2, 1 - side / 2)
            for row in range(height):
                for column in range(width):
                    y = (down + side * ((row + 0.5) / height - 0.5)) * height - 0.5
                    x = (across + side * ((column + 0.5) / width - 0.5)) * width - 0.5
                    y, x = np.clip(y, 0, height - 1), np.clip(x, 0, width - 1)
                    for i in {math.floor(y), math.ceil(y)}:
                        for j in {math.floor(x), math.ceil(x)}:
                            weight = (1 - abs(y - i)) * (1 - abs(x - j))
                            gradient[:, i, j] += weight * slope[:, row, column].numpy() / views.count
        total += np.abs(gradient).mean(0)
    return total


def test_importance_and_opacity_are_those_of_a_slow_computation():
    """Catches signed gradients that cancel, the gradient at the crops instead of the image, and another percentile."""
    classifier, images = filters(9, 14), photographs(9, 14)
    inputs = torch.zeros(1, 3, 9, 14, requires_grad=True)
    (slope,) = torch.autograd.grad(response(classifier, Unit(1), inputs).sum(), inputs)
    spectrum = measure_spectrum(classifier, [images])
    canvas = Maco(classifier, generator(5), 0.3, spectrum)
    for _ in range(4):
        _step(classifier, Unit(1), canvas)
    expected = slow_importance(5, spectrum, slope[0], 4, Views())
    np.testing.assert_allclose(canvas.importance.numpy(), expected, rtol=1e-3, atol=1e-5 * expected.max())
    most = np.percentile(expected, MOST_OPAQUE)
    shown = opacity(canvas.importance[None])[0].numpy()
    np.testing.assert_allclose(shown, np.clip(expected, 0, most) / most, atol=2e-3)
    assert float((shown == 1).mean()) == pytest.approx(0.2, abs=0.01)
    assert opacity(torch.zeros(1, 4, 4)).eq(0).all()


def test_crops_lie_within_the_image_and_their_noise_is_what_it_is_said_to_be():
    """Catches crops beyond the rim, a fixed crop, and noise in other units than black to white."""
    height, width = 40, 60
    down, across = torch.meshgrid(torch.arange(height) + 0.5, torch.arange(width) + 0.5, indexing="ij")
    image = torch.stack([down / height, across / width, torch.zeros(height, width)])[None]
    crops = Views(count=300, noise=0).render(image, torch.ones(3, 1, 1), generator())
    rows, columns = crops[:, 0, :, 0], crops[:, 1, 0]
    for places, side in ((rows, height), (columns, width)):
        seen = (places[:, -1] - places[:, 0]) * side / (side - 1)
        assert 0.49 < float(seen.min()) < 0.53
        assert 0.95 < float(seen.max()) < 1.01
        middles = (places[:, -1] + places[:, 0]) / 2
        assert bool(((middles - seen / 2 > -0.02) & (middles + seen / 2 < 1.02)).all())
        assert 0.08 < float(middles.std()) < 0.15
    noise = Views(count=50, smallest=1, scatter=0).render(
        torch.zeros(1, 3, 40, 60), torch.full((3, 1, 1), 4.0), generator()
    )
    assert float(noise.std()) == pytest.approx(4 * 0.01 * math.sqrt(1 + 1 / 12), rel=0.01)


# Real units


def tiny_resnet() -> Classifier:
    models = import_torchvision().models
    return wrap(models.ResNet(models.resnet.BasicBlock, [1, 1, 1, 1], num_classes=5), (64, 64), "resnet")


@pytest.mark.parametrize(
    ("make", "chosen"),
    [
        (torchvision_vit, Unit(2)),
        (torchvision_vit, Unit(7, "encoder.layers.encoder_layer_1", 2, 1)),
        (tiny_resnet, Unit(2)),
        (tiny_resnet, Unit(9, "layer3.0")),
    ],
    ids=["vit class", "vit place", "resnet class", "resnet channel"],
)
def test_units_of_other_architectures_rise(make, chosen):
    """Catches a batch of crops that the unit is read from once, and tokens in place of maps."""
    classifier = make()
    black, white = black_and_white_of(classifier)
    images = black + (white - black) * photographs(*classifier.input_shape[1:]) / 3
    found = maximise(classifier, chosen, images=[images], parameterisation="maco", starts=1, steps=20)
    assert float(found.activations) > float(found.trace[0, 0])
    assert float(found.trace[0, -5:].mean()) > float(found.trace[0, :5].mean())
    assert float(found.activations) > float(response(classifier, chosen, images).detach().max())


def black_and_white_of(classifier: Classifier) -> tuple[torch.Tensor, torch.Tensor]:
    """Let a network of random weights, whose transforms are fixed, tell black from white."""
    height, width = classifier.input_shape[1:]
    classifier._transforms = lambda image: torch.full((3, height, width), image.getpixel((0, 0))[0] / 255)
    return black_and_white(classifier)


def test_the_same_seed_gives_the_same_bits_and_results_say_what_was_measured():
    """Catches a stream that starts share, draws outside of it, and a result without its spectrum."""
    images = pictures(4)

    def draw(seed: int = 3, starts: int = 2):
        return maximise(
            awkward(), Unit(1), images=[images], parameterisation="maco", starts=starts, steps=4,
            generator=generator(seed),
        )  # fmt: skip

    first, again = draw(), draw()
    for name in ("images", "importance", "magnitude", "activations", "trace"):
        assert torch.equal(getattr(first, name), getattr(again, name)), name
    assert torch.equal(draw(starts=3).importance[:2], first.importance)
    assert not torch.equal(draw(seed=4).images, first.images)
    assert torch.equal(first.magnitude, measure_spectrum(awkward(), [images]).abs())
    assert maximise(awkward(), Unit(1), starts=1, steps=1).importance is None


def test_without_an_image_it_is_refused():
    """Catches a division by no images."""
    with pytest.raises(ForetellError, match="MACO measures the spectrum of images, and there are none"):
        maximise(scene_net(), Unit(1), parameterisation="maco")
