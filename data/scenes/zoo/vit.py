"""``scenes:vit``: a small vision transformer (Dosovitskiy et al. 2021) for the scenes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from data.scenes.classifier import CATEGORIES, MEAN_COLOUR, transforms
from data.scenes.pen import SIZE
from data.scenes.zoo.fitting import fit
from data.scenes.zoo.material import Images, Material
from data.scenes.zoo.store import restore

__all__ = ["CATEGORIES", "MEAN_COLOUR", "build", "train", "transforms"]

TITLE = "Vision transformer"
DIFFERENCE = (
    "It has attention between patches of 8 × 8 px in place of convolutions, and was trained on images like those of "
    "the built-in network."
)
PATCH, WIDTH, DEPTH, HEADS = 8, 96, 4, 4
SEED = 4
EPOCHS = 11
RATE = 1.5e-3


class Block(nn.Module):
    """Attention and a perceptron, each after a layer norm and added to what came in."""

    def __init__(self) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(WIDTH)
        self.self_attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.ln_2 = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 3 * WIDTH), nn.GELU(), nn.Linear(3 * WIDTH, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        """Transform tokens (B, N, D)."""
        inner = self.ln_1(x)
        attended, _ = self.self_attention(inner, inner, inner, need_weights=False)
        x = x + attended
        return x + self.mlp(self.ln_2(x))


class SceneTransformer(nn.Module):
    """Patches of 8 px, a class token, four blocks, a linear layer; 0.4 M parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.conv_proj = nn.Conv2d(3, WIDTH, PATCH, PATCH)
        self.class_token = nn.Parameter(torch.zeros(1, 1, WIDTH))
        self.positions = nn.Parameter(0.02 * torch.randn(1, (SIZE // PATCH) ** 2 + 1, WIDTH))
        self.blocks = nn.Sequential(*(Block() for _ in range(DEPTH)))
        self.ln = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, len(CATEGORIES))

    def forward(self, x: Tensor) -> Tensor:
        """Compute logits (B, 16) of normalised inputs (B, 3, 96, 96)."""
        patches = self.conv_proj(x).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.class_token.expand(len(x), -1, -1), patches], 1) + self.positions
        logits: Tensor = self.head(self.ln(self.blocks(tokens))[:, 0])
        return logits


def build() -> nn.Module:
    """Return the trained network."""
    return restore(SceneTransformer(), "vit")


def train(material: Material) -> tuple[nn.Module, dict[str, Any]]:
    """Train on the images of the built-in network, a quarter of a batch masked."""
    images: Images = material.training()
    network = SceneTransformer()
    fit(network, images, epochs=EPOCHS, generator=torch.Generator().manual_seed(SEED), rate=RATE, decay=0.05)
    return network, {"images": len(images), "epochs": EPOCHS, "seed": SEED, "rate": RATE}
