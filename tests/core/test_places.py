"""Layers of class activation maps: only those that hold the places of the image, in a layout that is measured."""

from __future__ import annotations

import importlib

import pytest
import torch
from torch import Tensor, nn

from core.attribution import METHODS
from core.attribution.places.place import select_layer
from core.errors import ForetellError
from core.faithfulness.randomisation import cascading_randomisation
from core.loading import import_torchvision
from core.network.classifier import Classifier

SIDE, PATCH, WIDTH = 32, 4, 16
GRID = SIDE // PATCH
CAM_FAMILY = ("grad_cam", "grad_cam_plus_plus", "layer_cam", "score_cam", "erasure", "cam")


class Attention(nn.Module):
    """Attention whose parts are modules, as timm's are: queries (B, heads, N, d) and weights (B, heads, N, N)."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.norm, self.drop = nn.LayerNorm(WIDTH // 2), nn.Dropout(0.1)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).unflatten(2, (3, 2, WIDTH // 2)).permute(2, 0, 3, 1, 4)
        weights = self.drop((self.norm(q) @ self.norm(k).transpose(2, 3)).softmax(3))
        return self.out((weights @ v).transpose(1, 2).flatten(2))


class Tokens(nn.Module):
    """A vision transformer: the places of its patches are a list (B, N, K)."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Conv2d(3, WIDTH, PATCH, PATCH)
        self.attention = nn.ModuleList(Attention() for _ in range(3))
        self.head = nn.Linear(WIDTH, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x).flatten(2).transpose(1, 2)
        for layer in self.attention:
            x = x + layer(x)
        return self.head(x.mean(1))


class ChannelsLast(nn.Module):
    """A network that ends in (B, h, w, K), as Swin transformers do."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.mix = nn.Conv2d(3, WIDTH, PATCH, PATCH), nn.Linear(WIDTH, WIDTH)
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.norm(self.mix(self.embed(x).permute(0, 2, 3, 1)).relu()).mean((1, 2)))


class Branches(nn.Module):
    """Two branches side by side, joined: the one that runs last holds half of what counts."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.one, self.two = nn.Conv2d(3, 8, 3, 2, 1), nn.Conv2d(8, 8, 1), nn.Conv2d(8, 8, 3, 1, 1)
        self.head = nn.Linear(16, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x).relu()
        return self.head(torch.cat([self.one(x), self.two(x)], 1).relu().mean((2, 3)))


class Biased(nn.Module):
    """A convolutional network that reads a table of position biases through a module, last of all."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.table, self.head = nn.Conv2d(3, 8, 3, 2, 1), nn.Identity(), nn.Linear(8, 5)
        self.bias = nn.Parameter(torch.randn(1, 8, GRID, GRID))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(x).relu().mean((2, 3)) + self.table(self.bias).mean((2, 3)))


def classifier(network: nn.Module, side: int = SIDE) -> Classifier:
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.ndim > 1:
                parameter.normal_(0, parameter[0].numel() ** -0.5, generator=generator)
    image = torch.rand(3, side, side, generator=generator)
    return Classifier(network, lambda _: image, name="mine")


class Shuffled(Tokens):
    """Tokens in an order that has nothing to do with their places."""

    def __init__(self) -> None:
        super().__init__()
        self.order = torch.randperm(GRID**2, generator=torch.Generator().manual_seed(2))
        self.last = nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x).flatten(2).transpose(1, 2)[:, self.order]
        for layer in self.attention:
            x = x + layer(x)
        return self.head(self.last(x).mean(1))


class Turned(ChannelsLast):
    """Maps whose axes are neither (K, h, w) nor (h, w, K)."""

    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        x = self.mix(self.embed(x).permute(0, 2, 3, 1)).relu()
        return self.head(self.norm(self.last(x.permute(0, 1, 3, 2)).mean((1, 3))))


@pytest.mark.parametrize("method", CAM_FAMILY)
@pytest.mark.parametrize("network", [Shuffled, Turned])
def test_networks_whose_places_are_not_found_are_refused_in_words(method: str, network: type[nn.Module]) -> None:
    """Not explained by an earlier layer, nor by axes that only look like places."""
    with pytest.raises(ForetellError, match="no axes of it are the places of the image"):
        METHODS[method](classifier(network()), torch.rand(1, 3, SIDE, SIDE), [0])


def test_a_refusal_names_the_last_layer_that_has_places() -> None:
    """Catches a remedy that leaves the user to guess which of the layers fits."""
    with pytest.raises(ForetellError, match=r"Give the layer 'embed', the last that has them, or a method that needs"):
        select_layer(classifier(Shuffled()), "")


class Pooled(Tokens):
    """Tokens that a module averages, as transformers' Swin, Swin v2 and FocalNet do: (B, K, 1) looks like tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.last, self.pooler = nn.Identity(), nn.AdaptiveAvgPool1d(1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x).flatten(2).transpose(1, 2)
        for layer in self.attention:
            x = x + layer(x)
        return self.head(self.pooler(self.last(x).transpose(1, 2)).flatten(1))


def test_a_module_behind_the_pooling_ends_no_search() -> None:
    """Catches layer methods refused on networks whose pooling is a module."""
    assert select_layer(classifier(Pooled()), "") == "last"


@pytest.mark.parametrize("layer", ["attention.2.drop", "attention.1.norm"])
def test_a_layer_that_mixes_places_is_refused_also_by_name(layer: str) -> None:
    with pytest.raises(ForetellError, match="Its heatmap would be meaningless"):
        METHODS["grad_cam"](classifier(Tokens()), torch.rand(1, 3, SIDE, SIDE), [0], layer=layer)


def test_the_embedding_of_patches_is_used_where_it_is_asked_for() -> None:
    assert select_layer(classifier(Tokens()), "embed") == "embed"


@pytest.mark.parametrize(("network", "layer"), [(Branches, "stem"), (Biased, "body")])
def test_the_layer_is_one_that_everything_passes_through(network: type[nn.Module], layer: str) -> None:
    """Not the branch, nor the table of biases, that happens to run last."""
    assert select_layer(classifier(network()), "") == layer


def small(name: str) -> nn.Module:
    """Build one of torchvision's architectures with few and narrow layers."""
    models = import_torchvision().models
    if name == "vit":
        return models.VisionTransformer(SIDE, 8, num_layers=2, num_heads=2, hidden_dim=32, mlp_dim=64)
    if name == "swin":
        return models.SwinTransformer([4, 4], 16, depths=[1, 1], num_heads=[2, 2], window_size=[4, 4])
    if name == "convnext":
        settings = importlib.import_module("torchvision.models.convnext").CNBlockConfig
        return models.ConvNeXt([settings(16, 32, 1), settings(32, None, 1)])
    return models.get_model(name, weights=None, **({"init_weights": False} if name == "googlenet" else {}))


@pytest.mark.parametrize(
    ("name", "layer"),
    [("resnet18", "layer4"), ("squeezenet1_1", "classifier.2"), ("googlenet", "inception5b"),
     ("convnext", "features"), ("swin", "permute"), ("vit", "encoder.layers.encoder_layer_0")],
)  # fmt: skip
def test_torchvisions_networks(name: str, layer: str) -> None:
    """Swin's last maps are turned to (B, K, h, w) before they are averaged: that layer is right for it.

    Of the ViT's last block only the class token is read: the block before is the last whose places count.
    """
    assert select_layer(classifier(small(name), SIDE if name == "vit" else 64), "") == layer


def test_a_network_that_forgets_keeps_its_layer() -> None:
    """Whether places are kept is a matter of the structure: random weights must not stop the randomisation check."""
    network = classifier(Branches())
    cascading_randomisation(network, torch.rand(1, 3, SIDE, SIDE), [0], "grad_cam", parameters={"layer": ""})
