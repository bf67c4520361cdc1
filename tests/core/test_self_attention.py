"""`SelfAttention` against PyTorch's own layer, whose class and weights it keeps."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from core.network.self_attention import SelfAttention, split_attention


def make_layer(**options):
    layer = nn.MultiheadAttention(12, 3, batch_first=True, **options).eval()
    for weight in layer.parameters():  # biases begin at 0, where a lost one would not be seen
        nn.init.normal_(weight)
    return layer


@pytest.mark.parametrize("bias", [True, False])
def test_outputs_and_gradients_are_those_of_the_layer(bias):
    """Catches heads that are mixed up, parts of the projection in another order, a lost bias."""
    layer, x = make_layer(bias=bias), torch.randn(2, 5, 12, requires_grad=True)
    own = split_attention(copy.deepcopy(layer))
    assert type(own) is SelfAttention
    answers = [form(x, x, x, need_weights=False)[0] for form in (layer, own)]
    torch.testing.assert_close(*answers, rtol=1e-5, atol=1e-5)
    gradients = [torch.autograd.grad(answer.square().sum(), x)[0] for answer in answers]
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("options", [{"need_weights": True}, {"attn_mask": torch.eye(5).bool()}, {"is_causal": True}])
def test_weights_and_masks_are_still_had(options):
    """Catches a mask that is left out and weights that are not returned."""
    layer, x = make_layer(), torch.randn(2, 5, 12)
    if "is_causal" in options:
        options = options | {"attn_mask": torch.ones(5, 5).triu(1).bool()}
    options = {"need_weights": False} | options
    expected, found = (form(x, x, x, **options) for form in (layer, split_attention(copy.deepcopy(layer))))
    torch.testing.assert_close(found, expected)


def test_other_tokens_are_still_attended_to():
    layer, x, other = make_layer(), torch.randn(2, 5, 12), torch.randn(2, 7, 12)
    own = split_attention(copy.deepcopy(layer))
    torch.testing.assert_close(
        own(x, other, other, need_weights=False)[0], layer(x, other, other, need_weights=False)[0]
    )


@pytest.mark.parametrize("options", [{"add_bias_kv": True}, {"add_zero_attn": True}, {"kdim": 7, "vdim": 7}], ids=str)
def test_layers_with_more_than_that_stay_as_they_are(options):
    assert type(split_attention(make_layer(**options))) is nn.MultiheadAttention


def test_a_layer_inside_pytorchs_encoder_gives_the_same():
    """Catches an encoder's own shortcut, which reads the layer's attributes, and which runs without gradients."""
    encoder = nn.TransformerEncoderLayer(12, 3, 24, batch_first=True).eval()
    own = split_attention(copy.deepcopy(encoder))
    x = torch.randn(2, 5, 12)
    torch.testing.assert_close(own(x), encoder(x), rtol=1e-4, atol=1e-5)
    with torch.no_grad():
        torch.testing.assert_close(own(x), encoder(x), rtol=1e-4, atol=1e-5)
