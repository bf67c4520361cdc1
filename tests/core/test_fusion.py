"""Fused programs against torch's own layers, one by one: the same numbers, from a network that kept nothing apart."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, fx, nn

from core import loading
from core.network.cpu import ACTIVATIONS, FusedConvolution, FusedLinear, fuse_layers
from core.network.inference import make_faster_copy, make_fused_copy
from tests.core.networks import pictures

SETTINGS = {nn.LeakyReLU: (0.3,), nn.Hardtanh: (-0.4, 0.7)}
ARCHITECTURES = ("resnet18", "vgg16", "mobilenet_v2", "densenet121", "efficientnet_b0", "convnext_tiny", "vit_b_16")
PIXELS = 64


def conv(padding: int | str = 1, **options: object) -> nn.Conv2d:
    return nn.Conv2d(3, 3, 3, padding=padding, **options)


def check(network: nn.Module, images: Tensor) -> list[str]:
    """What a fused program calls, whose answers were compared with the network's."""
    network = network.eval().requires_grad_(False)
    program = fuse_layers(fx.symbolic_trace(network), images[:1])
    for count in (1, len(images)):
        torch.testing.assert_close(
            program(images[:count].clone()), network(images[:count].clone()), rtol=1e-5, atol=1e-5
        )
    return [called(program, node) for node in program.graph.nodes if node.op not in ("placeholder", "output")]


def called(program: fx.GraphModule, node: fx.Node) -> str:
    if node.op == "call_module":
        return type(program.get_submodule(node.target)).__name__
    return getattr(node.target, "__name__", str(node.target))


@pytest.mark.parametrize("kind", ACTIVATIONS, ids=lambda kind: kind.__name__)
def test_layers_are_computed_with_each_activation(kind):
    """Catches an activation that oneDNN knows by another name, or with other numbers."""
    activation = kind(*SETTINGS.get(kind, ()))
    images = 3 * pictures(5)
    assert check(nn.Sequential(conv(), activation), images) == ["FusedConvolution"]
    rows = nn.Sequential(nn.Linear(12, 7), activation)
    assert check(rows, images) == ["FusedLinear"]


def test_both_forms_of_gelu_are_known():
    assert check(nn.Sequential(nn.Linear(12, 7), nn.GELU("tanh")), 3 * pictures(5)) == ["FusedLinear"]
    exact, other = (
        fuse_layers(fx.symbolic_trace(nn.GELU(form)), pictures(1))(pictures(1)) for form in ("none", "tanh")
    )
    assert not torch.equal(exact, other)


def test_steps_groups_and_a_missing_bias_are_kept():
    layer = nn.Conv2d(3, 6, (3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2), groups=3, bias=False)
    assert check(nn.Sequential(layer, nn.ReLU()), pictures(3)) == ["FusedConvolution"]


@pytest.mark.parametrize("layer", [conv("same"), conv(1, padding_mode="reflect"), conv().double()])
def test_layers_without_a_program_stay_as_they_are(layer):
    images = pictures(3).to(layer.weight.dtype)
    assert check(nn.Sequential(layer, nn.ReLU()), images) == ["Conv2d", "ReLU"]


class Residual(nn.Module):
    """Two layers and what goes round them, summed in the way that ``summed`` says."""

    def __init__(self, summed: str) -> None:
        super().__init__()
        self.first, self.second, self.third = conv(), conv(), conv()
        self.relu, self.tanh, self.pool = nn.ReLU(inplace=True), nn.Tanh(), nn.MaxPool2d(3, 1, 1)
        self.summed = summed

    def forward(self, x: Tensor) -> Tensor:
        a = self.relu(self.first(x))
        b = self.third(self.relu(self.second(a)))
        match self.summed:
            case "added":
                return self.relu(a + b)
            case "in place":
                b += a
                return self.relu(b)
            case "without activation":
                return b + a
            case "another activation":
                return self.tanh(a + b)
            case "of a pool":
                pooled = self.pool(b)
                return torch.relu(torch.add(self.third(self.second(pooled)), pooled))
            case "read later":
                return self.relu(a + b) * a
            case "of the input":
                return self.relu(b + x)
            case "of what the layer reads":
                return self.relu(self.second(b) + b)
            case "broadcast":
                return self.relu(b + self.first(x.mean((2, 3), keepdim=True)))
            case _:
                return self.relu(torch.add(b, a, alpha=2))


@pytest.mark.parametrize(
    ("summed", "apart"),
    [
        ("added", []),
        ("in place", []),
        ("without activation", []),
        ("another activation", ["Tanh"]),
        ("of a pool", ["MaxPool2d"]),
    ],
)
def test_a_sum_goes_with_the_layer_before_it(summed, apart):
    assert [name for name in check(Residual(summed), pictures(5)) if name != "FusedConvolution"] == apart


@pytest.mark.parametrize(
    "summed", ["read later", "of the input", "of what the layer reads", "broadcast", "one of them weighted"]
)
def test_what_is_read_again_or_of_another_size_is_not_written_over(summed):
    """Catches an input or a residual branch that the sum would be written over, and a sum taken for a plain one."""
    images = pictures(5)
    before = images.clone()
    assert "add" in check(Residual(summed), images)
    assert torch.equal(images, before)


class Seen(nn.Module):
    """The branch that the sum is written over is read afterwards through a view."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = conv(), conv()

    def forward(self, x: Tensor) -> Tensor:
        a = self.first(x)
        view = a[:, 1:]
        return (self.second(x) + a)[:, :2] * view


def test_a_branch_that_is_read_through_a_view_is_found_by_trying():
    """No walk of the graph knows every function that answers with a view: the answers tell."""
    probe = pictures(1)
    copy = make_faster_copy(Seen().eval(), probe)
    assert isinstance(copy, fx.GraphModule)
    assert make_fused_copy(copy, probe) is copy


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_the_architectures_keep_their_logits_and_no_convolution_apart(name):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        size = {"image_size": PIXELS} if name.startswith("vit") else {}
        network = loading.import_torchvision().models.get_model(name, weights=None, **size).eval()
        head = [module for module in network.modules() if isinstance(module, nn.Linear)][-1]
        nn.init.normal_(head.weight)  # vit_b_16's is 0 as it comes
    probe = torch.randn(2, 3, PIXELS, PIXELS, generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        program = make_fused_copy(make_faster_copy(network, probe[:1]), probe[:1])
        expected, found = network(probe), program(probe)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5 * float(expected.abs().max()))
    kinds = {type(module) for module in program.modules()}
    assert not kinds & {nn.Conv2d, nn.Linear}
    assert kinds & {FusedConvolution, FusedLinear}
