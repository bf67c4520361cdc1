"""Twelve architectures with random weights, and evidence planted in them: only a known part of the image counts.

The architectures are those of torchvision, timm and open_clip, narrow and shallow, for small images. Their weights have
the size of a trained network's, batch norms the statistics of noise, and the last layer gives every class logits of the
same spread, so that every prediction depends on the image.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional as F

from core.loading import import_torchvision
from core.network.classifier import Classifier
from core.sources.clip import ZeroShot, build_head

CLASSES = 10
SPREAD = 3.0
"""Standard deviation of each class's logits over images."""
IMAGES = 32
"""Images of noise from which statistics and the spread of the logits are taken."""


@dataclass(frozen=True)
class Architecture:
    """A network, and what its authors' code says of its last layer with places.

    Attributes
    ----------
    build
        Makes the network, without arguments.
    side
        Of its images, px.
    layer, following
        The last layer with places that everything passes through, and the module that takes its output. Of a
        transformer that reads its class token, the last but one block.
    kind, prefix
        Whether it gives feature maps (B, K, h, w), channels_last (B, h, w, K) or tokens (B, N, K), of which the first
        ``prefix`` are no places.
    rectified
        Whether all its activations are ReLUs, so that it is piecewise linear.
    positions
        The parameter added to each token for its position.
    patch
        Side of a token's patch, px.
    """

    build: Callable[[], nn.Module]
    side: int
    layer: str
    following: str
    kind: str = "maps"
    prefix: int = 0
    rectified: bool = False
    positions: str = ""
    patch: int = 0

    def to_maps(self, output: Tensor) -> Tensor:
        """Return the layer's output as feature maps (B, K, h, w)."""
        if self.kind == "maps":
            return output
        if self.kind == "channels_last":
            return output.permute(0, 3, 1, 2)
        places = output[:, self.prefix :]
        side = round(places.shape[1] ** 0.5)
        return places.transpose(1, 2).reshape(len(output), -1, side, side)


class Window(nn.Module):
    """A network that sees only the upper right quarter of an image: everywhere else it sees 0."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        half = x.shape[2] // 2
        result: Tensor = self.network(F.pad(x[:, :, :half, half:], (half, 0, 0, half)))
        return result


class Behind(nn.Module):
    """A module that takes a layer's output with 0 in place of its upper right quarter."""

    def __init__(self, module: nn.Module, kept: Tensor) -> None:
        super().__init__()
        self.module = module
        self.register_buffer("kept", kept)

    def forward(self, x: Tensor, *others: Any, **named: Any) -> Any:
        return self.module(x * self.kept.view(1, *x.shape[1:]), *others, **named)


def mark_quarter(side: int) -> Tensor:
    """Return where the upper right quarter of (side, side) places is, bool; a middle row or column is not in it."""
    inside = torch.zeros(side, side, dtype=torch.bool)
    inside[: side // 2, side - side // 2 :] = True
    return inside


def plant_behind(network: nn.Module, architecture: Architecture) -> nn.Module:
    """Make what follows the layer of ``architecture`` blind to the upper right quarter of its places."""
    output = read_layer(network, architecture.layer, torch.zeros(1, 3, architecture.side, architecture.side))
    kept = torch.ones_like(output)
    maps = architecture.to_maps(kept)  # a view, except of tokens
    hidden = mark_quarter(maps.shape[2])
    if architecture.kind == "tokens":
        kept[:, architecture.prefix :][:, hidden.flatten()] = 0
    else:
        maps[:, :, hidden] = 0
    network.set_submodule(architecture.following, Behind(network.get_submodule(architecture.following), kept))
    return network


@torch.no_grad()
def read_layer(network: nn.Module, layer: str, inputs: Tensor) -> Tensor:
    """Return the output of ``layer``."""
    kept: list[Tensor] = []
    handle = network.get_submodule(layer).register_forward_hook(lambda _, __, output: kept.append(output))
    with handle:
        network(inputs)
    return kept[-1]


def draw_images(count: int, side: int, seed: int) -> Tensor:
    """Draw images (count, 3, side, side) of coarse, middle and fine noise, normalised as for ImageNet."""
    draws = torch.Generator().manual_seed(seed)
    layers = [torch.rand(count, 3, size, size, generator=draws) for size in (4, 16, side)]
    mixed = sum(F.interpolate(layer, [side, side], mode="bilinear") for layer in layers)
    assert isinstance(mixed, Tensor)
    return (mixed / len(layers) - 0.5) * 6


def draw_covered(side: int, seed: int) -> Tensor:
    """Draw images as the methods show them to a network: whole, half covered at random, and of one colour."""
    images = draw_images(IMAGES, side, seed)
    cells = torch.rand(IMAGES, 1, 4, 4, generator=torch.Generator().manual_seed(seed)).round()
    covered = images * F.interpolate(cells, [side, side])
    colours = images.mean((2, 3), keepdim=True).expand_as(images) * 2
    return torch.cat([images[:8], covered[8:], colours[:4]])


def randomise(network: nn.Module, side: int, seed: int = 0) -> nn.Module:
    """Give a network random weights of the size of a trained one's, and batch norms the statistics of noise."""
    draws = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if any(word in name for word in ("pos", "token", "class_embedding", "reg_")):
                parameter.normal_(0, 0.5, generator=draws)
            elif parameter.ndim > 1:
                parameter.normal_(0, parameter[0].numel() ** -0.5, generator=draws)
            elif name.endswith("bias"):
                parameter.normal_(0, 0.1, generator=draws)
            else:  # factors of norms and of residual branches
                parameter.normal_(1, 0.1, generator=draws)
    network.eval()
    norms = [one for one in network.modules() if isinstance(one, nn.modules.batchnorm._BatchNorm)]
    for norm in norms:
        norm.momentum = None
        norm.reset_running_stats()
        norm.train()
    with torch.no_grad():
        network(draw_covered(side, seed))
    return network.eval()


@torch.no_grad()
def spread_logits(network: nn.Module, side: int) -> nn.Module:
    """Give each class logits of mean 0 and standard deviation `SPREAD` over the images of `draw_covered`."""
    head = [one for one in network.modules() if isinstance(one, nn.Linear)][-1]
    logits = network(draw_covered(side, 1))
    factor = SPREAD / logits.std(0)
    bias = (head.bias if head.bias is not None else 0) - logits.mean(0)
    head.weight *= factor[:, None]
    head.bias = nn.Parameter(bias * factor)
    return network


def make_classifier(network: nn.Module, side: int, name: str) -> Classifier:
    """Wrap a network for square images of ``side`` px."""

    def transforms(image: Image.Image) -> Tensor:
        functional = importlib.import_module("torchvision.transforms.functional")
        pixels: Tensor = functional.to_tensor(functional.resize(image, [side, side]))
        return (pixels - 0.45) / 0.225

    return Classifier(network, transforms, name=name)


def choose_image(classifier: Classifier) -> tuple[Tensor, int]:
    """Return, of eight images of noise, the one (1, C, H, W) whose class leads most, and that class."""
    images = draw_images(8, classifier.input_shape[1], 2)
    two = classifier.logits(images).topk(2)
    best = int((two.values[:, 0] - two.values[:, 1]).argmax())
    return images[best : best + 1], int(two.indices[best, 0])


def _timm(name: str, **settings: Any) -> nn.Module:
    import_torchvision()  # timm imports it
    network: nn.Module = importlib.import_module("timm").create_model(name, num_classes=CLASSES, **settings)
    return network


def _resnet() -> nn.Module:
    import_torchvision()
    timm = importlib.import_module("timm.models.resnet")
    network: nn.Module = timm.ResNet(timm.BasicBlock, [2, 2, 2, 2], channels=(16, 32, 64, 128), num_classes=CLASSES)
    return network


def _vgg() -> nn.Module:
    import_torchvision()
    vgg = importlib.import_module("torchvision.models.vgg")
    layers = [16, "M", 32, "M", 64, 64, "M", 128, 128, "M", 128, 128, "M"]
    network: nn.Module = vgg.VGG(vgg.make_layers(layers), num_classes=CLASSES, init_weights=False)
    network.avgpool = nn.AdaptiveAvgPool2d(2)  # changes nothing, as 7 x 7 at 224 px
    network.classifier = nn.Sequential(nn.Linear(128 * 4, 128), nn.ReLU(True), nn.Dropout(), nn.Linear(128, CLASSES))
    return network


def _densenet() -> nn.Module:
    import_torchvision()
    timm = importlib.import_module("timm.models.densenet")
    network: nn.Module = timm.DenseNet(growth_rate=8, block_config=(2, 4, 4, 2), num_classes=CLASSES)
    return network


def _inception() -> nn.Module:
    """Inception v3 with a quarter of its channels."""
    import_torchvision()
    models = importlib.import_module("torchvision.models.inception")

    def narrow(incoming: int, outgoing: int, **settings: Any) -> nn.Module:
        layer: nn.Module = models.BasicConv2d(incoming if incoming == 3 else incoming // 4, outgoing // 4, **settings)
        return layer

    blocks = [partial(getattr(models, f"Inception{letter}"), conv_block=narrow) for letter in "ABCDE"]
    made = [narrow, *blocks, models.InceptionAux]
    network: nn.Module = models.Inception3(CLASSES, aux_logits=False, inception_blocks=made, init_weights=False)
    network.fc = nn.Linear(512, CLASSES)
    return network


def _efficientnet() -> nn.Module:
    """EfficientNet B0 with half of its channels."""
    import_torchvision()
    models = importlib.import_module("torchvision.models.efficientnet")
    blocks, _ = models._efficientnet_conf("efficientnet_b0", width_mult=0.5, depth_mult=1.0)
    network: nn.Module = models.EfficientNet(blocks, dropout=0.2, last_channel=256, num_classes=CLASSES)
    return network


def _clip() -> nn.Module:
    """CLIP's vision transformer with the zero-shot head of ten class names, as `core.sources` makes it."""
    import_torchvision()
    models = importlib.import_module("open_clip.model")
    vision = models.CLIPVisionCfg(layers=4, width=64, head_width=32, patch_size=8, image_size=64)
    text = models.CLIPTextCfg(width=32, heads=2, layers=2)
    network = models.CLIP(64, vision, text)
    tokenizer = importlib.import_module("open_clip").get_tokenizer("ViT-B-32")
    names = ["ant", "bee", "cat", "dog", "elk", "fox", "goat", "hare", "ibis", "jay"]
    return ZeroShot(network.visual, build_head(network, tokenizer, names, ["a photo of a {}."]))


NARROW = {"embed_dim": 64, "depth": 4, "num_heads": 2}
ARCHITECTURES: dict[str, Architecture] = {
    "resnet": Architecture(_resnet, 64, "layer4", "global_pool", rectified=True),
    "vgg": Architecture(_vgg, 64, "avgpool", "classifier", rectified=True),
    "densenet": Architecture(_densenet, 64, "features", "global_pool", rectified=True),
    "inception": Architecture(_inception, 112, "Mixed_7c", "avgpool", rectified=True),
    "efficientnet": Architecture(_efficientnet, 64, "features", "avgpool"),
    "convnext": Architecture(
        partial(_timm, "convnext_atto", dims=(16, 32, 64, 128), depths=(1, 1, 2, 1)), 64, "stages", "head"
    ),
    "mobilenet": Architecture(partial(_timm, "mobilenetv2_050"), 64, "bn2", "global_pool"),
    "vit": Architecture(
        partial(_timm, "vit_tiny_patch16_224", img_size=64, patch_size=8, **NARROW),
        64, "blocks.2", "blocks.3", "tokens", 1, positions="pos_embed", patch=8,
    ),
    "swin": Architecture(
        partial(
            _timm, "swin_tiny_patch4_window7_224", img_size=64, embed_dim=24, depths=(1, 1, 2, 1),
            num_heads=(1, 2, 4, 8), window_size=4,
        ),
        64, "norm", "head", "channels_last",
    ),
    "maxvit": Architecture(
        partial(
            _timm, "maxvit_rmlp_pico_rw_256", img_size=64, embed_dim=(32, 32, 64, 96), depths=(1, 1, 1, 1),
            stem_width=16,
        ),
        64, "norm", "head",
    ),
    "dinov2": Architecture(
        partial(_timm, "vit_small_patch14_reg4_dinov2", img_size=112, **NARROW),
        112, "blocks.2", "blocks.3", "tokens", 5, positions="pos_embed", patch=14,
    ),
    "clip": Architecture(
        _clip, 64, "visual.transformer.resblocks.2", "visual.transformer.resblocks.3", "tokens", 1,
        positions="visual.positional_embedding", patch=8,
    ),
}  # fmt: skip
