"""``/login``: log in to the researcher's pages, and out. A plain form: it works before anything else is loaded."""

from __future__ import annotations

import asyncio
from pathlib import Path
from urllib.parse import parse_qs

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from core.errors import ForetellError
from dashboard.server.gate import LOGIN
from dashboard.server.headers import FRESH, is_foreign_origin, source_of
from dashboard.shared import service as door
from dashboard.shared.service import COOKIE
from study.collection.access.logins import LOGIN_NS, SHORTEST, WINDOW_NS
from study.collection.access.tokens import LINK_KEY
from study.participation.refusals import Refusal
from study.store import StoreError
from study.workspace.jinja import load_templates

PAGE = load_templates(Path(__file__).parents[1] / "runner").get_template("login.html")
FORMER = "/door"
"""The page's address in version 0.1; login links and bookmarks may still name it."""
DEVICE = "foretell_device"
DEVICE_S = 365 * 24 * 3600
MOST_BYTES = 4096
LONGEST_BODY_S = 30
# Without a referrer some browsers call the form's own origin null.
HEADERS = {
    **FRESH,
    "Referrer-Policy": "same-origin",
    "Content-Security-Policy": FRESH["Content-Security-Policy"].replace("form-action 'none'", "form-action 'self'"),
}


def routes() -> list[Route]:
    """The door's own routes."""
    return [
        Route(LOGIN, page),
        Route(LOGIN, _enter, methods=["POST"]),
        Route(f"{LOGIN}/password", _choose, methods=["POST"]),
        Route(f"{LOGIN}/out", _leave, methods=["POST"]),
        Route(FORMER, _redirect_login),
    ]


async def _redirect_login(request: Request) -> Response:
    """Redirect a login link of version 0.1, with its secret."""
    query = f"?{request.url.query}" if request.url.query else ""
    return RedirectResponse(f"{LOGIN}{query}", 308, headers=HEADERS)


async def page(request: Request, message: str = "", code: int = 200) -> Response:
    """Show how to log in, or the button to log out; a login link logs in at once, or asks for a new password."""
    key = request.query_params.get(LINK_KEY)
    if key is not None and not message:
        return await _enter_by_link(request, key)
    return await _show(request, message, code)


async def _show(request: Request, message: str, code: int, key: str = "", invited: str = "") -> Response:
    """Show the page: with a link's secret, the form that sets the password of an account."""
    headers = {**HEADERS, "Retry-After": str(WINDOW_NS // 10**9)} if code == 429 else HEADERS
    try:
        shown = await run_in_threadpool(_fill_page, request.cookies.get(COOKIE, ""), message, key, invited)
    except ForetellError as error:
        empty = dict.fromkeys(("person", "name", "key", "shortest"), "")
        shown = PAGE.render(standing="out", ways=["password"], message=str(error), **empty)
        code = 503
    return HTMLResponse(shown, code, headers)


def let_in(request: Request, token: str) -> Response:
    """To the pages, with a login of one's own."""
    reply = RedirectResponse("/", 303, headers=HEADERS)
    secure = request.url.scheme == "https"
    reply.set_cookie(COOKIE, token, max_age=LOGIN_NS // 10**9, httponly=True, samesite="lax", secure=secure)
    device = request.cookies.get(DEVICE) or door.get_service().access.new_device()
    reply.set_cookie(DEVICE, device, max_age=DEVICE_S, path=LOGIN, httponly=True, samesite="strict", secure=secure)
    return reply


async def _enter_by_link(request: Request, key: str) -> Response:
    access = door.get_service().access
    try:
        # A mail program that opens the link to check it must not use it up: only the form does.
        invited = await run_in_threadpool(access.find_invited, key)
        if invited is not None:
            return await _show(request, "", 200, key, invited)
        return let_in(request, await run_in_threadpool(door.get_service().access.login_by_link, key))
    except ForetellError as error:
        return await refuse(request, error)


async def _enter(request: Request) -> Response:
    sent = await _read_form(request)
    if isinstance(sent, Response):
        return sent
    try:
        device, person = request.cookies.get(DEVICE, ""), sent.get("person", "").strip()
        login = door.get_service().access.login
        token = await run_in_threadpool(login, sent.get("password", ""), source_of(request), device, person)
    except ForetellError as error:
        return await refuse(request, error)
    return let_in(request, token)


async def _choose(request: Request) -> Response:
    """Set the password of a link's account, and log in; the link is used up."""
    sent = await _read_form(request)
    if isinstance(sent, Response):
        return sent
    access, key, password = door.get_service().access, sent.get(LINK_KEY, ""), sent.get("password", "")
    try:
        invited = await run_in_threadpool(access.find_invited, key)
        if invited is not None and password != sent.get("repeated", ""):
            return await _show(request, "The two passwords differ. Type the same one twice.", 422, key, invited)
        return let_in(request, await run_in_threadpool(access.choose_password, key, password))
    except (Refusal, StoreError) as error:
        return await refuse(request, error)
    except ForetellError as error:  # too short: the link still works
        return await _show(request, str(error), 422, key, invited or "")


async def refuse(request: Request, error: ForetellError) -> Response:
    """Show the page with the reason: code 503 unless the error is a refusal with a code of its own."""
    return await page(request, str(error), error.code if isinstance(error, Refusal) else 503)


async def _read_form(request: Request) -> dict[str, str] | Response:
    """Read a form of this page; a response instead to another site, and to what is too long or too slow."""
    if is_foreign_origin(request):
        return await page(request, "This request came from another site.", 403)
    body = bytearray()
    try:
        async with asyncio.timeout(LONGEST_BODY_S):
            async for chunk in request.stream():
                body += chunk
                if len(body) > MOST_BYTES:
                    return await page(request, "This is not a password.", 413)
    except (ClientDisconnect, TimeoutError):
        return Response(status_code=408, headers=HEADERS)
    sent = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True)
    return {name: values[0] for name, values in sent.items()}


async def _leave(request: Request) -> Response:
    if is_foreign_origin(request):
        return await page(request, "This request came from another site.", 403)
    try:
        await run_in_threadpool(door.get_service().access.logout, request.cookies.get(COOKIE, ""))
    except StoreError as error:
        return await refuse(request, error)
    reply = RedirectResponse(LOGIN, 303, headers=HEADERS)
    reply.delete_cookie(COOKIE, httponly=True, samesite="lax")
    return reply


def _fill_page(token: str, message: str, key: str, invited: str) -> str:
    service = door.get_service()
    standing: str
    standing, ways, person = (
        service.access.find_login_state(token),
        service.access.ways(),
        service.access.find_address(token),
    )
    name = service.access.provider.name if service.access.provider else ""
    if invited:
        standing, person = "invited", invited
    return PAGE.render(
        standing=standing, ways=ways, message=message, person=person, name=name, key=key, shortest=SHORTEST
    )
