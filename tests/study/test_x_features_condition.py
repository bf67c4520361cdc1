"""The condition x_features: parts where they are planted, words by the closed form, and refusals."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn

from core.concepts.x_features import XFeatures
from core.drawing.views import view
from core.errors import ForetellError
from core.layers.layers import maps_of
from core.network.classifier import Classifier
from data.types import ImageSet
from study.bundle import ConditionAssets
from study.conditions.making import Studio, TrialMaterial
from study.conditions.x_features import cards, fit
from study.conditions.x_features.condition import make
from study.locales import CATALOGUES

NAMES = ("red", "green", "blue")
SIDE, CELL, SQUARE = 32, 4, 8
QUICK = replace(fit.SETTINGS, features=2, starts=2, steps=250)


class Colours(nn.Module):
    """Channels are the mean colours of cells; blue speaks against red, and nothing else against anything."""

    def __init__(self) -> None:
        super().__init__()
        self.cells, self.mean = nn.AvgPool2d(CELL), nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(3, 3)
        with torch.no_grad():
            self.head.weight.copy_(torch.tensor([[200.0, 0, -150], [0, 200, 0], [0, 0, 100]]))
            self.head.bias.copy_(torch.tensor([8.0, 0, 0]))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.mean(self.cells(x)).flatten(1))  # type: ignore[no-any-return]


def to_input(image: Image.Image) -> Tensor:
    return torch.from_numpy(np.asarray(image.resize((SIDE, SIDE)), dtype=np.float32) / 255).permute(2, 0, 1)


def draw(squares: dict[tuple[int, int], tuple[int, float]], seed: int) -> Image.Image:
    """Dark noise with squares: at row and column, a colour and its brightness."""
    pixels = np.random.default_rng(seed).uniform(0.02, 0.06, (SIDE, SIDE, 3))
    for (row, column), (colour, value) in squares.items():
        pixels[row : row + SQUARE, column : column + SQUARE, colour] = value
    return Image.fromarray((255 * pixels).astype(np.uint8))


def draw_pool_image(i: int) -> Image.Image:
    """Draw each colour in half of the images, whatever other colours are there."""
    draws = np.random.default_rng(i)
    places = [(8 * int(k // 4), 8 * int(k % 4)) for k in draws.choice(16, 3, replace=False)]
    values = draws.uniform(0.1, 1, 3)
    return draw({places[k]: (k, float(values[k])) for k in range(3) if draws.random() < 0.5}, i)


def make_pool(count: int = 240) -> ImageSet:
    return ImageSet("planted", NAMES, np.arange(count) % 3, tuple(map(str, range(count))), draw_pool_image, "")


@dataclass
class PlantedStudio:
    """A build of one trial, whose assets are kept as images."""

    classifier: Classifier
    pool: ImageSet = field(default_factory=make_pool)
    size: tuple[int, int] = (200, 200)
    texts: dict[str, str] = field(default_factory=lambda: CATALOGUES["en"])
    kept: dict[str, Any] = field(default_factory=dict)
    written: list[Image.Image] = field(default_factory=list)

    def seed_of(self, *parts: str) -> int:
        return sum(map(ord, "".join(parts)))

    def once(self, name: str, make: Callable[[], Any]) -> Any:
        if name not in self.kept:
            self.kept[name] = make()
        return self.kept[name]

    def write(self, image: Image.Image) -> str:
        self.written.append(image)
        return str(len(self.written) - 1)

    def make(self, image: Image.Image, classes: tuple[int, int]) -> ConditionAssets:
        seen = view(self.classifier, image)
        material = SimpleNamespace(
            classes=classes,
            options=tuple(NAMES[k] for k in classes),
            view=seen,
            inputs=self.classifier.preprocess(image)[None],
        )
        return make(cast(Studio, self), cast(TrialMaterial, material))


@pytest.fixture(scope="module")
def studio() -> Iterator[PlantedStudio]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fit, "SETTINGS", QUICK)
        yield PlantedStudio(Classifier(Colours(), to_input, NAMES, name="colours"))


def test_the_parts_shown_are_those_that_were_planted(studio: PlantedStudio) -> None:
    """Red and blue for and against red, green for green. Catches another place, colour, class, and a lost sign."""
    red, green, blue = (4, 20), (20, 8), (16, 24)
    image = draw({red: (0, 0.9), green: (1, 0.8), blue: (2, 1.0)}, 1000)
    made = studio.make(image, (0, 1))
    first, second, third = (*made.examples["red"], made.examples["green"][0])
    for name, (row, column), frame in (
        (first, red, cards.FOR),
        (second, blue, cards.AGAINST),
        (third, green, cards.FOR),
    ):
        card = np.asarray(studio.written[int(name)], dtype=int)
        cut = image.crop((column, row, column + SQUARE, row + SQUARE)).resize((98, 98), Image.Resampling.BICUBIC)
        difference = np.abs(card[:98, 102:] - np.asarray(cut, dtype=int)).mean()
        assert difference < 10  # but for the edges: one cell away, half of it would differ
        framed = np.argwhere(np.abs(card[:98, :98] - frame).sum(2) < 60) / 98 * SIDE
        assert framed.min(0) == pytest.approx((row, column), abs=1)
        assert framed.max(0) == pytest.approx((row + SQUARE, column + SQUARE), abs=1)
        assert (card[100:] < 120).any()
        assert (card[:100, 98:102] == 255).all()
    maps = maps_of(studio.classifier, to_input(image)[None], "cells")[0]
    adds = [sum(one.adds for one in cards.choose_parts(studio.kept[f"x_features of {k}"], maps)) for k in (0, 1)]
    assert made.gain == pytest.approx(adds[0] - adds[1], rel=1e-3)


def test_it_does_not_depend_on_what_was_predicted(studio: PlantedStudio) -> None:
    """Catches a rule that treats the predicted class and the foil differently."""
    image = draw({(4, 20): (0, 0.9), (20, 8): (1, 0.8)}, 1001)
    one, other = studio.make(image, (0, 1)), studio.make(image, (1, 0))
    for name in ("red", "green"):
        drawn = [[np.asarray(studio.written[int(i)]) for i in made.examples[name]] for made in (one, other)]
        assert all(np.array_equal(a, b) for a, b in zip(*drawn, strict=True))
    assert one.gain == pytest.approx(-(other.gain or 0))


def test_a_class_is_fitted_once_and_alike_by_the_seed(studio: PlantedStudio) -> None:
    again = PlantedStudio(studio.classifier)
    image = draw({(4, 20): (0, 0.9)}, 1002)
    assert studio.make(image, (0, 1)).gain == again.make(image, (0, 1)).gain
    assert {"x_features", "x_features of 0", "x_features of 1"} <= set(again.kept)
    again.kept["x_features of 0"] = replace(again.kept["x_features of 0"], usual=torch.zeros(2).double())
    assert again.make(image, (0, 1)).gain != studio.make(image, (0, 1)).gain


def hand_made(weights: list[float], usual: list[float], reach: float) -> fit.ClassFeatures:
    """x-features that are the channels themselves."""
    n = len(weights)
    eye = torch.eye(n).double()
    found = XFeatures((eye,), True, torch.tensor(weights).double(), 0.0, eye, torch.zeros(n), torch.ones(n), 0.0)
    return fit.ClassFeatures(found, torch.tensor(usual).double(), reach)


def test_what_is_shown_by_hand() -> None:
    """Catches an x-feature that an image has less of than usual, an order by the value without its sign, and one by
    what it adds in place of what it adds more than usual."""
    maps = torch.zeros(4, 8, 8)
    maps[0, 2:4, 4:6] = 16 * 3.0  # adds 3, usually 1
    maps[1, 0, 0] = 64 * 2.5  # takes 5, usually 1
    maps[2, 7, 7] = 64 * 9.0  # adds 9, usually 8.5
    maps[3, 5, 5] = 64 * 1.0  # adds 1, usually 7
    shown = cards.choose_parts(hand_made([1, -2, 1, 1], [1, -1, 8.5, 7], 10), maps)
    assert [(one.adds, one.strength) for one in shown] == [(-4, -0.4), (2, pytest.approx(0.2))]
    assert shown[1].part == cards.ImagePart(4 / 8, 2 / 8, 6 / 8, 4 / 8)
    assert shown[0].part == cards.ImagePart(0, 0, 2 / 8, 2 / 8)
    assert cards.choose_parts(hand_made([1, -2, 1, 1], [4, -6, 9.5, 7], 10), maps) == ()


def test_a_part_has_the_largest_sum() -> None:
    """Against two loops, also where the image is not square. Catches a mean that favours edges, and swapped sides."""
    values = torch.randn(7, 10, generator=torch.Generator().manual_seed(0))
    sums = {(r, c): float(values[r : r + 2, c : c + 3].sum()) for r in range(6) for c in range(8)}
    row, column = max(sums, key=sums.__getitem__)
    found = cards.find_part(values)
    expected = column / 10, row / 7, (column + 3) / 10, (row + 2) / 7
    assert (found.left, found.top, found.right, found.bottom) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("strength", "said"),
    [
        (0.9, "spricht stark dafür"),
        (0.5, "spricht stark dafür"),
        (0.49, "spricht deutlich dafür"),
        (0.2, "spricht deutlich dafür"),
        (0.1, "spricht etwas dafür"),
        (-0.1, "spricht etwas dagegen"),
        (-0.3, "spricht deutlich dagegen"),
        (-2, "spricht stark dagegen"),
    ],
)
def test_the_words_of_a_strength(strength: float, said: str) -> None:
    assert cards.word_strength(strength, CATALOGUES["de"]) == said


@pytest.mark.parametrize("language", CATALOGUES)
def test_words_have_room_on_a_card(language: str) -> None:
    """White edges. Catches words that are cut, and a card of another size."""
    texts = CATALOGUES[language]
    image = Image.new("RGB", (90, 60), "red")
    part = cards.ShownPart(cards.ImagePart(0, 0, 0.5, 0.5), -1.0, -0.3)
    for shown in ((part,), ()):
        (drawn,) = cards.draw_cards(image, shown, texts, (180, 120))
        pixels = np.asarray(drawn.convert("L"))[62:]
        assert drawn.size == (180, 120)
        assert pixels.min() < 100
        assert (pixels[[0, -1]] == 255).all()
        assert (pixels[:, [0, -1]] == 255).all()


def read_of(noise: float, own: int = 45, others: int = 45) -> fit.ReadPool:
    """A class whose logit is given by the first channel, and by noise."""
    draws = torch.Generator().manual_seed(1)
    is_own = torch.arange(own + others) < own
    embedding = is_own[:, None] * 1.5 + torch.rand(own + others, 2, generator=draws)
    logits = torch.stack([8 * embedding[:, 0], torch.full((own + others,), 10.0)], 1)
    logits[:, 0] += noise * torch.randn(own + others, generator=draws)
    return fit.ReadPool("layer", embedding, logits)


def test_unfaithful_x_features_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches fidelity of fitted images, and one of all images, which is high where only the classes are told apart."""
    monkeypatch.setattr(fit, "SETTINGS", QUICK)
    assert fit.fit_class(read_of(0.0), 0, "fish", torch.Generator().manual_seed(0)).reach == pytest.approx(12, rel=0.1)
    message = r"The x-features of fish explain \d+% of the variance of its logit among \d+ held-out images that the AI"
    with pytest.raises(ForetellError, match=message):
        fit.fit_class(read_of(2.0), 0, "fish", torch.Generator().manual_seed(0))


@pytest.mark.parametrize("counts", [(27, 60), (60, 27)])
def test_too_few_images_are_refused(counts: tuple[int, int]) -> None:
    """Catches a class that is judged on a handful of images, and others too few to compare with."""
    with pytest.raises(ForetellError, match=rf"30 or more images .* of 87 it calls {counts[0]} so: give a larger pool"):
        fit.fit_class(read_of(0.0, *counts), 0, "fish", torch.Generator().manual_seed(0))


def test_a_network_without_places_is_refused() -> None:
    flat = Classifier(nn.Sequential(nn.Flatten(), nn.Linear(3 * SIDE * SIDE, 3)), to_input, NAMES, name="flat")
    with pytest.raises(ForetellError, match=r"flat has no layer that keeps places .* leave the condition out"):
        fit.read_pool(flat, make_pool(2))
