"""The question decomposition: its numbers against the layers themselves, its drawings, its warnings and refusals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image, ImageOps

from core.concepts.deconvolution import DeconvolutionSettings, LayerStack, add_layer, reconstruct
from core.drawing.rendering import GAP
from core.errors import ForetellError
from core.types import silent
from inquiry.layers import QUESTIONS
from inquiry.layers.images.decomposition import measure_lost, remove_local_mean, warn_of
from inquiry.layers.images.learned_filters import SHOWN, ZOOM, draw_decomposition, find_box, project_activation
from inquiry.layers.inspection import LayerInspection, LayerQuery
from inquiry.layers.record import record_of
from study.network.sources import open_set
from study.plan.config import ImageSource
from tests.core.scenes import scene_net

SIDE = 20
GIVEN = {"filters": "4,3", "images": 12, "side": SIDE, "size": 3, "epochs": 3}


def inspect(count: int = 15) -> LayerInspection:
    images = open_set(ImageSource.model_validate({"set": "scenes", "split": "standard", "size": count}), None)
    network = scene_net()
    return LayerInspection(network, images, LayerQuery("decomposition"), network)


@pytest.fixture(scope="module")
def inspected() -> LayerInspection:
    return inspect()


@pytest.fixture(scope="module")
def table(inspected) -> pd.DataFrame:
    return QUESTIONS["decomposition"](inspected, silent, **GIVEN)


def test_layers_are_learned_from_two_thirds_and_judged_on_the_rest(inspected, table) -> None:
    """Against the steps one by one. Catches images that are learned from and judged by, and energy of other images."""
    learned = inspected.kept["decomposition"]
    rows = learned.rows
    assert len(set(rows)) == 4
    images = [np.asarray(ImageOps.fit(inspected.images.open(k), (SIDE, SIDE))) for k in range(15)]
    pixels = torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).float() / 255
    torch.testing.assert_close(learned.pixels, pixels[list(rows)])
    torch.testing.assert_close(learned.smooth + learned.scale * learned.contrast, learned.pixels)
    whole = table[table["filter"] == "all"]
    for layer, (_, row) in enumerate(whole.iterrows()):
        difference = (learned.decomposition.rebuilt[layer] - learned.contrast).numpy()
        lost = (difference**2).sum((1, 2, 3)) / (learned.contrast.numpy() ** 2).sum((1, 2, 3))
        assert row["lost"] == pytest.approx(lost.mean(), rel=1e-4)
        assert row["lost_error"] == pytest.approx(lost.std(ddof=1) / 2, rel=1e-4)
        assert row["active"] == pytest.approx(float((learned.decomposition.activations[layer] != 0).float().mean()))
    assert whole["lost"].iloc[0] < whole["lost_random"].iloc[0]
    first = DeconvolutionSettings(4, size=3, weight=2.0, epochs=3)
    mixed = set(range(15)) - set(rows)
    assert len(mixed) == 11
    assert learned.stack.settings == (first, DeconvolutionSettings(3, size=3, weight=1.0, epochs=3))


def test_each_filter_has_its_share_and_its_strongest_images(inspected, table) -> None:
    """Against the activations. Catches a share of another layer, and images that are named for another filter."""
    learned = inspected.kept["decomposition"]
    for layer in range(2):
        z = learned.decomposition.activations[layer].abs()
        own = table[(table["layer"] == layer + 1) & (table["filter"] != "all")]
        assert own["share"].tolist() == pytest.approx((z.sum((0, 2, 3)) / z.sum()).tolist())
        assert own["images"].tolist() == [int(sum(bool(z[b, k].any()) for b in range(4))) for k in range(z.shape[1])]
        for k, said in enumerate(own["strongest"]):
            most = int(z[:, k].amax((1, 2)).argmax())
            assert said.split(", ")[0] == inspected.images.ids[learned.rows[most]]


def test_the_local_mean_is_taken_off_and_the_contrast_is_of_one_size() -> None:
    """Closed form: a plane is its own local mean, away from the margin. Catches a mean over colours or images."""
    row, column = torch.meshgrid(torch.linspace(0, 0.5, 48), torch.linspace(0, 0.5, 48), indexing="ij")
    plane = (row + column).expand(2, 3, 48, 48).clone()
    plane[0, 1, 24, 24] += 0.3
    contrast, scale = remove_local_mean(plane)
    assert float(contrast.std()) == pytest.approx(1, rel=1e-4)
    assert float((scale * contrast[1, :, 20:28, 20:28]).abs().max()) < 1e-5
    assert float(scale * contrast[0, 1, 24, 24]) > 0.28
    assert float((scale * contrast[0, 0, 20:28, 20:28]).abs().max()) < 1e-5
    with pytest.raises(ForetellError, match="of one colour each"):
        remove_local_mean(torch.full((2, 3, 48, 48), 0.4))


def test_what_is_lost_is_a_share_of_the_energy() -> None:
    """By hand: half of the amplitude leaves a quarter of the energy, nothing all of it."""
    images = torch.randn(2, 3, 4, 4, generator=torch.Generator().manual_seed(0))
    assert measure_lost(images / 2, images).tolist() == pytest.approx([0.25, 0.25])
    assert measure_lost(torch.zeros_like(images), images).tolist() == pytest.approx([1, 1])


def test_an_activation_is_projected_by_the_switches_of_its_image(inspected, table) -> None:
    """The projections of all activations of an image sum to what its layer rebuilds, because R is linear."""
    learned = inspected.kept["decomposition"]
    z = learned.decomposition.activations[1]
    total = sum(project_activation(learned, 1, (2, *place)) for place in torch.nonzero(z[2]).tolist())
    torch.testing.assert_close(total, learned.decomposition.rebuilt[1][2], rtol=1e-3, atol=1e-4)
    for k in range(3):
        for b, row, column in learned.find_strongest(1, k, 1):
            assert z[b, k, row, column].abs() == z[:, k].abs().max()


def test_the_box_surrounds_what_is_lit() -> None:
    """By hand. Catches rows that are taken for columns, and boxes beyond the margin."""
    patch = torch.zeros(3, 12, 12)
    patch[1, 2, 7] = -1
    assert find_box(patch, 5) == (0, 5, 5, 10)
    patch[1, 2, 7], patch[0, 11, 0] = 0, 1
    assert find_box(patch, 4) == (8, 0, 12, 4)


def test_drawings_are_filters_of_each_layer_and_rebuilt_images(inspected, table) -> None:
    """Catches a drawing that is missing, and an image that is not the one that was taken apart."""
    assert record_of("decomposition").drawing.draw is draw_decomposition
    drawn = draw_decomposition(inspected)
    assert list(drawn) == ["filters of layer 1", "filters of layer 2", "images as rebuilt"]
    sheet = drawn["images as rebuilt"]
    shown = min(SHOWN, 4)
    assert sheet.size == (shown * (ZOOM * SIDE + GAP) - GAP, 3 * (ZOOM * SIDE + GAP) - GAP)
    first = sheet.crop((0, 0, ZOOM * SIDE, ZOOM * SIDE)).resize((SIDE, SIDE), Image.Resampling.NEAREST)
    expected = 255 * inspected.kept["decomposition"].pixels[0].permute(1, 2, 0).numpy()
    assert np.abs(np.asarray(first).astype(float) - expected).max() < 1
    patches = drawn["filters of layer 1"]
    assert patches.height == ZOOM * 3
    assert draw_decomposition(inspect(9)) == {}


def test_layers_that_do_not_help_are_reported() -> None:
    """Catches a warning about filters that help, and one that is not given about those that do not."""
    noise = torch.linspace(0, 0.1, 10)
    z = torch.ones(10, 3, 2, 2)
    z[:, 1] = 0
    assert warn_of(1, 0.2 + noise, 0.5 + noise.flip(0), z[:, [0, 2]]) == []
    poor, unused = warn_of(2, 0.5 + noise, 0.5 + noise.flip(0), z)
    assert poor.startswith(
        "On held-out images the filters of layer 2 rebuild no better than random ones: they lose 55.0%"
    )
    assert unused == "Filters of layer 2 without activations in held-out images: 1."


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"filters": "12;24"}, "filters='12;24': give the number of filters"),
        ({"filters": "4,0"}, "filters=0: give a whole number"),
        ({"side": 4}, "side=4: choose 8 px or more"),
        ({"images": 5}, "5 images are too few"),
        ({"weight": -1.0}, "weight=-1"),
    ],
)
def test_what_cannot_be_learned_is_refused(inspected, given: dict[str, object], message: str) -> None:
    with pytest.raises(ForetellError, match=message):
        QUESTIONS["decomposition"](inspected, silent, **(GIVEN | given))


def test_the_same_seed_gives_the_same_layers() -> None:
    """Catches a draw from the process's own generator."""
    y = torch.randn(3, 3, 10, 10, generator=torch.Generator().manual_seed(0))
    settings = DeconvolutionSettings(4, size=3, epochs=2)
    one, two = (
        add_layer(LayerStack(), y, settings, generator=torch.Generator().manual_seed(5)).filters[0] for _ in range(2)
    )
    assert torch.equal(one, two)
    assert reconstruct(torch.zeros(1, 4, 12, 12), [one], []).shape == (1, 3, 10, 10)
