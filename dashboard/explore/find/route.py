"""Where the Gallery fetches the heatmap of a thumbnail: apart from the page, so that no rerun waits for it."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from core.errors import ForetellError
from dashboard.shared.keys import HEATMAP_PATH

if TYPE_CHECKING:
    from dashboard.shared.jobs import Job

FRESH = {"Cache-Control": "no-store"}
KEPT = {"Cache-Control": "private, max-age=86400"}
"""The address has the version of network and images, so that a kept heatmap is never out of date."""
PATIENCE_S = 10.0
"""How long a request is held open; the page asks again."""
POLL_S = 0.05


def routes() -> list[Route]:
    """Return the route of small heatmaps, which belongs behind the gate."""
    return [Route(HEATMAP_PATH, _serve)]


async def _serve(request: Request) -> Response:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            job = await run_in_threadpool(_find_job, request)
        except ForetellError as error:
            return PlainTextResponse(str(error), 404, FRESH)
        if job.state == "failed":
            return PlainTextResponse(job.error, 422, FRESH)
        if isinstance(job.result, bytes):
            return Response(job.result, headers=KEPT, media_type="image/webp")
        if time.monotonic() > deadline or await request.is_disconnected():
            return Response(status_code=202, headers=FRESH)
        await asyncio.sleep(POLL_S)  # no thread waits: participants of the same server need them


def _find_job(request: Request) -> Job:
    from dashboard.explore.find.thumbnails import start_thumbnail_job  # the server starts without torch

    query = request.query_params
    number = query.get("image", "")
    if not number.isdecimal():
        raise ForetellError("The number of the image is missing.")
    return start_thumbnail_job(
        query.get("network", ""), query.get("images", ""), query.get("method", ""), int(number[:9])
    )
