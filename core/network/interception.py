"""Intercept a network's calls of PyTorch functions in one thread, without hooks, copies or traces of the network.

The network runs as it is, with shared, in-place and functional layers and with Python control flow. Not seen are calls
inside TorchScript or compiled code (`hides_calls`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch.overrides import TorchFunctionMode, resolve_name

WRITING = frozenset({"setitem", "iadd", "isub", "imul", "idiv", "itruediv"})
"""Operators that change their first operand."""


@dataclass(frozen=True)
class Call:
    """One call of a PyTorch function, or of a tensor's method, operator or property.

    Attributes
    ----------
    name
        Without underscores: ``relu_`` and ``relu(inplace=True)`` are relu, ``__getitem__`` is getitem.
    args, named
        The arguments; the first of ``args`` is what the function is applied to, however it was given.
    inplace
        Whether it is to change its first argument.
    overwrites
        Whether `func` itself does so, as ``relu_`` does and ``relu(inplace=True)``, once read, does not.
    written
        The arguments as the network gave them.
    """

    func: Callable[..., Any]
    name: str
    args: tuple[Any, ...]
    named: dict[str, Any]
    inplace: bool
    overwrites: bool
    written: tuple[tuple[Any, ...], Mapping[str, Any]]

    def run(self) -> Any:
        """Do what the network asked for, in place where it is in place."""
        args, named = self.written
        return self.func(*args, **named)

    def __call__(self) -> Any:
        """Return the result; the arguments stay as they are, also of an in-place call."""
        if not self.overwrites:
            return self.func(*self.args, **self.named)
        copy = self.args[0].clone()
        self.func(copy, *self.args[1:], **self.named)
        return copy

    def on(self, first: Any, **named: Any) -> Any:
        """Return the result with another first argument, and further arguments by name."""
        return replace(self, args=(first, *self.args[1:]), named=self.named | named)()

    def name_arguments(self, names: Sequence[str]) -> dict[str, Any]:
        """Return the arguments by name; ``names`` are those of the arguments by position, further ones are left out."""
        return dict(zip(names, self.args, strict=False)) | self.named


class _Name(NamedTuple):
    """What the name of a function says of its calls."""

    name: str
    is_property: bool
    overwrites: bool


@lru_cache(4096)
def _read_name(func: Callable[..., Any]) -> _Name:
    full = (resolve_name(func) or getattr(func, "__name__", "")).rpartition(".")[2]
    if full == "__get__":  # a property: x.T, x.shape
        return _Name(func.__self__.__name__, True, False)  # type: ignore[attr-defined]
    name = full.strip("_")
    return _Name(name, False, name in WRITING if full.startswith("__") else full.endswith("_"))


def read(func: Callable[..., Any], args: tuple[Any, ...], named: Mapping[str, Any]) -> Call:
    """Read a call as `torch.overrides.TorchFunctionMode` gives it."""
    written = args, named
    name, is_property, overwrites = _read_name(func)
    if is_property or not named:
        return Call(func, name, args, {}, overwrites, overwrites, written)
    inplace = overwrites or bool(named.get("inplace", False))
    named = {key: value if key != "inplace" else False for key, value in named.items()}
    for key in ("input", "self"):
        if key in named:
            args = (named.pop(key), *args)
    return Call(func, name, args, named, inplace, overwrites, written)


class Interception(TorchFunctionMode):
    """While active in this thread, every call of a PyTorch function goes to `intercept`."""

    def intercept(self, call: Call) -> Any:
        """Return what the network gets for a call; calls made here are not intercepted."""
        raise NotImplementedError

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        return self.intercept(read(func, args, kwargs or {}))


def hides_calls(module: torch.nn.Module) -> bool:
    """Tell whether parts of the network are TorchScript or compiled, where an `Interception` may see nothing."""
    return any(
        isinstance(part, torch.jit.ScriptModule) or hasattr(part, "_orig_mod") or part._compiled_call_impl is not None
        for part in module.modules()
    )
