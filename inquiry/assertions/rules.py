"""A user's own rules about a network's predictions, run in a process of their own."""

from __future__ import annotations

import inspect
import os
import pickle
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Thread, Timer
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from core.errors import ForetellError
from core.userfiles import execute_file
from inquiry.assertions.history import History, check_class
from study.workspace.workspace import ROOT

LIMIT_S = 60.0
"""Default time that an assertion may take for one image, in seconds."""
READING_S = 60.0
"""Default time that a file may take until its functions are known, in seconds."""


Ask = Callable[[Image.Image], NDArray[np.float32]]
"""Gives the network's probabilities (K,) for an image."""


@dataclass(frozen=True)
class Prediction:
    """A network's prediction for an image: the second argument of an assertion.

    Attributes
    ----------
    probabilities
        (K,) float32 in the order of ``categories``, the plain names of the classes.
    label
        The set's label of the image; None where it has none.
    """

    categories: tuple[str, ...]
    probabilities: NDArray[np.float32]
    label: str | None
    ask: Ask = field(repr=False)

    @property
    def category(self) -> str:
        """Name of the predicted class."""
        return self.categories[int(self.probabilities.argmax())]

    @property
    def probability(self) -> float:
        """Probability of the predicted class."""
        return float(self.probabilities.max())

    def of(self, category: str) -> float:
        """Return the probability of a class by its plain name.

        Raises
        ------
        ForetellError
            No such class.
        """
        check_class(category, self.categories)
        return float(self.probabilities[[name == category for name in self.categories]].sum())

    def to(self, image: Image.Image) -> Prediction:
        """Predict another image, of any size, with the same network."""
        return Prediction(self.categories, self.ask(image), self.label, self.ask)


Assertion = Callable[..., object]
"""A function (image, prediction) of an image and its prediction, or (history, n=5) of the last n predictions."""


class Endless(ForetellError):
    """An assertion, or the reading of its file, that did not end in time."""


class RuleProcess:
    """The assertions of a user's file, in a process of its own that is killed if one of them does not end.

    The file cannot disturb a server that has participants. Names in ``taken`` cannot be used; ``limit`` is the time
    that reading the file may take, in seconds.

    Attributes
    ----------
    says
        The statement of each assertion by its name: the first line of its docstring, or the name.
    windows
        The number of images in the history of each assertion that is about one; the others are about an image.

    Raises
    ------
    ForetellError
        No such file, one that fails or does not end in time, or one without an assertion.
    """

    def __init__(self, path: Path, taken: Collection[str] = (), limit: float = READING_S) -> None:
        self._file = path.name
        folders = filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])
        # Not a process of multiprocessing: a helper of a build may not start one, and it would import the pages.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", f"from {__name__} import serve; serve()"],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.close = weakref.finalize(self, _stop, self._process)
        why = f"{path.name} was not read within {limit:g} s."
        with self._end_after(limit, f"{why} Remove loops that do not end, and move slow work into its functions."):
            said = self._exchange((path, tuple(taken)), str(path))
        if isinstance(said, ForetellError):
            raise said
        self.says: dict[str, str] = {name: says for name, (says, _) in said.items()}
        self.windows: dict[str, int] = {name: n for name, (_, n) in said.items() if n is not None}

    def severity(self, name: str, image: Image.Image, prediction: Prediction, of: str, limit: float = LIMIT_S) -> float:
        """Measure how badly an image, called ``of``, breaks an assertion: 0 it holds; NaN if it does not apply.

        Raises
        ------
        Endless
            It took longer than ``limit``, in seconds: its process was killed.
        ForetellError
            It fails, or returns anything else.
        """
        given = prediction.categories, prediction.probabilities, prediction.label
        return self._judge(name, of, (image.copy(), *given), prediction.ask, limit)

    def severity_of_history(self, name: str, history: History, limit: float = LIMIT_S) -> float:
        """Measure how badly the last images of a stream break an assertion, as in `severity`."""
        return self._judge(name, f"the {len(history)} images up to {history.ids[-1]}", (history,), None, limit)

    def _judge(self, name: str, of: str, given: tuple[Any, ...], ask: Ask | None, limit: float) -> float:
        title = f"{self._file}:{name}"
        who = f"{title} failed on {of}: it"
        why = f"{title} did not end within {limit:g} s on {of}: correct it, or allow more (limit)."
        with self._end_after(limit, f"{why} Finished work is saved."):
            said = self._exchange((name, title, of, *given), who)
            while isinstance(said, tuple) and ask is not None:  # another image, to be predicted
                said = self._exchange(_attempt(ask, *said), who)
        if isinstance(said, ForetellError):
            raise said
        return float(said)

    @contextmanager
    def _end_after(self, limit: float, why: str) -> Iterator[None]:
        """Kill the process after ``limit`` seconds, and raise `Endless` if it came to that."""
        began = time.monotonic()
        killer = Timer(limit, self._process.kill)
        killer.start()
        try:
            yield
        finally:
            killer.cancel()
        if time.monotonic() - began >= limit:
            raise Endless(why)

    def _exchange(self, message: object, who: str) -> Any:
        """Send a message and return the reply; an error if the process has ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(pickle.dumps(message))
            self._process.stdin.flush()
            return pickle.load(self._process.stdout)
        except (BrokenPipeError, EOFError, pickle.UnpicklingError):
            return ForetellError(f"{who} ended its process. Correct it.")


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()


def _attempt(ask: Ask, image: Image.Image) -> object:
    """Predict an image, or return the error that this raises, which the rule may handle."""
    try:
        return ask(image)
    except Exception as error:
        return error


def serve() -> None:
    """Run the rules of a file for the process that started this one, by standard input and output."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupted run ends this process itself
    inbox: SimpleQueue[Any] = SimpleQueue()
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # rules may print, and replies must not mix with that

    def listen() -> None:
        with suppress(EOFError):
            while True:
                inbox.put(pickle.load(source))
        os._exit(0)  # also while a rule does not end

    def send(message: object) -> None:
        sink.write(pickle.dumps(message))
        sink.flush()

    def ask(image: Image.Image) -> NDArray[np.float32]:
        send((image,))
        reply = inbox.get()
        if isinstance(reply, Exception):
            raise reply
        probabilities: NDArray[np.float32] = reply
        return probabilities

    Thread(target=listen, daemon=True).start()
    path, taken = inbox.get()
    try:
        checks = load_assertions(path, taken)
    except ForetellError as error:
        return send(error)
    send({name: (state(rule), find_window(rule, f"{path.name}:{name}")) for name, rule in checks.items()})
    while True:
        name, title, of, *given = inbox.get()
        try:
            send(judge(partial(checks[name], *_join_arguments(given, ask)), title, of))
        except ForetellError as error:
            send(error)


def _join_arguments(given: list[Any], ask: Ask) -> tuple[Any, ...]:
    """Return the arguments of an assertion: a history, or an image and its prediction."""
    if len(given) == 1:
        return (given[0],)
    image, categories, probabilities, label = given
    return image, Prediction(categories, probabilities, label, ask)


def load_assertions(path: Path, taken: Collection[str] = ()) -> dict[str, Assertion]:
    """Load the functions of a user's file whose names do not begin with an underscore. The file is executed."""
    if not path.is_file():
        raise ForetellError(f"There is no file {path}: give a Python file of functions (image, prediction).")
    module = execute_file(path)
    checks: dict[str, Assertion] = {
        name: value
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_")
    }
    if not checks:
        raise ForetellError(
            f"{path} has no assertion: write a function of (image, prediction) that gives True or False."
        )
    for name, function in checks.items():
        if find_window(function, f"{path}:{name}") is None:
            _refuse_other_arguments(function, f"{path}:{name}")
        if name in taken:
            raise ForetellError(f"{path}:{name} has the name of one of the table's columns: rename it.")
    return checks


def state(rule: Assertion) -> str:
    """Return an assertion in words: the first line of its docstring, or its name."""
    return (inspect.getdoc(rule) or str(rule.__name__)).partition("\n")[0]


def find_window(function: Assertion, name: str) -> int | None:
    """Return the n of an assertion (history, n=5), called ``name``, over the last n images; None if it is no such one.

    Raises
    ------
    ForetellError
        It takes a history and does not say of how many images.
    """
    parameters = list(inspect.signature(function).parameters.values())
    if not parameters or parameters[0].name != "history":
        return None
    window = parameters[1].default if len(parameters) == 2 else None
    if not isinstance(window, int) or window < 2:
        raise ForetellError(
            f"{name} takes a history and does not say of how many images: write (history, n=5), with n of 2 or more."
        )
    return window


def _refuse_other_arguments(function: Assertion, name: str) -> None:
    try:
        inspect.signature(function).bind(None, None)
    except TypeError:
        raise ForetellError(
            f"{name} does not take (image, prediction): give it these two arguments, or begin its name with an "
            "underscore if it is not an assertion."
        ) from None


def judge(assertion: Callable[[], object], name: str, of: str) -> float:
    """Call an assertion with its arguments; raise `ForetellError` if it fails or returns no valid severity."""
    try:
        said = assertion()
    except BaseException as error:  # the user's own code
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
