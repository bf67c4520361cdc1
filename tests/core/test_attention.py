"""Attention rollout and transformer attribution: closed forms, and loops over another package's attention."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from core.attribution import METHODS
from core.attribution.maps.attention import read_attentions
from core.attribution.maps.attention_rollout import attention_rollout
from core.attribution.maps.transformer_attribution import transformer_attribution
from core.errors import ForetellError
from core.network.classifier import Classifier
from tests.core.networks import SIDE, attentive, pictures, unit
from tests.core.tokens import Logits, hf_vit, timm_swin, timm_vit, torchvision_vit

GRID = 4
PLACES = GRID**2


class Fixed(nn.Module):
    """One layer of fused attention: the class token takes share ``shares`` of each token, and its value is the logit.

    The value of a patch is its mean times ``signs``; other tokens attend to all alike.
    """

    def __init__(self, shares: Tensor, signs: Tensor) -> None:
        super().__init__()
        self.embed = nn.AvgPool2d(3)
        self.mixed = nn.Identity()
        self.register_buffer("shares", shares)
        self.register_buffer("signs", signs)
        self.unused = nn.Parameter(torch.ones(1))

    def forward(self, x: Tensor) -> Tensor:
        places = self.embed(x).flatten(2).transpose(1, 2)
        x = self.mixed(torch.cat([torch.zeros_like(places[:, :1]), places], 1))
        query = torch.zeros(len(x), 1, PLACES + 1, 1)
        query[:, :, 0] = 1.0
        key = self.shares.log().view(1, 1, -1, 1).expand(len(x), -1, -1, -1)
        value = (x.sum(2) * self.signs)[:, None, :, None]
        read = F.scaled_dot_product_attention(query, key, value, scale=1.0)[:, 0, 0]
        return torch.cat([read, -read], 1) * self.unused


def shrink(found: Tensor) -> Tensor:
    """The coarse map whose bilinear enlargement is ``found`` (B, H, W), by least squares on each side."""
    sides = []
    for axis, size in ((1, found.shape[1]), (2, found.shape[2])):
        count = size // (SIDE // GRID) if size == SIDE else size // 8
        enlarge = F.interpolate(torch.eye(count)[None], size, mode="linear")[0].T
        sides.append(torch.linalg.pinv(enlarge))
        assert axis in (1, 2)
    return sides[0] @ found @ sides[1].T


def fixed() -> tuple[Classifier, Tensor, Tensor]:
    draws = torch.Generator().manual_seed(0)
    shares = torch.rand(PLACES + 1, generator=draws) + 0.1
    signs = torch.randn(PLACES + 1, generator=draws)
    return Classifier(Fixed(shares / shares.sum(), signs), unit, name="fixed"), shares / shares.sum(), signs


def test_one_layer_in_closed_form() -> None:
    """Rollout: half of each share; the rest is the class token's own. Attribution: share x value where positive."""
    classifier, shares, signs = fixed()
    images = pictures(2)
    values = F.avg_pool2d(images, 3).sum(1).flatten(1) * signs[1:]
    rolled = shrink(attention_rollout(classifier, images, [0, 1]).map)
    torch.testing.assert_close(rolled.flatten(1), (shares[1:] / 2).expand(2, -1), rtol=1e-4, atol=1e-5)
    found = shrink(transformer_attribution(classifier, images, [0, 1]).map).flatten(1)
    expected = (shares[1:] * values * torch.tensor([[1.0], [-1.0]])).clamp(min=0)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    weighted = shrink(attention_rollout(classifier, images, [0, 1], weighting="gradient").map).flatten(1)
    torch.testing.assert_close(weighted, expected / (1 + expected.sum(1, keepdim=True)), rtol=1e-4, atol=1e-5)


def slowly(attentions: list[Tensor], gradients: list[Tensor], kind: str, rows: list[int]) -> Tensor:
    """The heatmaps of one image by loops over layers, tokens and heads: (N,), the mean of ``rows``."""
    tokens = attentions[0].shape[-1]
    whole = [[float(i == j) for j in range(tokens)] for i in range(tokens)]
    for a, g in zip(attentions, gradients, strict=True):
        heads = len(a)
        layer = [[0.0] * tokens for _ in range(tokens)]
        for i in range(tokens):
            for j in range(tokens):
                terms = [float(a[h, i, j]) * (1.0 if kind == "rollout" else float(g[h, i, j])) for h in range(heads)]
                positive = [max(term, 0.0) for term in terms] if kind == "attribution" else terms
                layer[i][j] = max(sum(positive) / heads, 0.0)
        if kind != "attribution":
            layer = [[(value + (i == j)) / 2 for j, value in enumerate(row)] for i, row in enumerate(layer)]
            layer = [[value / sum(row) for value in row] for row in layer]
        product = [
            [sum(layer[i][k] * whole[k][j] for k in range(tokens)) for j in range(tokens)] for i in range(tokens)
        ]
        rest = whole if kind == "attribution" else [[0.0] * tokens for _ in range(tokens)]
        whole = [[p + r for p, r in zip(*both, strict=True)] for both in zip(product, rest, strict=True)]
    result = torch.tensor(whole)
    if kind == "attribution":
        result = result - torch.eye(tokens)
    return result[rows].mean(0)


@pytest.mark.parametrize("kind", ["rollout", "weighted", "attribution"])
def test_agrees_with_loops_over_the_attention_that_transformers_gives(kind: str) -> None:
    """Its eager attention, asked with ``output_attentions``, against ours read from its fused attention."""
    pytest.importorskip("transformers")
    fused, eager = hf_vit(layers=2), hf_vit(layers=2, attention="eager")
    images = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(2))
    if kind == "attribution":
        found = transformer_attribution(fused, images, [1, 3]).map
    else:
        weighting = "attention" if kind == "rollout" else "gradient"
        found = attention_rollout(fused, images, [1, 3], weighting=weighting).map
    with eager.exclusive() as module, torch.enable_grad():
        assert isinstance(module, Logits)
        output = module.network(images, output_attentions=True)
        chosen = output.logits[0, 1] + output.logits[1, 3]
        gradients = torch.autograd.grad(chosen, output.attentions)
    for image in range(2):
        layers = [a[image].detach() for a in output.attentions], [g[image] for g in gradients]
        expected = slowly(*layers, kind, [0])[1:].view(1, 4, 4)
        torch.testing.assert_close(shrink(found[image : image + 1]), expected, rtol=1e-3, atol=1e-5)


def test_without_a_class_token_the_rows_of_all_places_are_averaged() -> None:
    pytest.importorskip("timm")
    classifier = timm_vit((32, 32), global_pool="avg", class_token=False, fc_norm=False, depth=2)
    image = torch.randn(1, 3, 32, 32, generator=torch.Generator().manual_seed(2))
    read = read_attentions(classifier, image, torch.tensor([1]), "attention_rollout")
    layers = [one[0] for one in read.weights], [one[0] for one in read.gradients]
    expected = slowly(*layers, "rollout", list(range(16))).view(1, 4, 4)
    torch.testing.assert_close(shrink(attention_rollout(classifier, image, [1]).map), expected, rtol=1e-3, atol=1e-5)


def unfuse(classifier: Classifier) -> None:
    with classifier.exclusive() as module:
        for part in module.modules():
            if hasattr(part, "fused_attn"):
                part.fused_attn = False


def test_fused_attention_gives_what_attention_written_out_gives() -> None:
    """Where libraries with hooks read nothing."""
    pytest.importorskip("timm")
    fused, plain = timm_vit(reg_tokens=2), timm_vit(reg_tokens=2)
    unfuse(plain)
    images = torch.randn(2, 3, 32, 48, generator=torch.Generator().manual_seed(2))
    for method in (attention_rollout, transformer_attribution):
        one, other = (method(classifier, images, [0, 4]).map for classifier in (fused, plain))
        assert float(one.std()) > 0
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


def test_torchvisions_attention_is_read_in_every_layer_and_changes_no_logit() -> None:
    """nn.MultiheadAttention has a fast path of its own, in which nothing could be read."""
    classifier = torchvision_vit()
    images = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(2))
    read = read_attentions(classifier, images, torch.tensor([0, 1]), "attention_rollout")
    assert [tuple(one.shape) for one in read.weights] == [(2, 2, 17, 17)] * 3
    assert all(torch.allclose(one.sum(3), torch.ones(2, 2, 17, dtype=torch.float64)) for one in read.weights)
    torch.testing.assert_close(read.logits, classifier.logits(images), rtol=1e-4, atol=1e-5)


def test_a_heatmap_of_all_classes_says_so() -> None:
    classifier, images = attentive(), pictures(1)
    plain = [attention_rollout(classifier, images, [k]) for k in (0, 1)]
    assert torch.equal(plain[0].map, plain[1].map)
    assert plain[0].certificates[0].warnings[0].startswith("Attention rollout does not depend on the class")
    assert attention_rollout(classifier, images, [0], weighting="gradient").certificates[0].warnings == ()


class Talking(nn.Module):
    """Attention weights that are mixed once more before they multiply the values, as in CaiT."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head, self.mixed = nn.Conv2d(3, 4, 3, 3), nn.Linear(4, 2), nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        x = self.mixed(self.embed(x).flatten(2).transpose(1, 2))
        x = x + F.scaled_dot_product_attention(x, x, x)
        weights = (x @ x.transpose(1, 2)).softmax(2)
        return self.head((x + (weights * 0.5 + 0.1) @ x).mean(1))


def test_attention_of_which_a_part_cannot_be_read_is_refused() -> None:
    """A heatmap of the layers that can be read alone would look right."""
    with pytest.raises(ForetellError, match="changes its attention weights"):
        attention_rollout(Classifier(Talking(), unit, name="talking"), pictures(1), [0])


@pytest.mark.parametrize("method", [attention_rollout, transformer_attribution])
def test_windows_are_refused(method) -> None:
    pytest.importorskip("timm")
    with pytest.raises(ForetellError, match="timm swin attends within windows"):
        method(timm_swin(), torch.randn(1, 3, 64, 64), [0])


class Parallel(nn.Module):
    """Two attention branches on the same tokens, added, as in timm's vit_*_18x2 (Touvron et al. 2022)."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Conv2d(3, 8, 3, 3)
        self.token = nn.Parameter(torch.zeros(1, 1, 8))
        self.qkv = nn.ModuleList(nn.Linear(8, 24) for _ in range(2))
        self.block, self.head = nn.Identity(), nn.Linear(8, 3)

    def attend(self, qkv, x):
        q, k, v = qkv(x).unflatten(2, (3, 2, -1)).permute(2, 0, 3, 1, 4)
        return (q @ k.transpose(2, 3)).softmax(-1).matmul(v).transpose(1, 2).flatten(2)

    def forward(self, x):
        x = self.embed(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], 1)
        x = x + sum(self.attend(qkv, x) for qkv in self.qkv)
        return self.head(self.block(x)[:, 0])


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("method", ["attention_rollout", "transformer_attribution"])
def test_attention_in_parallel_branches_is_refused(method, frozen):
    """The branches were multiplied as if one followed the other."""
    network = Classifier(Parallel().requires_grad_(not frozen), unit, name="parallel")
    with pytest.raises(ForetellError, match="has attention in parallel branches"):
        METHODS[method](network, pictures(1), [0])
