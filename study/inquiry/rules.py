"""What an assertion is: a user's own function of an image and of a network's answer to it."""

from __future__ import annotations

import ctypes
import inspect
from collections.abc import Callable, Collection
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from core.errors import ForetellError
from core.loading import execute_file

LIMIT_S = 60.0
"""How long an assertion may take for an image, unless more is allowed."""


@dataclass(frozen=True)
class Prediction:
    """What the network says of an image: the second argument of an assertion.

    Attributes
    ----------
    probabilities
        (K,) float32 in the order of ``categories``, the plain names of the classes.
    label
        What the set says the image is; None where it says nothing.
    """

    categories: tuple[str, ...]
    probabilities: NDArray[np.float32]
    label: str | None
    ask: Callable[[Image.Image], NDArray[np.float32]] = field(repr=False)

    @property
    def category(self) -> str:
        """Name of the likeliest class."""
        return self.categories[int(self.probabilities.argmax())]

    @property
    def probability(self) -> float:
        """Its probability."""
        return float(self.probabilities.max())

    def of(self, category: str) -> float:
        """Probability of a class by its plain name.

        Raises
        ------
        ForetellError
            No such class.
        """
        if category not in self.categories:
            raise ForetellError(f"there is no class {category!r}; the first are {', '.join(self.categories[:4])}")
        return float(self.probabilities[[name == category for name in self.categories]].sum())

    def to(self, picture: Image.Image) -> Prediction:
        """The same network's answer to another image, of any size."""
        return Prediction(self.categories, self.ask(picture), self.label, self.ask)


Assertion = Callable[[Image.Image, Prediction], object]


def load_assertions(path: Path, taken: Collection[str] = ()) -> dict[str, Assertion]:
    """The functions of a user's file whose names do not begin with an underscore. The file is executed.

    Names ``taken`` cannot be used.

    Raises
    ------
    ForetellError
        No such file, one that fails, or one without a function of an image and an answer.
    """
    if not path.is_file():
        raise ForetellError(f"There is no file {path}: give a Python file of functions (picture, answer).")
    module = execute_file(path)
    found: dict[str, Assertion] = {
        name: value
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_")
    }
    if not found:
        raise ForetellError(f"{path} has no assertion: write a function of (picture, answer) that gives True or False.")
    for name, function in found.items():
        _refuse_other_arguments(function, f"{path}:{name}")
        if name in taken:
            raise ForetellError(f"{path}:{name} has the name of one of the table's columns: rename it.")
    return found


def _refuse_other_arguments(function: Assertion, name: str) -> None:
    try:
        inspect.signature(function).bind(None, None)
    except TypeError:
        raise ForetellError(
            f"{name} does not take (picture, answer): give it these two arguments, or begin its name with an "
            "underscore if it is not an assertion."
        ) from None


class Endless(ForetellError):
    """An assertion that did not end in time."""


def severity(
    assertion: Assertion, picture: Image.Image, answer: Prediction, name: str, of: str, limit: float = LIMIT_S
) -> float:
    """How badly an assertion is broken: 0 it holds; NaN where it says nothing.

    Raises
    ------
    Endless
        It took longer than ``limit``, in seconds.
    ForetellError
        It fails, or gives what is none of these.
    """
    outcome, thread = _run_in_thread(assertion, picture, answer)
    if not wait([outcome], limit).done:
        _end(thread)
        raise Endless(
            f"{name} did not end within {limit:g} s on {of}: correct it, or allow more (limit). Finished work is kept."
        )
    try:
        said = outcome.result()
    except (Exception, SystemExit) as error:  # the user's own code
        raise ForetellError(
            f"{name} failed on {of} ({type(error).__name__}: {error}): correct it, or let it return None if it does "
            "not apply."
        ) from error
    if said is None:
        return float("nan")
    if isinstance(said, bool | np.bool_):
        return float(not said)
    if isinstance(said, int | float | np.number) and 0 <= float(said) < np.inf:
        return float(said)
    raise ForetellError(
        f"{name} gave {said!r} for {of}: return True if it holds, False if not, its severity as a number from 0 (it "
        "holds) upwards, or None if it does not apply."
    )


def _run_in_thread(assertion: Assertion, picture: Image.Image, answer: Prediction) -> tuple[Future[object], Thread]:
    """What it will have said; in a thread of its own, which is left behind if it does not end in time."""
    outcome: Future[object] = Future()

    def ask() -> None:
        try:
            outcome.set_result(assertion(picture, answer))
        except BaseException as error:  # told where it is waited for
            outcome.set_exception(error)

    thread = Thread(target=ask, daemon=True)
    thread.start()
    return outcome, thread


def _end(thread: Thread) -> None:
    """Raise SystemExit in a thread that was left behind: in a server it would compute for ever beside the participants.

    It comes between two steps of Python; what waits outside of Python stays, and takes no processor time.
    """
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(SystemExit))
