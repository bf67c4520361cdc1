"""Weights at huggingface.co: what happens where it cannot be reached, and what went wrong, in words."""

from __future__ import annotations

import importlib
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from core.errors import ForetellError
from core.sources.spec import ModelSpec, first_line

NO_SUCH_REPOSITORY = {"RepositoryNotFoundError", "GatedRepoError"}
NO_CONNECTION = {"LocalEntryNotFoundError", "OfflineModeIsEnabled", "ConnectError", "ConnectTimeout", "URLError"}
"""Errors of the clients that fetch weights, by name: their packages are imported only when they are needed."""
HTTPS = 443


@contextmanager
def work_offline_if_unreachable() -> Iterator[None]:
    """Use only files that are on this machine while the hub's name cannot be resolved.

    Its client otherwise repeats every request for about half a minute, even for files that it has.
    """
    constants: Any = importlib.import_module("huggingface_hub.constants")
    if constants.HF_HUB_OFFLINE or getproxies() or _resolves(urlsplit(constants.ENDPOINT).hostname):
        yield
        return
    constants.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = False


def _resolves(host: str | None) -> bool:
    try:
        return bool(socket.getaddrinfo(host, HTTPS))
    except OSError:
        return False


def describe_failure(spec: ModelSpec, error: Exception, repository: str, files: str) -> ForetellError:
    """Return what to do where a network and its weights cannot be loaded.

    ``repository`` is its name at huggingface.co and ``files`` what a folder of one's own must hold.
    """
    if spec.folder is not None:
        return ForetellError(
            f"{spec.folder} does not hold a network of {spec.source} ({first_line(error)}). It needs {files}."
        )
    kinds = {type(one).__name__ for one in _list_causes(error)}
    if kinds & NO_SUCH_REPOSITORY:
        return ForetellError(
            f"{spec.text}: huggingface.co has no model {repository!r} that is open to everyone. Check the name; for a "
            "private one, log in with: hf auth login"
        )
    if kinds & NO_CONNECTION or "couldn't connect" in str(error):
        return ForetellError(
            f"The weights of {spec.text} are not on this machine and huggingface.co cannot be reached. Connect once, "
            f"or put {files} of https://huggingface.co/{repository} in a folder and name it as {spec.source}:FOLDER."
        )
    return ForetellError(
        f"{spec.text} could not be loaded ({first_line(error)}). Name another model, or a folder with {files} as "
        f"{spec.source}:FOLDER."
    )


def _list_causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
