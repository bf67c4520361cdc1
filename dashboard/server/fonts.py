"""The typeface of the researcher's pages: Inter, from this machine (dashboard/fonts)."""

from __future__ import annotations

from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from dashboard.server.headers import IMMUTABLE, SAFE

FONTS = {path.name: path for path in (Path(__file__).parents[1] / "fonts").glob("*.woff2")}


def routes() -> list[Route]:
    """List the route."""
    return [Route("/fonts/{file}", _font)]


async def _font(request: Request) -> Response:
    path = FONTS.get(request.path_params["file"])
    if path is None:
        return Response("There is no such font.", 404, SAFE)
    return FileResponse(path, headers=IMMUTABLE, media_type="font/woff2")
