"""The participant's routes, thin: JSON in, the service, JSON and a code out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import HTTPConnection, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from core.errors import ForetellError
from dashboard import door, gate
from dashboard.headers import FRESH, IMMUTABLE, SAFE, foreign_origin
from study.participation.answer import Answer, CheckAnswers, ClientEvent, Device, Filled, Recruit
from study.participation.answering import Refused
from study.service import Service
from study.store import StoreError

RUNNER = Path(__file__).parent / "runner"
_FILES = {path.name: path for path in RUNNER.iterdir() if path.suffix in (".js", ".css", ".svg")}
MOST_BYTES = 64 * 1024
MOST_EVENTS = 200
LONGEST_TAB = 64


@dataclass(frozen=True)
class Call:
    """What a request of the page brings: who (token), from which tab, and what; and the request itself."""

    token: str
    tab: str | None
    body: bytes
    asked: HTTPConnection


Work = Callable[[Service, Call], tuple[int, Any]]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Entry(_Body):
    """Body of ``/api/v1/entry``."""

    study: str = Field(max_length=200, pattern=r"^[^\x00]+$")


class Begin(_Body):
    """Body of ``/api/v1/begin``: who a recruiter says the person is, or a preview of one condition."""

    study: str = Field(max_length=200, pattern=r"^[^\x00]+$")
    recruit: Recruit | None = None
    preview: bool = False
    condition: str | None = Field(default=None, max_length=100)


class Consent(_Body):
    """Body of ``/api/v1/consent``."""

    agreed: bool
    device: Device | None = None


class Ready(_Body):
    """Body of ``/api/v1/ready``: which page was read."""

    stage: Literal["instructions", "example"]


class Withdrawal(_Body):
    """Body of ``/api/v1/withdraw``: the private code."""

    code: str = Field(min_length=1, max_length=40)


_EVENTS: TypeAdapter[list[ClientEvent]] = TypeAdapter(list[ClientEvent])


def routes() -> list[Route]:
    """Every route of the participant's page."""
    return [
        Route("/run/{study}", _page),
        Route("/runner/{file}", _runner_file),
        Route("/assets/{study}/{sha256}", _asset),
        _api("entry", "POST", lambda service, call: (200, service.entry(Entry.model_validate_json(call.body).study))),
        _api("begin", "POST", _begin),
        _api("time", "GET", lambda service, _: (200, {"now_ms": service.now_ms()})),
        _api("state", "GET", lambda service, call: (200, service.state(call.token, call.tab))),
        _api(
            "takeover",
            "POST",
            lambda service, call: (200, service.take_over(call.token, call.tab or "")),
        ),
        _api("preload", "GET", lambda service, call: (200, service.preload(call.token))),
        _api("consent", "POST", _consent),
        _api("ready", "POST", _ready),
        _api("check", "POST", _check),
        _api("responses", "POST", _respond),
        _api("events", "POST", _events),
        _api("questionnaire", "POST", _fill),
        _api("finish", "POST", lambda service, call: (200, service.finish(call.token, call.tab))),
        _api("withdraw", "POST", _withdraw),
    ]


def _begin(service: Service, call: Call) -> tuple[int, Any]:
    sent = Begin.model_validate_json(call.body)
    if sent.preview:
        # Somebody who takes part would see the other conditions, and what practice answers.
        refusal = gate.refused(call.asked)
        if refusal is not None:
            raise Refused(*refusal)
        return 201, {"token": service.begin(sent.study, mode="preview", condition=sent.condition)}
    return 201, {"token": service.begin(sent.study, recruit=sent.recruit)}


def _consent(service: Service, call: Call) -> tuple[int, Any]:
    sent = Consent.model_validate_json(call.body)
    return 200, service.consent(call.token, sent.agreed, sent.device, call.tab)


def _ready(service: Service, call: Call) -> tuple[int, Any]:
    return 200, service.ready(call.token, Ready.model_validate_json(call.body).stage, call.tab)


def _check(service: Service, call: Call) -> tuple[int, Any]:
    return 200, service.check(call.token, CheckAnswers.model_validate_json(call.body), call.tab)


def _respond(service: Service, call: Call) -> tuple[int, Any]:
    ack = service.record(call.token, Answer.model_validate_json(call.body), call.tab)
    return ack.code, {"message": ack.message, "feedback": ack.feedback, "state": ack.state}


def _fill(service: Service, call: Call) -> tuple[int, Any]:
    return 200, service.fill(call.token, Filled.model_validate_json(call.body), call.tab)


def _withdraw(service: Service, call: Call) -> tuple[int, Any]:
    return 200, service.withdraw(Withdrawal.model_validate_json(call.body).code)


def _events(service: Service, call: Call) -> tuple[int, Any]:
    events = _EVENTS.validate_json(call.body)
    if len(events) > MOST_EVENTS:
        return 413, {"error": f"At most {MOST_EVENTS} events at once."}
    return 200, {"new": service.events(call.token, events)}


def _api(name: str, method: str, work: Work) -> Route:
    """A route whose work runs in the thread pool, with the project's errors as codes and one sentence."""

    async def handle(request: Request) -> Response:
        refused = _foreign(request) if method == "POST" else None
        if refused:
            return _json(403, {"error": refused})
        body = await _limited_body(request)
        if body is None:
            return _json(413, {"error": f"The request is longer than {MOST_BYTES} bytes."})
        tab = request.headers.get("x-tab")
        call = Call(request.headers.get("x-session-token", ""), tab[:LONGEST_TAB] if tab else None, body, request)
        code, content = await run_in_threadpool(_guarded, work, call)
        return _json(code, content)

    return Route(f"/api/v1/{name}", handle, methods=[method])


def _guarded(work: Work, call: Call) -> tuple[int, Any]:
    try:
        return work(door.service(), call)
    except Refused as error:
        return error.code, {"error": str(error)}
    except StoreError as error:
        return 503, {"error": str(error)}
    except ValidationError as error:
        first = error.errors()[0]
        where, what = ".".join(map(str, first["loc"])) or "body", first["msg"].removeprefix("Value error, ")
        return 422, {"error": what if first["type"] == "value_error" else f"{where}: {what}"}
    except ForetellError as error:
        return 400, {"error": str(error)}


def _foreign(request: Request) -> str | None:
    """Why a request that changes something does not come from our own page; None if it does."""
    if request.headers.get("content-type", "").split(";")[0].strip() != "application/json":
        return "Send application/json."
    return "This request came from another site." if foreign_origin(request) else None


async def _limited_body(request: Request) -> bytes | None:
    """The body, or None where it is too long; no more than the limit is ever held."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BYTES:
            return None
    return bytes(body)


def _json(code: int, content: Any) -> Response:
    headers = {**FRESH, "Retry-After": "1"} if code == 503 else FRESH
    return JSONResponse(content, code, headers)


async def _page(_: Request) -> Response:
    return FileResponse(RUNNER / "run.html", headers=FRESH)


async def _runner_file(request: Request) -> Response:
    path = _FILES.get(request.path_params["file"])
    if path is None:
        return _json(404, {"error": "No such file."})
    return FileResponse(path, headers={**SAFE, "Cache-Control": "no-cache"})


def _guarded_asset(study: str, sha256: str) -> bytes | None:
    try:
        return door.service().asset(study, sha256).read_bytes()
    except (ForetellError, OSError):
        return None


async def _asset(request: Request) -> Response:
    """A picture. No Last-Modified: files are written in an order that could tell what belongs together."""
    sha256 = request.path_params["sha256"]
    content = await run_in_threadpool(_guarded_asset, request.path_params["study"], sha256)
    if content is None:
        return _json(404, {"error": "No such picture."})
    return Response(content, media_type="image/webp", headers=IMMUTABLE)
