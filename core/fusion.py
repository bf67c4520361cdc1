"""Convolutions and linear layers of a traced network as oneDNN's own programs, each with what follows it.

torch's layers lay their weights out anew at every call, and the sum or the activation behind a layer goes through
memory once more. These are the programs that ``torch.compile`` would choose; it needs a compiler on the user's machine.
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
from torch.fx.passes.shape_prop import ShapeProp

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
            answer: Tensor = torch.ops.mkldnn._convolution_pointwise(x, *self._rest, name, numbers, algorithm)
            return answer
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
        answer: Tensor = torch.ops.mkldnn._linear_pointwise(x, *self._rest)
        return answer


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
