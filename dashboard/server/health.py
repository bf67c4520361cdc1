"""``/health``: whether responses can be stored, for what watches the server; why they cannot, its log says."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from dashboard.server.headers import FRESH
from dashboard.shared.service import get_service


def routes() -> list[Route]:
    """List the route."""
    return [Route("/health", _tell_health)]


async def _tell_health(_: Request) -> Response:
    stores = await run_in_threadpool(lambda: get_service().participant.stores_responses())
    return JSONResponse({"stores_responses": stores}, 200 if stores else 503, FRESH)
