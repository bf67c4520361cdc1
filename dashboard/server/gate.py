"""Around the whole application: who asks for what. Participants' routes are open, all else is the researcher's.

Pages, files, uploads and the websocket need a login, also at this machine: nothing that a request says of itself, and
no address, tells this machine from a proxy on it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from core.errors import ForetellError
from dashboard.server import receiving
from dashboard.server.headers import FRESH, HSTS, RESEARCHERS, is_foreign_origin
from dashboard.shared import links, service
from dashboard.shared.service import COOKIE

LOGIN = "/login"
RECHECK_S = 5.0
PAGES = {
    *("", "explore", "library", "design", "power", "studies", "monitor", "coding", "results", "teaching"),
    *("accounts", "help", "docs", "draft"),
}
"""First parts of the addresses that a browser opens behind the login (`dashboard.pages`)."""
ELSEWHERE = (
    "There is no page at this address. Foretell needs a host name of its own: it cannot run below a path of another "
    "site, such as example.org/study/."
)
"""For whoever has put it below a path, where a redirect to the login page would lead to the other site."""


class Gate:
    """ASGI middleware.

    Parameters
    ----------
    app
        What is inside, behind the login.
    public
        Routes that need no login: exactly these, no path that only looks like them. They are served here: Streamlit's
        sessions and checks of paths are nothing to participants, and take longer than most of their requests.
    """

    def __init__(self, app: ASGIApp, public: Sequence[BaseRoute]) -> None:
        self._app = app
        self._public = public

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        if scope["type"] == "http" and scope["scheme"] == "https":
            send = _with_headers(send, {"Strict-Transport-Security": HSTS})
        if (public := self._find_public(scope)) is not None:
            return await public.handle(scope, receive, send)
        asked = HTTPConnection(scope)
        refusal = await run_in_threadpool(find_refusal, asked)
        if scope["type"] == "websocket":
            if refusal is not None or is_foreign_origin(asked):
                return await send({"type": "websocket.close", "code": 1008})
            watched = _Watched(asked, receive, send)
            return await self._app(scope, watched.receive, watched.send)
        if refusal is not None:
            return await _refuse(Request(scope), *refusal)(scope, receive, send)
        if receiving.is_upload(scope["path"], scope["method"]):
            account = await run_in_threadpool(find_account_name, asked)
            return await (await receiving.receive(Request(scope, receive), account))(scope, receive, send)
        query = scope["query_string"].decode("latin-1")
        if (today := links.update(query)) != query:
            return await RedirectResponse(f"?{today}", 307, headers=FRESH)(scope, receive, send)
        return await self._app(scope, receive, _with_headers(send, RESEARCHERS))

    def _find_public(self, scope: Scope) -> BaseRoute | None:
        """Find the route of a request that needs no login, and put the parts of its path into the scope."""
        for route in self._public if scope["type"] == "http" else ():
            matched, parts = route.matches(scope)
            if matched is Match.FULL:
                scope.update(parts)
                return route
        return None


def _with_headers(send: Send, added: Mapping[str, str]) -> Send:
    """Add headers to replies that do not have them."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in added.items():
                headers.setdefault(name, value)
        await send(message)

    return sending


class _Watched:
    """A websocket lives for days: it ends when its login does."""

    def __init__(self, asked: HTTPConnection, receive: Receive, send: Send) -> None:
        self._asked, self._receive, self._send = asked, receive, send
        self._checked, self._ended = time.monotonic(), False

    async def receive(self) -> Message:
        message = await self._receive()
        return message if await self._still_in() else {"type": "websocket.disconnect", "code": 1008}

    async def send(self, message: Message) -> None:
        if await self._still_in():
            await self._send(message)

    async def _still_in(self) -> bool:
        if not self._ended and time.monotonic() - self._checked > RECHECK_S:
            self._checked = time.monotonic()
            if await run_in_threadpool(find_refusal, self._asked) is not None:
                self._ended = True
                await self._send({"type": "websocket.close", "code": 1008})
        return not self._ended


def find_refusal(asked: HTTPConnection) -> tuple[int, str] | None:
    """Return code and sentence for a request without access to the researcher's pages; None with access."""
    try:
        standing = service.get_service().access.find_login_state(asked.cookies.get(COOKIE, ""))
    except ForetellError as error:
        return 503, str(error)
    return None if standing == "in" else (401, "Log in first.")


def find_account_name(asked: HTTPConnection) -> str:
    """Return the name of the account that is logged in, for what it may have waiting."""
    return service.get_researcher_of(asked.cookies.get(COOKIE, "")).account.name


def _refuse(request: Request, code: int, sentence: str) -> Response:
    """Redirect a browser to the login page, unless nothing is at its address; send a program the code."""
    if code == 401 and request.method == "GET" and "text/html" in request.headers.get("accept", ""):
        if request.url.path.lstrip("/").split("/")[0] in PAGES:
            return RedirectResponse(LOGIN, 303, headers=FRESH)
        code, sentence = 404, ELSEWHERE
    return PlainTextResponse(sentence, code, headers=FRESH)
