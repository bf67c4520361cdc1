"""Weights at huggingface.co: what happens where it cannot be reached, and what went wrong, in words."""

from __future__ import annotations

import importlib
import queue
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from core.errors import ForetellError
from core.sources.spec import ModelSpec, first_line

NO_SUCH_REPOSITORY = {"RepositoryNotFoundError", "GatedRepoError"}
NO_CONNECTION = {"LocalEntryNotFoundError", "OfflineModeIsEnabled", "ConnectError", "ConnectTimeout", "URLError"}
"""Errors of the clients that fetch weights, by name: their packages are imported only when they are needed."""
HTTPS = 443
PATIENCE_S = 3.0
"""How long a researcher waits for the size of a download."""
FORMATS = (".safetensors", ".bin")
"""Endings of weights, the first that a repository has is the one that the packages load."""


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


def measure_download(repository: str, revision: str = "", seconds: float = PATIENCE_S) -> int:
    """Ask huggingface.co how many bytes of weights a network of transformers or timm is; nothing is downloaded.

    Parameters
    ----------
    repository, revision
        ``OWNER/NAME``, and a branch, tag or commit, if not the newest.
    seconds
        How long to wait for the reply.

    Raises
    ------
    ForetellError
        No reply in time, no such repository, or no size of its weights.
    """
    replies: queue.SimpleQueue[int | Exception] = queue.SimpleQueue()

    def ask() -> None:
        try:
            replies.put(_sum_weights(repository, revision, seconds))
        except Exception as error:  # of the hub's client and of its connection, which have no common type
            replies.put(error)

    # In a thread, because the client's own limit does not count the search for the address.
    threading.Thread(target=ask, name="hub-size", daemon=True).start()
    try:
        reply = replies.get(timeout=seconds)
    except queue.Empty:
        raise ForetellError(
            f"huggingface.co did not respond within {seconds:g} s, so the size is unknown. Try again later."
        ) from None
    if isinstance(reply, Exception):
        raise _describe_unknown_size(reply, repository) from reply
    return reply


def _sum_weights(repository: str, revision: str, seconds: float) -> int:
    api: Any = importlib.import_module("huggingface_hub").HfApi()
    info = api.model_info(repository, revision=revision or None, timeout=seconds, files_metadata=True)
    for ending in FORMATS:
        files = {PurePosixPath(file.rfilename): file.size for file in info.siblings}
        weights = [size for path, size in files.items() if _is_weights(path, ending)]
        if weights and None not in weights:
            return sum(weights)
    raise ForetellError(f"huggingface.co does not say how large the weights of {repository} are.")


def _is_weights(path: PurePosixPath, ending: str) -> bool:
    """Tell weights that are loaded, in one file or in several (model-00001-of-00002), from copies in other formats."""
    stem = path.stem.split("-")[0]
    return path.suffix == ending and stem in ("model", "pytorch_model") and len(path.parts) == 1


def _describe_unknown_size(error: Exception, repository: str) -> ForetellError:
    """Say why the size of a download is not known."""
    if isinstance(error, ForetellError):
        return error
    kinds = {type(one).__name__ for one in _list_causes(error)}
    if kinds & NO_SUCH_REPOSITORY:
        return ForetellError(f"huggingface.co has no model {repository!r} that is open to everyone. Check the name.")
    if kinds & {"HFValidationError", "RevisionNotFoundError"}:
        return ForetellError(f"{repository!r} is no model of huggingface.co. Write OWNER/NAME or OWNER/NAME@REVISION.")
    return ForetellError("huggingface.co cannot be reached from this machine, so the size is unknown.")


def _list_causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
