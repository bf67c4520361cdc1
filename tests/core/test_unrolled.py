"""Tokens of Hiera and LeViT of transformers: heatmaps lie where the evidence is, or the refusal says why not."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from core.attribution import METHODS
from core.attribution.maps.erasure import channel_importance
from core.attribution.places.layout import Layout
from core.attribution.places.place import find_layout, read_maps, select_place
from core.errors import ForetellError
from core.layers.layers import maps_of
from core.network.classifier import Classifier
from tests.core.tokens import Logits, wrap

pytest.importorskip("transformers")
STAGES = "network.hiera.encoder.stages."
SIZE = 128, 64
GRIDS = (32, 16), (16, 8), (8, 4), (4, 2)
"""Places of the four stages: those of the first have 4 px."""


def make_hiera() -> Classifier:
    from transformers import HieraConfig, HieraForImageClassification

    settings = HieraConfig(
        embed_dim=16, image_size=list(SIZE), depths=[1, 1, 2, 1], num_heads=[1, 1, 2, 2], mlp_ratio=2.0, num_labels=5
    )
    return wrap(Logits(HieraForImageClassification(settings)), SIZE, "hiera")


def make_levit(slope: float) -> Classifier:
    """Attention is the weaker the farther a place is, by ``slope``, as trained LeViTs learn it; 0 is as untrained."""
    from transformers import LevitConfig, LevitForImageClassification

    settings = LevitConfig(
        image_size=128, hidden_sizes=[32, 48, 64], num_attention_heads=[2, 3, 4], depths=[2, 2, 2], key_dim=[8, 8, 8],
        num_labels=5,
    )  # fmt: skip
    made = wrap(Logits(LevitForImageClassification(settings)), (128, 128), "levit")
    with made.exclusive() as module, torch.no_grad():
        for part in module.modules():
            if hasattr(part, "attention_biases"):
                part.attention_biases.copy_(_slope(part.attention_bias_idxs, slope).expand_as(part.attention_biases))
                part.attention_bias_cache = {}
    return made


def _slope(numbers: Tensor, slope: float) -> Tensor:
    """The bias of each numbered offset, from the places of queries and keys in square grids."""
    queries, keys = (round(count**0.5) for count in numbers.shape)
    biases = torch.zeros(int(numbers.max()) + 1)
    for i, row in enumerate(numbers):
        for j, number in enumerate(row):
            at = [place * -(-keys // queries) for place in divmod(i, queries)]
            biases[number] = -slope * sum(abs(a - b) for a, b in zip(at, divmod(j, keys), strict=True))
    return biases


def change_patch(image: Tensor, grid: tuple[int, int], row: int, column: int) -> Tensor:
    """Other noise in the middle of one place of a grid over the image (1, 3, H, W)."""
    high, wide = (side // cells for side, cells in zip(image.shape[2:], grid, strict=True))
    changed = image.clone()
    rows, columns = (slice(k * n + n // 4, (k + 1) * n - n // 4) for k, n in ((row, high), (column, wide)))
    changed[:, :, rows, columns] += 3 * torch.randn(
        changed[:, :, rows, columns].shape, generator=torch.Generator().manual_seed(row + 7 * column)
    )
    return changed


def noise(classifier: Classifier, count: int = 1) -> Tensor:
    return torch.randn(count, *classifier.input_shape, generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize("stage", range(4))
def test_the_order_of_hieras_tokens_is_the_inverse_of_its_own_reroll(stage: int) -> None:
    """Catches rows exchanged with columns, or the strides in the wrong order: the halves of both may be the same."""
    classifier, (h, w) = make_hiera(), GRIDS[stage]
    with classifier.exclusive() as module:
        numbers = torch.arange(h * w)[None, :, None]
        expected = module.network.hiera.encoder.reroll(numbers, stage)
    layout = find_layout(classifier, f"{STAGES}{stage}")
    assert layout == Layout("tokens", (h, w), unrolled=3 - stage)
    assert torch.equal(layout.to_maps(numbers)[0, 0], expected[0, :, :, 0])
    assert torch.equal(layout.order.view(h, w), expected[0, :, :, 0])


@pytest.mark.parametrize("stage", range(4))
@pytest.mark.parametrize("place", [(0, 0), (1, 0), (0, 1), (3, 1), (2, 1)])
def test_the_place_that_lights_up_is_the_one_that_changed(stage: int, place: tuple[int, int]) -> None:
    """Catches tokens that are read row by row. The patches of the first stage, of 4 px, overlap their neighbours'."""
    classifier, grid, blurred = make_hiera(), GRIDS[stage], int(stage == 0)
    row, column = (k * cells // coarse for k, cells, coarse in zip(place, grid, GRIDS[3], strict=True))
    before = noise(classifier)
    images = torch.cat([before, change_patch(before, grid, row, column)])
    maps = read_maps(classifier, images, torch.tensor([1, 1]), f"{STAGES}{stage}").activation
    lit = divmod(int((maps[1] - maps[0]).square().sum(0).argmax()), grid[1])
    assert max(abs(lit[0] - row), abs(lit[1] - column)) <= blurred
    assert torch.equal(maps_of(classifier, images, f"{STAGES}{stage}"), maps)


@pytest.mark.parametrize("method", ["grad_cam", "layer_cam", "score_cam", "erasure"])
def test_layer_methods_explain_hiera_by_its_last_block(method: str) -> None:
    """Each block returns a tuple: catches a search for layers that only sees tensors, and ends at a norm before it."""
    classifier = make_hiera()
    assert select_place(classifier, "") == (f"{STAGES}3", Layout("tokens", GRIDS[3]))
    parameters = {} if method == "erasure" else {"sign": "signed"}
    images = noise(classifier, 2)
    found = METHODS[method](classifier, images, [1, 2], **parameters).map
    assert found.flatten(1).std(1).min() > 0
    alone = METHODS[method](classifier, images[1:], [2], **parameters).map
    torch.testing.assert_close(found[1:], alone, rtol=1e-3, atol=1e-5 * float(found.abs().max()))


@pytest.mark.parametrize("stage", [1, 2])
def test_erased_places_of_unrolled_tokens_are_those_of_the_heatmap(stage: int) -> None:
    """Erased one by one by a hook of its own, by the numbers that the model's reroll gives: (h, w) before enlarging."""
    classifier, (h, w), layer = make_hiera(), GRIDS[stage], f"{STAGES}{stage}"
    image = noise(classifier)
    found = METHODS["erasure"](classifier, image, [1], layer=layer).map[0]

    def surprise(token: int | None) -> float:
        def erase(_: nn.Module, __: object, output: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            tokens = output[0] if token is None else output[0].index_fill(1, torch.tensor([token]), 0)
            return (tokens, *output[1:])

        handle = module.get_submodule(layer).register_forward_hook(erase)
        logits = module(image)
        handle.remove()
        return -float(logits.double().log_softmax(1)[0, 1])

    with classifier.exclusive() as module, torch.no_grad():
        numbers = module.network.hiera.encoder.reroll(torch.arange(h * w)[None, :, None], stage)[0, :, :, 0]
        whole = surprise(None)
        expected = torch.tensor([[(surprise(int(k)) - whole) / whole for k in row] for row in numbers])
    enlarged = nn.functional.interpolate(expected[None, None].float(), list(SIZE), mode="bilinear")[0, 0]
    torch.testing.assert_close(found, enlarged, rtol=1e-3, atol=1e-4 * float(enlarged.abs().max()))


def test_channels_of_a_tuple_of_tokens_are_erased() -> None:
    classifier = make_hiera()
    assert len(channel_importance(classifier, noise(classifier), [1], f"{STAGES}1")) == 32


class Neighbours(nn.Module):
    """Tokens unrolled once, but with the columns of each square before its rows: halves look like Hiera's."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.mix = nn.Conv2d(3, 16, 4, 4), nn.Linear(16, 64)
        self.head = nn.Linear(64, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x).unflatten(2, (-1, 2)).unflatten(4, (-1, 2)).permute(0, 5, 3, 2, 4, 1).flatten(1, 4)
        return self.head(self.mix(x).relu().mean(1))


def test_an_order_that_differs_only_between_neighbours_is_refused() -> None:
    """Catches a layout that is believed for its halves alone: every second place would be its neighbour's."""
    with pytest.raises(ForetellError, match="no axes of it are the places of the image"):
        select_place(wrap(Neighbours(), (64, 64), "neighbours"), "")


@pytest.mark.parametrize(
    ("stage", "side", "place"), [(0, 4, (0, 0)), (0, 4, (0, 3)), (0, 4, (2, 1)), (2, 2, (0, 1)), (2, 2, (1, 0))]
)
def test_levit_whose_attention_keeps_places_has_its_square_grids(stage: int, side: int, place: tuple[int, int]) -> None:
    """Attention that downsamples has no residual connection: where a place goes is a matter of its biases.

    Of each square of its 8 x 8 patches it keeps the first.
    """
    classifier, layer = make_levit(2.0), f"network.levit.encoder.stages.{stage}"
    assert select_place(classifier, "") == ("network.levit.encoder.stages.2", Layout("tokens", (2, 2)))
    before, patch = noise(classifier), tuple(k * 8 // side for k in place)
    images = torch.cat([before, change_patch(before, (8, 8), *patch)])
    maps = read_maps(classifier, images, torch.tensor([1, 1]), layer).activation
    assert divmod(int((maps[1] - maps[0]).square().sum(0).argmax()), side) == place


def test_levit_whose_attention_mixes_all_places_is_refused_with_the_reason() -> None:
    """Untrained, a token of its last stages is a mean over the image: a heatmap of them would say nothing."""
    cause = r"each of its tokens depends on the whole image alike.*Give the layer 'network\.levit\.encoder\.stages\.0\."
    with pytest.raises(ForetellError, match=cause):
        METHODS["grad_cam"](make_levit(0.0), torch.randn(1, 3, 128, 128), [0])
