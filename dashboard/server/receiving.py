"""Uploads of researchers' pages: written to disk as they come, and no more of them than there is room for.

This takes the place of Streamlit's own route, which reads a whole file into memory and keeps it there.
"""

from __future__ import annotations

import re
import shutil
import threading
import weakref

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Message
from streamlit import config
from streamlit.runtime import Runtime
from streamlit.runtime.uploaded_file_manager import UploadedFileRec

from dashboard.server.headers import FRESH, is_foreign_origin
from dashboard.shared.uploads import StoredBytes, StoredFile
from study.workspace.disk import LEAST_FREE, free_bytes

PATH = re.compile(r"/_stcore/upload_file/([^/]+)/([^/]+)")
MOST_WAITING = 2 * 2**30
"""Bytes of all files that an account has uploaded and not used yet."""
OVERHEAD = 64 * 1024
"""Bytes of a request around the file."""
CHUNK = 2**20
_waiting: weakref.WeakSet[StoredFile] = weakref.WeakSet()
_counting = threading.Lock()


def is_upload(request_path: str, method: str) -> bool:
    """Tell whether a request uploads a file."""
    return method == "PUT" and PATH.fullmatch(request_path) is not None


async def receive(request: Request, account: str) -> Response:
    """Write an uploaded file to disk and give it to the page of its session."""
    match = PATH.fullmatch(request.url.path)
    assert match is not None
    session, file_id = match.groups()
    runtime = Runtime.instance()
    if is_foreign_origin(request):
        return _refuse(403, "This request came from another site.")
    if not runtime.is_active_session(session):
        return _refuse(400, "This page is out of date. Reload it.")
    most = int(config.get_option("server.maxUploadSize")) * 2**20
    try:
        async with _limit(request, most + OVERHEAD).form(max_files=1) as form:
            files = [value for value in form.values() if isinstance(value, UploadFile)]
            if len(files) != 1:
                return _refuse(400, "One file at a time.")
            if (files[0].size or 0) > most:
                return _refuse(413, "The file is too large.")
            stored = await run_in_threadpool(_store, files[0], account)
    except _TooLargeError:
        return _refuse(413, "The file is too large.")
    except (ClientDisconnect, HTTPException, MultiPartException):
        return _refuse(400, "The upload did not arrive whole.")
    if stored is None:
        return _refuse(507, "There is no room for this file. Add or remove other files that you have chosen first.")
    runtime.uploaded_file_mgr.add_file(session, _record(file_id, files[0], stored))  # type: ignore[attr-defined]
    return Response(status_code=204, headers=FRESH)


def _record(file_id: str, upload: UploadFile, stored: StoredFile) -> UploadedFileRec:
    """Return a stored upload as a page's widget reads it."""
    data = StoredBytes()
    data.file = stored
    kind = upload.content_type or "application/octet-stream"
    return UploadedFileRec(file_id=file_id, name=upload.filename or "", type=kind, data=data)


class _TooLargeError(Exception):
    """A body beyond the limit, whatever its header said."""


def _limit(request: Request, most: int) -> Request:
    """Return the request with an end to its body."""
    received = 0

    async def receive_some() -> Message:
        nonlocal received
        message = await request.receive()
        received += len(message.get("body", b""))
        if received > most:
            raise _TooLargeError
        return message

    return Request(request.scope, receive_some)


def _store(upload: UploadFile, account: str) -> StoredFile | None:
    """Copy an upload, which starlette keeps in a temporary file, into the workspace; None where there is no room."""
    size = upload.size or 0
    stored = StoredFile(account)
    with _counting:
        waiting = sum(one.size for one in _waiting if one.account == account)
        if waiting + size > MOST_WAITING or size > free_bytes(stored.path.parent) - LEAST_FREE:
            return None
        stored.size = size
        _waiting.add(stored)
    with stored.path.open("xb") as target:
        shutil.copyfileobj(upload.file, target, CHUNK)
    return stored


def _refuse(code: int, sentence: str) -> Response:
    return PlainTextResponse(sentence, code, headers=FRESH)
