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
    fault = await run_in_threadpool(lambda: get_service().workspace.store.fault)
    return JSONResponse({"stores_responses": fault is None}, 200 if fault is None else 503, FRESH)
