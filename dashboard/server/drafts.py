"""The participant's page of a study file that is being written: it is shown next to the texts, and stores nothing.

Behind the gate, and only for accounts that may design the study. The page is the participants' own; its requests are
served from the study file as it is now.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from dashboard.server.api import PAGE
from dashboard.server.headers import FRAMED, FRESH
from dashboard.shared.service import COOKIE
from study.locales import CATALOGUES
from study.plan.texts import DEFAULT_LANGUAGE

PREFIX = "/draft"


def routes() -> list[Route]:
    """Return the routes of drafts."""
    return [
        Route(f"{PREFIX}/{{study}}", _page),
        Route(f"{PREFIX}/{{study}}/{{language}}/{{stage}}/{{name}}", _reply, methods=["GET", "POST"]),
    ]


def make_address(study: str, language: str, stage: str, version: str, condition: str = "") -> str:
    """Return the address of a page of a draft, in a condition; another ``version`` loads it again."""
    asked = urlencode({"language": language, "stage": stage, "condition": condition, "version": version})
    return f"{PREFIX}/{quote(study, safe='')}?{asked}#draft"


async def _page(request: Request) -> Response:
    study, query = request.path_params["study"], request.query_params
    language = query.get("language", DEFAULT_LANGUAGE)
    language = language if language in CATALOGUES else DEFAULT_LANGUAGE
    stage = quote(f"{query.get('stage', 'consent')}~{query.get('condition', '')}", safe="~")
    api = f"{PREFIX}/{quote(study, safe='')}/{language}/{stage}"
    return HTMLResponse(PAGE.render(language=language, texts=CATALOGUES[language], api=api), headers=FRAMED)


async def _reply(request: Request) -> Response:
    body = await request.body() if request.method == "POST" else b""
    code, content = await run_in_threadpool(_read_reply, request, body)
    return JSONResponse(content, code, FRESH)


def _read_reply(request: Request, body: bytes) -> tuple[int, Any]:
    from dashboard.server.draftpages import reply  # the server starts without torch, which settings of a study need

    return reply(request.path_params, request.cookies.get(COOKIE, ""), body)
