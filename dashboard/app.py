"""The ASGI application: ``uvicorn dashboard.app:app``.

Streamlit's pages at ``/``, the documentation at ``/docs``, drafts at ``/draft`` and small heatmaps at ``/heatmap``, all
behind the gate (`dashboard.server.gate`); the participant's page at ``/run/{study}``, its files at ``/runner``, images
at ``/assets`` and its requests at ``/api/v1``: plain routes, served by the gate itself, outside Streamlit.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from streamlit.starlette import App

from core.errors import ForetellError
from dashboard.explore.find import route as heatmaps
from dashboard.server import api, documentation, drafts, fonts, health, login, sso
from dashboard.server.gate import Gate
from dashboard.shared import service
from dashboard.shared.sessions import deliver_last_messages, keep_newer_clicks
from dashboard.shared.uploads import remove_abandoned

FORGETTING_S = 3600.0
"""How often recruiters' ids whose time is over are erased: a server may run for months."""
WATCHING_S = 2.0
"""So many seconds of responses can be lost from the end of a database without a trace."""


@asynccontextmanager
async def lifespan(_: App) -> AsyncIterator[dict[str, Any]]:
    """Open the database before the first request, close it after the last."""
    # An access log would keep addresses and recruiters' ids of participants.
    logging.getLogger("uvicorn.access").disabled = True
    logging.getLogger("uvicorn.error").addFilter(is_loggable)
    await run_in_threadpool(lambda: service.get_service().workspace.require_sound())
    await run_in_threadpool(lambda: service.get_service().access.provider)
    await run_in_threadpool(remove_abandoned)
    tasks = [asyncio.create_task(forget_in_time()), asyncio.create_task(keep_watch())]
    try:
        yield {}
    finally:
        for task in tasks:
            task.cancel()
        await run_in_threadpool(service.close)


def is_loggable(record: logging.LogRecord) -> bool:
    """Whether a line of uvicorn's may be logged: those about a websocket begin with the browser's address."""
    return "WebSocket" not in str(record.msg)


async def forget_in_time(every_s: float = FORGETTING_S) -> None:
    """Erase the recruiter's ids whose time is over, again and again; a database that is away is asked next time."""
    while True:
        with contextlib.suppress(ForetellError):
            await run_in_threadpool(lambda: service.get_service().workspace.erase_identities())
        await asyncio.sleep(every_s)


async def keep_watch(every_s: float = WATCHING_S) -> None:
    """Keep the ends of the chains outside the database, and the time that was reached, again and again."""
    modules = 0
    while True:
        modules = freeze_modules(modules)
        with contextlib.suppress(ForetellError):
            await run_in_threadpool(lambda: service.get_service().workspace.keep_watch())
        await asyncio.sleep(every_s)


def freeze_modules(known: int) -> int:
    """Take imported modules out of the garbage collector's sight if there are more than `known`; how many there are.

    A full collection stops every request while it looks at all objects: 150 ms with those of pandas, PyTorch and
    Streamlit, which stay for good. Streamlit asks for one after each run of a page.
    """
    modules = len(sys.modules)
    if modules > known:
        gc.collect()
        gc.freeze()
    return modules


ROUTES = [*api.routes(), *fonts.routes(), *health.routes(), *login.routes(), *sso.routes()]
deliver_last_messages()
keep_newer_clicks()
app = App(
    Path(__file__).parent / "pages.py",
    routes=[*documentation.routes(), *drafts.routes(), *heatmaps.routes()],
    lifespan=lifespan,
    middleware=[Middleware(Gate, public=ROUTES)],
)
