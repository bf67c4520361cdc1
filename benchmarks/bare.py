"""The network's own gradient, however it is run: the limits that methods of gradients are compared with."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from benchmarks.machine import on_accelerator


def list_bare_gradients(module: nn.Module, images: Tensor) -> dict[str, Callable[[], None]]:
    """List ways to compute the gradient of the first logit of images (B, C, H, W): in both orders, and as a graph.

    Arithmetic is that of the surrounding code. A CUDA graph is recorded at its first call, and only on a GPU.
    """
    last = copy.deepcopy(module).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    ways = {
        "bare gradient": partial(_differentiate, module, images),
        "bare gradient, channels last": partial(
            _differentiate, last, images.contiguous(memory_format=torch.channels_last)
        ),
    }
    return ways | ({"bare gradient, CUDA graph": GraphedGradient(module, images)} if on_accelerator() else {})


def _differentiate(module: nn.Module, images: Tensor) -> None:
    x = images.clone().requires_grad_()
    with torch.enable_grad():
        torch.autograd.grad(module(x)[:, 0].sum(), x)


class GraphedGradient:
    """The same as one CUDA graph, which the processor launches at once."""

    def __init__(self, module: nn.Module, images: Tensor) -> None:
        self._work = partial(_differentiate, module, images)
        self._graph: torch.cuda.CUDAGraph | None = None

    def __call__(self) -> None:
        """Record the graph the first time, after the runs on another stream that PyTorch asks for; then run it."""
        if self._graph is None:
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                for _ in range(3):
                    self._work()
            torch.cuda.current_stream().wait_stream(stream)
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph):
                self._work()
        self._graph.replay()
