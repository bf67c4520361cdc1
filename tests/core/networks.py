"""Small networks with a known answer, and one with everything that breaks attribution libraries."""

from __future__ import annotations

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional as F

from core.network.classifier import Classifier

SIDE = 12


class Awkward(nn.Module):
    """In-place first operation, a ReLU used twice, a functional ReLU, batch norm, dropout, a residual `+=`."""

    def __init__(self, classes: int = 3) -> None:
        super().__init__()
        self.relu = nn.ReLU(inplace=True)
        self.conv1 = nn.Conv2d(3, 8, 3, padding=1)
        self.bn = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 8, 3, padding=1)
        self.drop = nn.Dropout(0.5)
        self.head = nn.Linear(8, classes)

    def forward(self, x: Tensor) -> Tensor:
        x.mul_(1.5)
        x = self.relu(self.bn(self.conv1(x)))
        y = self.conv2(x)
        y += x
        return self.head(self.drop(F.relu(self.relu(y) - 0.1)).mean((2, 3)))


def greedy(network: nn.Module) -> tuple[nn.Module, list[int]]:
    """``network`` on a device that takes two inputs at a time, and the sizes of the batches it is given."""
    sizes: list[int] = []

    class Greedy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, x: Tensor) -> Tensor:
            sizes.append(len(x))
            if len(x) > 2:
                raise torch.OutOfMemoryError("out of memory")
            return self.network(x)

    return Greedy(), sizes


class ToyA(nn.Module):
    """f(x) = relu(s - 10) + 3 relu(s + 1) - 1 with s the sum of three inputs (captum's BasicModel_MultiLayer)."""

    def forward(self, x: Tensor) -> Tensor:
        s = x.flatten(1).sum(1, keepdim=True)
        f = F.relu(s - 10) + 3 * F.relu(s + 1) - 1
        return torch.cat([f, -f], 1)


def raw(image: Image.Image) -> Tensor:
    """Pixels in 0..255 of a picture cut to 1 x 3, one channel: inputs of any value for toy networks."""
    return torch.zeros(1, 1, 3)


def unit(image: Image.Image) -> Tensor:
    """(3, SIDE, SIDE), pixels in [-1, 1]: black is -1."""
    pixels = np.asarray(image.resize((SIDE, SIDE)), dtype=np.float32)
    return torch.from_numpy(pixels / 127.5 - 1).permute(2, 0, 1).contiguous()


def awkward(seed: int = 0, device: str = "cpu") -> Classifier:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = Awkward()
        for parameter in network.parameters():
            nn.init.normal_(parameter, std=0.5)
        network.bn.running_mean.normal_()
        network.bn.running_var.uniform_(0.5, 2)
    return Classifier(network, unit, ["ant", "bee", "cat"], name="awkward", device=device)


class Attentive(nn.Module):
    """A vision transformer of two blocks with fused attention, whose class token is read; patches of 3 px."""

    def __init__(self, classes: int = 3, width: int = 8) -> None:
        super().__init__()
        self.embed = nn.Conv2d(3, width, 3, 3)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.qkv = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(2))
        self.blocks = nn.ModuleList(nn.Identity() for _ in range(2))
        self.drop, self.head = nn.Dropout(0.5), nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], 1)
        for norm, qkv, block in zip(self.norms, self.qkv, self.blocks, strict=True):
            q, k, v = qkv(norm(x)).unflatten(2, (3, 2, -1)).permute(2, 0, 3, 1, 4)
            x = block(x + F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return self.head(self.drop(x)[:, 0])


def attentive(seed: int = 0, device: str = "cpu") -> Classifier:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = Attentive()
        for parameter in network.parameters():
            nn.init.normal_(parameter, std=0.5)
    return Classifier(network, unit, ["ant", "bee", "cat"], name="attentive", device=device)


class Flattened(nn.Module):
    """A batch norm whose output becomes tokens, as in LeViT and XCiT: PyTorch 2.13 gets one image's gradient wrong.

    ``plainly`` writes the same function so that no view hides its order.
    """

    def __init__(self, plainly: bool = False, width: int = 8, classes: int = 3) -> None:
        super().__init__()
        self.plainly = plainly
        self.embed = nn.Conv2d(3, width, 3, 3)
        self.bn = nn.BatchNorm2d(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.mix = nn.Linear(width, width)
        self.late = nn.BatchNorm2d(width)
        self.head = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.flatten(self.bn(F.relu(self.embed(x.to(self.head.weight.dtype)))))
        q, k, v = self.qkv(x).unflatten(2, (3, 2, -1)).permute(2, 0, 3, 1, 4)
        x = x + F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        x = x.transpose(1, 2).reshape(len(x), -1, SIDE // 3, SIDE // 3)
        return self.head(F.relu(self.mix(self.flatten(self.late(x)))).mean(1))

    def flatten(self, x: Tensor) -> Tensor:
        return x.permute(0, 2, 3, 1).flatten(1, 2) if self.plainly else x.flatten(2).transpose(1, 2)


def flattened(plainly: bool = False, precision: torch.dtype = torch.float32) -> Classifier:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        network = Flattened(plainly).requires_grad_(False)
        for parameter in network.parameters():
            nn.init.normal_(parameter, std=0.5)
        for norm in (network.bn, network.late):
            norm.running_mean.normal_()
            norm.running_var.uniform_(0.5, 2)
    return Classifier(network.to(precision), unit, ["ant", "bee", "cat"], name="flattened")


def pictures(count: int, seed: int = 1) -> Tensor:
    """(count, 3, SIDE, SIDE) inputs in [-1, 1]."""
    return torch.rand(count, 3, SIDE, SIDE, generator=torch.Generator().manual_seed(seed)) * 2 - 1
