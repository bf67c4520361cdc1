"""Gradients through batch and instance norms of one image, which PyTorch 2.13 gets wrong on a CPU, and their guard."""

from __future__ import annotations

import ast
from itertools import product

import pytest
import torch
from torch import Tensor, nn

from core.attribution.places.activations import activation_and_gradient
from core.network.gradients import differentiate
from core.units.maximise import maximise
from core.units.unit import Unit
from tests.conftest import ROOT
from tests.core.networks import flattened, pictures

OWN_FUNCTIONS = {
    "core/attribution/relevance/differences.py": "rules of Foretell's own",
    "core/attribution/relevance/network.py": "rules of Foretell's own",
    "core/attribution/relevance/linear_maps.py": "the transpose of one layer",
    "core/attribution/perturbation/learned_masks.py": "from the masked image to the mask",
    "core/concepts/deconvolution.py": "own features",
    "core/concepts/x_features.py": "own features",
    "core/network/gradients.py": "the guard",
}
"""Files that differentiate something else than the user's network, too."""


def plain(x: Tensor) -> Tensor:
    return x.contiguous()


def channels_last(x: Tensor) -> Tensor:
    return torch.empty_like(x, memory_format=torch.channels_last).copy_(x)


def from_tokens(x: Tensor) -> Tensor:
    return x.flatten(2).transpose(1, 2).contiguous().transpose(1, 2).unflatten(2, x.shape[2:])


LAYOUTS = (plain, channels_last, from_tokens)


@pytest.mark.parametrize("norm", ["batch", "instance"])
@pytest.mark.parametrize(("of_input", "of_gradient"), list(product(LAYOUTS, LAYOUTS)))
def test_one_image_has_the_closed_forms_gradient_in_every_layout(norm: str, of_input, of_gradient) -> None:
    """Closed forms: g w / sd; of an instance norm (g - mean g - z mean g z) / sd over the places of a channel."""
    draws = torch.Generator().manual_seed(0)
    x, g = (torch.randn(1, 6, 4, 5, generator=draws, dtype=torch.float64) for _ in range(2))
    layer = nn.BatchNorm2d(6).double().eval() if norm == "batch" else nn.InstanceNorm2d(6, eps=0.0).double()
    if norm == "batch":
        layer.running_var.uniform_(0.5, 2, generator=draws)
        nn.init.normal_(layer.weight, generator=draws)
        scale = layer.weight.detach() / (layer.running_var + layer.eps).sqrt()
        expected = g * scale[:, None, None]
    else:
        spread = x.std((2, 3), correction=0, keepdim=True)
        z = (x - x.mean((2, 3), keepdim=True)) / spread
        expected = (g - g.mean((2, 3), keepdim=True) - z * (g * z).mean((2, 3), keepdim=True)) / spread
    leaf = of_input(x).requires_grad_()
    (found,) = differentiate(layer(leaf), leaf, of_gradient(g))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


def test_a_layer_before_it_has_the_right_gradient_alone() -> None:
    network, exact = flattened(), flattened(True, torch.float64)
    found, expected = (
        activation_and_gradient(one, pictures(1), torch.tensor([0]), "embed") for one in (network, exact)
    )
    largest = float(expected.gradient.abs().max())
    torch.testing.assert_close(found.gradient, expected.gradient, rtol=0, atol=1e-5 * largest)


@pytest.mark.parametrize("parameterisation", ["pixels", "fourier", "maco"])
def test_images_of_units_climb_the_right_gradient(parameterisation: str) -> None:
    settings = {"starts": 1, "steps": 5, "images": [pictures(3)], "parameterisation": parameterisation}
    found, expected = (maximise(one, Unit(0), **settings) for one in (flattened(), flattened(True, torch.float64)))
    torch.testing.assert_close(found.images, expected.images, rtol=0, atol=1e-3)


def test_every_gradient_of_a_network_is_computed_where_it_is_guarded() -> None:
    """A new method that calls `torch.autograd.grad` itself."""
    own = set()
    for path in (ROOT / "core").rglob("*.py"):
        calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)]
        if any(ast.unparse(one) == "torch.autograd.grad" for one in calls):
            own.add(path.relative_to(ROOT).as_posix())
    assert own == set(OWN_FUNCTIONS)
