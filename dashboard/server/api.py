"""The participant's routes, thin: JSON in, the service, JSON and a code out."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pydantic import TypeAdapter, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from core.errors import ForetellError
from dashboard.server import gate
from dashboard.server.bodies import Begin, ConsentBody, Entry, Ready, SittingBody, Withdrawal
from dashboard.server.headers import FRESH, IMMUTABLE, SAFE, is_foreign_origin, source_of
from dashboard.shared import service as door
from dashboard.shared.service import COOKIE
from study.bundle import DamageError
from study.collection.researcher import Researcher
from study.participation.payloads import (
    CheckResponses,
    ClientEvent,
    QuestionnaireResponses,
    TrialResponse,
)
from study.participation.refusals import Refusal
from study.plan.texts import DEFAULT_LANGUAGE, DEFAULTS
from study.service import Ack, Participant
from study.store import StoreError
from study.workspace.jinja import load_templates

RUNNER = Path(__file__).parents[1] / "runner"
PAGE = load_templates(RUNNER).get_template("run.html")
_FILES = {path.name: path for path in RUNNER.iterdir() if path.suffix in (".js", ".css", ".svg")}
COMPRESSED = [Middleware(GZipMiddleware)]
MOST_BYTES = 64 * 1024
LONGEST_BODY_S = 30
MOST_EVENTS = 200
LONGEST_TAB = 64
NO_FILE, NO_IMAGE = {"error": "No such file."}, {"error": "No such image."}


@dataclass(frozen=True)
class PageRequest:
    """What a request of the page brings: who (token), in which study and tab, and what; and the request itself."""

    token: str
    study: str
    tab: str | None
    body: bytes
    asked: Request


log = logging.getLogger(__name__)
Work = Callable[[Participant, PageRequest], tuple[int, Any]]


_EVENTS: TypeAdapter[list[ClientEvent]] = TypeAdapter(list[ClientEvent])


def routes() -> list[Route]:
    """Every route of the participant's page."""
    changes = {"entry": _enter, "begin": _begin, "consent": _consent, "check": _check, "events": _events}
    changes |= {"questionnaire": _fill, "withdraw": _withdraw, "sitting": _start_sitting}
    return [
        Route("/run/{study}", _page, middleware=COMPRESSED),
        Route("/run/{study}/", _without_slash),
        Route("/runner/{file}", _runner_file, middleware=COMPRESSED),
        Route("/assets/{study}/{sha256}", _asset),
        _api("time", "GET", lambda participant, _: (200, {"now_ms": participant.now_ms()})),
        _api("state", "GET", lambda participant, call: (200, participant.state(call.token, call.tab))),
        _api("preload", "GET", lambda participant, call: (200, participant.preload(call.token))),
        _api("reservoir", "GET", lambda participant, call: (200, participant.list_reservoir(call.token))),
        _api("messages", "GET", lambda participant, call: (200, {"messages": participant.messages(call.token)})),
        _api("takeover", "POST", lambda one, call: (200, one.take_over(call.token, _require_tab(call)))),
        _api("finish", "POST", lambda participant, call: (200, participant.finish(call.token, call.tab))),
        *(_api(name, "POST", act) for name, act in changes.items()),
        _queue("ready", _ready),
        _queue("responses", _respond),
    ]


def _require_tab(call: PageRequest) -> str:
    """Return the tab that takes a session over; a request without one could hold nothing."""
    if call.tab is None:
        raise Refusal(422, "Name the tab that takes over: X-Tab.")
    return call.tab


def _enter(participant: Participant, call: PageRequest) -> tuple[int, Any]:
    sent = Entry.model_validate_json(call.body)
    if sent.preview:
        return 200, _find_previewer(call).load_preview_entry(sent.study)
    return 200, participant.entry(sent.study, call.token)


def _find_previewer(call: PageRequest) -> Researcher:
    """Find the door of the researcher who previews: a participant would see the other conditions and predictions."""
    refusal = gate.find_refusal(call.asked)
    if refusal is not None:
        raise Refusal(*refusal, "refused_preview")
    return door.get_researcher_of(call.asked.cookies.get(COOKIE, ""))


def _begin(participant: Participant, call: PageRequest) -> tuple[int, Any]:
    sent = Begin.model_validate_json(call.body)
    if sent.preview:
        return 201, {"token": _find_previewer(call).begin_preview(sent.study, sent.condition)}
    if sent.link is not None:
        return 201, {"token": participant.come_back(sent.study, sent.link, source_of(call.asked))}
    begun = participant.begin(sent.study, recruit=sent.recruit, proof=sent.proof, address=source_of(call.asked))
    return 201, {"token": begun}


def _consent(participant: Participant, call: PageRequest) -> tuple[int, Any]:
    sent = ConsentBody.model_validate_json(call.body)
    return 200, participant.consent(call.token, sent.agreed, sent.device, call.tab)


def _ready(participant: Participant, call: PageRequest) -> Future[dict[str, Any]]:
    return participant.submit_ready(call.token, Ready.model_validate_json(call.body).stage, call.tab)


def _check(participant: Participant, call: PageRequest) -> tuple[int, Any]:
    return 200, participant.check(call.token, CheckResponses.model_validate_json(call.body), call.tab)


def _respond(participant: Participant, call: PageRequest) -> Future[Ack]:
    return participant.submit_response(call.token, TrialResponse.model_validate_json(call.body), call.tab)


def _reply(done: Ack | dict[str, Any]) -> tuple[int, Any]:
    """A page's new state, or what is said of a response with it."""
    if isinstance(done, Ack):
        return done.code, {
            "message": done.message,
            "feedback": done.feedback,
            "reveal": done.reveal,
            "state": done.state,
        }
    return 200, done


def _start_sitting(participant: Participant, call: PageRequest) -> tuple[int, Any]:
    return 200, participant.start_sitting(call.token, SittingBody.model_validate_json(call.body).number, call.tab)


def _fill(participant: Participant, call: PageRequest) -> tuple[int, Any]:
    return 200, participant.fill(call.token, QuestionnaireResponses.model_validate_json(call.body), call.tab)


def _withdraw(participant: Participant, call: PageRequest) -> tuple[int, Any]:
    return 200, participant.withdraw(Withdrawal.model_validate_json(call.body).code, source_of(call.asked))


def _events(participant: Participant, call: PageRequest) -> tuple[int, Any]:
    events = _EVENTS.validate_json(call.body)
    if len(events) > MOST_EVENTS:
        raise Refusal(413, f"At most {MOST_EVENTS} events at once.")
    return 200, {"new": participant.events(call.token, events)}


def _api(name: str, method: str, work: Work) -> Route:
    """A route whose work runs in the thread pool, with the project's errors as codes and one sentence."""

    async def handle(request: Request) -> Response:
        call = await _read_request(request)
        if call is None:
            return Response(status_code=408, headers=FRESH)  # the page sends it again
        return _json(*await run_in_threadpool(_run_guarded, work, call))

    return Route(f"/api/v1/{name}", handle, methods=[method])


def _queue(name: str, submit: Callable[[Participant, PageRequest], Future[Any]]) -> Route:
    """A route whose work is queued for the writer, and no thread waits until it is stored: the frequent requests.

    Forty waiting threads would each take Python's lock from the writer when their group is committed.
    """

    async def handle(request: Request) -> Response:
        call = await _read_request(request)
        if call is None:
            return Response(status_code=408, headers=FRESH)
        try:
            _admit(call)
            done = await asyncio.wrap_future(submit(door.get_service().participant, call))
        except (ForetellError, ValidationError) as error:
            return _json(*await run_in_threadpool(_describe_refusal, error, call))
        return _json(*_reply(done))

    return Route(f"/api/v1/{name}", handle, methods=["POST"])


async def _read_request(request: Request) -> PageRequest | None:
    """Read a request of the page; None if it does not arrive whole."""
    try:
        body, said = await _read_limited_body(request), request.headers
    except (ClientDisconnect, TimeoutError):
        return None
    tab = said.get("x-tab", "")[:LONGEST_TAB] or None
    return PageRequest(said.get("x-session-token", ""), said.get("x-study", ""), tab, body, request)


def _run_guarded(work: Work, call: PageRequest) -> tuple[int, Any]:
    """Return the result; in a refusal ``error`` is for the participant, in their language, the rest for programs."""
    try:
        _admit(call)
        return work(door.get_service().participant, call)
    except (ForetellError, ValidationError) as error:
        return _describe_refusal(error, call)


def _describe_refusal(error: ForetellError | ValidationError, call: PageRequest) -> tuple[int, Any]:
    if isinstance(error, ForetellError):
        refused = _refusal(error)
    else:
        first = error.errors()[0]
        where, what = ".".join(map(str, first["loc"])) or "body", first["msg"].removeprefix("Value error, ")
        refused = Refusal(422, f"{where}: {what}", "refused_link" if where.startswith("recruit") else "ui.wrong")
    shown = _words(call.study)[1][refused.says]
    return refused.code, {"error": shown, "says": refused.says, "detail": str(refused)}


def _refusal(error: ForetellError) -> Refusal:
    """Any of the project's errors as one; a stranger is told neither which studies there are nor what broke."""
    if isinstance(error, Refusal) and error.says == "refused_unknown":
        return Refusal(error.code, "No such study is open.", error.says)
    if isinstance(error, Refusal):
        return error
    log.error("%s", error)
    return Refusal(503 if isinstance(error, StoreError) else 500, "The server cannot do this now; its log says why.")


def _words(study: str) -> tuple[str, dict[str, str]]:
    """Language and texts of a study; of one that is not known or cannot be read, the default language's."""
    try:
        return door.get_service().participant.words(study)
    except ForetellError:
        return DEFAULT_LANGUAGE, DEFAULTS


def _admit(call: PageRequest) -> None:
    """Refuse what is too long, and a request that would change something and does not come from our own page."""
    if len(call.body) > MOST_BYTES:
        raise Refusal(413, f"The request is longer than {MOST_BYTES} bytes.")
    if call.asked.method == "GET":
        return
    if call.asked.headers.get("content-type", "").split(";")[0].strip() != "application/json":
        raise Refusal(403, "Send application/json.")
    if is_foreign_origin(call.asked):
        raise Refusal(403, "This request came from another site.")


async def _read_limited_body(request: Request) -> bytes:
    """The body, or the beginning of one that is too long."""
    body = bytearray()
    async with asyncio.timeout(LONGEST_BODY_S):
        async for chunk in request.stream():
            body += chunk
            if len(body) > MOST_BYTES:
                break
    return bytes(body)


def _json(code: int, content: Any) -> Response:
    headers = {**FRESH, "Retry-After": "1"} if code == 503 else FRESH
    return JSONResponse(content, code, headers)


async def _page(request: Request) -> Response:
    """The page, with the few words that must be there before its script has any."""
    language, texts = await run_in_threadpool(_words, request.path_params["study"])
    return HTMLResponse(PAGE.render(language=language, texts=texts, api=""), headers=FRESH)


async def _without_slash(request: Request) -> Response:
    """The link of a participant who typed a slash too many, with all that it brings."""
    query = f"?{request.url.query}" if request.url.query else ""
    return RedirectResponse(f"/run/{quote(request.path_params['study'], safe='')}{query}", 307, headers=FRESH)


async def _runner_file(request: Request) -> Response:
    path = _FILES.get(request.path_params["file"])
    return FileResponse(path, headers={**SAFE, "Cache-Control": "no-cache"}) if path else _json(404, NO_FILE)


def _read_asset(study: str, sha256: str) -> bytes | None:
    try:
        return door.get_service().participant.read_asset(study, sha256)
    except ForetellError as error:
        if isinstance(error, DamageError):  # a participant would judge another image than the study's
            log.error("%s", error)
        return None


async def _asset(request: Request) -> Response:
    """Serve an image. No Last-Modified: files are written in an order that could tell what belongs together."""
    sha256 = request.path_params["sha256"]
    content = await run_in_threadpool(_read_asset, request.path_params["study"], sha256)
    return Response(content, media_type="image/webp", headers=IMMUTABLE) if content else _json(404, NO_IMAGE)
