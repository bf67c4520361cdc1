"""Fast float32 networks on a CPU: oneDNN's own programs in place of PyTorch's choice.

All names of PyTorch that it does not document are used here and nowhere else. Where one is gone, or oneDNN is not
there, the network itself runs, with the same numbers and more slowly: `core.network.inference` tries each fused program
before it is used, and `onednn_takes` says whether a convolution can be given to oneDNN.

- `fuse_layers`: convolutions and linear layers, each with what follows it. PyTorch's layers lay their weights out again
  at every call, and the sum or the activation behind a layer goes through memory once more. These are the programs that
  ``torch.compile`` would choose; it needs a compiler on the user's machine. About twice as fast
  (docs/decisions/0040-fused-layers.md).
- `Onednn` and `convolve`: 1 x 1 convolutions, for which PyTorch leaves oneDNN aside on one thread and for fewer than 16
  inputs, forwards and backwards (``ConvParams::use_mkldnn``), and linear layers, which it leaves to MKL. Whether that
  is faster depends on the processor: `core.network.timing` tells.
"""

from __future__ import annotations

import copy
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn
from torch.autograd.function import once_differentiable
from torch.fx.passes.shape_prop import ShapeProp
from torch.nn.modules.utils import _pair

from core.network.interception import Call, Interception

BATCH = 8
"""Inputs for which weights are laid out: results are correct for any number, speed is best near this one."""


class Activation(NamedTuple):
    """An activation as oneDNN names it."""

    name: str
    numbers: Sequence[float] = ()
    algorithm: str = ""


NONE, RELU = Activation("none"), Activation("relu")
ACTIVATIONS: Mapping[type[nn.Module], Callable[[Any], Activation]] = {
    nn.ReLU: lambda _: RELU,
    nn.ReLU6: lambda _: Activation("hardtanh", (0.0, 6.0)),
    nn.Hardtanh: lambda module: Activation("hardtanh", (module.min_val, module.max_val)),
    nn.LeakyReLU: lambda module: Activation("leaky_relu", (module.negative_slope,)),
    nn.GELU: lambda module: Activation("gelu", (), module.approximate),
    nn.SiLU: lambda _: Activation("swish"),
    nn.Sigmoid: lambda _: Activation("sigmoid"),
    nn.Tanh: lambda _: Activation("tanh"),
    nn.Hardsigmoid: lambda _: Activation("hardsigmoid"),
    nn.Hardswish: lambda _: Activation("hardswish"),
}
RECTIFIERS = frozenset({torch.relu, F.relu})
POOLS = frozenset({nn.MaxPool2d, nn.AvgPool2d})
"""Operations that return new memory, like the programs here."""
SUMS = frozenset({operator.add, operator.iadd, torch.add})


class FusedConvolution(nn.Module):
    """A convolution and its activation; a second input is added between the two, and its memory written over."""

    def __init__(self, layer: nn.Conv2d, shape: Sequence[int], activation: Activation) -> None:
        super().__init__()
        steps = [[*layer.padding], [*layer.stride], [*layer.dilation], layer.groups]
        weight = torch.ops.mkldnn._reorder_convolution_weight(layer.weight, *steps, [BATCH, *shape[1:]])
        self._rest = (weight, layer.bias, *steps)
        self._activation = activation

    def forward(self, x: Tensor, other: Tensor | None = None) -> Tensor:
        name, numbers, algorithm = self._activation
        if other is None:
            result: Tensor = torch.ops.mkldnn._convolution_pointwise(x, *self._rest, name, numbers, algorithm)
            return result
        after = (name if name != "none" else None, numbers, algorithm)
        summed: Tensor = torch.ops.mkldnn._convolution_pointwise_.binary(other, x, *self._rest, "add", 1.0, *after)
        return summed


class FusedLinear(nn.Module):
    """A linear layer and its activation."""

    def __init__(self, layer: nn.Linear, shape: Sequence[int], activation: Activation) -> None:
        super().__init__()
        rows = BATCH * math.prod(shape[1:-1])
        self._rest = (torch.ops.mkldnn._reorder_linear_weight(layer.weight, rows), layer.bias, *activation)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = torch.ops.mkldnn._linear_pointwise(x, *self._rest)
        return result


def fuse_layers(network: fx.GraphModule, probe: Tensor) -> fx.GraphModule:
    """Compile a copy with the outputs of ``network`` for inputs like ``probe`` (B, C, H, W), for float32 on a CPU.

    What is summed is written over a residual branch that no later node reads. Whether none reads it through a view is
    for the caller to try.
    """
    program = fx.GraphModule(network, copy.deepcopy(network.graph))
    ShapeProp(program).propagate(probe.clone())
    own: set[fx.Node] = set()
    for node in list(program.graph.nodes):
        layer = _layer(program, node)
        if type(_module(program, node)) in POOLS:
            own.add(node)
        elif layer is not None:
            own.add(
                _replace_nodes(program, _find_fusable_nodes(program, node, layer, own), layer, f"_fused_{len(own)}")
            )
    program.delete_all_unused_submodules()
    program.recompile()
    return program


class _FusableNodes(NamedTuple):
    """Collect the nodes that one program computes, from the layer to its activation, and what they read."""

    nodes: list[fx.Node]
    inputs: list[fx.Node]
    activation: Activation


def _layer(program: fx.GraphModule, node: fx.Node) -> nn.Conv2d | nn.Linear | None:
    """Return the layer that a node calls, if there is a program for it."""
    layer = _module(program, node)
    if not isinstance(layer, nn.Conv2d | nn.Linear) or type(layer) not in (nn.Conv2d, nn.Linear):
        return None
    plain = isinstance(layer, nn.Linear) or (layer.padding_mode == "zeros" and not isinstance(layer.padding, str))
    one = len(node.args) == 1 and not node.kwargs
    return layer if one and plain and layer.weight.dtype == torch.float32 else None


def _find_fusable_nodes(program: fx.GraphModule, node: fx.Node, layer: nn.Module, own: set[fx.Node]) -> _FusableNodes:
    nodes, inputs = [node], [*node.all_input_nodes]
    following = _only_user(node)
    if following is not None and isinstance(layer, nn.Conv2d):
        other = _find_added_node(node, following, own)
        if other is not None:
            nodes, inputs = [node, following], [*inputs, other]
            following = _only_user(following)
    activation = NONE if following is None else _activation(program, following)
    if following is None or activation == NONE or (len(inputs) > 1 and activation != RELU):
        return _FusableNodes(nodes, inputs, NONE)
    return _FusableNodes([*nodes, following], inputs, activation)


def _find_added_node(node: fx.Node, following: fx.Node, own: set[fx.Node]) -> fx.Node | None:
    """Return what the next node adds to ``node``, if it is a program's result that nothing reads afterwards."""
    if following.target not in SUMS or len(following.args) != 2 or following.kwargs:
        return None
    other = following.args[following.args[0] is node]
    if not isinstance(other, fx.Node) or other not in own or other in node.all_input_nodes:
        return None
    last = all(user is following or user < following for user in other.users)
    return other if last and _shape(other) == _shape(node) else None


def _replace_nodes(program: fx.GraphModule, run: _FusableNodes, layer: nn.Conv2d | nn.Linear, name: str) -> fx.Node:
    """Return the node that replaces a run's."""
    given = (_shape(run.inputs[0]), run.activation)
    program.add_submodule(
        name, FusedConvolution(layer, *given) if isinstance(layer, nn.Conv2d) else FusedLinear(layer, *given)
    )
    with program.graph.inserting_after(run.nodes[-1]):
        made = program.graph.call_module(name, tuple(run.inputs))
    made.meta = dict(run.nodes[-1].meta)
    run.nodes[-1].replace_all_uses_with(made)
    for node in reversed(run.nodes):
        program.graph.erase_node(node)
    return made


def _module(program: fx.GraphModule, node: fx.Node) -> nn.Module | None:
    return program.get_submodule(str(node.target)) if node.op == "call_module" else None


def _only_user(node: fx.Node) -> fx.Node | None:
    return next(iter(node.users)) if len(node.users) == 1 else None


def _activation(program: fx.GraphModule, node: fx.Node) -> Activation:
    if node.target in RECTIFIERS:
        return RELU
    module = _module(program, node)
    return NONE if module is None else ACTIVATIONS.get(type(module), lambda _: NONE)(module)


def _shape(node: fx.Node) -> torch.Size:
    shape: torch.Size = node.meta["tensor_meta"].shape
    return shape


CONVOLUTION = ("input", "weight", "bias", "stride", "padding", "dilation", "groups")
LINEAR = ("input", "weight", "bias")
"""Names of the arguments of a convolution and of a linear layer by position."""

AS_THEY_ARE = ((0, 0), (1, 1), (1, 1), 1)
"""Padding, stride, dilation and groups of a convolution that looks at each place alone."""


class Onednn(Interception):
    """While active in this thread, 1 x 1 convolutions, linear layers and the gradients of their inputs are oneDNN's.

    Weights get no gradient.
    """

    def intercept(self, call: Call) -> Any:
        """Give a 1 x 1 convolution or a linear layer to oneDNN."""
        form, names, takes = FORMS.get(call.func, (None, (), None))
        given = call.name_arguments(names) if form else {}
        if form is None or takes is None or not takes(**given):
            return call.run()
        return form.apply(given["input"], given["weight"], given.get("bias"))  # type: ignore[no-untyped-call]


def onednn_takes(x: Tensor) -> bool:
    """Tell whether ``torch.mkldnn_convolution`` computes convolutions of ``x``: of (B, C, H, W) float32 on a CPU."""
    return x.ndim == 4 and _is_usable(x) and hasattr(torch, "mkldnn_convolution")


def convolve(named: Mapping[str, Any]) -> Tensor | None:
    """Compute ``conv2d`` of its arguments by name by oneDNN, or nothing where oneDNN does not take them.

    For 1 x 1 filters, one thread and fewer than 16 inputs torch would choose another way, twice as slow.
    """
    x, padding = named["input"], named.get("padding", 0)
    if isinstance(padding, str) or not onednn_takes(x):
        return None
    steps = _both(named.get("stride", 1)), _both(named.get("dilation", 1)), named.get("groups", 1)
    return torch.mkldnn_convolution(x, named["weight"], named.get("bias"), _both(padding), *steps)


def _both(size: int | Sequence[int]) -> tuple[int, ...]:
    """Return a size of both directions, for which ``conv2d`` takes one number too, and oneDNN does not."""
    given = (size,) if isinstance(size, int) else tuple(size)
    return given * 2 if len(given) == 1 else given


def multiply(x: Tensor, weight: Tensor) -> Tensor:
    """Compute ``x @ weight.T`` for x (..., I) and a weight (O, I), by oneDNN where it takes them.

    No gradient passes through oneDNN's, so x that needs one goes to PyTorch.
    """
    if (torch.is_grad_enabled() and (x.requires_grad or weight.requires_grad)) or not _is_dense(x, weight):
        return F.linear(x, weight)
    result: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, None, *NONE)
    return result


def _is_usable(x: Tensor) -> bool:
    there: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return there and x.device.type == "cpu" and x.dtype == torch.float32


def _looks_at_each_place_alone(
    input: Tensor, weight: Tensor, stride: Any = 1, padding: Any = 0, groups: int = 1, **_: Any
) -> bool:
    alone = tuple(weight.shape[2:]) == _pair(stride) == (1, 1) and padding in (0, (0, 0), "valid") and groups == 1
    return alone and onednn_takes(input) and weight.dtype == torch.float32


def _is_dense(input: Tensor, weight: Tensor, **_: Any) -> bool:
    usable = (
        input.ndim > 1
        and input.numel() > 0
        and weight.ndim == 2
        and _is_usable(input)
        and weight.dtype == torch.float32
    )
    return usable and hasattr(torch.ops.mkldnn, "_linear_pointwise")


class _Convolution(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(weight)
        return torch.mkldnn_convolution(x, weight, bias, *AS_THEY_ARE)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (weight,) = ctx.saved_tensors
        return torch.mkldnn_convolution(gradient, weight.transpose(0, 1), None, *AS_THEY_ARE), None, None


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(weight)
        result: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, *NONE)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (weight,) = ctx.saved_tensors
        return torch.ops.mkldnn._linear_pointwise(gradient, weight.t(), None, *NONE), None, None


FORMS: Mapping[Callable[..., Any], tuple[type[torch.autograd.Function], Sequence[str], Callable[..., bool]]] = {
    torch.conv2d: (_Convolution, CONVOLUTION, _looks_at_each_place_alone),
    F.linear: (_Linear, LINEAR, _is_dense),
}
"""For each function of PyTorch that goes to oneDNN: how, its arguments by position, and for which arguments."""
