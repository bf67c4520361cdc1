"""Methods that a user or a package wrote: ``FILE.py:function``, an entry point, or a network's own ``explain``."""

from __future__ import annotations

import copy
import hashlib
import inspect
import random
import typing
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from core.attribution.method import Query
from core.attribution.outside.external import ExternalMethod, ImageRecord, check_heatmaps
from core.errors import ForetellError
from core.files import FileLimits, find_file
from core.network.classifier import Classifier
from core.parameters import list_parameters, split_hint
from core.types import Explanation
from core.userfiles import execute_file, split_python

OWN = "own"
SIMPLE = (int, float, str, bool)
GIVEN = 3
"""Arguments that every plain function takes: the network, its inputs, and the classes."""


class FunctionMethod(ExternalMethod):
    """A method made with ``heatmap_method``, or a plain ``explain(model, images, targets, ...)``.

    A plain function gets a copy of the network (an ``nn.Module`` in eval mode), one input (1, C, H, W) at a time and
    its class (1,), both on the network's device, and returns an array or tensor (1, H, W): above 0 is evidence for the
    class, below 0 against it. Its further arguments are the method's parameters. Random numbers of torch, numpy and
    Python are seeded before each image, so that no heatmap depends on the others.

    Raises
    ------
    ForetellError
        When called: the function fails, or returns what are not heatmaps. When made: arguments that do not fit.
    """

    def __init__(self, function: Callable[..., Any], name: str, origin: dict[str, str], digest: str) -> None:
        self.function, self.origin, self.digest = function, origin, digest
        self.is_plain = not hasattr(function, "record")
        parameters = _list_plain(function, name) if self.is_plain else _list_declared(function)
        super().__init__(name, inspect.getdoc(function) or f"Heatmaps by {name}.", parameters)

    def explain(self, query: Query, records: Sequence[ImageRecord], **parameters: Any) -> Explanation:  # noqa: ARG002
        """Call the function, and check and certify what it returns."""
        return self._explain_plain(query, parameters) if self.is_plain else self._explain_declared(query, parameters)

    def _explain_plain(self, query: Query, parameters: dict[str, Any]) -> Explanation:
        maps = []
        for i in range(len(query.inputs)):
            maps.append(self._call_plain(query, i, parameters))
            query.progress(i + 1, len(query.inputs), self.__name__)
        return query.explain(torch.cat(maps), origin=self.origin, parameters=parameters, seed=query.seed)

    def _call_plain(self, query: Query, i: int, parameters: dict[str, Any]) -> Tensor:
        classifier = query.classifier
        with classifier.exclusive() as module:
            network = copy.deepcopy(module)  # hooks, gradients and modes of the user's code stay in the copy
        image = query.inputs[i : i + 1].to(classifier.device, copy=True)
        target = query.classes[i : i + 1].to(classifier.device)
        with _name_failure(self.__name__), _seeded(query.seed), torch.enable_grad():
            heatmap = self.function(network, image, target, **parameters)
        number = f" for image {i + 1} of {len(query.inputs)}" if len(query.inputs) > 1 else ""
        return check_heatmaps(self.__name__, heatmap, (1, *query.inputs.shape[2:]), number)

    def _explain_declared(self, query: Query, parameters: dict[str, Any]) -> Explanation:
        with _name_failure(self.__name__):
            heatmaps = self.function(
                query.classifier,
                query.inputs,
                query.classes.tolist(),
                generator=query.generator,
                progress=query.progress,
                **parameters,
            )
        if not isinstance(heatmaps, Explanation):
            raise ForetellError(f"{self.__name__} returned {type(heatmaps).__name__}; return what query.explain makes.")
        shape = (len(query.inputs), *query.inputs.shape[2:])
        named = tuple(replace(one, method=self.__name__, origin=self.origin) for one in heatmaps.certificates)
        return replace(heatmaps, map=check_heatmaps(self.__name__, heatmaps.map, shape), certificates=named)


def open_file(spec: str, base: Path, limits: FileLimits | None = None) -> FunctionMethod:
    """Open ``FILE.py:function``, with the file relative to ``base``. The file is executed: open only files you trust.

    Raises
    ------
    ForetellError
        No such file or function, one outside the ``limits``, one that fails, or arguments that no method has.
    """
    file, function = split_python(spec) or ("", "")
    if not function:
        raise ForetellError(f"{spec!r} does not name a function. Give FILE.py:function, such as mine.py:explain.")
    path = find_file(base, file, limits, runs=True)
    if not path.is_file():
        raise ForetellError(f"There is no file {path}. Give the method's Python file as FILE.py:function.")
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    module = execute_file(path)
    entry = getattr(module, function, None)
    if not callable(entry):
        offered = [name for name, value in vars(module).items() if inspect.isfunction(value) and name[0] != "_"]
        raise ForetellError(f"{path} has no function {function!r}. It defines: {', '.join(offered) or 'none'}.")
    return FunctionMethod(entry, f"{path.name}:{function}", {"file": path.name, "sha256": sha256}, sha256)


class OwnMethod(FunctionMethod):
    """A network's own ``explain(images, targets) -> (B, H, W)``, a method of its module."""

    def __init__(self) -> None:
        super().__init__(_explain_itself, OWN, {"network": "its own explain"}, "")

    def refuse_network(self, classifier: Classifier) -> None:
        """Refuse a network that has none."""
        with classifier.exclusive() as module:
            if not explains_itself(module):
                raise _no_explanation(classifier.name)

    def digest_for(self, classifier: Classifier) -> str:
        """Return the SHA-256 of the file that defines it: the fingerprint covers weights and structure only."""
        with classifier.exclusive() as module:
            code = getattr(getattr(module, "explain", None), "__code__", None)
        file = None if code is None else Path(code.co_filename)
        return hashlib.sha256(file.read_bytes()).hexdigest() if file is not None and file.is_file() else ""


def explains_itself(module: nn.Module) -> bool:
    """Tell whether a network has an ``explain`` of its own."""
    return callable(getattr(module, "explain", None))


def _explain_itself(model: nn.Module, images: Tensor, targets: Tensor) -> Any:
    """Return the heatmap that the network itself gives: ``explain(images, targets)`` of its module."""
    if not explains_itself(model):
        raise _no_explanation(type(model).__name__)
    return model.explain(images, targets)  # type: ignore[operator]


def _no_explanation(name: str) -> ForetellError:
    return ForetellError(
        f"{name} has no explain(images, targets) of its own. Give its class that method, or choose another method."
    )


@contextmanager
def _name_failure(name: str) -> Iterator[None]:
    """Turn what a user's function raises into one sentence."""
    try:
        yield
    except (ForetellError, torch.OutOfMemoryError):
        raise
    except (Exception, SystemExit) as error:  # the user's own code
        said = str(error).partition("\n")[0]
        raise ForetellError(f"{name} failed: {type(error).__name__}: {said}. Correct that function.") from error


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed the random numbers that a user's function may draw from, and restore them afterwards."""
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002 - what users draw from
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        random.seed(seed)
        np.random.seed(seed % 2**32)  # noqa: NPY002
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)  # noqa: NPY002


def _list_declared(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """List the parameters of a method made with ``heatmap_method``."""
    hints = typing.get_type_hints(function, include_extras=True)
    return [
        inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=one.default, annotation=hints[one.name])
        for one in list_parameters(function)
    ]


def _list_plain(function: Callable[..., Any], name: str) -> list[inspect.Parameter]:
    """List the parameters of a plain function: what it takes after the network, its inputs and the classes."""
    try:
        arguments = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        raise ForetellError(f"{name} has no signature. Wrap it in a function (model, images, targets).") from None
    first = [one for one in arguments[:GIVEN] if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    if len(first) < GIVEN:
        raise ForetellError(
            f"{name} takes ({', '.join(one.name for one in arguments)}). A method is a function "
            "(model, images, targets, ...) that returns heatmaps (B, H, W)."
        )
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except Exception:  # annotations that only a type checker can resolve
        hints = {}
    named = [one for one in arguments[GIVEN:] if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
    return [_as_parameter(one, hints.get(one.name), name) for one in named]


def _as_parameter(argument: inspect.Parameter, hint: Any, name: str) -> inspect.Parameter:
    kind = hint if hint is not None else str if argument.default is argument.empty else type(argument.default)
    bare, _ = split_hint(kind)
    if bare not in SIMPLE and typing.get_origin(bare) is not Literal:
        raise ForetellError(
            f"The parameter {argument.name!r} of {name} is not an int, float, str, bool or Literal. Give it one of "
            "these types, and a default."
        )
    return inspect.Parameter(argument.name, inspect.Parameter.KEYWORD_ONLY, default=argument.default, annotation=kind)
