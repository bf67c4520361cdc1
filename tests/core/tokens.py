"""Small networks that hold the places of an image as tokens or with channels last."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from core.loading import import_torchvision
from core.network.classifier import Classifier

import_torchvision()  # before timm, which imports it as it is
PATCH = 4
SIDES = 12, 20
"""Height and width of `Planted`'s images: a grid of 3 x 5."""


class Planted(nn.Module):
    """A class token reads how red the patches are, through a ReLU that only a very red one passes.

    ``before`` and ``after`` tokens that are no places lie before and behind those of the patches. The class token is
    the first of all, or the last one where none lies before.
    """

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.embed = nn.Conv2d(3, 6, PATCH, PATCH)
        self.before, self.after = (nn.Parameter(torch.zeros(1, count, 6)) for count in (before, after))
        self.block, self.mixed, self.head = nn.ReLU(), nn.Identity(), nn.Linear(6, 2, bias=False)
        with torch.no_grad():
            self.embed.weight.zero_()
            for k in range(6):
                self.embed.weight[k, k % 3] = (1 if k < 3 else -1) / PATCH**2
            self.embed.bias.fill_(-0.5)
            self.head.weight.zero_()[0, 0] = 1.0

    def forward(self, x: Tensor) -> Tensor:
        patches = self.embed(x).flatten(2).transpose(1, 2)
        ends = (one.expand(len(x), -1, -1) for one in (self.before, self.after))
        x = self.block(torch.cat([next(ends), patches, next(ends)], 1))
        read = x + x.mean(1, keepdim=True)
        return self.head(self.mixed(read)[:, 0 if self.before.shape[1] else -1])


def planted(before: int = 1, after: int = 0) -> Classifier:
    grey = torch.zeros(3, *SIDES)
    return Classifier(Planted(before, after), lambda _: grey, name="planted")


def red_patch(row: int, column: int) -> Tensor:
    """A grey image (1, 3, H, W) with one red patch."""
    image = torch.zeros(1, 3, *SIDES)
    image[:, 0, PATCH * row : PATCH * (row + 1), PATCH * column : PATCH * (column + 1)] = 4.0
    return image


def wrap(network: nn.Module, size: tuple[int, int], name: str = "network") -> Classifier:
    """Wrap a network with weights of a trained one's size: the heads of untrained ones are often 0."""
    draws = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for key, parameter in network.named_parameters():
            if parameter.ndim > 1 or key.endswith("bias"):
                parameter.normal_(0, parameter[0].numel() ** -0.5 / (10 if parameter.ndim == 1 else 1), generator=draws)
    image = torch.rand(3, *size, generator=draws)
    return Classifier(network, lambda _: image, name=name)


class Logits(nn.Module):
    """The logits alone of a network of the package transformers."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        return self.network(x).logits


def torchvision_vit(size: int = 32, layers: int = 3) -> Classifier:
    models = import_torchvision().models
    options = {"num_layers": layers, "num_heads": 2, "hidden_dim": 32, "mlp_dim": 64, "num_classes": 5}
    return wrap(models.VisionTransformer(size, 8, **options), (size, size), "vit")


def timm_vit(size: tuple[int, int] = (32, 48), **options: object) -> Classifier:
    """A vision transformer of timm with fused attention, as it is by default."""
    import_torchvision()
    import timm

    narrow = {"patch_size": 8, "embed_dim": 32, "depth": 3, "num_heads": 2, "num_classes": 5}
    return wrap(timm.models.VisionTransformer(img_size=size, **{**narrow, **options}), size, "timm vit")


def timm_swin(size: int = 64) -> Classifier:
    import_torchvision()
    import timm

    narrow = {"embed_dim": 16, "depths": (1, 2), "num_heads": (2, 2), "window_size": 4, "num_classes": 5}
    return wrap(timm.models.SwinTransformer(img_size=size, **narrow), (size, size), "timm swin")


def hf_vit(size: int = 32, layers: int = 3, attention: str = "sdpa") -> Classifier:
    import_torchvision()
    from transformers import ViTConfig, ViTForImageClassification

    settings = ViTConfig(
        hidden_size=32, num_hidden_layers=layers, num_attention_heads=2, intermediate_size=64, image_size=size,
        patch_size=8, num_labels=5, attn_implementation=attention,
    )  # fmt: skip
    return wrap(Logits(ViTForImageClassification(settings)), (size, size), "hf vit")
