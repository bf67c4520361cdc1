"""AttnLRP: the softmax rule in closed form, and a block of a transformer against the paper's own package."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional as F

from core.attribution.relevance.attn_lrp import attn_lrp
from core.attribution.relevance.network import Composite, Relevance, relevance_of_inputs
from core.attribution.relevance.rules import Epsilon
from core.errors import ForetellError
from core.network.classifier import Classifier
from tests.core.networks import attentive, awkward
from tests.core.tokens import hf_vit, timm_swin, timm_vit, torchvision_vit

STORED = Path(__file__).parents[1] / "frozen" / "attn_lrp_by_lxt.safetensors"
EXACT = Composite(Epsilon(0.0), Epsilon(0.0), other=Epsilon(0.0), through_softmax=True)


class Softmax(nn.Module):
    """f = w . softmax(x) of three inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(3, 2, bias=False)
        with torch.no_grad():
            self.head.weight.copy_(torch.tensor([[1.0, -2.0, 3.0], [0.0, 1.0, 0.0]]))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(x.flatten(1).softmax(1))


def test_the_rule_of_the_softmax_in_closed_form() -> None:
    """Proposition 3.1: R_j = x_j (R_j - s_j sum R) with R_j = w_j s_j from the linear layer above."""
    x = torch.tensor([0.5, -1.0, 2.0]).view(1, 1, 1, 3)
    found, _ = relevance_of_inputs(Softmax(), x, torch.tensor([0]), Relevance("net", "attn_lrp", EXACT), (x - 1, x + 1))
    flat, s = x.flatten(), x.flatten().softmax(0)
    above = torch.tensor([1.0, -2.0, 3.0]) * s
    torch.testing.assert_close(found.flatten(), flat * (above - s * above.sum()), rtol=1e-5, atol=1e-6)


class Block(nn.Module):
    """One block of a transformer with one head, on patches of 3 px; the logits are of the mean token."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(27, 6)
        self.norm, self.last = nn.LayerNorm(6), nn.LayerNorm(6)
        self.query, self.key, self.value, self.out = (nn.Linear(6, 6) for _ in range(4))
        self.up, self.down, self.head = nn.Linear(6, 12), nn.Linear(12, 6), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x.unfold(2, 3, 3).unfold(3, 3, 3).permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2))
        y = self.norm(x)
        x = x + self.out(F.scaled_dot_product_attention(self.query(y), self.key(y), self.value(y)))
        x = x + self.down(F.gelu(self.up(self.last(x))))
        return self.head(x.mean(1))


def theirs(lxt: object, block: Block, image: Tensor, target: int) -> Tensor:
    """The relevance of the pixels by lxt's explicit rules, call by call."""

    def linear(layer: nn.Linear, x: Tensor) -> Tensor:
        return lxt.linear_epsilon(x, layer.weight, layer.bias, 1e-9)

    def norm(layer: nn.LayerNorm, x: Tensor) -> Tensor:
        return lxt.layer_norm(x, layer.weight, layer.bias, layer.eps)

    class Identity(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return F.gelu(x)

        @staticmethod
        def backward(ctx, relevance):
            return relevance

    image = image.clone().requires_grad_()
    x = linear(block.embed, image.unfold(2, 3, 3).unfold(3, 3, 3).permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2))
    y = norm(block.norm, x)
    query, key, value = (linear(one, y) for one in (block.query, block.key, block.value))
    scores = lxt.matmul(lxt.mul2(query, 6**-0.5), key.transpose(1, 2), False, 1e-9)
    x = lxt.add2(x, linear(block.out, lxt.matmul(lxt.softmax(scores, -1), value, False, 1e-9)), False, 1e-9)
    x = lxt.add2(x, linear(block.down, Identity.apply(linear(block.up, norm(block.last, x)))), False, 1e-9)
    logit = linear(block.head, lxt.mean(x, 1, False, 1e-9))[0, target]
    return torch.autograd.grad(logit, image, logit.detach())[0]


def test_the_stored_relevance_is_that_of_lxt() -> None:
    """Where lxt is installed; `test_agrees_with_lxt` reads what it gave (version 2.1), as it installs much else."""
    lxt = pytest.importorskip("lxt.explicit.functional")
    block, image, expected = read_stored()
    torch.testing.assert_close(theirs(lxt, block, image, 1), expected, rtol=1e-9, atol=1e-12)


def read_stored() -> tuple[Block, Tensor, Tensor]:
    """Read a block with random weights, an image, and the relevance of its pixels by lxt."""
    stored = load_file(STORED)
    image, expected = stored.pop("image"), stored.pop("relevance")
    block = Block().double()
    block.load_state_dict(stored)
    return block, image, expected


def test_agrees_with_lxt() -> None:
    """Its explicit rules of every layer; attention fused here, written out there."""
    block, image, expected = read_stored()
    composite = Composite(Epsilon(1e-9), Epsilon(1e-9), other=Epsilon(1e-9), through_softmax=True)
    bounds = (torch.full_like(image, -1.0), torch.full_like(image, 1.0))
    found, _ = relevance_of_inputs(block, image, torch.tensor([1]), Relevance("block", "attn_lrp", composite), bounds)
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4 * float(expected.abs().max()))


@pytest.mark.parametrize("make", [torchvision_vit, timm_vit, hf_vit, timm_swin, attentive, awkward])
def test_it_runs_on_every_kind_of_attention_and_on_none(make) -> None:
    """nn.MultiheadAttention, fused attention of timm and transformers, windows; a map of one value says nothing."""
    pytest.importorskip("timm")
    pytest.importorskip("transformers")
    classifier: Classifier = make()
    images = torch.randn(1, *classifier.input_shape, generator=torch.Generator().manual_seed(1))
    found = attn_lrp(classifier, images, [1]).map
    assert torch.isfinite(found).all()
    assert float(found.std()) > 0


def test_a_negative_gamma_is_refused() -> None:
    with pytest.raises(ForetellError, match="give 0 or more"):
        attn_lrp(
            Classifier(Softmax(), lambda _: torch.zeros(1, 1, 3), name="s"), torch.zeros(1, 1, 1, 3), [0], dense=-1
        )
